# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests on Soft-RoCE: makes the device rxe0 on the machine's NIC.
make_rxe() {
    for module in e1000 tulip virtio_pci virtio_net crc32_generic ib_uverbs rdma_rxe sch_netem; do
        modprobe $module 2>/dev/null
    done
    card=/sys/bus/pci/devices/$(nic)
    for interface in "$card"/net/* "$card"/virtio*/net/*; do
        [ -d "$interface" ] && break
    done
    interface=$(basename "$interface")
    ip link set "$interface" up
    ip addr add "10.9.2.$((lab_node + 1))/24" dev "$interface"
    rdma link add rxe0 type rxe netdev "$interface" || { say "no Soft-RoCE device"; return 1; }
    # Until IPv6 has found that no other machine has the link-local address (flag 40: tentative).
    for _ in $(seq 100); do
        grep "$interface" /proc/net/if_inet6 | grep -q ' 20 80 ' && break
        usleep 100000
    done
    lab_device=verbs,dev=rxe0
}
