# SPDX-License-Identifier: BSD-3-Clause
"""The wire of a rank in a mesh (docs/protocol/NODES.md §8.8). The engine has the place (1, 1). This
program is the three other nodes of a mesh of 2 x 2, and the rank runs at (2, 2): each frame between
the two passes one of the nodes between.

    engine (1,1) ── row 1 ── (1,2)
         │                     │
      column 1              column 2      the cables of (2,2) are in this program
         │                     │
       (2,1) ─── row 2 ───── (2,2) rank
"""
import collections
import random
import select
import struct
import time

from frames import BROADCAST, ETHERTYPE, MCAST, NODE, Frame, Malformed, need, parse
from rank import LINK_ENTRY, LINKS, LINKS_NUMBER, LINKS_REPLY, LINKS_REQUEST, NODE_BODY
from wire import Wire

ROW, COLUMN = 0, 1
FORWARD = 13
# N-43
LAYOUT = struct.Struct(">BB6s6sH")
SHORTEST_INNER = 14
ECHO_REQUEST, ECHO_REPLY = 6, 7
TYPE = struct.pack(">H", ETHERTYPE)
MEGABITS = 1000
FIRST_WAIT, SECOND = 0.05, 1.0


def address(number):
    return b"\x02\x55\x4c\x43\x00" + bytes([number])


class Place:
    """A node that this program plays. `numbers`: of its row and of its column."""

    def __init__(self, first, numbers):
        self.links, self.numbers = (address(first), address(first + 1)), numbers
        self.mac = self.links[ROW]  # the first address is that to the row (N-40)

    def entries(self):
        return [(mac, number, MEGABITS) for mac, number in zip(self.links, self.numbers)]

    # N-28, N-40
    def announcement(self, incarnation):
        body = NODE_BODY.pack(LINKS, 0, incarnation, 1, 0, 0) + self.packed()
        return Frame(NODE, version=0, body=body).octets()

    # N-51
    def answer(self, incarnation, question):
        _, _, _, token, _, _ = NODE_BODY.unpack(question)
        body = (NODE_BODY.pack(LINKS_REPLY, 0, incarnation, token, 0, 0) + LINKS_NUMBER.pack(1) +
                self.packed())
        return Frame(NODE, version=0, body=body).octets()

    def packed(self):
        return b"".join(LINK_ENTRY.pack(*entry) for entry in self.entries())


# N-43
def forward(hops, origin, destination, inner):
    return LAYOUT.pack(FORWARD, hops, origin, destination, len(inner)) + inner


