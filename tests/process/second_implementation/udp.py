# SPDX-License-Identifier: BSD-3-Clause
"""A node on UDP that knows one other, open or sealed (docs/protocol/IP.md). The ciphers are
OpenSSL's, the hash is Python's: no code of the engine's."""
import ctypes
import ctypes.util
import hashlib
import os
import random
import select
import socket
import struct
import time

from frames import BROADCAST, Malformed, need, parse

TO_ONE, TO_ALL, TO_GROUP, HELLO, WELCOME = 0x10, 0x11, 0x12, 0x18, 0x19
FOR_ONE, FOR_ALL, SEALED_BY = 0x20, 0x21, 0x10  # added to the kind of HELLO and WELCOME
QUESTION, ANSWER = struct.Struct(">BBH6s2xQ44x"), struct.Struct(">BBH6sHQ")
PROOF, SEAL = struct.Struct(">32sQB7x16s"), struct.Struct(">B3sQ")
GROUP, TAG, EPOCH = b"\x03\x55\x4c", 16, 1 << 26
CHACHA, AES = 0, 1
AGAIN = 0.02  # seconds between questions


class Cipher:
    """An AEAD of OpenSSL's libcrypto, EVP_EncryptInit(3)."""
    SET_TAG, GET_TAG = 0x11, 0x10
    library = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")
    for name in "EVP_CIPHER_CTX_new", "EVP_chacha20_poly1305", "EVP_aes_256_gcm":
        getattr(library, name).restype = ctypes.c_void_p

    def __init__(self, kind):
        kinds = self.library.EVP_chacha20_poly1305, self.library.EVP_aes_256_gcm
        self.kind = ctypes.c_void_p(kinds[kind]())
        self.context = ctypes.c_void_p(self.library.EVP_CIPHER_CTX_new())

    def run(self, encrypts, key, number, text, tag, receiver):
        """Returns the other text, and the tag: b"" if it is wrong."""
        nonce = bytes(4) + number.to_bytes(8, "big")
        out, rest = (ctypes.create_string_buffer(len(text) + 16) for _ in range(2))
        octets, lib, context = ctypes.c_int(), self.library, self.context
        need(lib.EVP_CipherInit_ex(context, self.kind, None, key, nonce, encrypts) == 1, "cipher")
        if not encrypts:
            lib.EVP_CIPHER_CTX_ctrl(context, self.SET_TAG, TAG, tag)
        if receiver:
            lib.EVP_CipherUpdate(context, None, ctypes.byref(octets), receiver, len(receiver))
        lib.EVP_CipherUpdate(context, out, ctypes.byref(octets), text, len(text))
        good = lib.EVP_CipherFinal_ex(context, rest, ctypes.byref(octets))
        found = ctypes.create_string_buffer(TAG)
        if encrypts:
            lib.EVP_CIPHER_CTX_ctrl(context, self.GET_TAG, TAG, found)
        return out.raw[:len(text)], found.raw if good == 1 else b""


def keyed(octets, key, label, *more):
    return hashlib.blake2b(label + b"".join(more), key=key, digest_size=octets).digest()


def secret_of_file(octets):
    return keyed(32, bytes(16), b"ULC seal of a file", octets)


