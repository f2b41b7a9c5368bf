// SPDX-License-Identifier: BSD-3-Clause
// The predictions of one net (urtp/prediction.h), found by a few octets of a frame or of a record.
// They are made where a short message was judged in full (receive.h, send.h). All are forgotten at
// the end of each general round, and after each frame that takes a general step: nothing else
// changes endpoints, peers, groups or their sessions. So a prediction that holds stands for all
// conditions that only general steps can change; predictions.cc lists and checks them. A place has
// one entry; another stream that needs the place replaces it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.h"
#include "urtp/prediction.h"
#include "wire/ids.h"

namespace ulc::engine {

struct Endpoint;

/// The next frame of a stream.
struct NextFrame {
    urtp::RxPrediction of;
    Endpoint* endpoint = nullptr;     ///< its receiver
    Nanos* heard = nullptr;           ///< when its node was last heard
    std::uint64_t* frames = nullptr;  ///< count of its group; nullptr: it goes to one endpoint
    std::uint64_t epoch = 0;
};

/// The next message of a client to a stream.
struct NextMessage {
    urtp::TxPrediction of;
    Endpoint* to = nullptr;  ///< receiver on this node, `of` has the session alone; nullptr: none
    Handle endpoint = 0;
    StreamId stream = 0;
    std::uint64_t epoch = 0;

    [[nodiscard]] bool is_of(Handle client, StreamId its_stream) const noexcept {
        return endpoint == client && stream == its_stream;
    }
};

class Predictions {
public:
    Predictions() : frames_(kPlaces), messages_(kPlaces) {}

    /// Returns where the prediction is, or would be, of a stream whose frames begin like this.
    /// frame: of at least wire::kHeadOctets.
    [[nodiscard]] NextFrame& place_of(const std::byte* frame) noexcept {
        // The lowest octets of handle and rank: they number endpoints and peers.
        const auto handle = std::to_integer<std::size_t>(frame[kHandleEnd]);
        const auto rank = std::to_integer<std::size_t>(frame[kRankEnd]);
        return frames_[place(handle, rank)];
    }
    [[nodiscard]] NextMessage& place_of(Handle endpoint, StreamId stream) noexcept {
        return messages_[place(endpoint, stream)];
    }
    [[nodiscard]] bool holds(const NextFrame& next) const noexcept { return next.epoch == epoch_; }
    [[nodiscard]] bool holds(const NextMessage& next) const noexcept {
        return next.epoch == epoch_;
    }
    void forget_all() noexcept { ++epoch_; }
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

    /// Calls visit() for each prediction that holds.
    template <typename Visit>
    void each(Visit visit) const {
        for (const NextFrame& next : frames_)
            if (holds(next)) visit(next);
        for (const NextMessage& next : messages_)
            if (holds(next)) visit(next);
    }

private:
    static constexpr std::size_t kPlaces = 64;  ///< power of two
    static constexpr std::size_t kHandleEnd =
        sizeof(wire::EthernetHeader) + offsetof(wire::Header, handle) + sizeof(Be32) - 1;
    static constexpr std::size_t kRankEnd =
        sizeof(wire::EthernetHeader) + offsetof(wire::Header, rank) + sizeof(Be16) - 1;

    [[nodiscard]] static std::size_t place(std::size_t name, std::size_t peer) noexcept {
        return (name * 37 + peer) % kPlaces;
    }

    std::uint64_t epoch_ = 1;
    std::vector<NextFrame> frames_;
    std::vector<NextMessage> messages_;
};

}  // namespace ulc::engine
