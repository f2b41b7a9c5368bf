// SPDX-License-Identifier: BSD-3-Clause
// The ring that carries short messages from one rank to another of the same node, in memory of the
// receiver that the sender maps as well. Used by Near. Neither side trusts the other:
//
//   0       NearControl                the receiver's cursor has a separate cache line
//   4096    kNearSlots records         messages of up to 104 bytes lie in their record
//   …       kNearDataBytes             longer ones, in blocks that are used in a circle
//
//   sender    keeps what is in use in its own memory; a cursor of the receiver that no correct
//             receiver publishes ends the use of the ring
//   receiver  copies a record once, validates the copy, and reads a block once
//
// The slots are those of abi/slot_ring.h, with its memory orders. In a record, `stream` is the
// number of messages that the sender had sent to this receiver through the engine before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/slot_ring.h"
#include "client/near/ulc_near.h"
#include "client/p2p/pieces.h"
#include "client/p2p/rendezvous.h"

namespace ulc::client {

inline constexpr std::uint64_t kNearMagic = 0x3176'7261'656e'4c55U;
inline constexpr std::uint32_t kNearSlots = 128;
inline constexpr std::uint32_t kNearDataBytes = 128U << 10;
inline constexpr std::uint64_t kNearMax = ULC_NEAR_MAX;

using NearToken = std::array<unsigned char, 16>;

struct NearControl {
    // --- written by the receiver before the sender maps, constant after
    std::uint64_t magic;
    NearToken token;
    // --- written by the receiver
    alignas(kCacheLine) std::atomic<std::uint32_t> consumed;
};

inline constexpr std::size_t kNearSlotsAt = abi::kPageOctets;
inline constexpr std::size_t kNearDataAt =
    kNearSlotsAt + kNearSlots * sizeof(abi::SubmissionRecord);
inline constexpr std::size_t kNearBytes = kNearDataAt + kNearDataBytes;
static_assert(sizeof(NearControl) <= kNearSlotsAt);
static_assert(kNearDataBytes % kCacheLine == 0 && kNearMax <= kNearDataBytes / 4);

class NearSender {
public:
    /// memory: kNearBytes of a ring that no sender has used.
    explicit NearSender(std::byte* memory) noexcept
        : data_(memory + kNearDataAt),
          ring_(reinterpret_cast<abi::SubmissionRecord*>(memory + kNearSlotsAt), kNearSlots,
                &reinterpret_cast<NearControl*>(memory)->consumed) {}

    /// Hands a message of up to kNearMax bytes over. `before` is as in a record. False: it is
    /// full, or is not used any more.
    [[nodiscard]] bool send(std::uint32_t before, std::uint64_t tag,
                            const Pieces& payload) noexcept;

private:
    /// Returns the offset of a free block, or kNoBlock.
    [[nodiscard]] std::uint32_t allocate(std::uint32_t bytes) noexcept;

    static constexpr std::uint32_t kNoBlock = UINT32_MAX;

    std::byte* data_;
    abi::SubmissionProducer ring_;
    std::uint32_t head_ = 0;                        ///< bytes of blocks given out, free running
    std::uint32_t tail_ = 0;                        ///< bytes of blocks given back
    std::array<std::uint32_t, kNearSlots> ends_{};  ///< head_ after each record
};

/// The next message of a ring. `payload` lies in memory that the sender may change.
struct NearMessage {
    std::uint32_t before;
    std::uint64_t tag;
    const std::byte* payload;
    std::uint32_t length;
    bool in_block;
    abi::SubmissionRecord record;  ///< the copy, in which a short payload lies
};

class NearReceiver {
public:
    enum class Look : std::uint8_t { kNothing, kMessage, kMalformed };

    explicit NearReceiver(std::byte* memory) noexcept
        : data_(memory + kNearDataAt),
          ring_(reinterpret_cast<abi::SubmissionRecord*>(memory + kNearSlotsAt), kNearSlots,
                &reinterpret_cast<NearControl*>(memory)->consumed) {}

    [[nodiscard]] bool ready() const noexcept { return ring_.ready(); }
    /// Shows the next message and leaves it there.
    [[nodiscard]] Look look(NearMessage& message) const noexcept;
    /// Takes the message away that look() showed.
    void pop(const NearMessage& message) noexcept {
        ring_.pop();
        if (message.in_block) ring_.publish_cursor();  // blocks are scarcer than slots
    }

private:
    std::byte* data_;
    abi::SubmissionConsumer ring_;
};

}  // namespace ulc::client
