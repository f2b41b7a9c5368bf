# SPDX-License-Identifier: BSD-3-Clause
"""One rank: ordering (docs/PROTOCOL.md §5), messages and groups (§6), the answers of a node (§8).
Time is the argument `now`."""
import collections
import struct

from frames import (A, ACK, BROADCAST, C, DATA, F, HEADER, JOB, L, LINK, MCAST, MTU, N, NODE, PROBE,
                    R, REQ, S, T, AckEntry, Frame, Malformed, ahead, need, packed, plus,
                    requested, unpacked)
from groups import Groups
from streams import WINDOW, Receiving, Sending

PING, PONG, GONE, EXPELLED = 1, 2, 3, 4
EXCLUDED = 3  # reason of EXPELLED: the one endpoint, not its node
NODE_BODY = struct.Struct(">BBxxIQII")
LINK_ENTRY = struct.Struct(">6sHI")
LINKS, LINKS_REQUEST, LINKS_REPLY = 5, 8, 9
LINKS_NUMBER = struct.Struct(">Q")
Message = collections.namedtuple("Message", "source stream tag octets")


class Rank:
    def __init__(self, wire, job, credit=WINDOW):
        self.wire, self.job, self.credit = wire, job, credit
        self.groups = {}  # handle → ranks in order
        self.making = Groups(job.rank, self.submit, self.groups.__setitem__)
        self.sending = {}  # by name of the stream: rank or group
        self.receiving = collections.defaultdict(dict)  # source → name of the stream → Receiving
        self.unfinished = {}  # source → its message that is being assembled
        # [name, subset, tag, octets, offset], in order of submission
        self.to_send = collections.deque()
        self.inbox = collections.deque()
        self.asked = {}  # node → token of our newest question
        self.links = {}  # node → its incarnation, number of its announcement, (address, speed)…
        self.node_of = {}  # address of a link that counts → node
        self.asks = {}  # node → token of a question of this round → address that it went to
        self.counters = collections.Counter()
        self.packs = b"pack" in job.profile.split(b"+")

    # --- for the application
    def submit(self, to, tag, octets, subset=0):
        """`to`: a rank or a group."""
        self.to_send.append([to, subset, tag, octets, 0])

    def idle(self):
        """True if everything submitted is acknowledged."""
        return not self.to_send and not any(stream.kept for stream in self.sending.values())

    # --- one round
    def step(self, now, seconds):
        """Waits `seconds` for frames, then does what is due."""
        for source, to, frame in self.wire.receive(seconds):
            try:
                self.on_frame(source, to, frame, now())
            except (Malformed, struct.error) as why:
                self.counters[f"bad {why}"] += 1
        self.job.on_time(now())
        if self.job.formed:
            self.acknowledge_and_ask(now())
            self.transmit(now())
            self.probe(now())

    # --- reception
    def on_frame(self, source, to, frame, now):
        if frame.type == JOB:
            self.job.on_frame(source, frame.body)
            if self.job.formed:  # the next frame may be one of the world
                self.groups.setdefault(self.job.world, list(range(self.job.size)))
        elif frame.type == NODE:
            self.on_node(source, frame.body)
        elif frame.type == LINK:
            self.job.on_link(self.node_of.get(source, source), frame.body)
        elif self.known(self.node_of.get(source, source), to, frame):
            self.HANDLERS[frame.type](self, frame, to != self.wire.mac, now)

    # F-28, H-4
    def known(self, source, to, frame):
        """Checks a frame by §3: the handle is ours, MAC and rank agree with the roster."""
        if not self.job.formed:
            return False
        if frame.handle not in self.groups and frame.handle != self.job.me.handle:
            self.counters["unknown_handle"] += 1
            if to == self.wire.mac:
                self.send_node(source, GONE, 2, ours=frame.handle)
            return False
        member = self.job.members.get(frame.rank)
        if not member or member.mac != source:
            self.counters["wrong_source"] += 1
            return False
        return True

    # N-2, N-3, N-4, N-8, N-13
    def on_node(self, source, body):
        """Handles a NODE frame by §8. An unsolicited report only makes us ask; the answer to our
        question counts."""
        kind, reason, incarnation, token, ours, theirs = NODE_BODY.unpack(body[:NODE_BODY.size])
        if kind == LINKS:
            self.on_links(source, incarnation, token, body[NODE_BODY.size:])
        elif kind == LINKS_REQUEST:
            self.send_links(source, token)
        elif kind == LINKS_REPLY:
            self.on_links_reply(source, incarnation, token, body[NODE_BODY.size:])
        elif kind == PING:
            self.counters["pings"] += 1
            gone = [m.gone for m in self.job.members.values()
                    if (m.mac, m.handle, m.incarnation) == (source, ours, incarnation) and m.gone]
            if gone:
                reason = EXCLUDED if gone[0] == EXCLUDED else 0
                self.send_node(source, EXPELLED, reason, token, theirs=ours)
            elif theirs not in (0, self.job.me.handle):
                self.send_node(source, GONE, 2, token, ours=theirs)
            else:
                self.send_node(source, PONG, 0, token)
        elif token == 0:
            self.ask(source, self.job.me.handle if kind == EXPELLED else 0, ours)
        elif self.asked.get(source) == token:
            self.counters["answers"] += 1
            if kind == GONE:
                self.job.gone(source, ours, reason)
            elif kind == EXPELLED and theirs == self.job.me.handle:
                for member in self.job.members.values():
                    if (member.mac, member.incarnation) == (source, incarnation):
                        self.job.gone(source, member.handle, reason or 2)

    # N-28, N-55
    def on_links(self, node, incarnation, number, entries):
        """A hint about a node with several links (§8.6): asks it at the addresses that count."""
        if not entries or len(entries) % LINK_ENTRY.size or len(entries) > 4 * LINK_ENTRY.size:
            return
        old = self.links.get(node)
        known = old and old[0] == incarnation and number <= old[1]
        other = any(m.mac == node and m.incarnation != incarnation
                    for m in self.job.members.values())
        if next(LINK_ENTRY.iter_unpack(entries))[0] != node or known or other:
            return
        self.asks[node] = {}
        for mac in {node} | {mac for mac, owner in self.node_of.items() if owner == node}:
            self.ask_links(node, mac)

    # N-52, N-54
    def ask_links(self, node, mac):
        token = self.job.random.getrandbits(64) or 1
        self.asks[node][token] = mac
        body = NODE_BODY.pack(LINKS_REQUEST, 0, self.job.me.incarnation, token, 0, 0)
        self.wire.send_exactly(mac, Frame(NODE, version=0, body=body).octets())

    # N-51
    def send_links(self, to, token):
        number, entries = self.wire.own_links()
        body = (NODE_BODY.pack(LINKS_REPLY, 0, self.job.me.incarnation, token, 0, 0) +
                LINKS_NUMBER.pack(number) + b"".join(LINK_ENTRY.pack(*entry) for entry in entries))
        self.wire.send_exactly(to, Frame(NODE, version=0, body=body).octets())

    # N-29, N-30, N-31, N-32, N-52, N-53, N-58
    def on_links_reply(self, node, incarnation, token, body):
        """Takes the addresses of a node, or that one of them answers (§8.9)."""
        asked = self.asks.get(node, {}).get(token)
        number, = LINKS_NUMBER.unpack_from(body)
        entries = list(LINK_ENTRY.iter_unpack(body[LINKS_NUMBER.size:]))
        old = self.links.get(node)
        nodes = {m.mac for m in self.job.members.values()} | {self.wire.mac}
        foreign = any(self.node_of.get(mac, node) != node or (mac in nodes and mac != node)
                      for mac, _, _ in entries)
        if asked is None or entries[0][0] != node or foreign:
            return
        counting = {mac for mac, owner in self.node_of.items() if owner == node} | {node}
        same_life = old and old[0] == incarnation
        if asked in counting:
            if same_life and number < old[1]:
                return
            counting = counting if same_life else {node}
            if entries[0][1]:  # in a mesh the known address alone is asked
                counting = {mac for mac, _, _ in entries}
            self.links[node] = incarnation, number, [(mac, speed) for mac, _, speed in entries]
            for mac, _, speed in entries:
                if mac not in counting and speed and mac not in self.asks[node].values():
                    self.ask_links(node, mac)
        elif same_life and asked in [mac for mac, _, _ in entries]:
            counting.add(asked)
            self.ask_links(node, asked)  # N-58
        links = [(mac, speed) for mac, speed in self.links[node][2] if mac in counting]
        self.node_of = {mac: n for mac, n in self.node_of.items() if n != node}
        self.node_of.update((mac, node) for mac, _ in links)
        self.counters["links"] += 1
        self.wire.instead[node] = next((mac for mac, speed in links if speed), node)

    def ask(self, node, ours, theirs):
        self.asked[node] = self.job.random.getrandbits(64) or 1
        self.send_node(node, PING, 0, self.asked[node], ours, theirs)

    def send_node(self, to, kind, reason, token=0, ours=0, theirs=0):
        body = NODE_BODY.pack(kind, reason, self.job.me.incarnation, token, ours, theirs)
        self.wire.send(to, Frame(NODE, version=0, body=body).octets())

    def stream_from(self, source, name):
        streams = self.receiving[source]
        if name not in streams:
            ranks = self.groups.get(name)
            index = ranks.index(self.job.rank) if ranks else None
            streams[name] = Receiving(self.job.first_in, self.credit, index, len(ranks or ()))
        return streams[name]

    # O-6, S-15, S-18, S-19
    def on_packet(self, frame, to_all, now):
        name = frame.handle if frame.type == MCAST else self.job.rank
        if frame.ack:
            self.on_entry(frame.rank, frame.ack, now)
        stream = self.stream_from(frame.rank, name)
        for other, number in frame.after:
            if self.hears(other) and ahead(number,
                                           self.stream_from(frame.rank, other).next) > WINDOW:
                self.counters["after_unmeetable"] += 1
                return
        refused = stream.put(frame, now)
        if refused:
            self.counters[refused] += 1
            if refused == "duplicate" and not (to_all and frame.type == MCAST):
                stream.due(0.0)
        if frame.flags & N:
            stream.due(0.0)
        self.take_in_order(frame.rank)

    def hears(self, name):
        return name == self.job.rank or name in self.groups

    # O-5, S-8, S-10
    def take_in_order(self, source):
        """Advances each stream as far as possible, until none advances: a packet of one may be the
        one that another waits for."""
        streams = self.receiving[source]
        moved = True
        while moved:
            moved = False
            for name, stream in list(streams.items()):
                while stream.next in stream.held and self.may_join(source,
                                                                   stream.held[stream.next][0]):
                    frame, moved = stream.take(), True
                    if self.is_named(frame):
                        self.on_ready(source, name, frame)

    def is_named(self, frame):
        if not frame.subset:
            return True
        return frame.subset >> self.groups[frame.handle].index(self.job.rank) & 1

    def may_join(self, source, frame):
        return not self.is_named(frame) or all(
            not self.hears(name) or ahead(self.stream_from(source, name).next, number) > 0
            for name, number in frame.after)

    # M-4
    def on_ready(self, source, name, frame):
        """Assembles messages by §6.1: one message of a source at a time."""
        if self.packs and frame.flags & F and frame.flags & L:
            return self.on_list(source, name, frame)
        if frame.flags & F:
            self.unfinished[source] = (name, frame.tag, frame.total or len(frame.body), [])
        of, tag, total, parts = self.unfinished.get(source, (None, 0, 0, []))
        parts.append(frame.body)
        octets = sum(map(len, parts))
        lengths_agree = octets == total if frame.flags & L else octets < total
        if of != name or not lengths_agree or not (frame.body or frame.flags & F
                                                   and frame.flags & L):
            self.counters["framing"] += 1
            self.unfinished.pop(source, None)
        elif frame.flags & L:
            del self.unfinished[source]
            self.on_message(Message(source, name, tag, b"".join(parts)))

    # M-15, M-16
    def on_list(self, source, name, frame):
        """Takes the messages of a packet of whole ones (§6.7)."""
        self.unfinished.pop(source, None)
        need(not frame.flags & T, "pack")
        messages = unpacked(frame.body)
        self.counters["shared packets"] += len(messages) > 1
        for tag, octets in messages:
            self.on_message(Message(source, name, tag, octets))

    def on_message(self, message):
        if message.tag >> 62 == 3:
            self.making.on_control(message.source, message.tag, message.octets)
        else:
            self.inbox.append(message)

    # --- reports of others about our streams
    def on_entry(self, rank, entry, now):
        need(entry.stream in self.groups or entry.stream == rank, "acknowledges no stream of ours")
        # Or nothing was sent in it yet: its receiver waits for that
        self.stream_to(entry.stream).on_entry(rank, entry, now)

    # F-21
    def on_ack(self, frame, to_all, now):
        need(0 < len(frame.body) <= 16 * 12 and len(frame.body) % 12 == 0, "entries")
        for i in range(0, len(frame.body), 12):
            self.on_entry(frame.rank, AckEntry.of(frame.body[i:i + 12]), now)

    # S-3, S-22
    def on_req(self, frame, to_all, now):
        entry = AckEntry.of(frame.body[:12])
        numbers = requested(entry, frame.body)
        self.on_entry(frame.rank, entry, now)
        for octets in self.sending[entry.stream].repairs(numbers, now):
            self.counters["repairs"] += 1
            self.wire.send(self.job.members[frame.rank].mac, octets)

    # S-16, S-17
    def on_probe(self, frame, to_all, now):
        (name,) = struct.unpack(">I", frame.body)
        need(self.hears(name), "probes no stream to us")
        stream = self.stream_from(frame.rank, name)
        need(ahead(frame.seq, stream.next) <= WINDOW, "probe far ahead")
        self.counters["probes"] += 1
        stream.heard_of(frame.seq)
        stream.due(0.0)

    HANDLERS = {DATA: on_packet, MCAST: on_packet, ACK: on_ack, REQ: on_req, PROBE: on_probe}

    # --- transmission
    # S-12, S-26
    def acknowledge_and_ask(self, now):
        for source, streams in self.receiving.items():
            member = self.job.members[source]
            if member.gone:
                continue
            for name, stream in streams.items():
                least = self.stream_to(source).round_trip.wait()
                body = stream.ask(name, now, least)
                if body:
                    self.counters["requests"] += 1
                    self.wire.send(member.mac,
                                   Frame(REQ, member.handle, self.job.rank, body=body).octets())
            due = [(name, s) for name, s in streams.items() if s.ack_at is not None
                   and s.ack_at <= now][:16]
            if due:
                body = b"".join(stream.entry(name, now).octets() for name, stream in due)
                self.wire.send(member.mac,
                               Frame(ACK, member.handle, self.job.rank, body=body).octets())

    def stream_to(self, name):
        if name not in self.sending:
            ranks = self.groups.get(name, [name])
            living = [r for r in ranks if r != self.job.rank and not self.job.members[r].gone]
            self.sending[name] = Sending(name, living, self.job.first_out)
        return self.sending[name]

    # M-3, O-4, S-1
    def transmit(self, now):
        """Sends new packets in order of submission, as far as window and credit allow."""
        for rank, member in self.job.members.items():
            if member.gone:
                for stream in self.sending.values():
                    stream.gone(rank)
        while self.to_send and self.stream_to(self.to_send[0][0]).may_send():
            message = self.to_send[0]
            name, subset, tag, octets, offset = message
            stream = self.sending[name]
            frame = Frame(DATA, 0, self.job.rank, stream.next)
            if name in self.groups:
                frame.type, frame.handle, to = MCAST, name, BROADCAST
            else:
                frame.handle, to = self.job.members[name].handle, self.job.members[name].mac
            frame.after = self.predecessors(stream, self.named(name, subset))
            need(len(frame.after) <= 4, "this implementation does not wait for predecessors")
            frame.subset, frame.tag = subset, tag
            frame.flags = ((R if frame.after else 0) | (S if subset else 0)
                           | (C if self.wire.crc else 0))
            if frame.type == DATA:
                self.piggyback(frame, name, now)
            self.cut(frame, octets, offset)
            if self.packs and frame.flags & F and frame.flags & L:
                self.pack(frame)  # takes its messages away
            elif frame.flags & L:
                self.to_send.popleft()
            else:
                message[4] += len(frame.body)
            packet = frame.octets()
            stream.sent(packet, now)
            self.wire.send(to, packet)

    # J-39
    def mtu(self):
        return min(MTU, self.job.mtu or MTU)

    # M-14, M-15, M-17
    def pack(self, frame):
        """Makes the frame's body a list of the first message and of those behind it that fit and
        go to the same ranks."""
        name, subset = self.to_send[0][:2]
        crc = 4 if frame.flags & C else 0
        room = self.mtu() - HEADER.size - len(frame.extensions()) - crc
        frame.body, count = b"", 0
        while self.to_send and count < 64 and self.to_send[0][:2] == [name, subset]:
            one = packed(self.to_send[0][2], self.to_send[0][3])
            if len(frame.body) + len(one) > room:
                break
            frame.body += one
            count += 1
            self.to_send.popleft()
        self.counters["packed"] += count - 1

    # M-1, M-2
    def cut(self, frame, octets, offset):
        """Takes as much of the message as fits into the frame (§6.1)."""
        crc = 4 if frame.flags & C else 0
        too_long = False
        if offset == 0 and self.packs:  # a whole message needs the head of a list (§6.7)
            room = self.mtu() - HEADER.size - len(frame.extensions()) - crc
            if len(packed(frame.tag, b"")) + len(octets) <= room:
                frame.tag, frame.flags = 0, frame.flags | F | L
                return  # pack() makes the body
            too_long = True
        if offset == 0:
            frame.flags |= F | (T if frame.tag else 0)
        frame.flags |= L  # without the length of a continuation
        around = HEADER.size + crc
        if too_long or len(octets) - offset > self.mtu() - around - len(frame.extensions()):
            frame.flags &= ~L
            frame.total = len(octets)
        room = self.mtu() - around - len(frame.extensions())
        frame.body = octets[offset:offset + room]

    def named(self, name, subset):
        ranks = self.groups.get(name, [name])
        return {r for i, r in enumerate(ranks) if r != self.job.rank
                and (not subset or subset >> i & 1)}

    # O-1
    def predecessors(self, stream, destinations):
        """Returns (§5) the last number of each other stream from which a destination of this packet
        lacks a packet."""
        return [(other.name, plus(other.next, -1)) for other in self.sending.values()
                if other is not stream and destinations & set(other.lacking())]

    # S-12
    def piggyback(self, frame, to, now):
        due = [(name, s) for name, s in self.receiving[to].items() if s.ack_at is not None]
        if due:
            frame.flags |= A
            frame.ack = due[0][1].entry(due[0][0], now)

    # S-39
    def probe(self, now):
        for stream in self.sending.values():
            lacking = stream.lacking()
            if not lacking or not stream.probe_due(now):
                continue
            one = self.job.members[lacking[0]]
            to, handle = (one.mac, one.handle) if len(lacking) == 1 else (BROADCAST, stream.name)
            body = struct.pack(">I", stream.name)
            self.wire.send(to, Frame(PROBE, handle, self.job.rank, stream.next, body=body).octets())
