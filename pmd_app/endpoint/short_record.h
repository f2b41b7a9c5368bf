// SPDX-License-Identifier: BSD-3-Clause
// A short message in a record of shared memory, which its client may rewrite at any time: with its
// payload inside the record, or in the arena. Each word is read once, and what was read is judged.
// The payload is copied once; its octets decide nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "abi/records.h"
#include "abi/region.h"
#include "urtp/types.h"

namespace ulc::endpoint {

/// The first word of a record.
struct RecordHead {
    std::uint32_t mark;
    abi::SubmitKind kind;
    std::uint8_t flags;
    std::uint16_t inline_length;
};
static_assert(offsetof(RecordHead, kind) == offsetof(abi::SubmissionRecord, kind) &&
              offsetof(RecordHead, flags) == offsetof(abi::SubmissionRecord, flags) &&
              offsetof(RecordHead, inline_length) ==
                  offsetof(abi::SubmissionRecord, inline_length));

class ShortRecord {
public:
    static constexpr bool kInside = true;  ///< the message fits in a completion
    explicit ShortRecord(const abi::SubmissionRecord& record) noexcept
        : record_(record), head_(word(record.mark)) {}
    [[nodiscard]] bool is_send() const noexcept { return head().kind == abi::SubmitKind::kSend; }
    /// Returns whether it is a whole message inside itself, with no answer.
    [[nodiscard]] bool is_short() const noexcept {
        static_assert(abi::kInlineOctetsMax <= urtp::ShortMessage::kOctetsSure);
        constexpr std::uint8_t kMay = abi::kSubmitHasTag | abi::kSubmitFirst | abi::kSubmitLast;
        constexpr auto kCompared = std::bit_cast<std::uint64_t>(
            RecordHead{0, abi::SubmitKind{0xff}, static_cast<std::uint8_t>(~kMay), 0});
        constexpr auto kShort = std::bit_cast<std::uint64_t>(
            RecordHead{0, abi::SubmitKind::kSend, abi::kSubmitInline, 0});
        return (head_ & kCompared) == kShort && head().inline_length <= abi::kInlineOctetsMax;
    }
    /// Returns whether it is a whole message to one receiver, of any length, that calls for no more
    /// than its answer.
    [[nodiscard]] bool is_message_to(StreamId to) const noexcept {
        constexpr std::uint8_t kMay = abi::kSubmitHasTag | abi::kSubmitNotify;
        constexpr std::uint8_t kWhole = abi::kSubmitFirst | abi::kSubmitLast;
        const bool is_block = is_send() && (head().flags & ~kMay) == kWhole;
        return !is_group(to) && (is_block || is_short()) && stream() == to;
    }
    [[nodiscard]] StreamId stream() const noexcept {
        static_assert(offsetof(abi::SubmissionRecord, stream) == 8);
        return static_cast<StreamId>(word(record_.stream));
    }
    /// stream: what stream() returned.
    [[nodiscard]] urtp::ShortMessage message(StreamId stream) const noexcept {
        return {stream, head().inline_length, record_.body.inline_octets, word(record_.tag),
                (head().flags & abi::kSubmitHasTag) != 0};
    }

protected:
    template <typename Field>
    [[nodiscard]] static std::uint64_t word(const Field& first) noexcept {
        return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(&first), __ATOMIC_RELAXED);
    }
    [[nodiscard]] RecordHead head() const noexcept { return std::bit_cast<RecordHead>(head_); }

    const abi::SubmissionRecord& record_;
    const std::uint64_t head_;
};

/// A whole message in the arena, which is to be answered when its payload was copied.
class BlockRecord : public ShortRecord {
public:
    static constexpr bool kInside = false;
    /// octets_max: longest message that the sender's transport takes in one packet.
    BlockRecord(const ShortRecord& record, const abi::Region& region,
                std::uint32_t octets_max) noexcept
        : ShortRecord(record) {
        constexpr std::uint8_t kMay = abi::kSubmitHasTag | abi::kSubmitNotify;
        constexpr std::uint8_t kWhole = abi::kSubmitFirst | abi::kSubmitLast;
        if (head().kind != abi::SubmitKind::kSend || (head().flags & ~kMay) != kWhole) return;
        const abi::Block& block = record_.body.block;
        const auto place = std::bit_cast<Place>(word(block.offset));
        if (place.length > octets_max || word(block.message_length) != place.length) return;
        octets_ = place.length;
        payload_ = region.tx(place.offset, place.length);
    }
    [[nodiscard]] bool is_valid() const noexcept { return payload_ != nullptr; }
    /// stream: what stream() returned.
    [[nodiscard]] urtp::ShortMessage message(StreamId stream) const noexcept {
        return {stream, octets_, payload_, word(record_.tag),
                (head().flags & abi::kSubmitHasTag) != 0};
    }
    [[nodiscard]] std::uint32_t cookie() const noexcept {
        static_assert(offsetof(abi::SubmissionRecord, cookie) == 12);
        return static_cast<std::uint32_t>(word(record_.stream) >> 32U);
    }

private:
    struct Place {
        std::uint32_t offset;
        std::uint32_t length;
    };
    static_assert(offsetof(abi::Block, length) == offsetof(abi::Block, offset) + 4);

    std::uint32_t octets_ = 0;
    const std::byte* payload_ = nullptr;
};

}  // namespace ulc::endpoint
