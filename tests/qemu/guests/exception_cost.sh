# SPDX-License-Identifier: BSD-3-Clause
# Measures the cost of IP on the engine's NIC for ULC's own messages, in instructions: streams
# between two ranks alone, then with ping and files by HTTP at the same time, three times in turn.
modprobe tun
hugepages 128
export ULC_RANK="$lab_node" ULC_SIZE=2 ULC_JOB=cost ULC_ENGINE_LIB=/ulc/libulc-engine.so
ULC_ENGINE_OPTIONS="--memory 96 --rx-descriptors 256 --tx-descriptors 64 --segments 1024"
export ULC_ENGINE_OPTIONS="$ULC_ENGINE_OPTIONS --exception"
mkdir /tmp/turns
nic_stream "$(nic)" /tmp/turns >/tmp/stream 2>&1 &
stream=$!
await() {  # await FILE: made by the ranks' program
    until [ -e "$1" ]; do
        kill -0 $stream 2>/dev/null ||
            { say "the stream ended: $(tail -n 3 /tmp/stream)"; return 1; }
        usleep 20000
    done
}
await /tmp/turns/open || return 1
ip addr add "10.9.0.$((lab_node + 1))/24" dev ulc0
: >/tmp/files
: >/tmp/pings
[ "$lab_node" = 1 ] || httpd -p 8080 -h /lab

start_ip() {  # on the second machine; ready when both have moved something
    [ "$lab_node" = 1 ] || return 0
    : >/tmp/ip
    ping -i 0.02 10.9.0.1 >>/tmp/pings 2>&1 &
    ping=$!
    while [ -e /tmp/ip ]; do
        wget -q -O /tmp/A.mtx http://10.9.0.1:8080/A.mtx && cmp -s /tmp/A.mtx /lab/A.mtx &&
            echo right >>/tmp/files
    done &
    fetching=$!
    files=$(wc -l </tmp/files)
    for _ in $(seq 300); do
        [ "$(wc -l </tmp/files)" -gt "$files" ] && return 0
        usleep 100000
    done
    say "no file comes over TCP: $(tail -n 2 /tmp/pings)"
    return 1
}
end_ip() {
    [ "$lab_node" = 1 ] || return 0
    rm /tmp/ip
    kill "$ping"
    wait "$ping"
    # Until its file is complete: no IP traffic is left for the turn without. After the last turn
    # the other machine may have ended, and none is.
    [ "$turn" = 5 ] || wait "$fetching"
}
carried() {  # frames that IP got and sent, echoes, files
    echo "$(cat /sys/class/net/ulc0/statistics/rx_packets)" \
        "$(cat /sys/class/net/ulc0/statistics/tx_packets)" \
        "$(grep -c ttl= /tmp/pings) $(wc -l </tmp/files)"
}
# moved TURN BEFORE... AFTER...: each of the four counts has grown, if this machine counts it
moved() {
    say "turn $1: IP got $(($6 - $2)) frames and sent $(($7 - $3))," \
        "$(($8 - $4)) echoes and $(($9 - $5)) files"
    [ "$6" -gt "$2" ] && [ "$7" -gt "$3" ] || { say "no IP while messages ran"; return 1; }
    [ "$lab_node" = 0 ] || { [ "$8" -gt "$4" ] && [ "$9" -gt "$5" ]; } ||
        { say "ping or HTTP stood while messages ran"; return 1; }
}
for turn in 0 1 2 3 4 5; do
    [ $((turn % 2)) = 0 ] || start_ip || return 1
    before=$(carried)
    : >/tmp/turns/go$turn
    await /tmp/turns/done$turn || return 1
    [ $((turn % 2)) = 0 ] && continue
    # shellcheck disable=SC2046,SC2086 # lists of numbers
    moved $turn $before $(carried) || return 1
    end_ip
done
wait $stream
result=$?
sed 's/^/LAB: /' /tmp/stream
sleep 5  # the other prints its figures meanwhile
return $result
