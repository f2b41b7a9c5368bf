// SPDX-License-Identifier: BSD-3-Clause
// Table 11: the gain by threads of an engine (docs/design/ENGINE_THREADS.md). Two machines on a
// cable; each thread is a simulated processor with the shipped engine. Below each simulated figure
// stands the model's. The simulation of one thread gives the model the cost of a message at each
// machine; the model says from it how much more threads carry:
//
//   rate = 1 / the longest of     a thread's work for a message     a direction's time on the cable
//
// Absolute rates hang on the preset's estimates. The shapes are about ratios, and about the model.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/sim/host/presets.h"
#include "tests/sim/programs/machine_pair.h"
#include "tests/sim/tables/list.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kGigabit = 1'000'000'000;
constexpr std::size_t kShort = 40;
constexpr std::size_t kLong = 64U << 10;
constexpr double kModelError = 0.15;

std::string text(const char* format, double a, double b = 0) {
    std::array<char, 120> out{};
    std::snprintf(out.data(), out.size(), format, a, b);
    return out.data();
}

/// Predicts rates from the costs of a message with one thread.
struct Model {
    explicit Model(const MachineFigures& one) : figures(one), host(*host_preset("engine-core")) {}

    /// Messages a second of `pair`.
    [[nodiscard]] double rate(const MachinePair& pair) const {
        double longest = std::max(line_ns(figures.first, pair), line_ns(figures.second, pair));
        for (std::uint16_t thread = 0; thread < pair.threads; ++thread) {
            longest = std::max(longest, thread_ns(pair, thread, figures.first, figures.second));
            longest = std::max(longest, thread_ns(pair, thread, figures.second, figures.first));
        }
        return 1e9 / longest;
    }
    /// Likewise, when the ends of each stream are different threads of one machine.
    [[nodiscard]] double rate_by_ring(const MachinePair& pair) const {
        const double frames = figures.first.frames + figures.second.frames;
        const double saved = static_cast<double>(host.send_frame + host.receive_frame) -
                             2 * static_cast<double>(host.hand_over_frame);
        const double both = figures.first.busy_ns + figures.second.busy_ns - frames * saved;
        return 1e9 / (both * share(pair, 0));
    }

private:
    /// A thread's part of the streams.
    [[nodiscard]] static double share(const MachinePair& pair, std::uint16_t thread) {
        const int more = thread < pair.streams % pair.threads ? 1 : 0;
        const int streams = pair.streams / pair.threads + more;
        return static_cast<double>(streams) / pair.streams;
    }
    [[nodiscard]] static double line_ns(const MachineShare& from, const MachinePair& pair) {
        const double each = std::max(from.octets / from.frames, 60.0) + kLineOverheadOctets;
        return from.frames * each * 8e9 / static_cast<double>(pair.bits_per_second);
    }
    /// A thread's work for a message at a machine that sends `own` and receives `other`.
    [[nodiscard]] double thread_ns(const MachinePair& pair, std::uint16_t thread,
                                   const MachineShare& own, const MachineShare& other) const {
        const auto receive = static_cast<double>(host.receive_frame);
        const auto hand_over = static_cast<double>(host.hand_over_frame);
        const bool is_multicast = pair.traffic == ThreadTraffic::kMulticast;
        const bool is_source = &own == &figures.first;
        // The source writes the ring as well, for members that could be on other threads.
        if (is_multicast && is_source)
            return thread == 0 ? own.busy_ns + (pair.threads > 1 ? hand_over : 0) : hand_over;
        const double part = share(pair, thread);
        if (pair.steering == Steering::kBySoftware && !is_multicast) {
            const double frames = other.frames;
            if (thread == 0)
                return part * own.busy_ns + (1 - part) * frames * (receive + hand_over);
            return part * (own.busy_ns - frames * (receive - hand_over));
        }
        if (!is_multicast || pair.threads == 1) return part * own.busy_ns;
        // Each thread takes the frame; the rest of the work is by members.
        const double take = other.frames * (receive + host.receive_octet * other.octets);
        const double rest = part * (own.busy_ns - take);
        if (pair.steering == Steering::kByNic) return rest + take;
        return rest + take + other.frames * (thread == 0 ? hand_over : hand_over - receive);
    }

    MachineFigures figures;
    HostCosts host;
};

