# SPDX-License-Identifier: BSD-3-Clause
# The commands of docs/guide/REAL_NICS.md, line by line, as their reader types them. sudo does
# nothing for root, and the compiler has been called on the host.
sudo() { "$@"; }
cd /ulc || return 1
while IFS= read -r line <&3; do
    line=$(echo "$line" | sed "s/0000:03:00.0/$(nic)/")
    case $line in
        cc\ *) continue ;;
        *ULC_RANK="$lab_node "*) ;;
        *ULC_RANK=*) continue ;;
    esac
    say "$line"
    case $line in
        *ulc-engine*) # in a separate terminal
            eval "{ $line; } >/tmp/engine 2>&1 3<&- &"
            for _ in $(seq 100); do grep -q ready /tmp/engine && break || usleep 100000; done
            grep -q ready /tmp/engine && continue
            say "no engine: $(cat /tmp/engine)"
            return 1
            ;;
    esac
    eval "$line" >/tmp/said 2>&1 3<&- || { say "failed: $(cat /tmp/said)"; return 1; }
done 3</lab/readme.lines
[ "$lab_node" = 1 ] && return 0
grep -q 'hello from rank 1' /tmp/said || { say "rank 0 heard: $(cat /tmp/said)"; return 1; }
say "$(cat /tmp/said)"
