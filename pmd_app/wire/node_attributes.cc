// SPDX-License-Identifier: BSD-3-Clause
#include "wire/node_attributes.h"

#include "wire/node_address.h"

namespace ulc::wire {
namespace {

constexpr std::size_t kItemHeadOctets = 2;

struct Item {
    std::uint8_t type = 0;
    std::span<const std::byte> value;
};

/// Takes the first item of `octets`, whose type must be higher than `after`. False: malformed.
bool take_item(std::span<const std::byte>& octets, std::uint8_t after, Item& out) noexcept {
    if (octets.size() < kItemHeadOctets) return false;
    out.type = static_cast<std::uint8_t>(octets[0]);
    const auto length = static_cast<std::size_t>(octets[1]);
    octets = octets.subspan(kItemHeadOctets);
    if (out.type <= after || length > octets.size()) return false;
    out.value = octets.first(length);
    octets = octets.subspan(length);
    return true;
}

// J-37
bool take_value(const Item& item, NodeAttributes& out) noexcept {
    const auto octet = [&](std::size_t at) { return static_cast<unsigned>(item.value[at]); };
    switch (static_cast<AttributeType>(item.type)) {
        case AttributeType::kMtu:
            if (item.value.size() != 2) return false;
            out.mtu = static_cast<std::uint16_t>(octet(0) << 8 | octet(1));
            return out.mtu >= kMtuMin;
        case AttributeType::kLinks:
            if (item.value.size() != 1) return false;
            out.links = static_cast<std::uint8_t>(octet(0));
            return out.links >= 1 && out.links <= kNodeLinksMax;
        case AttributeType::kPatience:
            if (item.value.size() != 4) return false;
            out.patience_ms = octet(0) << 24 | octet(1) << 16 | octet(2) << 8 | octet(3);
            return out.patience_ms >= 1 && out.patience_ms <= kPatienceMsMax;
    }
    return true;  // a type of a later version of this page
}

}  // namespace

// J-36
bool parse_attributes(std::span<const std::byte> octets, NodeAttributes& out) noexcept {
    out = NodeAttributes{};
    Item item;
    while (!octets.empty())
        if (!take_item(octets, item.type, item) || !take_value(item, out)) return false;
    return true;
}

bool are_items(std::span<const std::byte> octets) noexcept {
    Item item;
    while (!octets.empty())
        if (!take_item(octets, item.type, item)) return false;
    return true;
}

AttributeOctets octets_of(const NodeAttributes& attributes) noexcept {
    AttributeOctets octets;
    const auto put = [&octets](unsigned octet) {
        (void)octets.push_back(static_cast<std::byte>(octet));
    };
    put(static_cast<unsigned>(AttributeType::kMtu));
    put(2);
    put(attributes.mtu >> 8);
    put(attributes.mtu & 0xffU);
    put(static_cast<unsigned>(AttributeType::kLinks));
    put(1);
    put(attributes.links);
    if (attributes.patience_ms == 0) return octets;
    put(static_cast<unsigned>(AttributeType::kPatience));
    put(4);
    for (const unsigned shift : {24U, 16U, 8U, 0U})
        put(attributes.patience_ms >> shift & 0xffU);
    return octets;
}

}  // namespace ulc::wire
