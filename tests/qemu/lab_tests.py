# SPDX-License-Identifier: BSD-3-Clause
"""The tests of the lab."""
from lab_guests import Test

DRIVER = "pmd_app/drivers/tulip/librte_net_tulip.so"
I8255X = "pmd_app/drivers/i8255x/librte_net_i8255x.so"
IOMMU = ("-M", "q35,kernel-irqchip=off", "-device", "intel-iommu,aw-bits=48")

# ulc-engine loads the engine core.
ENGINE = ["pmd_app/main/ulc-engine", "pmd_app/main/libulc-core.so"]
VERBS = [*ENGINE, "tools/ulc", "tests/process/process_exchange",
         "bench/apps/ulc-matmul"]
SYSTEM = [DRIVER, *ENGINE, "tools/ulc", "tests/process/process_exchange",
          "bench/apps/ulc-matmul"]
I8255X_SYSTEM = [I8255X, *SYSTEM[1:]]
GAMMA = ["tests/qemu/gamma_barriers", "tests/qemu/gamma_ports", "tests/qemu/gamma_groups"]
BONDED = [DRIVER, *ENGINE, "tools/ulc", "tests/process/process_exchange",
          "tests/process/process_bulk"]

TESTS = [
    Test("testpmd_uio",
         "dpdk-testpmd on our driver under uio_pci_generic: frames of 60 to 1514 octets there and "
         "back, filter, stop and start",
         "testpmd", 2, [DRIVER, "tests/qemu/frame_echo"]),
    Test("testpmd_vfio", "the same under vfio-pci with an IOMMU",
         "testpmd", 2, [DRIVER, "tests/qemu/frame_echo"], always=False, drivers=("vfio-pci",),
         machine=IOMMU),
    Test("cluster",
         "4 machines on a hub, each engine on our driver: ping-pong of every two, exchange with "
         "multicast, matrix product by allgather and by broadcast, then one loses power and the "
         "others get an error",
         "cluster", 4, SYSTEM, judges=(0, 1, 2), power_off={3: "LAB: 3 waits for its end"}),
    Test("gamma",
         "4 machines on a hub: the programs of libgamma's test, which pass barriers, exchange "
         "messages, and message each other as three groups, of which one loses a member",
         "gamma", 4, [*SYSTEM, *GAMMA], always=False, judges=(0, 1, 2, 3)),
    Test("i8255x_testpmd",
         "dpdk-testpmd on our driver of an 82557 under uio_pci_generic, as `testpmd_uio`",
         "testpmd", 2, [I8255X, "tests/qemu/frame_echo"], nics=("i82557c",)),
    Test("i8255x_testpmd_vfio", "the same on an 82559 under vfio-pci with an IOMMU",
         "testpmd", 2, [I8255X, "tests/qemu/frame_echo"], always=False, drivers=("vfio-pci",),
         machine=IOMMU, nics=("i82559c",)),
    Test("i8255x_cluster", "as `cluster`, on 82557, 82558, 82559ER and 82551 by our driver",
         "cluster", 4, I8255X_SYSTEM, judges=(0, 1, 2),
         power_off={3: "LAB: 3 waits for its end"},
         nics=("i82557c", "i82558b", "i82559er", "i82551")),
    Test("i8255x_readme", "as `readme`, on an 82559",
         "readme", 2, [I8255X, *ENGINE, "tools/ulc"], always=False, judges=(0, 1),
         drivers=("none",), machine=IOMMU, memory_mb=1024, nics=("i82559c",)),
    Test("i8255x_faults", "as `faults`, on an 82557",
         "faults", 1, I8255X_SYSTEM, always=False, drivers=("none",), memory_mb=4608,
         nics=("i82557c",),
         machine=("-M", "pc", "-device", "i82557c,addr=9,mac=03:21:14:30:00:09")),
    Test("i8255x_removal", "as `removal`, on an 82557",
         "removal", 2, I8255X_SYSTEM, always=False, judges=(0,), nics=("i82557c",),
         pull_card={0: "LAB: 0 waits for its card to go"}),
    Test("i8255x_removal_vfio", "as `removal_vfio`, on an 82559",
         "removal", 2, I8255X_SYSTEM, always=False, judges=(0,),
         pull_card={0: "LAB: 0 waits for its card to go"},
         nics=("i82559c,bus=socket",), drivers=("vfio-pci",),
         machine=(*IOMMU, "-device", "pcie-root-port,id=socket,chassis=1,slot=1")),
    Test("i8255x_exception", "as `exception`, on an 82557",
         "exception", 2, I8255X_SYSTEM, always=False, judges=(0, 1), nics=("i82557c",)),
    Test("i8255x_instructions", "as `instructions`, on an 82557",
         "instructions", 2,
         [I8255X, "pmd_app/main/libulc-engine.so", "tests/qemu/nic_instructions"],
         always=False, judges=(0, 1), drivers=("none",), nics=("i82557c",),
         accelerator="tcg", machine=("-M", "pc", "-icount", "shift=0"), timeout=200),
    Test("i8255x_exception_cost", "as `exception_cost`, on an 82557",
         "exception_cost", 2, [I8255X, "pmd_app/main/libulc-engine.so", "tests/qemu/nic_stream"],
         always=False, judges=(0, 1), nics=("i82557c",),
         accelerator="tcg", machine=("-M", "pc", "-icount", "shift=0"), timeout=900),
    Test("i8255x_kernel", "as `kernel`, on an 82557",
         "kernel", 2, I8255X_SYSTEM + ["tests/qemu/nic_pingpong"], always=False, judges=(0, 1),
         drivers=("none",), nics=("i82557c",)),
    Test("readme", "what REAL_NICS.md says, line by line, on two machines with an IOMMU",
         "readme", 2, [DRIVER, *ENGINE, "tools/ulc"], judges=(0, 1),
         drivers=("none",), machine=IOMMU, memory_mb=1024),
    Test("faults",
         "one machine with 4.5 GiB, whose NIC has no driver, or belongs to the kernel or another "
         "engine, without hugepages, without an IOMMU, with memory beyond 32 bits, with a wrong "
         "serial ROM: each time a sentence that says what to type",
         "faults", 1, SYSTEM, always=False, drivers=("none",), memory_mb=4608,
         machine=("-M", "pc", "-device", "tulip,addr=9,mac=03:21:14:30:00:09")),
    Test("removal",
         "the NIC is removed from a running machine: its engine lives, its client gets an error, "
         "and the next start says what is wrong",
         "removal", 2, SYSTEM, always=False, judges=(0,),
         pull_card={0: "LAB: 0 waits for its card to go"}),
    Test("removal_vfio", "the same behind an IOMMU: the engine is asked to release its NIC",
         "removal", 2, SYSTEM, always=False, judges=(0,),
         pull_card={0: "LAB: 0 waits for its card to go"},
         nics=("tulip,bus=socket",), drivers=("vfio-pci",),
         machine=(*IOMMU, "-device", "pcie-root-port,id=socket,chassis=1,slot=1")),
    Test("bonded",
         "two machines with two NICs each as one net: exchange with multicast and bulk on our "
         "driver; every octet compared",
         "bonded", 2, BONDED, judges=(0, 1), drivers=("none",), links=2),
    Test("bonded_cable",
         "the same on e1000, whose model shows its cable: one is pulled in mid-stream and plugged "
         "in again; few packets are repaired",
         "bonded", 2, BONDED, judges=(0, 1), drivers=("none",), links=2,
         nics=("e1000",), pull_cable={1: ("LAB: 1 loses its cable", "LAB: 1 has its cable again")}),
    Test("mixed",
         "the same on four NICs: tulip, e1000 and virtio by DPDK, i82557c by the kernel's driver "
         "and af_packet",
         "cluster", 4, SYSTEM, always=False, judges=(0, 1, 2),
         power_off={3: "LAB: 3 waits for its end"},
         nics=("tulip", "e1000", "i82557c", "virtio-net-pci"),
         drivers=("uio_pci_generic", "uio_pci_generic", "kernel", "uio_pci_generic")),
    Test("mixed_drivers",
         "the same on tulip and i82557c by our drivers, i82557c by the kernel's driver and "
         "af_packet, and e1000 by DPDK",
         "cluster", 4, [I8255X, *SYSTEM], always=False, judges=(0, 1, 2),
         power_off={3: "LAB: 3 waits for its end"},
         nics=("tulip", "i82557c", "i82557c", "e1000"),
         drivers=("uio_pci_generic", "uio_pci_generic", "kernel", "uio_pci_generic")),
    Test("verbs", "two machines with Soft-RoCE, engines on a UD queue pair: ping-pong, exchange "
         "with multicast, matrix product, exchange while one frame in fifty is lost",
         "verbs", 2, VERBS, judges=(0, 1), drivers=("none",), nics=("e1000",),
         rdma=True),
    Test("verbs_cm", "the same with groups that the kernel's connection manager joins, through "
         "librdmacm; one that is missing is named",
         "verbs_cm", 2, VERBS, always=False, judges=(0, 1), drivers=("none",), nics=("e1000",),
         rdma=True),
    Test("verbs_cluster",
         "four machines with Soft-RoCE on tulip, e1000 and virtio: as `cluster`, at 1 % loss",
         "verbs_cluster", 4, VERBS, always=False, judges=(0, 1, 2), drivers=("none",),
         power_off={3: "LAB: 3 waits for its end"}, nics=("tulip", "e1000", "virtio-net-pci"),
         rdma=True),
    Test("verbs_latency",
         "round trips of 64 octets by perftest's ib_send_lat, by ULC on verbs and by ULC on "
         "af_packet, on one Soft-RoCE device; figures, no limits",
         "verbs_latency", 2, [*VERBS, "pmd_app/main/libulc-engine.so"], always=False,
         judges=(0, 1), drivers=("none",), nics=("e1000",), rdma=True, perftest=True),
    Test("exception",
         "IP on the same NIC: ping and HTTP between two machines through the exception interface, "
         "while ULC's own traffic runs",
         "exception", 2, SYSTEM, always=False, judges=(0, 1)),
    Test("isolation",
         "the same on a NIC that stays with the kernel: DPDK's net_tap gives the engine the frames "
         "of its EtherType by a rule of rte_flow, as a bifurcated NIC does",
         "isolation", 2, [*ENGINE, "tools/ulc", "tests/process/process_exchange"],
         judges=(0, 1), drivers=("kernel",), nics=("i82557c",)),
    Test("instructions",
         "instructions a message costs, counted by the machine: the kernel's driver and UDP, then "
         "our driver and ULC",
         "instructions", 2,
         [DRIVER, "pmd_app/main/libulc-engine.so", "tests/qemu/nic_instructions"],
         always=False, judges=(0, 1), drivers=("none",),
         accelerator="tcg", machine=("-M", "pc", "-icount", "shift=0"), timeout=200),
    Test("exception_cost",
         "the cost of IP on the same NIC for a message of ULC, counted in instructions: at most a "
         "twentieth more",
         "exception_cost", 2, [DRIVER, "pmd_app/main/libulc-engine.so", "tests/qemu/nic_stream"],
         always=False, judges=(0, 1),
         accelerator="tcg", machine=("-M", "pc", "-icount", "shift=0"), timeout=900),
    Test("kernel",
         "round trip and stream between the same two NICs: the kernel's driver with UDP and TCP, "
         "then our driver with ULC; a ratio, no speed",
         "kernel", 2, SYSTEM + ["tests/qemu/nic_pingpong"], always=False, judges=(0, 1),
         drivers=("none",)),
]
