# SPDX-License-Identifier: BSD-3-Clause
"""Forms and leaves a job: docs/PROTOCOL.md §7."""
import hashlib
import struct
from dataclasses import dataclass

from frames import BROADCAST, JOB, Frame, need

JOIN, ROSTER, ROSTER_ACK, REJECT, BYE, COMMIT = range(1, 7)
PARTIAL, HOLDS_ALL, IS_FORMED, WORLD_IN_USE = range(1, 5)
BY_HAND, INTRODUCES = 1, 2
# J-25
HEAD = struct.Struct(">BBBx64s16s")
JOIN_BODY = struct.Struct(">HBBIHH32s")
CLAIM = struct.Struct(">HI")
ROSTER_BODY = struct.Struct(">IIIHHHHHBxHBxH")
ACK = struct.Struct(">IHBBH")
ENTRY = struct.Struct(">6sIIB")
LEFT = 1
VERSION = 3
# J-37
ITEM = struct.Struct(">BB")
MTU, LEAST_MTU = 1, 576
# A type that no page has: others skip it, and a publisher repeats it.
UNKNOWN = 200
# J-4
FIRST_WAIT, LONGEST_WAIT = 200e-6, 50e-3


# J-30, J-31, J-32
def keyed(key, message, octets):
    return hashlib.blake2b(message, digest_size=octets, key=key).digest()


class JobFailed(Exception):
    pass


# J-36
def attributes_of(octets):
    """Returns the values by type."""
    values, last = {}, 0
    while octets:
        need(len(octets) >= ITEM.size, "item of attributes")
        kind, length = ITEM.unpack_from(octets)
        need(kind > last and len(octets) >= ITEM.size + length, "types and lengths of attributes")
        values[kind], last = octets[ITEM.size:ITEM.size + length], kind
        octets = octets[ITEM.size + length:]
    return values


def mtu_of(octets):
    mtu = int.from_bytes(attributes_of(octets).get(MTU, LEAST_MTU.to_bytes(2, "big")), "big")
    need(mtu >= LEAST_MTU, "MTU")
    return mtu


def own_attributes(mtu):
    return (ITEM.pack(MTU, 2) + mtu.to_bytes(2, "big") + ITEM.pack(UNKNOWN, 3) + b"any")


@dataclass
class Member:
    mac: bytes
    handle: int
    incarnation: int
    attributes: bytes = b""
    gone: int = 0


