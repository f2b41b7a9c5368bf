#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The first and only process of a guest of the lab: prepares the machine, runs its part of a test,
# prints the result in a line that the host waits for, and powers off.
/bin/busybox --install -s /bin
chmod 755 /  # DPDK loads no plug-in below a folder that is writable for all
mkdir -p /proc /sys /dev /tmp /run/ulc /dev/shm /dev/hugepages
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm /dev/hugepages
mount -t tmpfs none /dev/shm
mount -t tmpfs none /run
mkdir -p /run/ulc /var
ln -s /run /var/run
mount -t hugetlbfs none /dev/hugepages
ip link set lo up
export GCOV_PREFIX=/out  # where a build with coverage puts its counts
export PATH=/ulc:/bin:/usr/bin LD_LIBRARY_PATH=/ulc:$(echo /usr/lib/*/dpdk/pmds-*) HOME=/tmp \
    XDG_RUNTIME_DIR=/run

# From the kernel's command line: lab_test, lab_node (from 0), lab_nodes, lab_driver
# (uio_pci_generic, vfio-pci; kernel: its own; none: the test decides).
for word in $(cat /proc/cmdline); do
    case $word in lab_*) export "${word?}" ;; esac
done
: "${lab_test:?}" "${lab_node:?}" "${lab_nodes:?}" "${lab_driver:?}"

# The machine's Ethernet controllers.
nics() {
    for device in /sys/bus/pci/devices/*; do
        [ "$(cat "$device/class")" = 0x020000 ] && basename "$device"
    done
}
nic() { nics | head -n 1; }

# The kernel's driver for a NIC that one of ours drives too.
kernel_driver() {
    case $(cat "/sys/bus/pci/devices/$(nic)/vendor") in
        0x1011) echo tulip ;;
        0x8086) echo e100 ;;
    esac
}

bind_nic() { # bind_nic DRIVER [NIC]
    card=${2:-$(nic)}
    modprobe "$1" && dpdk-devbind.py -b "$1" "$card" >/tmp/bind 2>&1 && return
    # Lspci misses lists of modules that are not needed here
    say "$card is not bound to $1: $(grep -v libkmod /tmp/bind)"
    return 1
}

hugepages() { # MB
    echo $(($1 / 2)) >/proc/sys/vm/nr_hugepages
}

say() { echo "LAB: $*"; }
status=1
case $lab_driver in
    none) true ;;
    kernel) modprobe e100 ;;
    *) bind_nic "$lab_driver" ;;
esac && {
    # shellcheck disable=SC1090 # one of those in tests/qemu/guests
    (. "/lab/$lab_test.sh")
    status=$?
}
if [ -d /out ]; then  # for the host: tools/driver-coverage
    stty -F /dev/ttyS1 raw
    tar -c -C /out . >/dev/ttyS1
fi
echo "LAB-RESULT $status"
sleep 1
poweroff -f
