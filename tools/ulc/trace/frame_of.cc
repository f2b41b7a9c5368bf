// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/frame_of.h"

#include <cstring>

namespace ulc::tools {

bool frame_of(std::uint16_t ether_type, const TimedRecord& record, std::vector<std::byte>& space,
              wire::FrameView& out) {
    space.assign(record.amount, std::byte{0});
    std::memcpy(space.data(), record.bytes, record.kept);
    constexpr std::size_t kFlags = sizeof(wire::EthernetHeader) + 1;
    if (record.kept > kFlags) space[kFlags] &= ~std::byte{wire::kFlagCrc};
    return wire::parse(space.data(), space.size(), ether_type, out) == Counter::kCount;
}

bool is_data(const wire::FrameView& frame) {
    return frame.type == wire::FrameType::kData || frame.type == wire::FrameType::kMcast ||
           frame.type == wire::FrameType::kCounted;
}

std::uint64_t number_of(const Mac& mac) {
    std::uint64_t number = 0;
    for (const auto octet : mac.octets)
        number = number << 8 | static_cast<std::uint8_t>(octet);
    return number;
}

}  // namespace ulc::tools