/// Figures of a setting for each number of threads, and the model's.
class Rows {
public:
    Rows(const TableOptions& options, MachinePair pair) : pair_(std::move(pair)) {
        pair_.seed = options.seed;
        const std::size_t packets = (pair_.octets + 1399) / 1400;
        pair_.count = (options.quick ? 2000 : 20'000) / packets;
        threads_ = options.quick ? std::vector<std::uint16_t>{1, 2, 4}
                                 : std::vector<std::uint16_t>{1, 2, 4, 8};
    }
    /// one: what a message costs one thread; nullptr: this setting's own figures say it.
    void add_to(Grid& grid, const std::string& name, double scale,
                const MachineFigures* one = nullptr) {
        Grid::Row ours{name, {}};
        Grid::Row model{"  model", {}};
        for (const std::uint16_t threads : threads_) {
            if (threads == 1 && pair_.traffic == ThreadTraffic::kOtherThread) {
                ours.values.push_back(std::nan(""));
                model.values.push_back(std::nan(""));
                continue;
            }
            pair_.threads = threads;
            const MachineFigures figures = run_machine_pair(pair_);
            ULC_CHECK(figures.error.empty());
            if (threads == 1) first_ = figures;
            rates_.push_back(figures.messages);
            ours.values.push_back(figures.messages * scale);
            const Model from(one == nullptr ? first_ : *one);
            const double said = pair_.traffic == ThreadTraffic::kOtherThread
                                    ? from.rate_by_ring(pair_)
                                    : from.rate(pair_);
            worst = std::max(worst, std::abs(said / figures.messages - 1));
            model.values.push_back(said * scale);
        }
        grid.columns.clear();
        for (const std::uint16_t threads : threads_)
            grid.columns.push_back(std::to_string(threads));
        grid.rows.push_back(std::move(ours));
        grid.rows.push_back(std::move(model));
    }
    /// Messages a second, in the order of the columns that have a figure.
    [[nodiscard]] double rate(std::size_t index) const { return rates_.at(index); }
    [[nodiscard]] const MachineFigures& one() const { return first_; }
    double worst = 0;  ///< error of the model, as a part of the simulated figure

private:
    MachinePair pair_;
    std::vector<std::uint16_t> threads_;
    std::vector<double> rates_;
    MachineFigures first_;
};

MachinePair setting(ThreadTraffic traffic, Steering steering, std::uint64_t gigabits,
                    std::size_t octets) {
    MachinePair pair;
    pair.traffic = traffic;
    pair.steering = steering;
    pair.bits_per_second = gigabits * kGigabit;
    pair.octets = octets;
    return pair;
}

}  // namespace

Table engine_threads(const TableOptions& options) {
    using enum ThreadTraffic;
    using enum Steering;
    constexpr double kMillions = 1e-6;
    constexpr double kGigabits = 8e-9;
    Table table;
    table.name = "engine-threads";
    table.title = "Threads of an engine";
    table.method =
        "Two machines on a cable, host engine-core for each thread; 8 streams, spread evenly. The "
        "model knows a message's costs with one thread.";
    Grid shorts{"40 B messages between the machines, by threads", "M/s", {}, {}, 1};
    Rows by_nic(options, setting(kPairs, kByNic, 100, kShort));
    by_nic.add_to(shorts, "NIC steers, 100 Gb/s", kMillions);
    Rows by_software(options, setting(kPairs, kBySoftware, 100, kShort));
    by_software.add_to(shorts, "first thread hands over, 100 Gb/s", kMillions, &by_nic.one());
    Rows slow(options, setting(kPairs, kByNic, 10, kShort));
    slow.add_to(shorts, "NIC steers, 10 Gb/s", kMillions, &by_nic.one());

    Grid longs{"64 KiB messages between the machines, by threads", "Gb/s", {}, {}, 1};
    Rows long_fast(options, setting(kPairs, kByNic, 100, kLong));
    long_fast.add_to(longs, "NIC steers, 100 Gb/s", kGigabits * kLong);
    Rows long_slow(options, setting(kPairs, kByNic, 25, kLong));
    long_slow.add_to(longs, "NIC steers, 25 Gb/s", kGigabits * kLong, &long_fast.one());

    Grid groups{"40 B multicasts to 8 members at the other machine, by threads", "M/s", {}, {}, 2};
    Rows copies(options, setting(kMulticast, kByNic, 100, kShort));
    copies.add_to(groups, "NIC copies", kMillions);
    Rows handed(options, setting(kMulticast, kUnicastByNic, 100, kShort));
    handed.add_to(groups, "first thread hands over", kMillions, &copies.one());

    Grid local{"40 B messages within a machine, by threads", "M/s", {}, {}, 1};
    Rows other(options, setting(kOtherThread, kByNic, 100, kShort));
    other.add_to(local, "ends on two threads", kMillions, &by_nic.one());
    table.grids = {shorts, longs, groups, local};

    const auto gain = [](const Rows& rows, std::size_t index) {
        return rows.rate(index) / rows.rate(0);
    };
    table.shapes.push_back({"two threads carry at least 1.8 times what one does, if the NIC steers",
                            text("%.2f ×", gain(by_nic, 1)), gain(by_nic, 1) >= 1.8});
    table.shapes.push_back(
        {"short frames that all pass through one thread gain nothing from a second",
         text("%.2f ×", gain(by_software, 1)), gain(by_software, 1) <= 1.05});
    table.shapes.push_back({"a full cable bounds long messages, whatever the threads",
                            text("%.2f × with four threads, %.2f Gb/s", gain(long_slow, 2),
                                 long_slow.rate(2) * kGigabits * kLong),
                            std::abs(gain(long_slow, 2) - 1) <= 0.05});
    table.shapes.push_back({"four threads of the receivers gain under two for one multicast source",
                            text("%.2f ×", gain(copies, 2)),
                            gain(copies, 2) < 2 && gain(copies, 2) > 1.2});
    const double worst = std::max({by_nic.worst, by_software.worst, slow.worst, long_fast.worst,
                                   long_slow.worst, copies.worst, handed.worst, other.worst});
    table.shapes.push_back({"the model is within 15 % of each simulated figure",
                            text("%.0f %% at most", worst * 100), worst <= kModelError});
    return table;
}

}  // namespace ulc::sim
