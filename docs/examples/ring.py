# SPDX-License-Identifier: BSD-3-Clause
"""Each rank adds its number to an array that goes round the ring; rank 0 prints the sum.

    ulc run -n 4 python3 ring.py
"""
from array import array

import ulc

with ulc.Endpoint() as ep:
    ep.join()
    total = array("q", [0])
    if ep.rank > 0:
        ep.Recv(total, ep.rank - 1, tag=1)
    total[0] += ep.rank
    ep.Send(total, (ep.rank + 1) % ep.size, tag=1)
    if ep.rank == 0:
        ep.Recv(total, ep.size - 1, tag=1)
        print(f"the ranks 0 to {ep.size - 1} add up to {total[0]}")
