# SPDX-License-Identifier: BSD-3-Clause
# The NIC of the first machine is removed while its engine runs and its rank waits for the other's.
. /lab/engine.sh || return 1
start_engine || return 1
rank exchange process_exchange 8 || return 1

ULC_JOB=removal process_exchange outlive >/tmp/removal 2>&1 &
rank=$!
if [ "$lab_node" = 1 ]; then
    wait $rank  # without end
    return 1
fi
until grep -q formed /tmp/removal; do
    kill -0 $rank ||
        { say "the rank ended before the job formed: $(tail -n 2 /tmp/removal)"; return 1; }
    usleep 50000
done
say "0 waits for its card to go"
wait $rank || {
    say "the rank got no error: $(tail -n 2 /tmp/removal); engine: $(tail -n 3 /tmp/engine)"
    return 1
}
say "$(tail -n 1 /tmp/removal)"
[ ! -e "/sys/bus/pci/devices/$device" ] || { say "the card is still there"; return 1; }
kill -0 $engine || { say "the engine died: $(tail -n 3 /tmp/engine)"; return 1; }
report='port 0: the chip'
[ "$lab_driver" != vfio-pci ] || report='the kernel asked for the card, which is given back'
grep -q "$report" /tmp/engine ||
    { say "the engine did not report it: $(cat /tmp/engine)"; return 1; }
say "$(grep -m 1 "$report" /tmp/engine)"
ulc stat >/tmp/stat || { say "the engine does not answer"; return 1; }
grep -q 'link_downs *[1-9]' /tmp/stat || { say "no word of the link: $(cat /tmp/stat)"; return 1; }
stop_engine || return 1
ulc-engine --device "$device" --memory 96 >/tmp/again 2>&1 && return 1
grep -q "no PCI device $device" /tmp/again ||
    { say "a start without a card says: $(tail -n 3 /tmp/again)"; return 1; }
say "$(tail -n 1 /tmp/again)"
