// SPDX-License-Identifier: BSD-3-Clause
// A learning Ethernet switch over any ports, with seeded faults at its outputs. Knows ports only
// through port/port.h, so tests run it on their own ports.
//
//   rx burst ─▶ count, learn source ─▶ destination known: that port │ unknown or group: all others
//                                                   └▶ each output: fate (faults.h) ─▶ out queue
//                                                                                   ─▶ tx burst
//
// A flooded frame is one segment with a reference per output. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "port/port.h"
#include "switch/faults.h"
#include "switch/mac_table.h"
#include "switch/out_queue.h"
#include "wire/header.h"

namespace ulc::ether_switch {

enum class SwitchCounter : std::uint8_t {
#define ULC_SWITCH_COUNTER(id, help) id,
#include "switch/counters.def"
#undef ULC_SWITCH_COUNTER
    kCount
};
inline constexpr std::size_t kSwitchCounterCount = static_cast<std::size_t>(SwitchCounter::kCount);
inline constexpr std::array<const char*, kSwitchCounterCount> kSwitchCounterNames{
#define ULC_SWITCH_COUNTER(id, help) #id,
#include "switch/counters.def"
#undef ULC_SWITCH_COUNTER
};

struct SwitchConfig {
    FaultConfig faults;
    std::uint64_t seed = 1;
    std::uint64_t rate = 0;               ///< bits per second of every output; 0: no limit
    std::uint64_t buffer = 512 * 1024;    ///< bytes per output, with a rate
    std::size_t queue_frames_max = 4096;  ///< per output, of any kind
    std::size_t stations_max = 4096;
    Nanos age = 300 * kSecond;
    std::uint16_t ether_type = wire::kEtherTypeDefault;
};

class Switch {
public:
    /// The kind of a frame, as far as it is counted.
    enum class Kind : std::uint8_t { kOther, kData, kMcast, kControl };
    using Row = std::array<std::uint64_t, kSwitchCounterCount>;

    Switch(const SwitchConfig& config, std::span<const Port> ports);
    ~Switch();  ///< drops waiting frames
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    /// Runs one round over all ports; returns true if anything moved.
    bool poll(Nanos now);
    /// Returns the earliest time at which a waiting frame may leave; kNever: none waits.
    [[nodiscard]] Nanos next_due() const noexcept;
    [[nodiscard]] const Row& counters(std::size_t port) const noexcept {
        return outputs_[port].row;
    }
    [[nodiscard]] std::size_t ports() const noexcept { return outputs_.size(); }

private:
    struct Output {
        Port port;
        FaultModel faults;
        OutQueue queue;
        Row row{};
        bool up = true;
    };

    void check_links(Nanos now);
    void take(std::uint16_t from, Segment* segment, Nanos now);
    /// Adds references as needed; the caller keeps its own. `frame.due`: the current time.
    void offer(std::uint16_t to, const Waiting& frame);
    bool flush(Output& output, Nanos now);
    Kind classify(const Segment& segment, std::uint16_t& payload) const noexcept;
    void hold(std::uint16_t from, Segment* segment) const noexcept {
        outputs_[from].port.pool.hold(segment);
    }
    void drop(std::uint16_t from, Segment* segment) const noexcept {
        outputs_[from].port.pool.drop(segment);
    }

    SwitchConfig config_;
    std::uint16_t count_;  ///< number of ports
    std::vector<Output> outputs_;
    MacTable stations_;
    Nanos links_checked_ = -kSecond;
};

}  // namespace ulc::ether_switch
