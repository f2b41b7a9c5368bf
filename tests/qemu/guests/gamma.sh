# SPDX-License-Identifier: BSD-3-Clause
# GAMMA's programs: each machine runs one instance on its engine. Then three groups of two message
# each other: 11 on machines 0 and 1, 12 on 2 and 3, and 13 on 1 and 2, whose instance 1 is killed.
. /lab/engine.sh || return 1
start_engine || return 1
rank barriers gamma_barriers || return 1
rank ports gamma_ports || return 1

echo 'shared by all machines' >/tmp/secret
chmod 600 /tmp/secret
export ULC_GROUPS=/tmp/secret
member() { # member GROUP INSTANCE
    ULC_JOB=group$1 ULC_PAR_PID=$1 ULC_RANK=$2 ULC_SIZE=2 gamma_groups
}
third=
case $lab_node in
    1) member 13 0 >/tmp/third 2>&1 & third=$! ;;
    2) member 13 1 >/tmp/victim 2>&1 & ;;
esac
member $((11 + lab_node / 2)) $((lab_node % 2)) >/tmp/groups 2>&1 || {
    say "groups failed: $(tail -n 3 /tmp/groups); engine: $(tail -n 3 /tmp/engine)"
    sleep 5  # the others print theirs meanwhile
    return 1
}
say "$(tail -n 1 /tmp/groups)"
[ -z "$third" ] || wait "$third" || { say "groups failed: $(tail -n 3 /tmp/third)"; return 1; }
stop_engine
