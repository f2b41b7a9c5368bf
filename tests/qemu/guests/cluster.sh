# SPDX-License-Identifier: BSD-3-Clause
# The system of the papers: each machine binds its NIC, starts ulc-engine on it, and runs its rank
# of the applications.
. /lab/engine.sh || return 1
start_engine || return 1

# Ping-pong of each machine with every other one: each is rank 0 once.
for first in $(seq 0 $((lab_nodes - 1))); do
    (ULC_RANK=$(((lab_node + lab_nodes - first) % lab_nodes)) &&
        rank "ping$first" ulc ping --timeout 60 --count 50) || return 1
done
rank exchange process_exchange 18 || return 1
rank product ulc-matmul /lab/A.mtx /lab/B.mtx || return 1
rank master ulc-matmul --master /lab/A.mtx /lab/B.mtx || return 1

# The last machine loses power while the others wait for it.
if [ "$lab_node" = $((lab_nodes - 1)) ]; then
    ULC_JOB=death process_exchange outlive >/tmp/rank 2>&1 &
    until grep -q formed /tmp/rank; do usleep 50000; done
    say "$lab_node waits for its end"
    sleep 1000
fi
rank death process_exchange outlive || return 1
stop_engine