class Job:
    """One rank of a job, with a separate engine. Rank 0 is the publisher."""

    def __init__(self, wire, random, name, size, rank, profile=b"urtp", nonce=None):
        """`nonce`: that of the launcher; None: by hand."""
        self.wire, self.random = wire, random
        self.name, self.size, self.rank, self.profile = name, size, rank, profile
        self.flags, self.nonce, self.key = BY_HAND, bytes(16), None
        if nonce:
            self.flags, self.nonce = 0, keyed(nonce, b"ULC job id", 16)
            self.key = keyed(nonce, b"ULC job key", 32)
        self.rank0 = set()  # MACs that reported that they have it
        self.bad_tags = 0
        self.me = Member(wire.mac, random.getrandbits(31) or 1, wire.incarnation,
                         own_attributes(1500))
        self.mtu = LEAST_MTU  # of the job
        self.claims = {rank: self.me}  # as the publisher hears them
        self.members = {}  # by rank, once a roster is there
        self.formed = False
        self.number = random.getrandbits(31)  # number of the roster
        # MACs of engines that hold the roster, that have formed
        self.holders, self.done = set(), set()
        self.again, self.wait = 0.0, FIRST_WAIT
        self.byes = 0

    @property
    def first_in(self):
        return self.first_seq

    @property
    def first_out(self):
        return self.first_seq

    def on_link(self, source, body):
        """A LINK frame: no endpoint of ours is open for links."""

    # --- transmission
    def send(self, to, kind, body):
        body = HEAD.pack(kind, self.flags, len(self.name), self.name, self.nonce) + body
        body += self.tag(self.wire.mac, body)
        self.wire.send(to, Frame(JOB, version=0, body=body).octets())

    def tag(self, source, body):
        return keyed(self.key, source + body, 16) if self.key else b""

    # H-13, J-4
    def send_join(self):
        nonce, self.nonce = self.nonce, bytes(16) if self.flags & BY_HAND else self.nonce
        self.send(BROADCAST, JOIN,
                  JOIN_BODY.pack(self.size, VERSION, VERSION, self.me.incarnation, 1,
                                 len(self.me.attributes), self.profile) +
                  CLAIM.pack(self.rank, self.me.handle) + self.me.attributes)
        self.nonce = nonce

    # H-14, J-7, J-9, J-39, J-40
    def send_roster(self):
        """Sends all ranks in one part: as many as fit into a frame."""
        entries, attributes, seen = [], b"", set()
        for _, m in sorted(self.members.items()):
            its = b"" if m.mac in seen else m.attributes
            seen.add(m.mac)
            entries.append(ENTRY.pack(m.mac, m.handle, m.incarnation, len(its)))
            attributes += its
        self.send(BROADCAST, ROSTER,
                  ROSTER_BODY.pack(self.number, self.world, self.first_seq, self.size, 0, 1, 0,
                                   len(entries), VERSION, self.mtu, 0, 0) +
                  b"".join(entries) + attributes)

    # J-8
    def send_roster_ack(self, to, number, state, padding=0):
        self.send(to, ROSTER_ACK, ACK.pack(number, 1, state, 0, padding) + bytes(padding))

    def leave(self):
        self.byes, self.again, self.wait = 4, 0.0, 5e-3

    def on_time(self, now):
        if now < self.again:
            return
        self.again, self.wait = now + self.wait, min(2 * self.wait, LONGEST_WAIT)
        if self.byes:
            self.byes -= 1
            self.send(BROADCAST, BYE, struct.pack(">HBBI", self.rank, LEFT, 0, self.me.handle))
            return
        if not self.formed:
            self.send_join()
        if self.rank == 0 and self.members:
            if not self.formed:
                self.send_roster()
            elif self.engines() - self.done:
                self.send(BROADCAST, COMMIT, struct.pack(">II", self.number, 0))

    def at_once(self, first_wait=1e-3):
        self.again, self.wait = 0.0, first_wait

    def engines(self):
        return {m.mac for m in self.members.values() if not m.gone} - {self.wire.mac}

    # --- reception
    # J-20, J-33
    def on_frame(self, source, body):
        need(len(body) >= HEAD.size, "JobHead")
        kind, flags, length, name, nonce = HEAD.unpack_from(body)
        if name != self.name.ljust(64, b"\0") or length != len(self.name):
            return  # another job
        if flags & ~INTRODUCES != self.flags:
            return
        if self.key:
            if nonce != self.nonce:
                return
            body, tag = body[:-16], body[-16:]
            if tag != self.tag(source, body):
                self.bad_tags += 1
                return
        handler = {JOIN: self.on_join, ROSTER: self.on_roster, ROSTER_ACK: self.on_roster_ack,
                   REJECT: self.on_reject,
                   BYE: self.on_bye, COMMIT: self.on_commit}.get(kind)
        need(handler, "kind")
        if flags & INTRODUCES:
            self.rank0.add(source)
            return
        handler(source, nonce, body[HEAD.size:])

    # J-6, J-16
    def on_join(self, source, nonce, body):
        size, least, greatest, incarnation, claims, octets, profile = JOIN_BODY.unpack_from(body)
        need(len(body) == JOIN_BODY.size + claims * CLAIM.size + octets, "claims and attributes")
        attributes = body[len(body) - octets:]
        mtu_of(attributes)
        if self.formed or (not self.flags and nonce != self.nonce):
            return
        for i in range(claims):
            rank, handle = CLAIM.unpack_from(body, JOIN_BODY.size + i * CLAIM.size)
            if self.rank == 0:
                other_profile = profile != self.profile.ljust(32, b"\0")
                if size != self.size or other_profile or not least <= VERSION <= greatest:
                    raise JobFailed("ranks differ in size, profile or version")
                self.claims[rank] = Member(source, handle, incarnation, attributes)
            elif rank == 0:
                self.rank0.add(source)
                self.send_join()
        if self.rank == 0 and len(self.claims) == self.size and not self.members:
            self.members = self.claims
            self.mtu = min(mtu_of(m.attributes) for m in self.members.values())
            self.world = 1 << 31 | self.random.getrandbits(31)
            self.first_seq = self.random.getrandbits(32)
            self.nonce = self.nonce if not self.flags else self.random.randbytes(16)
            self.at_once()

    # J-10
    def on_roster(self, source, nonce, body):
        (number, world, first_seq, size, part, parts, first, entries,
         version, mtu, of_job, padding) = ROSTER_BODY.unpack_from(body)
        at = ROSTER_BODY.size + of_job
        attributes_of(body[ROSTER_BODY.size:at])
        behind = at + entries * ENTRY.size  # of the attributes of the entries
        members = {}
        for i in range(entries):
            mac, handle, incarnation, octets = ENTRY.unpack_from(body, at + i * ENTRY.size)
            members[first + i] = Member(mac, handle, incarnation, body[behind:behind + octets])
            behind += octets
        need(len(body) == behind + padding and not any(body[behind:]), "entries and attributes")
        need(all(mtu <= mtu_of(m.attributes) for m in members.values() if m.attributes) and
             mtu >= LEAST_MTU, "MTU of the job")
        mine = members.get(self.rank)
        if source not in self.rank0 or members[0].mac != source:
            return  # §7: a roster comes from the node that has rank 0
        if self.rank == 0 or size != self.size or not mine or (
                (mine.mac, mine.handle) != (self.me.mac, self.me.handle)):
            return
        need(parts == 1 and part == 0 and version == VERSION,
             "a roster of one part is all that this one understands")
        if self.formed:
            return
        self.publisher, self.number, self.world = source, number, world
        self.first_seq, self.members, self.nonce, self.mtu = first_seq, members, nonce, mtu
        need(not mine.attributes or mine.attributes == self.me.attributes, "J-40: our attributes")
        self.send_roster_ack(source, number, HOLDS_ALL)

    # J-11, J-12
    def on_commit(self, source, nonce, body):
        (number,) = struct.unpack_from(">I", body)
        if self.rank == 0:
            return
        if self.members and (source, nonce, number) == (self.publisher, self.nonce, self.number):
            self.formed = True
        self.send_roster_ack(source, number, IS_FORMED)

    def on_roster_ack(self, source, nonce, body):
        number, parts, state, octets, padding = ACK.unpack_from(body)
        need(len(body) == ACK.size + octets + padding, "bitmap and padding")
        if self.rank != 0 or number != self.number or nonce != self.nonce:
            return
        if state == WORLD_IN_USE:
            self.world, self.number = 1 << 31 | self.random.getrandbits(31), self.number + 1
            self.holders = set()
            self.at_once()
        if state == HOLDS_ALL:
            self.holders.add(source)
        if state == IS_FORMED:
            self.done.add(source)
        if self.members and not self.formed and self.engines() <= self.holders:
            self.formed = True
            self.at_once()

    # J-19
    def on_reject(self, source, nonce, body):
        if source not in self.rank0 | {claim.mac for claim in self.claims.values()}:
            return
        (error,) = struct.unpack_from(">I", body)
        raise JobFailed(f"rejected: error {error}")

    # J-22
    def on_bye(self, source, nonce, body):
        rank, reason, handle = struct.unpack_from(">HBxI", body)
        self.gone(source, handle, reason)

    def gone(self, source, handle, reason):
        """Handles a BYE, or a GONE of §8."""
        for member in self.members.values():
            if (member.mac, member.handle) == (source, handle):
                member.gone = reason