class SenderKeys:
    """The keys of a node for one cipher."""

    def __init__(self, secret, salt, name, cipher):
        what = salt, name, bytes([cipher])
        self.base = keyed(32, secret, b"ULC seal", *what)
        self.id = keyed(16, secret, b"ULC seal id", *what)[:3]
        self.cipher = Cipher(cipher)

    def key(self, number):
        return keyed(32, self.base, b"ULC seal epoch", (number // EPOCH).to_bytes(8, "big"))


class UdpWire:
    """Has what the rank asks of a Wire. `secret`: none on an open net. `cipher`: it seals by it."""

    def __init__(self, engine, secret=None, cipher=CHACHA, loss=0.0, seed=1):
        self.engine, self.secret, self.cipher = engine, secret, cipher
        self.random, self.loss, self.crc = random.Random(seed), loss, False
        self.incarnation = self.random.getrandbits(31) + 1
        self.lost_out = self.lost_in = self.malformed = 0
        self.frames_out = 0
        self.instead = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        # I-1, I-12
        self.mac = bytes([os.urandom(1)[0] & 0xFC | 2]) + os.urandom(5)
        self.salt, self.number, self.ciphers = os.urandom(32), 1, 1 << cipher | 1
        self.own = secret and SenderKeys(secret, self.salt, self.mac, cipher)
        self.token, self.ask_at = 0, 0.0
        self.peer, self.answered = None, False  # name of the engine, once it answered; and we did
        self.keys, self.first, self.seen = {}, 0, set()
        self.last = None  # datagram of a frame

    def close(self):
        self.socket.close()

    # N-51
    def own_links(self):
        return 0, [(self.mac, 0, 2**32 - 1)]

    # I-12
    def put(self, octets):
        if self.secret:
            octets = bytes([octets[0] + SEALED_BY]) + octets[1:]
            octets += PROOF.pack(self.salt, self.number, self.ciphers, b"")[:-TAG]
            octets += keyed(TAG, self.secret, b"ULC seal proof", octets)
        self.socket.sendto(octets, self.engine)

    # I-6, I-10
    def ask(self):
        if time.monotonic() < self.ask_at:
            return
        self.ask_at = time.monotonic() + (1.0 if self.peer else AGAIN)
        self.token = self.random.getrandbits(64)
        self.put(QUESTION.pack(HELLO, 0, 0, self.mac, self.token))

    def send(self, to, octets):
        self.send_exactly(to, octets)

    # I-2, I-4, I-14
    def send_exactly(self, to, octets):
        if not (self.peer and self.answered):
            return  # it would be a stranger's
        if self.loses():
            self.lost_out += 1
            return
        kind = TO_ALL if to == BROADCAST else TO_GROUP if to[0] & 1 else TO_ONE
        octets = bytes([kind]) + (to[3:] if kind == TO_GROUP else bytes(3)) + octets
        if self.secret:
            own, number = self.own, self.number
            receiver = to if kind == TO_ONE else b""
            octets, tag = own.cipher.run(1, own.key(number), number, octets, b"", receiver)
            octets = SEAL.pack(FOR_ONE if receiver else FOR_ALL, own.id, number) + octets + tag
            self.number += 1
        self.last = octets
        self.frames_out += 1
        self.socket.sendto(octets, self.engine)

    def receive(self, seconds):
        self.ask()
        select.select([self.socket], [], [], max(seconds, 0))
        for _ in range(256):
            try:
                octets, source = self.socket.recvfrom(9216)
            except BlockingIOError:
                return
            try:
                need(source == self.engine, "source")
                if octets[0] & 0xF in (HELLO & 0xF, WELCOME & 0xF):
                    self.meet(octets)
                    continue
                if self.loses():
                    self.lost_in += 1
                    continue
                if not self.peer:
                    continue  # a stranger's, I-3
                yield self.frame(octets)
            except Malformed:
                self.malformed += 1

    # I-5, I-6, I-13
    def meet(self, octets):
        salt = number = None
        if self.secret:
            salt, number, ciphers, tag = PROOF.unpack(octets[-PROOF.size:])
            need(tag == keyed(TAG, self.secret, b"ULC seal proof", octets[:-TAG]), "proof")
            need(ciphers & 1, "ciphers")
            octets = bytes([octets[0] - SEALED_BY]) + octets[1:-PROOF.size]
        if octets[0] == HELLO:
            need(len(octets) >= QUESTION.size, "HELLO")
            if token := QUESTION.unpack_from(octets)[4]:
                self.put(ANSWER.pack(WELCOME, 0, 0, self.mac, 0, token))
                self.answered = True
            return
        _, _, _, name, entries, token = ANSWER.unpack_from(octets)
        need(octets[0] == WELCOME and len(octets) == ANSWER.size + 20 * entries, "WELCOME")
        if token != self.token or self.peer == name:  # of an earlier question, or known
            return
        self.peer = name
        if self.secret:
            for cipher in CHACHA, AES:
                keys = SenderKeys(self.secret, salt, name, cipher)
                self.keys[keys.id] = keys
            self.first = number

    # I-3, I-14, I-16
    def frame(self, octets):
        if self.secret:
            kind, key, number = SEAL.unpack_from(octets)
            need(kind in (FOR_ONE, FOR_ALL), "kind")
            need(number >= self.first and number not in self.seen, "number")
            need(key in self.keys, "key")
            keys = self.keys[key]
            octets, tag = keys.cipher.run(0, keys.key(number), number, octets[SEAL.size:-TAG],
                                          octets[-TAG:], self.mac if kind == FOR_ONE else b"")
            need(tag, "tag")
            self.seen.add(number)
        to = {TO_ONE: self.mac, TO_ALL: BROADCAST, TO_GROUP: GROUP + octets[1:4]}.get(octets[0])
        need(to, "kind")
        return self.peer, to, parse(octets[4:])

    def loses(self):
        return self.loss and self.random.random() < self.loss
