# SPDX-License-Identifier: BSD-3-Clause
"""One raw socket on one interface, with losses by seed in both directions and the wire's CRC option
(§2)."""
import random
import select
import socket
import struct

from frames import C, DATA, ETHERTYPE, HEADER, MCAST, SHORTEST, Malformed, crc32c, need, parse


class Wire:
    def __init__(self, interface, crc=False, loss=0.0, seed=1):
        self.crc, self.loss, self.random = crc, loss, random.Random(seed)
        self.incarnation = random.Random(seed).getrandbits(31) + 1  # of the node
        self.lost_out = self.lost_in = self.malformed = 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        self.socket.bind((interface, ETHERTYPE))
        # SO_RCVBUFFORCE: a slow reader loses nothing
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
        self.socket.setblocking(False)
        self.mac = self.socket.getsockname()[4]
        self.instead = {}  # node → the address of a link of it that is up

    def close(self):
        self.socket.close()

    # N-51
    def own_links(self):
        """Returns the number of the last announcement and the entries of a node of one link."""
        return 0, [(self.mac, 0, 2**32 - 1)]

    def send(self, to, octets):
        """`octets`: from the ULC header on. The same octets may be sent again."""
        self.send_exactly(self.instead.get(to, to), octets)

    # F-2, F-26
    def send_exactly(self, to, octets):
        """Sends to that address, also if its node has another one that is up."""
        if self.loses():
            self.lost_out += 1
            return
        covered = self.mac + struct.pack(">H", ETHERTYPE) + octets
        if self.crc and octets[0] & 15 not in (DATA, MCAST):
            covered += crc32c(covered)
        self.send_as_it_is(to + covered)

    def send_as_it_is(self, frame):
        self.socket.send(frame.ljust(SHORTEST, b"\0"))

    def receive(self, seconds):
        """Waits `seconds` for a first frame; then returns all that are there: (source, destination,
        Frame)."""
        select.select([self.socket], [], [], max(seconds, 0))
        for _ in range(256):
            try:
                octets = self.socket.recv(9216)
            except BlockingIOError:
                return
            if self.loses():
                self.lost_in += 1
                continue
            try:
                frame = parse(octets[14:])
                if self.crc:
                    self.check(octets, frame)
            except Malformed:
                self.malformed += 1
                continue
            yield octets[6:12], octets[:6], frame

    # F-25, F-27
    def check(self, octets, frame):
        if frame.type in (DATA, MCAST):
            need(frame.flags & C, "crc missing")
            return
        end = 14 + HEADER.size + len(frame.body)
        need(crc32c(octets[6:end]) == octets[end:end + 4], "crc")

    def loses(self):
        return self.loss and self.random.random() < self.loss
