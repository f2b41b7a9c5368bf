# SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests of IP on the engine's NIC: ping, and files by HTTP, while ranks exchange
# messages and check every byte.
exchange_beside_ip() { # exchange_beside_ip ADDRESS_OF_NODE_0
    mkdir /tmp/www
    head -c 49152 /lab/A.mtx >/tmp/www/text  # passes in a fiftieth of the exchange's time
    if [ "$lab_node" = 0 ]; then
        httpd -p 8080 -h /tmp/www
    else
        for _ in $(seq 100); do ping -c 1 -W 1 "$1" >/dev/null 2>&1 && break; done
        ping -c 5 "$1" | grep -q ' 0% packet loss' || { say "ping loses packets"; return 1; }
    fi
    rank meet process_exchange 1 || return 1
    : >/tmp/files
    if [ "$lab_node" = 1 ]; then
        while [ -e /tmp/files ]; do
            wget -q -O /tmp/text "http://$1:8080/text" && cmp -s /tmp/text /tmp/www/text &&
                echo right >>/tmp/files || echo wrong >>/tmp/files
        done &
    fi
    rank exchange process_exchange 360 || return 1
    if [ "$lab_node" = 1 ]; then
        cp /tmp/files /tmp/result
        rm /tmp/files
        grep -q wrong /tmp/result && { say "a file came wrong over TCP"; return 1; }
        [ -s /tmp/result ] || { say "no file came over TCP while messages ran"; return 1; }
        say "$(wc -l </tmp/result) files right over TCP meanwhile"
    fi
    rank part process_exchange 1
}
