# SPDX-License-Identifier: BSD-3-Clause
"""A rank of python_test: every call of ulc.py, each result compared. Prints "ok" at rank 0."""
import sys
from array import array

import ulc


def expect(found, expected, what):
    if found != expected:
        sys.exit(f"python_rank: {what}: found {found!r}, expected {expected!r}")


def expect_error(code, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except ulc.Error as problem:
        expect(problem.code, code, f"code of {call.__name__}")
        expect(len(str(problem)) > 10, True, "text of the error")
        return
    sys.exit(f"python_rank: {call.__name__} did not raise code {code}")


def expect_exception(kind, call, *arguments):
    try:
        call(*arguments)
    except kind:
        return
    sys.exit(f"python_rank: {call.__name__} did not raise {kind.__name__}")


def messages(ep):
    right, left = (ep.rank + 1) % ep.size, (ep.rank - 1) % ep.size
    for length in (0, 1, 104, 105, 5000, 300_000):
        sent = bytes((ep.rank + i) % 251 for i in range(length))
        under_way = ep.Isend(sent, right, tag=length)
        received = bytearray(length)
        status = ep.Recv(received, left, tag=length)
        expect((status.source, status.tag, status.length), (left, length, length), "status")
        expect(bytes(received), bytes((left + i) % 251 for i in range(length)), "payload")
        under_way.wait()
    thing = {"rank": ep.rank, "list": list(range(1000)), "text": "é" * 50}
    ep.send(thing, right, tag=3)
    expect(ep.recv(left, tag=3), thing | {"rank": left}, "object")
    ep.Send(b"1", right, tag=20)
    ep.Send(b"2", right, tag=21)
    number = bytearray(1)
    for tag in (21, 20):  # not in the order of arrival
        ep.Recv(number, left, tag=tag)
        expect(bytes(number), b"2" if tag == 21 else b"1", "message by tag")
    posted = ep.Irecv(array("d", [0.0] * 4), left, tag=9)
    ep.Send(array("d", [1.5, 2.5, 3.5, 4.5]), right, tag=9)
    expect(posted.wait().length, 32, "length of an array")


def errors(ep):
    right, left = (ep.rank + 1) % ep.size, (ep.rank - 1) % ep.size
    ep.Send(b"longer", right, tag=5)
    expect_error(ulc.TRUNCATED, ep.Recv, bytearray(3), left, tag=5)
    expect_error(ulc.TIMEOUT, ep.Recv, bytearray(3), left, tag=6, limit=0.05)
    expect_error(ulc.TIMEOUT, ep.probe, left, tag=6, limit=0.05)
    expect_error(2, ep.Send, b"", ep.size)
    expect_exception(ValueError, ep.Recv, b"read only")
    expect_exception(ValueError, ep.Send, memoryview(bytearray(8))[::2], right)
    expect_exception(ValueError, ep.Allgather, b"12", bytearray(1))
    expect_exception(TypeError, ep.Allreduce, memoryview(b"ab").cast("c"), bytearray(2))
    cancelled = ep.Irecv(bytearray(1), left, tag=7)
    expect(cancelled.cancel(), True, "cancel")


def collectives(ep, group):
    n, me = group.size, group.index
    ep.Barrier(group)
    data = array("i", range(100)) if me == 1 else array("i", [0] * 100)
    ep.Bcast(data, 1, group)
    expect(list(data), list(range(100)), "broadcast")
    expect(ep.bcast(("a", me) if me == 0 else None, 0, group), ("a", 0), "broadcast object")
    every = array("i", [0] * n)
    ep.Allgather(array("i", [me * 7]), every, group)
    expect(list(every), [i * 7 for i in range(n)], "allgather")
    ep.Gather(array("i", [me]), every if me == 0 else None, 0, group)
    expect(list(every), list(range(n)) if me == 0 else [i * 7 for i in range(n)], "gather")
    block = array("i", [0, 0])
    ep.Scatter(array("i", range(2 * n)) if me == 0 else None, block, 0, group)
    expect(list(block), [2 * me, 2 * me + 1], "scatter")
    swapped = array("h", [0] * n * 3)
    ep.Alltoall(array("h", [100 * me + i for i in range(3 * n)]), swapped, group)
    expect(list(swapped), [100 * i + 3 * me + k for i in range(n) for k in range(3)], "alltoall")
    for code in "bhilqBHILQfd":
        # Signed and unsigned types, integers and floats order these bits in different ways.
        low = -3 if code in "bhilqfd" else 2
        values = array(code, [low if me == 1 else me + 5, 100 - me])
        folded = array(code, [0, 0])
        ep.Allreduce(values, folded, ulc.MIN, group)
        expect(list(folded), [low, 101 - n], f"least of '{code}'")
        ep.Allreduce(values, folded, ulc.MAX, group)
        expect(list(folded), [max([5] + [i + 5 for i in range(2, n)]), 100], f"most of '{code}'")
        if code not in "bB":
            ep.Allreduce(values, folded, ulc.SUM, group)
            rest = sum(i + 5 for i in range(n) if i != 1)
            expect(list(folded), [low + rest, 100 * n - n * (n - 1) // 2], f"sum of '{code}'")
    folded = array("d", [0])
    ep.Reduce(array("d", [me + 0.5]), folded if me == 1 else None, ulc.MAX, 1, group)
    expect(folded[0], n - 0.5 if me == 1 else 0, "reduce")
    ep.Scan(array("d", [me + 1]), folded, ulc.PROD, group)
    product = 1
    for factor in range(1, me + 2):
        product *= factor
    expect(folded[0], product, "scan")


def with_numpy(ep):
    try:
        import numpy
    except ImportError:
        return
    mine = numpy.full((3, 4), ep.rank + 1j)
    total = numpy.empty_like(mine)
    ep.Allreduce(mine, total)
    expect(bool((total == sum(range(ep.size)) + ep.size * 1j).all()), True, "NumPy, complex")


def main():
    with ulc.Endpoint() as ep:
        ep.join()
        messages(ep)
        errors(ep)
        collectives(ep, ep.world)
        members = ep.group(list(reversed(range(ep.size))))
        expect((members.size, members.index), (ep.size, ep.size - 1 - ep.rank), "group")
        collectives(ep, members)
        if ep.rank == 0:
            ep.Multicast(b"to all", members, tag=11)
            ep.multicast(["to", "all"], tag=12)
        else:
            text = bytearray(6)
            expect((ep.Recv(text, 0, tag=11).group, bytes(text)), (members.number, b"to all"),
                   "multicast")
            expect(ep.recv(0, tag=12), ["to", "all"], "multicast of an object")
        ep.Barrier()
        members.free()
        with_numpy(ep)
        if ep.rank == 0:
            print(f"ok {ulc.version()}")


main()
