# SPDX-License-Identifier: BSD-3-Clause
# Engines on Soft-RoCE, an RDMA device of the kernel over its own Ethernet driver.
. /lab/engine.sh || return 1
. /lab/rdma.sh || return 1
make_rxe || return 1
start_engine || return 1
say "$(grep -m 1 ready /tmp/engine)"
rank ping ulc ping --timeout 60 --count 50 || return 1
rank exchange process_exchange 8 || return 1
# The device reads long payloads in the client's arena; what it reads is not copied.
ulc stat >/tmp/before && rank long ulc ping --timeout 60 --count 4 --octets 600000 || return 1
ulc stat >/tmp/after || return 1
rise() { # rise COUNTER
    value=0
    for of in before after; do
        value=$(($(sed -n "s/^ *$1 *\([0-9]*\).*/\1/p" /tmp/$of | grep . || echo 0) - value))
    done
    echo $value
}
say "long payloads: $(rise tx_gathered_bytes) octets read in place, $(rise tx_copied_bytes) copied"
[ "$(rise tx_gathered_bytes)" -gt $((10 * $(rise tx_copied_bytes))) ] || return 1
rank product ulc-matmul /lab/A.mtx /lab/B.mtx || return 1

# One frame in fifty is lost, of unicasts and multicasts alike; they are repaired.
/ulc/tc qdisc add dev "$interface" root netem loss 2% || { say "no netem"; return 1; }
rank lossy process_exchange 8 || return 1
/ulc/tc qdisc del dev "$interface" root
ulc stat >/tmp/stat || return 1
grep -q 'repair_[a-z]* *[1-9]' /tmp/stat ||
    { say "nothing was repaired: $(cat /tmp/stat)"; return 1; }
rank after process_exchange 4 || return 1
stop_engine || return 1
if grep -q 'invariant\|not of the sender\|cannot join\|was reset' /tmp/engine; then
    say "the engine said: $(tail -n 3 /tmp/engine)"
    return 1
fi
