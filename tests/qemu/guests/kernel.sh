# SPDX-License-Identifier: BSD-3-Clause
# Measures the same two NICs, first with the kernel's driver and its UDP and TCP, then with our
# driver and ULC.
modprobe "$(kernel_driver)"
interface=$(ls "/sys/bus/pci/devices/$(nic)/net")
ip link set "$interface" up
ip addr add "10.9.1.$((lab_node + 1))/24" dev "$interface"
peer=10.9.1.$((2 - lab_node))
export ULC_RANK="$lab_node"
for _ in $(seq 100); do ping -c 1 -W 1 $peer >/dev/null 2>&1 && break; done
for stack in udp tcp; do
    nic_pingpong $stack $peer >/tmp/stack 2>&1 ||
        { say "$stack failed: $(tail -n 2 /tmp/stack)"; return 1; }
    say "$(cat /tmp/stack)"
done
ip link set "$interface" down
bind_nic uio_pci_generic || return 1
. /lab/engine.sh || return 1
start_engine || return 1
rank pingpong nic_pingpong ulc || return 1
stop_engine
