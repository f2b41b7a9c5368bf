// SPDX-License-Identifier: BSD-3-Clause
// The messages by which the receiver of a long message reads it from the memory of a sender on its
// node: process_vm_readv(), one copy.
//
//   sender                                       receiver
//   MessageHeader that announces, Announcement ──▶ a receive matches
//                                                  reads the PullDescriptor, if the message is
//                                                  in several pieces, then the data
//                             ◀── PullAnswer kTaken
//   or, if the sender is not proven yet or the kernel refuses,
//                             ◀── PullAnswer kSend or kNever
//   the message itself, with another tag ────────▶ goes into the receive that had matched
//
// Both processes are named by their engine, never by a message. The receiver makes a random token
// for each sender and tells it in the first PullAnswer. The sender writes it into its descriptors,
// next to the names of both processes: memory that was read without this seal is not its message.
// A token that a peer chose says nothing about a message in the other direction. Tags of these
// messages, 62 and 63 clear:
//
//   bit 61        1
//   bit 60        0: a PullAnswer, 1: the message itself
//   bit 59        0 (rma/rma_wire.h)
//   bits 58-0     address of the descriptor in the sender, divided by 16
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/endian.h"

namespace ulc::ofi {

inline constexpr std::uint64_t kServiceBit = std::uint64_t{1} << 61;
inline constexpr std::uint64_t kWholeMessageBit = std::uint64_t{1} << 60;
inline constexpr std::uint64_t kRmaBit = std::uint64_t{1} << 59;
inline constexpr std::size_t kPullPiecesMax = 7;
inline constexpr std::uint64_t kDescriptorAlignment = 16;

using PullToken = std::array<unsigned char, 16>;

/// Follows the header of an announcement. A short receive buffer takes only its first part.
struct Announcement {
    Be64 length;  ///< length of the message, without a header
    Be64 data;    ///< completion data
    Be64 piece;   ///< address of the message in the sender; 0: it is in several pieces
};
static_assert(sizeof(Announcement) == 24 && alignof(Announcement) == 1);

/// Shows that memory is the descriptor of a message from one process to another one.
struct PullSeal {
    struct Process {
        std::uint64_t start_ticks;
        std::uint64_t pid;
        [[nodiscard]] bool operator==(const Process&) const = default;
    };
    PullToken token;  ///< zeros: the sender has taken the message back
    Process writer;
    Process reader;
    [[nodiscard]] bool operator==(const PullSeal&) const = default;
};
static_assert(sizeof(PullSeal) == 48);

/// In the sender's memory from the announcement to the answer.
struct alignas(kDescriptorAlignment) PullDescriptor {
    struct Piece {
        std::uint64_t address;
        std::uint64_t length;
    };
    PullSeal seal;
    std::uint64_t length;
    std::uint64_t data;  ///< completion data
    std::uint32_t has_data;
    std::uint32_t count;
    Piece pieces[kPullPiecesMax];

    /// Returns true if the pieces make up a message of this length. The process that wrote the
    /// descriptor is not trusted.
    [[nodiscard]] bool is_valid(std::uint64_t length_max) const noexcept;

    /// Returns the descriptor of a message in one piece, as its announcement gives it.
    [[nodiscard]] static PullDescriptor of(const Announcement& body, bool with_data,
                                           const PullSeal& seal) noexcept {
        PullDescriptor descriptor{};
        descriptor.seal = seal;
        descriptor.length = body.length;
        descriptor.data = body.data;
        descriptor.has_data = with_data ? 1 : 0;
        descriptor.count = 1;
        descriptor.pieces[0] = {body.piece, body.length};
        return descriptor;
    }
};

struct PullAnswer {
    static constexpr std::uint8_t kTaken = 0;
    static constexpr std::uint8_t kSend = 1;   ///< send this message itself
    static constexpr std::uint8_t kNever = 2;  ///< likewise, and announce no other one

    std::uint8_t what;
    std::uint8_t has_token;
    Be16 zero;
    PullToken token;

    [[nodiscard]] bool is_valid(std::size_t length) const noexcept {
        return length == sizeof(PullAnswer) && what <= kNever && has_token <= 1 && zero == 0;
    }
};
static_assert(sizeof(PullAnswer) == 20 && alignof(PullAnswer) == 1);

[[nodiscard]] inline std::uint64_t answer_tag(std::uint64_t descriptor) noexcept {
    return kServiceBit | (descriptor / kDescriptorAlignment & (kRmaBit - 1));
}
[[nodiscard]] inline std::uint64_t whole_message_tag(std::uint64_t descriptor) noexcept {
    return answer_tag(descriptor) | kWholeMessageBit;
}

}  // namespace ulc::ofi
