// SPDX-License-Identifier: BSD-3-Clause
// The sources of the papers' numbers. (read) is a figure of the paper; (derived) follows from such
// figures by the arithmetic next to it; (estimate) is chosen, because the paper gives none, and no
// result should be quoted that hangs on it. Set once: no table may change them.
#include "tests/sim/host/presets.h"

#include <algorithm>

namespace ulc::sim {
namespace {

// GAMMA §4.5.6–8: Pentium 133, 3C595 and 3C905 on 100 Mb/s; one machine, and each version's change.
//   DMA rate: version 0.2 moves 1500 octets in 1500 / 6.6 MB/s = 227 µs, 204 µs more than nothing
//     (23.5 µs); the line takes 117 µs of it, two transfers in store and forward the other 87: 29
//     ns an octet (derived).
//   bus_setup: early send and receive save 23.5 − 16.8 = 6.7 µs of a shortest frame. They hide 60 −
//     16 octets of the first transfer, and the second with its start: 1.3 + 1.7 + setup, so 3.7 µs
//     (derived).
//   interrupt: 16.8 − 12.7 = 4.1 µs, "about 4 µs" (read).
//   frames: 12.7 = send + 3.7 + 0.5 + line 5.8 + repeater 1 (§7.3.3) + receive, so 1.7 µs for both
//     (derived).
HostCosts gamma(std::string name) {
    HostCosts host;
    host.name = std::move(name);
    host.round = 100;
    host.send_frame = 800;
    host.receive_frame = 800;
    host.bus_octet = 29;
    host.bus_setup = 3'700;
    host.bus_by_processor = true;
    host.notice = Notice::kInterrupt;
    host.interrupt_latency = 4'100;
    host.tx_ring_frames = 8;  // the NIC's transmit FIFO, some frames (estimate)
    return host;
}

// Version 0.1: programmed I/O. 9.9 MB/s (read) is 151 µs for 1500 octets, all of it the
// processor's: 98 ns an octet (derived); of the 10 µs in latency that 0.2 won, this is 8 µs,
// headers made again the rest (derived).
HostCosts gamma_0_1() {
    HostCosts host = gamma("gamma-0.1");
    host.bus_octet = 98;
    host.send_frame += 1'000;
    host.receive_frame += 700;
    return host;
}

// Version 0.3: early send and receive; the threshold is the header (estimate: "the first few
// bytes").
HostCosts gamma_0_3() {
    HostCosts host = gamma("gamma-0.3");
    host.send_threshold = 16;
    host.receive_threshold = 16;
    return host;
}

// Version 0.4: polls.
HostCosts gamma_0_4() {
    HostCosts host = gamma_0_3();
    host.name = "gamma-0.4";
    host.notice = Notice::kPoll;
    host.interrupt_latency = 0;
    return host;
}

// A temporary copy of each message at the receiver: 3 MB/s less, 24 % of the line (§4.5.6, read).
// 12.1 becomes 9.1 MB/s, so 1500 octets take 165 µs instead of 124; the receiver's processor
// already moves them for 47 µs: 118 / 1500 = 79 ns (derived).
HostCosts gamma_copy() {
    HostCosts host = gamma("gamma-0.2-copy");
    host.receive_octet = 79;
    return host;
}

// One thread of an engine on a core alone, short messages on the fast path
// (pmd_app/engine/fast/README.md). Instructions as bench/count_instructions counted them in
// ping_pong_two_engines/8/ at 9de89a7a; 6 of them a ns are 2 a cycle at 3 GHz (estimate).
//   round 77, submit 200, send 220 + 103 + 147, receive 210 + 203 + 76, complete 125 + 34 (derived)
//   copies at 10 GB/s; 60 ns for a cache line between cores; 500 ns in the NIC (estimates)
HostCosts engine_core() {
    HostCosts host;
    host.name = "engine-core";
    host.round = 13;
    host.submit = 33;
    host.send_frame = 78;
    host.receive_frame = 82;
    host.complete = 27;
    host.hand_over_frame = 60;
    host.send_octet = 0.1;
    host.receive_octet = 0.1;
    host.nic = 500;
    host.tx_ring_frames = 1024;
    return host;
}

// U-Net MPI §6.2: 3–4 µs of a message are reliability and 7–8 the queues and message handling of
// MPICH's ADI, 11 together, on a Pentium Pro 200 (read): 3.5 and 7.5. An acknowledgement is put
// down in one message and taken out of it at the other end, so each is half of 3.5 (derived).
constexpr Nanos kUnetAcknowledge = 1'750;
constexpr Nanos kUnetMatch = 7'500;
constexpr double kUnetMegahertz = 200;

// GAMMA §7.1: a NIC with descriptor rings (DEC 21143), which moves frames by itself, on a Pentium
// II 350 (§7.3.3); the processor copies the payload once on the way in. [GAMMA] does
// not describe that port. Set from other figures than its 14.3 and 17.7 µs:
//   frames: what the processor did for GAMMA 0.4, 1.7 + 3.7 µs on a Pentium 133 (see above), by the
//     clock, half each (derived)
//   acknowledge, match: MPI/GAMMA is an ADI as U-Net MPI is, on a processor of the same family;
//     those of U-Net MPI by the clock (derived)
//   bus: 12 ns an octet at PCI speed, 500 ns to fetch a descriptor, 128 octets in the NIC before it
//     sends (estimates); copying at 150 MB/s (estimate)
HostCosts gamma_21143() {
    constexpr double kMegahertz = 350;
    HostCosts host;
    host.name = "gamma-21143";
    host.round = 100;
    host.send_frame = static_cast<Nanos>((1'700.0 + 3'700.0) / 2 * 133 / kMegahertz);
    host.receive_frame = host.send_frame;
    host.receive_octet = 7;
    host.acknowledge = static_cast<Nanos>(kUnetAcknowledge * kUnetMegahertz / kMegahertz);
    host.match = static_cast<Nanos>(kUnetMatch * kUnetMegahertz / kMegahertz);
    host.bus_octet = 12;
    host.bus_setup = 500;
    host.send_threshold = 128;
    return host;
}

// GAMMA §3.2.1, table 3.1: Linux 2.0.29 TCP on Pentium II 300, 3C905 with descriptors: 77.4 µs,
// 10.8 MB/s, half-power 1750 B (read). 77.4 − 5.8 − 1 is 70.6 µs of two hosts, of it the
// interrupt's 4 (derived).
HostCosts linux_tcp() {
    HostCosts host;
    host.name = "linux-tcp-pii300";
    host.round = 100;
    host.send_frame = 18'000;
    host.receive_frame = 26'000;
    host.submit = 8'000;
    host.complete = 10'000;
    host.send_octet = 14;  // copy and checksum (estimate)
    host.receive_octet = 14;
    host.notice = Notice::kInterrupt;
    host.interrupt_latency = 4'000;
    host.interrupt_cost = 3'000;
    host.bus_octet = 12;
    host.bus_setup = 500;
    return host;
}

// MPICH over it, by a device for TCP: 131.2 µs on a Pentium II 350 (§7.3.3, figure 7.1, read). TCP
// takes 70.6 by the clock of it and the line 6.8, so MPICH's queues take 63.9, and 74.5 on this
// processor (derived). libulc, whose place they take, releases a message by a record: `submit` is
// of them.
HostCosts mpich_tcp() {
    HostCosts host = linux_tcp();
    host.name = "mpich-tcp-pii300";
    host.match = 74'500 - host.submit;
    return host;
}

// The same NIC by the driver from before, which starts each transfer and waits for its end (GAMMA
// §3.2.1, read). The bus as in gamma(), whose NIC is of the same family (derived).
HostCosts linux_tcp_waiting() {
    HostCosts host = linux_tcp();
    host.name = "linux-tcp-pii300-waits";
    host.bus_by_processor = true;
    host.bus_octet = 29;
    host.bus_setup = 3'700;
    return host;
}

// GAMMA table 3.1: the same on a Pentium 133 with a 3C595: 113.8 µs, 6.6 MB/s (read). The line
// takes 5.8 + 1 µs of it, the interrupt 4, two transfers of 60 octets 11: 92 for two processors,
// 1.5 times the Pentium II's 62 (derived). 6.6 MB/s are 227 µs for 1500 octets. The receiver needs
// 1.5 · 36 for the frame, 47 for the transfer, half of 27 for the acknowledgement of two: 75 ns an
// octet are left (derived).
HostCosts linux_tcp_p133() {
    HostCosts host = linux_tcp_waiting();
    host.name = "linux-tcp-p133";
    for (Nanos HostCosts::*cost : {&HostCosts::send_frame, &HostCosts::receive_frame,
                                   &HostCosts::submit, &HostCosts::complete})
        host.*cost += host.*cost / 2;
    host.send_octet = 75;
    host.receive_octet = 75;
    return host;
}

// U-Net MPI §6: Pentium Pro 200, FreeBSD 2.2, DEC Tulip on 100 Mb/s.
//   acknowledge, match: see above
//   copies: one on the way out, two in (§6.1, read), 80 MB/s each (estimate)
//   bus: as for GAMMA's 21143, a NIC of the same family (estimate)
//   frames: raw U-Net takes 32 − 11 = 21 µs (§6.2, read). 5.8 of line, 2.3 of the bus and 2.2 of
//     copies, for 60 octets each, leave 10.7 for trap and handler (derived), split evenly
//     (estimate).
HostCosts unet_mpi() {
    HostCosts host;
    host.name = "unet-mpi";
    host.round = 100;
    host.send_frame = 5'350;
    host.receive_frame = 5'350;
    host.acknowledge = kUnetAcknowledge;
    host.match = kUnetMatch;
    host.send_octet = 12.5;
    host.receive_octet = 25;
    host.bus_octet = 12;
    host.bus_setup = 400;
    return host;
}

// URTP §4.1: RS/6000 on 10 Mb/s; clocks of 20, 33, 62.5 and 66 MHz (read); costs go by the clock
// (estimate).
//   A UDP packet costs 400 to 600 µs up to the user level, one of URTP 100 less where a system call
//     brings it alone (§3.3, read). We take that span as of its size, since figure 3 is by size,
//     and the host, which the paper does not name, as the median one of the eight, the 530H
//     (estimates): 300 µs and 200 / 1500 = 133 ns an octet, both copies (derived).
//   A sixth of the 300 is the interrupt, a sixth the driver's, also for what it drops ("very little
//     overhead"), a sixth the library's; half the signal and the system call, once for what comes
//     together (§3.3 says so; shares are estimates).
//   Sending, "much less work" (§3.2.1, read), is a quarter of it, and one copy of two (estimate).
HostCosts urtp(std::string name, double megahertz) {
    HostCosts host;
    host.name = std::move(name);
    host.round = 10'000;
    host.send_frame = 75'000;
    host.receive_frame = 50'000;
    host.complete = 50'000;
    host.wake = 150'000;
    host.send_octet = 67;
    host.receive_octet = 133;
    host.speed = megahertz / 33;
    host.notice = Notice::kInterrupt;
    host.interrupt_latency = 10'000;
    host.interrupt_cost = 50'000;
    host.tx_ring_frames = 16;
    host.rx_ring_frames = 64;
    return host;
}

// URTP §5, figure 14: IBM MPL over UDP on RS/6000s that are faster than those of §4.1, and alike
// (read). As fast as the fastest of §4.1 (estimate). A packet of UDP costs 100 µs more than one of
// URTP (§3.3, read).
HostCosts mpl_udp() {
    HostCosts host = urtp("mpl-udp", 66);
    host.complete += 100'000;
    return host;
}

// PCODE §6: Silicon Graphics Indigo, R4000, UDP on 10 Mb/s. The paper gives no host figure: UDP as
// URTP §3.3 measured it on workstations of the time, 400 µs and 133 ns an octet up to the user
// level, a quarter of it to send (estimate). The protocol is a daemon, to which an application's
// requests go and from which its messages come by a local socket (§6.1, read): each such hand-over
// as much as a UDP message (estimate); that of a multicast is charged to every frame sent.
HostCosts pcode() {
    HostCosts host;
    host.name = "pcode-indigo";
    host.round = 10'000;
    host.send_frame = 100'000 + 400'000;
    host.receive_frame = 350'000;
    host.complete = 2 * 400'000;
    host.send_octet = 67 + 133;
    host.receive_octet = 133 + 133;
    host.notice = Notice::kInterrupt;
    host.interrupt_latency = 10'000;
    host.interrupt_cost = 50'000;
    host.tx_ring_frames = 16;
    host.rx_ring_frames = 64;
    return host;
}

// The same host under PCODE's rival, a program on the kernel's TCP (§6.3): no daemon, so no hand-
// over. TCP's own work is taken to be no more than UDP's (estimate, in its favour).
HostCosts tcp_indigo() {
    HostCosts host = pcode();
    host.name = "tcp-indigo";
    host.send_frame = 100'000;
    host.complete = 0;
    host.send_octet = 67;
    host.receive_octet = 133;
    return host;
}

// Express §5.1: iPSC/2; an upcall costs 27 µs more than polling (read), one way. The network is not
// Ethernet and the latencies stand in a figure without numbers: 100 µs each end and 20 ns an octet
// (estimate).
HostCosts express(bool polls) {
    HostCosts host;
    host.name = polls ? "express-poll" : "express-upcall";
    host.round = 1'000;
    host.send_frame = 80'000;
    host.receive_frame = 80'000;
    host.submit = 20'000;
    host.complete = 20'000;
    host.bus_octet = 20;
    if (!polls) {
        host.notice = Notice::kInterrupt;
        host.interrupt_cost = 27'000;
    }
    return host;
}

// Figures on this project's machine, embedded engines over memif: a bare echo takes 0.56 µs one
// way, which is the device twice; 3.6 … 5.4 M messages of 64 B a second and core, both directions:
// 0.11 µs each way; a stream of 64 KiB messages 1.9 to 2.4 GB/s: 0.68 µs for a packet of 1486
// octets; 8 B one way 1.4 … 2.5 µs, of which those leave 0.6 for libulc at both ends and for half a
// waiting round (all derived).
HostCosts own_machine() {
    HostCosts host;
    host.name = "own-machine";
    host.round = 60;
    host.send_frame = 110;
    host.receive_frame = 110;
    host.send_octet = 0.2;
    host.receive_octet = 0.38;
    host.submit = 120;
    host.complete = 120;
    host.poll_period = 500;
    host.nic = 280;
    return host;
}

}  // namespace

const std::vector<HostCosts>& host_presets() {
    static const std::vector<HostCosts> kAll{
        HostCosts{},
        own_machine(),
        engine_core(),
        gamma_0_1(),
        gamma("gamma-0.2"),
        gamma_copy(),
        gamma_0_3(),
        gamma_0_4(),
        gamma_21143(),
        linux_tcp(),
        mpich_tcp(),
        linux_tcp_waiting(),
        linux_tcp_p133(),
        unet_mpi(),
        urtp("urtp-320", 20),
        urtp("urtp-530h", 33),
        urtp("urtp-375", 62.5),
        urtp("urtp-250", 66),
        mpl_udp(),
        pcode(),
        tcp_indigo(),
        express(true),
        express(false),
    };
    return kAll;
}

std::optional<HostCosts> host_preset(std::string_view name) {
    const auto& all = host_presets();
    const auto found = std::ranges::find(all, name, &HostCosts::name);
    return found == all.end() ? std::nullopt : std::optional(*found);
}

std::string host_preset_names() {
    std::string names;
    for (const HostCosts& host : host_presets())
        names += (names.empty() ? "" : ", ") + host.name;
    return names;
}

std::vector<HostCosts> urtp_hosts() {
    std::vector<HostCosts> hosts;
    for (const char* name : {"urtp-320", "urtp-320", "urtp-320", "urtp-530h", "urtp-530h",
                             "urtp-375", "urtp-250", "urtp-250"})
        hosts.push_back(*host_preset(name));
    return hosts;
}

}  // namespace ulc::sim
