# SPDX-License-Identifier: BSD-3-Clause
"""Makes a group: docs/PROTOCOL.md §3 (its handle) and §6.2 (reports and verdicts). Its frames go by
broadcast, whatever address (§6.5) the others use: a raw socket hears all, so it has no limit of
addresses, and broadcast is always right."""
import collections
import struct

from frames import need

# G-4
REPORT, VERDICT = 3 << 62 | 1, 3 << 62 | 2
CONTROL = struct.Struct(">IIQQIxxxx")
MISMATCH = 16


def fnv1a(octets, bits):
    value, prime = (0x811C9DC5, 0x01000193) if bits == 32 else (0xCBF29CE484222325, 0x100000001B3)
    for octet in octets:
        value = (value ^ octet) * prime & (1 << bits) - 1
    return value


def octets_of(ranks):
    return struct.pack(f">{len(ranks)}H", *ranks)


# G-5, H-5
class Forming:
    def __init__(self, world, ranks, nth, made):
        self.ranks, self.nth, self.status, self.over = ranks, nth, 0, False
        self.handle = 1 << 31 | fnv1a(struct.pack(">I", world) + octets_of(ranks)
                                      + struct.pack(">I", made), 32)
        self.set_hash, self.list_hash = fnv1a(octets_of(sorted(ranks)),
                                              64), fnv1a(octets_of(ranks), 64)
        self.reported = set()

    def control(self):
        return CONTROL.pack(self.handle, self.nth, self.set_hash, self.list_hash, self.status)


class Groups:
    """submit(rank, tag, octets) sends a message; register(handle, ranks) lets frames of the group
    in."""

    def __init__(self, own, submit, register):
        self.own, self.submit, self.register = own, submit, register
        self.sets, self.lists = collections.Counter(), collections.Counter()
        self.forming, self.early = [], []

    # G-1, G-7
    def create(self, world, ranks):
        """Over when .over; made if then .status is 0."""
        forming = Forming(world, ranks, self.sets[tuple(sorted(ranks))], self.lists[tuple(ranks)])
        self.sets[tuple(sorted(ranks))] += 1
        self.lists[tuple(ranks)] += 1
        self.register(forming.handle, ranks)
        self.forming.append(forming)
        if self.own != min(ranks):
            self.submit(min(ranks), REPORT, forming.control())
        early, self.early = self.early, []
        for message in early:
            self.on_control(*message)
        return forming

    # G-6
    def on_control(self, source, tag, octets):
        need(len(octets) >= CONTROL.size and tag in (REPORT, VERDICT), "group control")
        handle, nth, set_hash, list_hash, status = CONTROL.unpack(octets[:CONTROL.size])
        forming = next((f for f in self.forming if not f.over and (f.set_hash, f.nth)
                        == (set_hash, nth)), None)
        if forming is None:
            self.early.append((source, tag, octets))
        elif tag == VERDICT:
            forming.status, forming.over = status, True
        else:
            self.on_report(forming, source, status if (handle, list_hash)
                           == (forming.handle, forming.list_hash) else MISMATCH)

    # G-2, G-9
    def on_report(self, forming, source, status):
        forming.reported.add(source)
        forming.status = forming.status or status
        if forming.reported == set(forming.ranks) - {self.own}:
            forming.over = True
            for rank in forming.reported:
                self.submit(rank, VERDICT, forming.control())
