# SPDX-License-Identifier: BSD-3-Clause
"""A rank of two that exchanges numbers, and goes on after the end of an engine.

echo_rank.py COUNT. Each exchange takes 0.5 s, so that an upgrade falls between two. Prints a line
for each exchange; the last one says whether each number came once and in order.
"""
import sys
import time

import ulc

LOST = (ulc.NO_ENGINE, ulc.PEER_LEFT, ulc.PEER_DIED)


def main():
    count = int(sys.argv[1])
    done = 0
    with ulc.Endpoint() as ep:
        ep.join()
        while done < count:
            try:
                # Each tells how far it is: after a restart one may be an exchange ahead.
                ep.send(done, 1 - ep.rank, tag=1)
                other = ep.recv(1 - ep.rank, tag=1)
            except ulc.Error as error:
                if error.code not in LOST:
                    raise
                ep.rejoin()
                print(f"rank {ep.rank}: joined again", flush=True)
                continue
            if abs(other - done) > 1:
                sys.exit(f"rank {ep.rank}: exchange {done} met {other} of the other rank")
            done = max(done, other) + 1
            print(f"rank {ep.rank}: exchange {done}", flush=True)
            time.sleep(0.5)
        print(f"rank {ep.rank}: {done} exchanges, in order", flush=True)


if __name__ == "__main__":
    main()
