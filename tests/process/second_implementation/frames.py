# SPDX-License-Identifier: BSD-3-Clause
"""Frames of docs/PROTOCOL.md §2: bytes to fields and back. Section numbers in this folder are those
of that page."""
import struct
from dataclasses import dataclass, field

ETHERTYPE = 0x88B5
BROADCAST = b"\xff" * 6
# F-3
HEADER = struct.Struct(">BBHIHI")  # version and type, flags, length, handle, source rank, seq
DATA, MCAST, ACK, REQ, PROBE, JOB, NODE = range(1, 8)
LINK = 12
# F-5, F-8
FROZEN = JOB, NODE, LINK  # of version 0, without handle and rank
F, L, A, R, S, T, N, C = (1 << bit for bit in range(7, -1, -1))  # flags, most significant first
UNKNOWN_DELAY = 65535
MTU = 1500
SHORTEST = 60  # bytes of a frame, without its check sequence


class Malformed(Exception):
    """A frame that §2 says to drop."""


def need(holds, what):
    if not holds:
        raise Malformed(what)


# H-16
def ahead(a, b):
    """Returns a − b of serial numbers (RFC 1982, §3): positive if a is after b."""
    return ((a - b + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def plus(a, n):
    return (a + n) & 0xFFFFFFFF


def _crc_table():
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)  # 0x1EDC6F41, reflected
        yield octet


# F-23
CRC_TABLE = tuple(_crc_table())


def crc32c(octets):
    crc, table = 0xFFFFFFFF, CRC_TABLE
    for octet in octets:
        crc = crc >> 8 ^ table[(crc ^ octet) & 255]
    return struct.pack(">I", crc ^ 0xFFFFFFFF)


# M-14
def packed(tag, octets):
    """Returns one message of a list."""
    length = len(octets) | (0x8000 if tag else 0)
    return struct.pack(">H", length) + (struct.pack(">Q", tag) if tag else b"") + octets


# M-14, M-16
def unpacked(body):
    """Returns the (tag, octets) of each message of a list."""
    messages = []
    while body:
        need(len(body) >= 2, "pack")
        (word,) = struct.unpack(">H", body[:2])
        start = 10 if word & 0x8000 else 2
        end = start + (word & 0x7FFF)
        need(len(body) >= end, "pack")
        messages.append((struct.unpack(">Q", body[2:10])[0] if start == 10 else 0,
                         body[start:end]))
        body = body[end:]
    need(1 <= len(messages) <= 64, "pack")
    return messages


# F-19, F-20
@dataclass
class AckEntry:
    stream: int
    next: int
    credit: int
    delay: int
    LAYOUT = struct.Struct(">IIHH")

    def octets(self):
        return self.LAYOUT.pack(self.stream, self.next, self.credit, self.delay)

    @classmethod
    def of(cls, octets):
        need(len(octets) == 12, "AckEntry")
        return cls(*cls.LAYOUT.unpack(octets))


@dataclass
class Frame:
    type: int
    handle: int = 0
    rank: int = 0
    seq: int = 0
    flags: int = 0
    ack: AckEntry = None
    after: list = field(default_factory=list)  # of (stream, number)
    subset: int = 0
    tag: int = 0
    total: int = 0
    body: bytes = b""  # payload, or body of a control frame
    version: int = 1

    # F-13
    def extensions(self):
        parts = []
        if self.flags & A:
            parts.append(self.ack.octets())
        if self.flags & R:
            parts.append(bytes([len(self.after)]))
            parts += [struct.pack(">II", *entry) for entry in self.after]
        if self.flags & S:
            parts.append(struct.pack(">Q", self.subset))
        if self.flags & T:
            parts.append(struct.pack(">Q", self.tag))
        if self.flags & F and not self.flags & L:
            parts.append(struct.pack(">Q", self.total))
        return b"".join(parts)

    def octets(self):
        """Returns the bytes from the ULC header to the end of the payload."""
        length = len(self.body) + (4 if self.flags & C else 0)
        octets = HEADER.pack(self.version << 4 | self.type, self.flags, length, self.handle,
                             self.rank, self.seq)
        octets += self.extensions() + self.body
        return octets + crc32c(octets) if self.flags & C else octets


class Reader:
    def __init__(self, octets):
        self.octets, self.at = octets, 0

    def take(self, n):
        need(self.at + n <= len(self.octets), "short")
        self.at += n
        return self.octets[self.at - n:self.at]

    def unpack(self, form):
        layout = struct.Struct(">" + form)
        return layout.unpack(self.take(layout.size))


# F-5, F-6, F-7, F-8, F-9, F-14, F-15, F-16, F-17, F-18, F-24
def parse(octets):
    """Parses a frame behind the EtherType, with padding. Raises Malformed."""
    reader = Reader(octets)
    head, flags, length, handle, rank, seq = HEADER.unpack(reader.take(HEADER.size))
    frame = Frame(head & 15, handle, rank, seq, flags, version=head >> 4)
    need(frame.version == (0 if frame.type in FROZEN else 1), "version")
    if frame.type not in (DATA, MCAST):
        need(DATA <= frame.type <= NODE or frame.type == LINK, "type")
        need(flags == 0, "flags of a control frame")
        need(frame.type == PROBE or seq == 0, "seq of a control frame")
        need(frame.type not in FROZEN or handle == rank == 0, "handle and rank of a frozen frame")
        need(frame.type == PROBE or handle >> 31 == 0, "handle of ACK or REQ")
        frame.body = reader.take(length)
        return frame
    need(handle >> 31 == (frame.type == MCAST), "handle of the wrong kind")
    need(not flags & T or flags & F, "tag behind the first packet")
    need(not flags & A or frame.type == DATA, "acknowledgement on MCAST")
    need(not flags & S or frame.type == MCAST, "subset on DATA")
    if flags & A:
        frame.ack = AckEntry.of(reader.take(12))
    if flags & R:
        (count,) = reader.unpack("B")
        need(1 <= count <= 4, "count of after entries")
        frame.after = [reader.unpack("II") for _ in range(count)]
        need(all(stream >> 31 or stream < 65535 for stream, _ in frame.after),
             "stream of an after entry")
    if flags & S:
        (frame.subset,) = reader.unpack("Q")
        need(frame.subset, "empty subset")
    if flags & T:
        (frame.tag,) = reader.unpack("Q")
    if flags & F and not flags & L:
        (frame.total,) = reader.unpack("Q")
    frame.body = reader.take(length)
    if flags & C:
        need(length >= 4 and crc32c(octets[:reader.at - 4]) == frame.body[-4:], "crc")
        frame.body = frame.body[:-4]
    need(not frame.total or frame.total > len(frame.body), "total")
    return frame


# F-22, S-22
def request_bitmap(wanted, first):
    """Returns a ReqBody of §2: zeros ask, so unwanted numbers are ones. `wanted`: numbers at or
    after first, not empty."""
    offsets = [ahead(number, first) for number in wanted]
    bitmap = bytearray(b"\xff" * (max(offsets) // 8 + 1))
    for offset in offsets:
        bitmap[offset // 8] &= ~(1 << offset % 8)
    return bytes(bitmap)


# F-22, S-22
def requested(entry, body):
    """Returns the numbers that a REQ asks for."""
    octets = body[14:]
    need(len(octets) <= 128 and struct.unpack(">H", body[12:14])[0] == len(octets), "bitmap")
    if not octets:
        return [entry.next]
    return [plus(entry.next, i) for i in range(8 * len(octets)) if not octets[i // 8] >> i % 8 & 1]
