// SPDX-License-Identifier: BSD-3-Clause
// The verdicts of one net on short messages, found by a few octets of a frame or of a record.
// judge() makes a verdict (receive.h, send.h): it stands for all conditions that general steps
// alone change, and verdicts.cc lists them. It is kept, so that the next message of its stream is
// judged by little. General steps end all kept ones: they alone change endpoints, peers, groups and
// their sessions. A place has one verdict; another stream that needs the place replaces it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "urtp/prediction.h"
#include "wire/ids.h"

namespace ulc::engine {

class Endpoint;

/// False: no verdict is kept, for comparison (meson option fast_path).
inline constexpr bool kKeepsVerdicts = ULC_FAST_PATH != 0;

/// A verdict on the short frames of a stream, or on packets from the middle of its message.
struct FrameVerdict {
    urtp::RxPrediction of;
    Endpoint* endpoint = nullptr;     ///< its receiver
    Nanos* heard = nullptr;           ///< when its node was last heard
    std::uint64_t* frames = nullptr;  ///< count of its group; nullptr: it goes to one endpoint
    bool sends_wait = false;          ///< the endpoint's: an acknowledgement may let them go
    bool is_part = false;  ///< on packets from the middle of the message that is arriving
    std::uint64_t epoch = 0;
};

/// A verdict on the short messages of a client to a stream.
struct SendVerdict {
    urtp::TxPrediction of;
    Endpoint* to = nullptr;  ///< receiver on this node, `of` has the session alone; nullptr: none
    Handle endpoint = 0;
    StreamId stream = 0;
    std::uint64_t epoch = 0;

    [[nodiscard]] bool is_of(Handle client, StreamId its_stream) const noexcept {
        return endpoint == client && stream == its_stream;
    }
};

class Verdicts {
public:
    static constexpr std::uint64_t kNever = 0;  ///< epoch of a verdict that does not hold

    Verdicts() : frames_(kPlaces), parts_(kPlaces), messages_(kPlaces) {}

    /// Returns where the verdict is, or would be, on a stream whose frames begin like this.
    /// frame: of at least wire::kHeadOctets.
    [[nodiscard]] FrameVerdict& place_of(const std::byte* frame) noexcept {
        return frames_[place(frame)];
    }
    /// The same of packets from the middle of a message.
    [[nodiscard]] FrameVerdict& place_of_part(const std::byte* frame) noexcept {
        return parts_[place(frame)];
    }
    [[nodiscard]] SendVerdict& place_of(Handle endpoint, StreamId stream) noexcept {
        return messages_[place(endpoint, stream)];
    }

    /// Calls visit() for each verdict.
    template <typename Visit>
    void each(Visit visit) const {
        std::ranges::for_each(frames_, visit);
        std::ranges::for_each(parts_, visit);
        std::ranges::for_each(messages_, visit);
    }

private:
    static constexpr std::size_t kPlaces = 64;  ///< power of two
    static constexpr std::size_t kHandleEnd =
        sizeof(wire::EthernetHeader) + offsetof(wire::Header, handle) + sizeof(Be32) - 1;
    static constexpr std::size_t kRankEnd =
        sizeof(wire::EthernetHeader) + offsetof(wire::Header, rank) + sizeof(Be16) - 1;

    /// Takes the lowest octets of handle and rank: they number endpoints and peers.
    [[nodiscard]] static std::size_t place(const std::byte* frame) noexcept {
        return place(std::to_integer<std::size_t>(frame[kHandleEnd]),
                     std::to_integer<std::size_t>(frame[kRankEnd]));
    }
    [[nodiscard]] static std::size_t place(std::size_t name, std::size_t peer) noexcept {
        return (name * 37 + peer) % kPlaces;
    }

    std::vector<FrameVerdict> frames_;
    std::vector<FrameVerdict> parts_;
    std::vector<SendVerdict> messages_;
};

}  // namespace ulc::engine
