// SPDX-License-Identifier: BSD-3-Clause
// Hosts for tests of the simulated media: frames that name source, destination and number; a sink
// that records every event; a host that keeps transmitters full.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/units.h"
#include "tests/sim/media/medium.h"
#include "wire/ids.h"

namespace ulc::test {

inline constexpr std::uint16_t kToAll = UINT16_MAX;

inline Mac media_mac(std::uint16_t port) {
    if (port == kToAll) return Mac{{0x03, 0, 0, 0, 0, 1}};
    return Mac{
        {0x02, 0, 0, 0, static_cast<std::uint8_t>(port >> 8), static_cast<std::uint8_t>(port)}};
}

inline std::vector<Mac> media_macs(std::uint16_t ports) {
    std::vector<Mac> macs;
    for (std::uint16_t port = 0; port < ports; ++port)
        macs.push_back(media_mac(port));
    return macs;
}

/// Makes a frame. `octets` ≥ 18; bytes 14 to 17 contain the number.
inline sim::FramePtr media_frame(std::uint16_t from, std::uint16_t to, std::size_t octets,
                                 std::uint32_t number = 0) {
    std::vector<std::byte> frame(octets);
    const Mac destination = media_mac(to);
    const Mac source = media_mac(from);
    std::memcpy(frame.data(), &destination, sizeof destination);
    std::memcpy(frame.data() + 6, &source, sizeof source);
    std::memcpy(frame.data() + 14, &number, sizeof number);
    return std::make_shared<const std::vector<std::byte>>(std::move(frame));
}

inline std::uint16_t source_of(const sim::FramePtr& frame) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>((*frame)[10]) << 8 |
                                      std::to_integer<unsigned>((*frame)[11]));
}

inline std::uint32_t number_of(const sim::FramePtr& frame) {
    std::uint32_t number = 0;
    std::memcpy(&number, frame->data() + 14, sizeof number);
    return number;
}

/// Records every event.
struct MediaLog : sim::MediumSink {
    virtual ~MediaLog() = default;
    struct Sent {
        std::uint16_t port;
        bool sent;
        Nanos at;
        bool operator==(const Sent&) const = default;
    };
    struct Arrival {
        std::uint16_t port;
        std::uint16_t from;
        std::uint32_t number;
        Nanos at;
        bool operator==(const Arrival&) const = default;
    };
    void on_sent(std::uint16_t port, bool was_sent, Nanos at) override {
        sent.push_back({port, was_sent, at});
    }
    void on_arrival(std::uint16_t port, const sim::FramePtr& frame, Nanos at) override {
        arrivals.push_back({port, source_of(frame), number_of(frame), at});
        frames.push_back(frame);
    }
    /// Runs until no frame is in flight.
    void drain(sim::Medium& medium) {
        while (medium.next_event() != kNever)
            medium.advance(medium.next_event(), *this);
    }
    std::vector<Sent> sent;
    std::vector<Arrival> arrivals;
    std::vector<sim::FramePtr> frames;
};

/// Each of the first `senders` ports has a numbered frame pending at all times, to the port after
/// it (the last to 0).
struct MediaLoad : MediaLog {
    MediaLoad(sim::Medium& m, std::uint16_t n, std::size_t size)
        : medium(m), senders(n), octets(size), numbers(n, 0) {
        for (std::uint16_t port = 0; port < senders; ++port)
            next(port, 0);
    }
    void next(std::uint16_t port, Nanos now) {
        const auto to = static_cast<std::uint16_t>((port + 1) % senders);
        medium.transmit(port, media_frame(port, to, octets, numbers[port]++), now);
    }
    void on_sent(std::uint16_t port, bool was_sent, Nanos at) override {
        MediaLog::on_sent(port, was_sent, at);
        next(port, at);
    }
    sim::Medium& medium;
    std::uint16_t senders;
    std::size_t octets;
    std::vector<std::uint32_t> numbers;
};

}  // namespace ulc::test
