# SPDX-License-Identifier: BSD-3-Clause
# Everything that can be wrong with the NIC before an engine runs on it. Each line of `refused` is
# the text that the user reads.
card=$(nic)
refused() {  # refused WORDS COMMAND...: it ends by itself, with an error that has these words
    words=$1
    shift
    timeout 30 "$@" >/tmp/refused 2>&1
    result=$?
    if [ $result = 0 ] || [ $result = 143 ] || [ $result -gt 128 ] ||
        ! grep -q "$words" /tmp/refused; then
        say "not refused with '$words' ($result): $(tail -n 4 /tmp/refused)"
        return 1
    fi
    say "$(grep "$words" /tmp/refused | tail -n 1)"
}
engine() { # engine WORDS: refused
    refused "$1" ulc-engine --device "$card" --memory 96 --rx-descriptors 256 \
        --tx-descriptors 64 --segments 1024
}

engine "no hugepages\|MB of hugepages are free.*sysctl -w vm.nr_hugepages=" || return 1
hugepages 256
bind="sudo modprobe uio_pci_generic && sudo dpdk-devbind.py -b uio_pci_generic $card"
engine "bound to no driver; run: $bind" || return 1
modprobe "$(kernel_driver)"
engine "belongs to the kernel's driver $(kernel_driver).*dpdk-devbind.py -b uio_pci_generic $card" \
    || return 1
refused "no PCI device 0000:07:00.0; 'ulc doctor' shows the NICs" ulc-engine \
    --device 0000:07:00.0 || return 1
modprobe vfio-pci
dpdk-devbind.py -b vfio-pci "$card" >/tmp/bind 2>&1  # without an IOMMU it does not take it
engine "bound to no driver; run: sudo modprobe uio_pci_generic" || return 1

bind_nic uio_pci_generic || return 1
high="the chip reaches 32 bits of addresses, and .* lie.* above"
engine "$high; bind it to vfio-pci, where an IOMMU is" || return 1
refused "mac=01:00:00:00:00:00: a unicast address" ulc-engine \
    --device "$card,mac=01:00:00:00:00:00" --memory 96 || return 1

liar=0000:00:09.0  # a second card, whose ROM has a right checksum and a group's address
dpdk-devbind.py -b uio_pci_generic $liar >/tmp/bind 2>&1
refused "the serial ROM holds no unicast address; give one with the device argument mac=" \
    ulc-engine --device $liar --memory 96 || return 1

# The rest needs memory that the chip reaches: other users occupy the memory above.
hugepages 0
mkdir -p /tmp/high && mount -t tmpfs -o size=2g,huge=never none /tmp/high
dd if=/dev/zero of=/tmp/high/fill bs=1M count=1600 2>/dev/null
hugepages 128
start_and_hold() {
    ulc-engine --device "$card" --memory 96 --rx-descriptors 256 --tx-descriptors 64 \
        --segments 1024 >/tmp/first 2>&1 &
    first=$!
    for _ in $(seq 100); do grep -q ready /tmp/first && return 0; usleep 100000; done
    say "the first engine does not start: $(tail -n 3 /tmp/first)"
    return 1
}
start_and_hold || return 1
engine "$card is in use by another engine" || return 1
kill -0 $first || { say "the first engine died of the second"; return 1; }
ulc stat >/dev/null || { say "the first engine does not answer"; return 1; }
kill $first
wait $first || { say "the first engine did not end cleanly"; return 1; }
start_and_hold || return 1  # the card is free again
kill $first
wait $first
card=$liar,mac=02:21:14:30:00:09
start_and_hold || return 1
grep -q '02:21:14:30:00:09' /tmp/first ||
    { say "the address is not the one given: $(cat /tmp/first)"; return 1; }
kill $first
wait $first
