# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests that run the engine: starts it on the machine's NIC, and runs ranks.
start_engine() { # start_engine OPTIONS...
    hugepages 128
    device=${lab_device:-$(nic)}  # lab_device: set by a test that has made one
    if [ -d "/sys/bus/pci/devices/$device/net" ]; then  # the kernel's driver has it
        interface=$(ls "/sys/bus/pci/devices/$device/net")
        ip link set "$interface" up
        device="net_af_packet,iface=$interface"
    fi
    : >/tmp/engine
    ulc-engine --device "$device" --memory 96 --rx-descriptors 256 --tx-descriptors 64 \
        --segments 1024 "$@" >/tmp/engine 2>&1 &
    engine=$!
    for _ in $(seq 300); do
        grep -q ready /tmp/engine && return 0
        kill -0 $engine 2>/dev/null || break
        usleep 100000
    done
    say "no engine: $(tail -n 3 /tmp/engine)"
    return 1
}

stop_engine() {
    kill $engine
    wait $engine || { say "the engine did not end cleanly: $(tail -n 3 /tmp/engine)"; return 1; }
}

export ULC_SIZE="$lab_nodes" ULC_RANK="$lab_node"
rank() { # rank JOB PROGRAM...
    ULC_JOB=$1
    export ULC_JOB
    shift
    "$@" >"/tmp/$ULC_JOB" 2>&1 || {
        ulc stat
        say "$ULC_JOB failed: $(tail -n 3 "/tmp/$ULC_JOB"); engine: $(tail -n 3 /tmp/engine)"
        sleep 5  # the others print theirs meanwhile
        return 1
    }
    [ ! -s "/tmp/$ULC_JOB" ] || say "$ULC_JOB: $(tail -n 1 "/tmp/$ULC_JOB")"
}
