# The system of the papers: each machine binds its NIC, starts ulc-engine on it, and runs its rank of the applications.
hugepages 128
: >/tmp/engine
device=$(nic)
if [ "$lab_driver" = none ]; then # the kernel's driver has it
    interface=$(ls "/sys/bus/pci/devices/$device/net")
    ip link set "$interface" up
    device="net_af_packet,iface=$interface"
fi
ulc-engine --device "$device" --memory 96 --rx-descriptors 256 --tx-descriptors 64 --segments 1024 >/tmp/engine 2>&1 &
engine=$!
for _ in $(seq 300); do
    grep -q ready /tmp/engine && break
    kill -0 $engine 2>/dev/null || break
    usleep 100000
done
grep -q ready /tmp/engine || { say "no engine: $(tail -n 3 /tmp/engine)"; ulc stat; sleep 5; return 1; } # the others say theirs meanwhile

export ULC_SIZE="$lab_nodes" ULC_RANK="$lab_node"
rank() { # rank JOB PROGRAM...
    ULC_JOB=$1
    export ULC_JOB
    shift
    "$@" >/tmp/rank 2>&1 || { say "$ULC_JOB failed: $(tail -n 3 /tmp/rank); engine: $(tail -n 3 /tmp/engine)"; ulc stat; sleep 5; return 1; } # the others say theirs meanwhile
    say "$ULC_JOB: $(tail -n 1 /tmp/rank)"
}

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
kill $engine
wait $engine || { say "the engine did not end cleanly: $(tail -n 3 /tmp/engine)"; return 1; }
