# SPDX-License-Identifier: BSD-3-Clause
# The cluster of the other NICs on Soft-RoCE, over three kinds of NIC. Each loses 1 % of its frames.
. /lab/rdma.sh || return 1
make_rxe || return 1
/ulc/tc qdisc add dev "$interface" root netem loss 1% || { say "no netem"; return 1; }
. /lab/cluster.sh
