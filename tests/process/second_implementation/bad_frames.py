# SPDX-License-Identifier: BSD-3-Clause
"""Frames that docs/PROTOCOL.md says to drop, by the reason under which they are counted."""
from frames import (ACK, DATA, JOB, MCAST, NODE, PROBE, REQ, A, AckEntry, C, F, Frame, L, R, S, T,
                    plus)


def bad_frames(rank, now):
    """Returns bad frames for 0, from the ULC header on. `rank`: 1 of a formed job of two, its
    streams to 0 acknowledged."""
    job, data, group = rank.job, rank.sending[0], rank.sending[rank.job.world]
    theirs = rank.receiving[0][1].next
    handle = job.members[0].handle

    def frame(type_, flags=0, **fields):
        return Frame(type_, flags=flags, **{"handle": handle, "rank": 1, **fields}).octets()

    def fresh(flags=0, **fields):  # right except for the given fields
        return frame(DATA, F | L | flags, **{"seq": data.next, **fields})

    def multicast(flags=0, **fields):
        return frame(MCAST, F | L | flags, **{"seq": group.next, "handle": job.world, **fields})

    def ack(entries=1, stream=1, number=theirs, **fields):
        return frame(ACK, **{"body": AckEntry(stream, number, 256, 0).octets() * entries, **fields})

    def continues_nothing(flags, now):  # takes a number, so it comes last
        octets = frame(DATA, flags, seq=data.next, body=b"x")
        data.sent(octets, now)
        return octets

    entry = AckEntry(1, theirs, 256, 0)
    bad = {
        "drop_version": [fresh(version=0), fresh(version=2), Frame(JOB, body=bytes(84)).octets()],
        "drop_type": [frame(0), frame(13), frame(15)],
        "drop_short": [fresh()[:2] + b"\x10\0" + fresh()[4:]],  # length 4096
        "drop_flags": [fresh(S, subset=1), multicast(A, ack=entry),
                       frame(DATA, T | L, seq=data.next), ack(flags=F),
                       ack(seq=1), frame(REQ, seq=1, body=entry.octets() + bytes(2))],
        "drop_extension": [
            fresh(R), fresh(R, after=[(job.world, job.first_seq)] * 5),
            fresh(R, after=[(65535, job.first_seq)]),
            frame(DATA, F, seq=data.next, total=2, body=b"xx"), multicast(S, subset=0),
            frame(PROBE, body=bytes(3)),
            ack(0), ack(17), frame(ACK, body=bytes(13)), frame(REQ, body=entry.octets()),
            frame(REQ, body=entry.octets() + b"\0\2\0"),
            frame(REQ, body=entry.octets() + b"\0\x81" + bytes(129))],
        "drop_crc": [fresh(C)[:-1] + b"?"],
        "drop_unknown_handle": [fresh(handle=handle ^ 1), fresh(handle=job.world),
                                multicast(handle=job.world ^ 1),
                                multicast(handle=handle)],
        "drop_own_echo": [fresh(rank=0)],
        "drop_wrong_source": [fresh(rank=2)],
        "drop_beyond_window": [fresh(seq=plus(data.next, 4096))],
        "drop_duplicate": [fresh(seq=plus(data.next, -1))],
        "drop_after_unmeetable": [fresh(R, after=[(job.world, plus(group.next, 4096))])],
        "drop_ack_range": [ack(number=plus(theirs, 4096)),
                           frame(PROBE, seq=plus(data.next, 4096), body=bytes(4))],
        "drop_ack_stream": [ack(stream=5), ack(stream=job.world ^ 1),
                            frame(PROBE, body=bytes(3) + b"\5")],
        "drop_job": [Frame(type_, version=0, body=body).octets() for type_, body in (
            (JOB, b"\x09" + bytes(83)), (JOB, b"\1"), (NODE, b"\5" + bytes(23)), (NODE, b"\1"))],
    }
    bad["drop_framing"] = [continues_nothing(0, now), continues_nothing(L, now)]
    return bad
