# SPDX-License-Identifier: BSD-3-Clause
"""A rank of python_test whose engine is killed, or its peer's: joins again and goes on.

Prints "formed" once messages flow, and "joined again" when it is through.
"""
import sys

import ulc

LIMIT = 60.0  # s
ROUNDS_AFTER = 3
ENDS = (ulc.NO_ENGINE, ulc.CLOSED, ulc.PEER_LEFT, ulc.PEER_DIED)


def exchange(ep, number):
    other = 1 - ep.rank
    heard = bytearray(8)
    receive = ep.Irecv(heard, other, tag=1)
    ep.Send(number.to_bytes(8, "little"), other, tag=1, limit=LIMIT)
    receive.wait(LIMIT)
    if int.from_bytes(heard, "little") != number:
        sys.exit(f"rank {ep.rank}: heard {bytes(heard)}, expected {number}")


def one_life(ep, rounds):
    """Exchanges until an error, or `rounds` times."""
    number = 0
    while number != rounds:
        exchange(ep, number)
        if number == 0 and rounds is None:
            print("formed", flush=True)
        number += 1
    ep.Barrier(limit=LIMIT)  # in the world group of this life


def main():
    ep = ulc.Endpoint()
    ep.join(limit=LIMIT)
    rank, rounds = ep.rank, None
    while True:
        left_over = ep.Irecv(bytearray(8), 1 - rank, tag=2)
        try:
            one_life(ep, rounds)
            break
        except ulc.Error as problem:
            if problem.code not in ENDS:
                raise
        ep.rejoin(LIMIT)
        rounds = ROUNDS_AFTER
        if (ep.rank, ep.size) != (rank, 2):
            sys.exit(f"rank {rank}: joined again as {ep.rank} of {ep.size}")
        try:
            left_over.wait(LIMIT)
            sys.exit(f"rank {rank}: a receive of the earlier life succeeded")
        except ulc.Error as problem:
            if problem.code not in ENDS:
                raise
    if not left_over.cancel():
        sys.exit(f"rank {rank}: a receive that nothing matched cannot be cancelled")
    ep.leave(LIMIT)
    ep.close()
    print("joined again", flush=True)


main()
