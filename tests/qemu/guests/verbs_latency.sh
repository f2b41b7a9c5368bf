# SPDX-License-Identifier: BSD-3-Clause
# Round trips of small messages on one Soft-RoCE device: perftest's UD, then ULC on verbs, then ULC
# on af_packet over the same interface. Figures, no limits: a guest has no clock to be judged by.
. /lab/engine.sh || return 1
. /lab/rdma.sh || return 1
make_rxe || return 1
peer=10.9.2.$((2 - lab_node))
for _ in $(seq 100); do ping -c 1 -W 1 $peer >/dev/null 2>&1 && break; done

# perftest's server ends with its client, which tries until it listens.
gid=0
for index in 0 1 2 3; do # the GID that the engine takes
    grep -q v2 "/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/$index" 2>/dev/null || continue
    gid=$index
    break
done
if [ "$lab_node" = 0 ]; then
    ib_send_lat -c UD -d rxe0 -x "$gid" -s 64 -n 500 -F >/tmp/perftest 2>&1 ||
        { say "ib_send_lat failed: $(tail -n 3 /tmp/perftest)"; return 1; }
else
    for _ in $(seq 50); do
        ib_send_lat -c UD -d rxe0 -x "$gid" -s 64 -n 500 -F $peer >/tmp/perftest 2>&1 && break
        usleep 200000
    done
fi
say "ib_send_lat, one way in us (bytes, count, min, max, typical): $(grep '^ *64 ' /tmp/perftest)"

# The engine inside the program, as perftest has its queues.
export ULC_ENGINE_LIB=/ulc/libulc-engine.so
ULC_ENGINE_OPTIONS="--segments 1024 --rx-descriptors 256 --tx-descriptors 64"
export ULC_ENGINE_OPTIONS
for wire in verbs,dev=rxe0 "net_af_packet,iface=$interface"; do
    export ULC_ENGINE="embedded:$wire"
    rank "embedded-${wire%%,*}" ulc ping --timeout 60 --count 500 --octets 64 || return 1
done
unset ULC_ENGINE

for wire in verbs,dev=rxe0 "net_af_packet,iface=$interface"; do
    lab_device=$wire
    start_engine || return 1
    rank "ping-${wire%%,*}" ulc ping --timeout 60 --count 500 --octets 64 || return 1
    stop_engine || return 1
done
