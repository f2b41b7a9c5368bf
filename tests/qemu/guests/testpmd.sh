# SPDX-License-Identifier: BSD-3-Clause
# Two machines: node 1 is dpdk-testpmd, unchanged, which swaps the addresses of all frames that it
# receives; node 0 sends it frames of every size and checks the echoes. Node 1 ends when node 0 has
# (the host ends it).
hugepages 128
common="--no-telemetry --iova-mode=pa -m 96 -a $(nic)"
for plugin in /ulc/librte_net_*.so; do common="$common -d $plugin"; done
if [ "$lab_node" = 0 ]; then
    # shellcheck disable=SC2086 # a list of arguments
    frame_echo --lcores 0 $common -- 02:21:14:30:00:01
else
    # shellcheck disable=SC2086
    sleep 1000 | dpdk-testpmd --lcores '0@0,1@0' $common -- --auto-start --forward-mode=macswap \
        --no-lsc-interrupt \
        --total-num-mbufs=2048 --rxd=64 --txd=64 --burst=8
fi
