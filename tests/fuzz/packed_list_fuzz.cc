// SPDX-License-Identifier: BSD-3-Clause
// Any payload as the list of messages of a packet (wire/packed.h). A list is refused as a whole, or
// its messages fill it exactly, lie in it, and make the same bytes again when they are written.
#include <cstring>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "wire/packed.h"

namespace {

using namespace ulc;

std::uint16_t word_at(std::span<const std::byte> list, std::size_t at) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(list[at]) << 8 |
                                      std::to_integer<unsigned>(list[at + 1]));
}

/// Counts the messages by the text of docs/protocol/MESSAGES.md; 0: malformed.
unsigned count_by_the_page(std::span<const std::byte> list) {
    unsigned count = 0;
    for (std::size_t at = 0; at < list.size(); ++count) {
        if (list.size() - at < 2) return 0;
        const std::uint16_t word = word_at(list, at);
        at += 2 + (word >> 15) * 8U + (word & 0x7fffU);
        if (at > list.size()) return 0;
    }
#ifdef ULC_PLANTED_BUG
    return count;
#else
    return count <= 64 ? count : 0;
#endif
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto list = std::as_bytes(std::span(data, size));
    const unsigned count = wire::count_packed(list);
    ULC_CHECK(count == count_by_the_page(list));
    if (count == 0) return 0;
    std::vector<std::byte> again(size);
    std::size_t at = 0;
    for (unsigned n = 0; n < count; ++n) {
        wire::PackedMessage message;
        const std::uint32_t octets = wire::take_packed(list.subspan(at), message);
        ULC_CHECK(octets > 0 && octets <= size - at);
        ULC_CHECK(message.payload >= list.data() + at &&
                  message.payload + message.length == list.data() + at + octets);
        std::byte* const to =
            wire::put_packed_head(again.data() + at, message.length, message.has_tag, message.tag);
        if (message.length > 0) std::memcpy(to, message.payload, message.length);
        at += octets;
    }
    ULC_CHECK(at == size && std::memcmp(again.data(), data, size) == 0);
    return 0;
}
