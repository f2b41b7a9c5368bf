#!/bin/sh
# The first and only process of a guest of the lab: makes the machine ready, runs its part of a test, says how it ended
# in a line that the host waits for, and powers off.
/bin/busybox --install -s /bin
chmod 755 / # DPDK loads no plug-in from below a folder that all may write
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
export GCOV_PREFIX=/out # where a build that counts its lines puts what it counted
export PATH=/ulc:/bin LD_LIBRARY_PATH=/ulc:$(echo /usr/lib/*/dpdk/pmds-*) HOME=/tmp XDG_RUNTIME_DIR=/run

# From the kernel's command line: lab_test, lab_node (from 0), lab_nodes, lab_driver (uio_pci_generic, vfio-pci, none).
for word in $(cat /proc/cmdline); do
    case $word in lab_*) export "${word?}" ;; esac
done
: "${lab_test:?}" "${lab_node:?}" "${lab_nodes:?}" "${lab_driver:?}"

load() { for module in "$@"; do [ -f "/modules/$module.ko" ] && insmod "/modules/$module.ko"; done; }

# The NIC is the machine's only Ethernet controller.
nic() {
    for device in /sys/bus/pci/devices/*; do
        [ "$(cat "$device/class")" = 0x020000 ] && basename "$device" && return
    done
}

# What dpdk-devbind.py -b DRIVER ADDRESS does.
bind_nic() {
    modprobe_like=$1
    case $modprobe_like in
        uio_pci_generic) load uio uio_pci_generic ;;
        vfio-pci) load irqbypass vfio_virqfd vfio vfio_iommu_type1 vfio-pci-core vfio-pci ;;
    esac
    echo "$modprobe_like" >"/sys/bus/pci/devices/$(nic)/driver_override"
    echo "$(nic)" >/sys/bus/pci/drivers_probe
    [ -e "/sys/bus/pci/devices/$(nic)/driver" ] || { echo "LAB: $(nic) is not bound to $modprobe_like"; return 1; }
}

hugepages() { # MB
    echo $(($1 / 2)) >/proc/sys/vm/nr_hugepages
}

say() { echo "LAB: $*"; }
load af_packet
status=1
[ "$lab_driver" = none ] && load mii 8139cp
if [ "$lab_driver" = none ] || bind_nic "$lab_driver"; then
    # shellcheck disable=SC1090 # one of those in tests/qemu/guests
    (. "/lab/$lab_test.sh")
    status=$?
fi
if [ -d /out ]; then # for the host: tools/driver-coverage
    stty -F /dev/ttyS1 raw
    tar -c -C /out . >/dev/ttyS1
fi
echo "LAB-RESULT $status"
sleep 1
poweroff -f
