# SPDX-License-Identifier: BSD-3-Clause
# Each machine bonds its two NICs. Bulk runs over them, every octet compared. Meanwhile the host may
# pull the cable of the second machine's second NIC, and plug it in again.
. /lab/engine.sh || return 1
cards=$(nics)
[ "$(echo "$cards" | wc -l)" = 2 ] || { say "not two NICs: $cards"; return 1; }
for card in $cards; do
    bind_nic uio_pci_generic "$card" || return 1
done
lab_device=lan:$(echo "$cards" | head -n 1)
start_engine --device "lan:$(echo "$cards" | tail -n 1)" || return 1
rank exchange process_exchange 8 || return 1
rank bulk process_bulk 100 || return 1

ULC_JOB=cable process_bulk 1200 >/tmp/cable 2>&1 &
stream=$!
if [ "$lab_node" = 1 ]; then
    sleep 2
    say "1 loses its cable"
    sleep 3
    say "1 has its cable again"
fi
wait $stream || { say "bulk failed: $(tail -n 3 /tmp/cable)"; return 1; }
say "cable: $(tail -n 1 /tmp/cable)"
ulc stat | grep -E 'links_sent|repair_unicast|req_sent|data_sent|rx_frames' | while read -r line; do
    say "$line"
done
ulc stat | awk '$1 == "data_sent" { sent = $2 } $1 == "repair_unicast" { repaired = $2 }
    END { exit repaired > 20 + sent / 50 }' ||
    { say "too many repairs: a dead link was used"; return 1; }
stop_engine
