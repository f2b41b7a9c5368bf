# SPDX-License-Identifier: BSD-3-Clause
"""Streams of docs/PROTOCOL.md §4: the state of a sender and of a receiver. They report what is due;
rank.py sends it."""
from dataclasses import dataclass

from frames import UNKNOWN_DELAY, AckEntry, ahead, need, plus, request_bitmap

# P-8
WINDOW = 256
ACK_WINDOW = GROUP_ACK_WINDOW = 16
ACK_DELAY = 200e-6
AT_ONCE = 32  # maximum of packets in flight: 2 · ack_window (§4, Congestion)
FIRST_RECV_WAIT, LONGEST_RECV_WAIT = 100e-6, 100e-3
FIRST_SEND_WAIT, LONGEST_SEND_WAIT = 100e-6, 100e-3
REQUEST_OCTETS = 128


class RoundTrip:
    """srtt and var of one peer, as in TCP (RFC 6298)."""

    def __init__(self):
        self.srtt, self.var = 500e-6, 250e-6

    def sample(self, rtt):
        self.var += (abs(rtt - self.srtt) - self.var) / 4
        self.srtt += (rtt - self.srtt) / 8

    def wait(self):
        return self.srtt + 4 * self.var


@dataclass
class Kept:
    octets: bytes
    sent: float
    times: int = 1


class Sending:
    """One numbering of ours: to one rank, or to a group."""

    def __init__(self, name, destinations, first):
        self.name, self.next = name, first
        self.acked = {rank: first for rank in destinations}  # each one's `next`
        self.limit = {rank: plus(first, WINDOW) for rank in destinations}
        self.kept = {}  # by number
        self.round_trip = RoundTrip()
        self.progress, self.wait = 0.0, FIRST_SEND_WAIT

    def base(self):
        return min(self.acked.values(), key=lambda number: ahead(number, self.next),
                   default=self.next)

    # S-4, S-5, S-50
    def may_send(self):
        return (ahead(self.next, self.base()) < AT_ONCE and
                all(ahead(limit, self.next) > 0 for limit in self.limit.values()))

    # S-1, S-2
    def sent(self, octets, now):
        if not self.kept:
            self.progress = now
        self.kept[self.next] = Kept(octets, now)
        self.next = plus(self.next, 1)

    # S-20, S-21, S-44
    def on_entry(self, rank, entry, now):
        """Handles an AckEntry of that member."""
        if rank not in self.acked or ahead(entry.next, self.acked[rank]) < 0:
            return  # older than our state
        need(ahead(entry.next, self.next) <= 0, "acknowledges what was not sent")
        last = self.kept.get(plus(entry.next, -1))
        known = entry.delay != UNKNOWN_DELAY
        if last and last.times == 1 and known and entry.next != self.acked[rank]:
            self.round_trip.sample(max(now - last.sent - entry.delay * 1e-6, 1e-6))
        if entry.next != self.acked[rank]:
            self.progress, self.wait = now, FIRST_SEND_WAIT
        self.acked[rank], self.limit[rank] = entry.next, plus(entry.next, entry.credit)
        self.let_go()

    def gone(self, rank):
        self.acked.pop(rank, None)
        self.limit.pop(rank, None)
        self.let_go()

    def let_go(self):
        base = self.base()
        for number in [n for n in self.kept if ahead(n, base) < 0]:
            del self.kept[number]

    # S-3, S-32
    def repairs(self, numbers, now):
        """Returns the bytes of the requested packets that were not just retransmitted."""
        for number in numbers:
            kept = self.kept.get(number)
            if kept and (kept.times == 1 or now - kept.sent > 0.75 * self.round_trip.srtt):
                kept.sent, kept.times = now, kept.times + 1
                yield kept.octets

    def lacking(self):
        return [rank for rank, acked in self.acked.items() if acked != self.next]

    # S-39, S-40
    def probe_due(self, now):
        if not self.kept or now < self.progress + max(self.round_trip.wait() + ACK_DELAY,
                                                      self.wait):
            return False
        self.progress, self.wait = now, min(2 * self.wait, LONGEST_SEND_WAIT)
        return True


class Receiving:
    """One numbering of another rank, as it arrives here. `index`: ours in the group, None for
    unicast."""

    def __init__(self, first, credit, index=None, members=0):
        # Limit: first number that may not be sent, by our last report
        self.credit, self.limit = credit, plus(first, WINDOW)
        self.next, self.top = first, first  # top: first number that is not known to be sent
        self.held = {}  # number → (frame, when it came)
        self.index, self.modulus = index, max(GROUP_ACK_WINDOW, members)
        self.came = None  # when next − 1 came
        self.told = first  # `next` as last acknowledged
        self.ack_at = None  # when an acknowledgement is due
        self.ask_at, self.wait = None, FIRST_RECV_WAIT

    # S-6, S-7
    def put(self, frame, now):
        """Keeps the packet. Returns the reason if it does not."""
        offset = ahead(frame.seq, self.next)
        if offset < 0 or frame.seq in self.held:
            return "duplicate"
        if offset >= WINDOW:
            return "beyond_window"
        if ahead(frame.seq, self.limit) >= 0:
            return "beyond_credit"
        self.held[frame.seq] = (frame, now)
        self.heard_of(plus(frame.seq, 1))
        return None

    def heard_of(self, top):
        if ahead(top, self.top) > 0:
            self.top = top

    # S-9, S-11, S-14
    def take(self):
        """Handles the packet at next, which is in order: §4 says when to acknowledge it."""
        frame, self.came = self.held.pop(self.next)
        before, self.next = self.next, plus(self.next, 1)
        # A sender with little credit gets the ACK sooner
        untold, soon = ahead(self.next, self.told), max(self.credit // 2, 1)
        if self.index is None:
            self.due(0.0 if untold >= min(ACK_WINDOW, soon) else self.came + ACK_DELAY)
        elif before % self.modulus == self.index or (
                self.credit < 2 * self.modulus and untold >= min(self.modulus, soon)):
            self.due(0.0)
        return frame

    def due(self, at):
        self.ack_at = at if self.ack_at is None else min(self.ack_at, at)

    def entry(self, name, now):
        """Returns the state of this stream; the caller sends it."""
        self.told, self.limit, self.ack_at = self.next, plus(self.next, self.credit), None
        delay = UNKNOWN_DELAY if self.came is None else min(int((now - self.came) * 1e6),
                                                            UNKNOWN_DELAY)
        return AckEntry(name, self.next, self.credit, delay)

    # S-22
    def missing(self):
        return [n for n in (plus(self.next, i) for i in range(ahead(self.top, self.next)))
                if n not in self.held]

    # S-24, S-26
    def ask(self, name, now, least_wait):
        """Returns the body of a REQ, if one is due."""
        if ahead(self.top, self.next) <= 0 or self.next in self.held:
            self.ask_at, self.wait = None, FIRST_RECV_WAIT
            return None
        if self.ask_at is not None and now < self.ask_at:
            return None
        wait = max(self.wait, least_wait)
        self.ask_at, self.wait = now + wait, min(2 * wait, LONGEST_RECV_WAIT)
        bitmap = request_bitmap(self.missing(), self.next)[:REQUEST_OCTETS]
        return self.entry(name, now).octets() + len(bitmap).to_bytes(2, "big") + bitmap
