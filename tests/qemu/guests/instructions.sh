# SPDX-License-Identifier: BSD-3-Clause
# Counts the instructions of a message, through the kernel's driver and UDP, then through our driver
# and ULC, on the same NIC.
modprobe "$(kernel_driver)"
interface=$(ls "/sys/bus/pci/devices/$(nic)/net")
ip link set "$interface" up
ip addr add "10.9.1.$((lab_node + 1))/24" dev "$interface"
peer=10.9.1.$((2 - lab_node))
export ULC_RANK="$lab_node" ULC_SIZE=2 ULC_JOB=count
for _ in $(seq 100); do ping -c 1 -W 1 $peer >/dev/null 2>&1 && break; done
ping -c 3 $peer >/dev/null  # both know each other
nic_instructions udp $peer >/tmp/udp 2>&1 || { say "udp failed: $(tail -n 2 /tmp/udp)"; return 1; }
ip link set "$interface" down
hugepages 128
bind_nic uio_pci_generic || return 1
export ULC_ENGINE_OPTIONS="--memory 96 --rx-descriptors 256 --tx-descriptors 64 --segments 1024" \
    ULC_ENGINE_LIB=/ulc/libulc-engine.so
nic_instructions ulc "$(nic)" >/tmp/ulc 2>&1 ||
    { say "ulc failed: $(tail -n 2 /tmp/ulc)"; return 1; }
sed 's/^/LAB: /' /tmp/udp /tmp/ulc
paste_ratio() { # paste_ratio OCTETS
    awk -v size="$1" '$2 == size { count[$1] = $4 } END { if (!count["ulc"]) exit 1
        printf "LAB: ratio of instructions, ulc / udp, %s octets: %.2f\n",
            size, count["ulc"] / count["udp"]
        exit count["ulc"] > count["udp"] }' /tmp/udp /tmp/ulc
}
paste_ratio 64 && paste_ratio 1400 || { say "ULC costs more instructions than UDP"; return 1; }
