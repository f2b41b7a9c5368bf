# SPDX-License-Identifier: BSD-3-Clause
# The only NIC stays with the kernel, and an engine on DPDK takes the frames of its EtherType from
# it by a rule of rte_flow. DPDK's net_tap does in traffic control what a bifurcated NIC does in
# hardware.
. /lab/engine.sh || return 1
. /lab/ip.sh || return 1
for module in tun sch_ingress sch_multiq cls_flower act_mirred act_skbedit act_gact; do
    modprobe "$module" || { say "no module $module"; return 1; }
done
interface=$(ls "/sys/bus/pci/devices/$(nic)/net")
ip link set "$interface" up
ip addr add "10.9.3.$((lab_node + 1))/24" dev "$interface"
lab_device=net_tap,remote=$interface
if start_engine --exception >/dev/null; then
    say "an exception interface was made, and the kernel has its own"
    return 1
fi
grep -q 'leaves IP with the kernel.s interface; leave out exception' /tmp/engine ||
    { say "no advice: $(tail -n 3 /tmp/engine)"; return 1; }
start_engine || return 1
say "$(grep -m 1 ready /tmp/engine)"
exchange_beside_ip 10.9.3.1 || return 1

# All that the engine received was its own.
ulc stat >/tmp/stat || return 1
grep -q 'drop_ethertype *[1-9]' /tmp/stat &&
    { say "frames of IP reached the engine: $(grep drop_ /tmp/stat)"; return 1; }
stop_engine || return 1
grep -q invariant /tmp/engine && { say "the engine said: $(tail -n 3 /tmp/engine)"; return 1; }
return 0