class MeshWire:
    """Has what the rank asks of a Wire. `theirs`: the engine's addresses, of row and column."""

    def __init__(self, interfaces, theirs, seed=1):
        self.lines = [Wire(name, seed=seed) for name in interfaces]
        self.theirs, self.random, self.crc = theirs, random.Random(seed), False
        self.between = Place(1, (1, 2)), Place(3, (2, 1))
        self.far = Place(5, (2, 2))
        self.mac, self.incarnation = self.far.mac, self.random.getrandbits(31) + 1
        self.instead, self.malformed = {}, 0
        self.silent = set()  # lines whose node between takes and sends nothing
        self.came = [collections.Counter(), collections.Counter()]  # of each line, by kind
        self.spread = collections.Counter()  # frames for groups that came in FORWARD
        self.plain = collections.Counter()  # and without
        self.passed = []  # frames of others that the engine sent on
        self.wrong = []
        self.announce_at = 0.0
        self.asked = False  # by the engine, for the rank's own place

    def close(self):
        for line in self.lines:
            line.close()

    def node_on(self, line):
        """Returns the address, on the engine's segment, of the node between."""
        return self.between[line].links[line]

    def put(self, line, to, source, octets):
        self.lines[line].send_as_it_is(to + source + TYPE + octets)

    # N-42, N-44, N-45
    def send(self, to, octets):
        """Sends from (2, 2). A frame for a group goes in FORWARD by one line, and plain by the
        other one, which does not lead to the engine."""
        self.send_by(self.random.choice([n for n in (ROW, COLUMN) if n not in self.silent]),
                     to, octets)

    def send_by(self, line, to, octets):
        receiver = to if to[0] & 1 else self.theirs[line]
        self.put(line, receiver, self.node_on(line), forward(0, self.mac, to, octets))

    # N-51
    def own_links(self):
        self.asked = True
        return 1, self.far.entries()

    def send_exactly(self, to, octets):
        """By both lines, so that no later frame of either overtakes the proof of this place."""
        for line in {ROW, COLUMN} - self.silent:
            self.send_by(line, to, octets)

    # N-27, N-45
    def announce(self):
        for line, node in enumerate(self.between):
            if line not in self.silent:
                self.put(line, BROADCAST, node.mac, node.announcement(line + 1))

    def receive(self, seconds):
        now = time.monotonic()
        if now >= self.announce_at:
            # The engine asks the nodes between before it takes frames from them.
            self.announce_at = now + (SECOND if self.asked else FIRST_WAIT)
            self.announce()
            self.send(BROADCAST, self.far.announcement(self.incarnation))
        yield from self.frames(seconds)

    def frames(self, seconds):
        select.select([line.socket for line in self.lines], [], [], max(seconds, 0))
        for number, line in enumerate(self.lines):
            for _ in range(256):
                try:
                    octets = line.socket.recv(9216)
                except BlockingIOError:
                    break
                try:
                    found = self.take(number, octets[:6], octets[6:12], octets[14:])
                except (Malformed, struct.error):
                    self.malformed += 1
                    continue
                if found:
                    yield found

    # N-41, N-45
    def take(self, line, to, source, octets):
        if octets[0] & 15 == FORWARD:
            return self.take_forward(line, to, source, octets)
        frame = parse(octets)
        self.check_links(frame)
        if frame.type == MCAST and to[0] & 1:
            self.plain[frame.octets()] += 1
        if frame.type == NODE and frame.body[0] == LINKS_REQUEST and to == self.node_on(line):
            if line not in self.silent:
                node = self.between[line]
                self.put(line, self.theirs[line], node.mac, node.answer(line + 1, frame.body))
        if not to[0] & 1 and to != self.node_on(line) and to not in self.theirs:
            self.wrong.append(f"a frame without FORWARD is for {to.hex()}")
        return None

    # N-43, N-44, N-45
    def take_forward(self, line, to, source, octets):
        head, hops, origin, destination, length = LAYOUT.unpack_from(octets)
        inner = octets[LAYOUT.size:LAYOUT.size + length]
        need(head == FORWARD and hops <= 1 and SHORTEST_INNER <= length == len(inner), "FORWARD")
        need(inner[0] & 15 != FORWARD, "FORWARD in FORWARD")
        if hops == 0:
            self.passed.append((line, to, source, origin, destination, inner))
            return None
        for_all = destination[0] & 1
        if (origin, source) != (self.theirs[ROW], self.theirs[ROW]):
            self.wrong.append(f"FORWARD from {source.hex()}, of {origin.hex()}")
        if to != (BROADCAST if for_all else self.node_on(line)):
            self.wrong.append(f"FORWARD for {destination.hex()} is sent to {to.hex()}")
        if not for_all and destination != self.mac:
            self.wrong.append(f"FORWARD for {destination.hex()}, of the engine's own lines")
        frame = parse(inner)
        self.check_links(frame)
        if frame.type == MCAST and for_all:  # a repair is for one node
            self.spread[frame.octets()] += 1
        kind = frame.body[0] if frame.type == NODE else None
        self.came[line]["questions" if kind == ECHO_REQUEST else "frames"] += 1
        if line in self.silent:
            return None
        if kind == ECHO_REQUEST:
            self.reply(line, frame.body)
            return None
        return origin, destination, frame

    # N-48
    def reply(self, line, question):
        """The reply takes the path of the question."""
        _, _, _, token, _, _ = NODE_BODY.unpack(question)
        body = NODE_BODY.pack(ECHO_REPLY, 0, self.incarnation, token, 0, 0)
        self.send_by(line, self.theirs[ROW], Frame(NODE, version=0, body=body).octets())

    # N-40
    def check_links(self, frame):
        if frame.type != NODE or frame.body[0] != LINKS:
            return
        entries = list(LINK_ENTRY.iter_unpack(frame.body[NODE_BODY.size:]))
        if [entry[:2] for entry in entries] != [(mac, 1) for mac in self.theirs]:
            self.wrong.append(f"the engine announces {entries}")
