# SPDX-License-Identifier: BSD-3-Clause
# The only NIC belongs to the engine, and the kernel still has its network by the exception
# interface.
. /lab/engine.sh || return 1
. /lab/ip.sh || return 1
modprobe tun
start_engine --exception || return 1
ip addr add "10.9.0.$((lab_node + 1))/24" dev ulc0
[ "$(cat /sys/class/net/ulc0/address)" = "02:21:14:30:00:0$lab_node" ] ||
    { say "ulc0 has another address than the NIC"; return 1; }
exchange_beside_ip 10.9.0.1 || return 1
stop_engine
