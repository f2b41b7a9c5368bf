# SPDX-License-Identifier: BSD-3-Clause
"""A link of two endpoints: docs/PROTOCOL.md §13. It takes the place of a job for Rank."""
import struct

from frames import LINK, Frame, need
from job import FIRST_WAIT, LONGEST_WAIT, VERSION, Member, keyed, mtu_of, own_attributes

REQUEST, ACCEPT, CONFIRM, REFUSE, UNLINK, UNLINKED = range(1, 7)
BODY = struct.Struct(">BBBxIQQIIHHI")
ADDRESS = struct.Struct(">Bx6sII16s")
SLOT = 7  # ours for the peer; any would do
LEFT = 1


class Link:
    def __init__(self, wire, random, address=None, profile=b"urtp"):
        """address: of the endpoint to call; None: waits for a call."""
        self.wire, self.random, self.profile = wire, random, profile
        self.me = Member(wire.mac, random.getrandbits(31) or 1, random.getrandbits(32) or 1)
        self.key, self.attributes, self.mtu = random.randbytes(16), own_attributes(1500), 0
        self.id, self.their_id, self.their_key = random.getrandbits(64) or 1, 0, None
        self.first_in, self.first_out = random.getrandbits(32), 0
        self.rank, self.world, self.members = None, None, {}  # rank: the peer's slot for us
        self.formed, self.ending, self.ended = False, False, False
        self.bad_tags = self.refused = 0
        self.peer = None
        if address:
            version, mac, handle, incarnation, self.their_key = ADDRESS.unpack(address)
            need(version == VERSION, "version of the address")
            self.peer = Member(mac, handle, incarnation)
        self.again, self.wait = 0.0, FIRST_WAIT

    # L-2
    def address(self):
        return ADDRESS.pack(VERSION, self.me.mac, self.me.handle, self.me.incarnation, self.key)

    # --- what is sent
    def send(self, kind, reason=0, ours=None, theirs=None, key=None, to=None):
        to = to or self.peer
        makes = kind in (REQUEST, ACCEPT)
        ours = (0 if kind in (REFUSE, UNLINKED) else self.id) if ours is None else ours
        theirs = (0 if kind == REQUEST else self.their_id) if theirs is None else theirs
        body = BODY.pack(kind, reason, VERSION, self.me.incarnation, ours, theirs, self.me.handle,
                         to.handle, SLOT if makes else 0, len(self.attributes) if makes else 0,
                         self.first_in if makes else 0)
        if kind == REQUEST:
            body += self.profile.ljust(32, b"\0")
        if makes:
            body += self.attributes
            key = key or (self.their_key if kind == REQUEST else self.key)
            body += self.tag(key, self.wire.mac, body)
        self.wire.send(to.mac, Frame(LINK, version=0, body=body).octets())

    # L-11
    @staticmethod
    def tag(key, source, body):
        return keyed(keyed(key, b"ULC link key", 32), source + body, 16)

    # L-22
    def unlink(self):
        self.ending, self.again, self.wait = True, 0.0, 5e-3

    def on_time(self, now):
        calling = self.their_key and not self.formed
        if now < self.again or self.ended or not (calling or self.ending):
            return
        self.send(UNLINK, LEFT) if self.ending else self.send(REQUEST)
        self.again, self.wait = now + self.wait, min(2 * self.wait, LONGEST_WAIT)

    # --- what comes
    def on_frame(self, source, body):
        """A JOB frame: of no job of ours."""

    def on_link(self, source, body):
        need(len(body) >= BODY.size, "LINK body")
        fields = BODY.unpack(body[:BODY.size])
        kind, reason, _, incarnation, theirs, ours, handle, to, slot, octets, first = fields
        if octets:  # L-4, L-41
            need(kind in (REQUEST, ACCEPT) and octets <= len(body) - BODY.size - 16, "attributes")
            self.mtu = mtu_of(body[-16 - octets:-16])
        if to != self.me.handle and to != 0:
            return
        sender = Member(source, handle, incarnation)
        if kind == REQUEST:
            self.on_request(sender, source, body, theirs, slot, first)
        elif kind == UNLINKED and ours == 0:
            if self.formed and not self.ended:
                self.send(CONFIRM)
        elif kind == REFUSE and ours == self.id:
            self.refused = reason
        elif kind == UNLINKED and ours == self.id:
            self.ended = True
            self.gone(source, handle, LEFT)
        elif kind == ACCEPT and ours == self.id:
            if self.tag(self.their_key, source, body[:-16]) != body[-16:]:
                self.bad_tags += 1
                return
            self.up(sender, theirs, slot, first)
            self.send(CONFIRM)
        elif kind in (ACCEPT, CONFIRM, UNLINK):
            if ours != self.id or theirs != self.their_id or self.ended:
                self.send(UNLINKED, theirs=theirs, to=sender)
            elif kind == UNLINK:
                self.send(UNLINKED, theirs=theirs)
                self.gone(source, handle, reason)

    # L-15, L-17, L-19
    def on_request(self, sender, source, body, theirs, slot, first):
        if self.tag(self.key, source, body[:-16]) != body[-16:]:
            self.bad_tags += 1
            return
        if not self.peer:
            self.up(sender, theirs, slot, first)
        if sender.handle == self.peer.handle:
            self.send(ACCEPT)

    def up(self, sender, theirs, slot, first):
        if not self.formed:
            self.peer, self.their_id, self.rank, self.first_out = sender, theirs, slot, first
            self.members, self.formed = {SLOT: sender}, True

    def gone(self, source, handle, reason):
        if self.formed and (self.peer.mac, self.peer.handle) == (source, handle):
            self.peer.gone = reason
