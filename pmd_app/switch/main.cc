// SPDX-License-Identifier: BSD-3-Clause
// ulc-switch: opens its ports, prints "ready", forwards until SIGTERM, writes its counters.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>

#include "base/clock.h"
#include "base/idle_ladder.h"
#include "dpdk/eal.h"
#include "dpdk/ethdev_port.h"
#include "switch/program.h"

namespace ulc::ether_switch {
namespace {

volatile sig_atomic_t g_stop = 0;
volatile sig_atomic_t g_report = 0;

// For each port; memif stations wait for space
constexpr std::uint32_t kReceiveOctets = 2048 * 1500;
constexpr std::uint32_t kReceiveSegmentsMin = 512;
constexpr std::uint32_t kTransmitSegments = 64;  // a switch creates no frames
constexpr std::uint32_t kBaseMb = 48;

void handle_signals() {
    struct sigaction action {};
    action.sa_handler = [](int) { g_stop = 1; };
    action.sa_flags = SA_RESTART;  // no write ends in its middle
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    action.sa_handler = [](int) { g_report = 1; };
    sigaction(SIGUSR1, &action, nullptr);
    signal(SIGPIPE, SIG_IGN);
}

/// Written completely or not at all: a reader never sees half a file.
void report(const Switch& ether_switch, const SwitchOptions& options) {
    if (options.stats_file.empty()) return;
    const std::string json = statistics_json(ether_switch, options);
    if (options.stats_file == "-") {
        std::fputs(json.c_str(), stdout);
        std::fflush(stdout);
        return;
    }
    const std::string fresh = options.stats_file + ".new";
    FILE* file = std::fopen(fresh.c_str(), "w");
    const bool written = file != nullptr && std::fputs(json.c_str(), file) >= 0;
    if (file == nullptr || std::fclose(file) != 0 || !written ||
        std::rename(fresh.c_str(), options.stats_file.c_str()) != 0) {
        std::perror(("ulc-switch: " + options.stats_file).c_str());
    }
}

void idle(IdleLadder& ladder, Nanos now, Nanos next_due) {
    switch (ladder.idle(now)) {
        case IdleLadder::Step::kSpin:
            return;
        case IdleLadder::Step::kYield: {
            const Nanos before = monotonic_now();
            sched_yield();
            ladder.yielded(before, monotonic_now());
            return;
        }
        case IdleLadder::Step::kNap: {
            const Nanos length =
                std::min(ladder.next_nap(), next_due == kNever ? kNever : next_due - now);
            const timespec nap{
                .tv_sec = 0,
                .tv_nsec = static_cast<long>(std::clamp<Nanos>(length, 0, kSecond - 1))};
            if (length > 0) nanosleep(&nap, nullptr);
            return;
        }
    }
}

void run(Switch& ether_switch, const SwitchOptions& options) {
    prctl(PR_SET_TIMERSLACK, 1000UL);
    IdleLadder ladder;
    while (g_stop == 0) {
        const Nanos now = monotonic_now();
        if (ether_switch.poll(now)) {
            ladder.busy();
        } else {
            idle(ladder, now, ether_switch.next_due());
        }
        if (g_report != 0) {
            g_report = 0;
            report(ether_switch, options);
        }
    }
}

int start(const SwitchOptions& options) {
    const std::vector<std::string> devices = options.all_devices();
    const auto count = static_cast<std::uint32_t>(devices.size());
    const std::uint32_t frame_octets = 2048 + 512 + (options.mtu > 1500 ? options.mtu : 0U);
    const std::uint32_t segments = std::max<std::uint32_t>(
        kReceiveSegmentsMin, kReceiveOctets / std::max<std::uint32_t>(options.mtu, 1500));
    const std::uint64_t needed = std::uint64_t{count} * (segments + 1024) * frame_octets;
    dpdk::EalOptions eal;
    eal.program = "ulc-switch";
    eal.devices = devices;
    eal.extra_args = options.eal_args;
    eal.memory_mb = options.memory_mb != 0 ? options.memory_mb
                                           : kBaseMb + static_cast<std::uint32_t>(needed >> 20);
    dpdk::EalReport eal_report;
    std::string why;
    if (dpdk::start_eal(eal, eal_report, why) != Err::kOk) {
        std::fprintf(stderr, "ulc-switch: %s\n", why.c_str());
        return 1;
    }
    std::vector<std::unique_ptr<dpdk::EthdevPort>> owners;
    std::vector<Port> ports;
    for (const std::string& device : devices) {
        dpdk::PortOptions port;
        port.device = device;
        port.mtu = options.mtu;
        port.segments = kTransmitSegments;
        port.receive_segments = segments;
        port.promiscuous = true;
        owners.emplace_back();
        if (dpdk::EthdevPort::open(port, owners.back(), why) != Err::kOk) {
            std::fprintf(stderr, "ulc-switch: %s\n", why.c_str());
            return 1;
        }
        ports.push_back(owners.back()->port());
    }
    Switch ether_switch(options.config, ports);
    std::printf("ulc-switch ready: %zu ports\n", ports.size());
    std::fflush(stdout);
    run(ether_switch, options);
    report(ether_switch, options);
    return 0;
}

}  // namespace
}  // namespace ulc::ether_switch

int main(int argc, char** argv) {
    ulc::ether_switch::SwitchOptions options;
    int status = 0;
    if (!ulc::ether_switch::parse_switch_options(argc, argv, options, status)) return status;
    ulc::ether_switch::handle_signals();
    status = ulc::ether_switch::start(options);
    ulc::dpdk::stop_eal();
    return status;
}
