// SPDX-License-Identifier: BSD-3-Clause
// The head of the next short frame of one stream, as far as it is known before the frame comes: all
// but its flags, length and number. One masked comparison of three words tells whether a frame
// begins so, in place of has_short_head() and the lookups of handle, rank and address. read_body()
// and the number are judged for each frame.
//
//   | destination 6 | source 6, EtherType 2 | version·type, flags, length 2, handle 4 | rank 2 | …
//                   └ word 0                └ word 1, flags and length masked         └ word 2
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/short_frame.h"

namespace ulc::wire {

class ShortHead {
public:
    ShortHead() = default;
    /// frame: one of the stream, which has_short_head(); the next ones begin alike.
    explicit ShortHead(const std::byte* frame) noexcept
        : source_(word<std::uint64_t>(frame + kSourceAt)),
          middle_(word<std::uint64_t>(frame + kMiddleAt) & mask()),
          rank_(word<std::uint16_t>(frame + kRankAt)) {}

    /// Compares the first kHeadOctets of a frame.
    [[nodiscard]] bool matches(const std::byte* frame) const noexcept {
        const std::uint64_t source = word<std::uint64_t>(frame + kSourceAt) ^ source_;
        const std::uint64_t middle = (word<std::uint64_t>(frame + kMiddleAt) & mask()) ^ middle_;
        const auto rank = static_cast<unsigned>(word<std::uint16_t>(frame + kRankAt) ^ rank_);
        return (source | middle | rank) == 0;
    }

private:
    static constexpr std::size_t kSourceAt = offsetof(EthernetHeader, source);
    static constexpr std::size_t kMiddleAt = sizeof(EthernetHeader);
    static constexpr std::size_t kRankAt = sizeof(EthernetHeader) + offsetof(Header, rank);
    static_assert(kSourceAt + 8 == kMiddleAt && kMiddleAt + 8 == kRankAt);

    template <typename Word>
    [[nodiscard]] static Word word(const std::byte* at) noexcept {
        Word out;
        std::memcpy(&out, at, sizeof out);
        return out;
    }
    /// The octets from kMiddleAt on that are compared: not the flags that a short frame may have or
    /// lack, and not the length.
    [[nodiscard]] static constexpr std::uint64_t mask() noexcept {
        constexpr std::uint8_t kFlags = static_cast<std::uint8_t>(~ShortWord::kFlagsFree);
        return std::bit_cast<std::uint64_t>(
            std::array<std::uint8_t, 8>{0xff, kFlags, 0, 0, 0xff, 0xff, 0xff, 0xff});
    }

    std::uint64_t source_ = 0;
    std::uint64_t middle_ = 0;
    std::uint16_t rank_ = 0;
};

}  // namespace ulc::wire
