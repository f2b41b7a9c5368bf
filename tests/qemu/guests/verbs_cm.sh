# SPDX-License-Identifier: BSD-3-Clause
# Engines on Soft-RoCE whose multicast groups the kernel's connection manager joins, through
# librdmacm: the way of InfiniBand, where it asks a subnet manager, and here IGMP.
. /lab/engine.sh || return 1
. /lab/rdma.sh || return 1
make_rxe || return 1
modprobe rdma_ucm || { say "no connection manager"; return 1; }

# A member of 239.181.0.0, the broadcast group: 181 is the low octet of the EtherType.
is_member() { grep -q 0000B5EF /proc/net/igmp; }
is_member && { say "a member before the engine"; return 1; }
lab_device=$lab_device,join=cm
start_engine || return 1
say "$(grep -m 1 ready /tmp/engine)"
is_member || { say "not a member: $(cat /proc/net/igmp)"; return 1; }
rank ping ulc ping --timeout 60 --count 50 || return 1
rank exchange process_exchange 8 || return 1
rank product ulc-matmul /lab/A.mtx /lab/B.mtx || return 1
grep -c B5EF /proc/net/igmp >/tmp/groups
say "member of $(cat /tmp/groups) groups"
stop_engine || return 1
is_member && { say "still a member"; return 1; }
if grep -q 'invariant\|not of the sender\|cannot join\|was reset\|lost a' /tmp/engine; then
    say "the engine said: $(tail -n 3 /tmp/engine)"
    return 1
fi

# Without the connection manager the engine says what to do.
modprobe -r rdma_ucm 2>/dev/null || rm -f /dev/infiniband/rdma_cm
start_engine >/dev/null && { say "it starts without a connection manager"; return 1; }
grep -q 'modprobe rdma_ucm' /tmp/engine || { say "it said: $(tail -n 3 /tmp/engine)"; return 1; }
