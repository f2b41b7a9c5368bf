// SPDX-License-Identifier: BSD-3-Clause
#include "wire/forward.h"

#include <cstring>

#include "base/check.h"

namespace ulc::wire {
namespace {

constexpr unsigned kTypeMask = 0x0f;

bool is_group_address(const Mac& mac) noexcept { return (mac.octets[0] & 1U) != 0; }

}  // namespace

bool is_forward(const std::byte* frame, std::size_t octets) noexcept {
    return octets > sizeof(EthernetHeader) &&
           (std::to_integer<unsigned>(frame[sizeof(EthernetHeader)]) & kTypeMask) == kForwardType;
}

bool parse_forward(const std::byte* frame, std::size_t octets, std::uint16_t ether_type,
                   ForwardView& out) noexcept {
    if (octets < kForwardOctets + sizeof(Header)) return false;
    const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(frame);
    const auto& head = *reinterpret_cast<const ForwardHeader*>(frame + sizeof(EthernetHeader));
    if (ethernet.type != ether_type || head.version_type != kForwardType) return false;
    out = {ethernet.destination, ethernet.source,  head.hops,
           head.origin,          head.destination, head.length};
    if (out.hops > 1 || is_group_address(out.sender)) return false;
    if (is_group_address(out.origin) || out.origin == Mac{} || out.destination == Mac{} ||
        out.origin == out.destination)
        return false;
    if (out.length < sizeof(Header) || out.length > octets - kForwardOctets) return false;
    return !is_forward(frame + sizeof(ForwardHeader), octets - sizeof(ForwardHeader));
}

std::size_t build_forward(std::byte* frame, const ForwardView& head, std::uint16_t ether_type,
                          const std::byte* inner, std::size_t octets) noexcept {
    ULC_CHECK(octets >= kHeadOctets && head.hops <= 1);
    const std::size_t length = octets - sizeof(EthernetHeader);
    ULC_CHECK(length <= UINT16_MAX);
    const EthernetHeader ethernet{head.receiver, head.sender, ether_type};
    const ForwardHeader forward{kForwardType, head.hops, head.origin, head.destination,
                                static_cast<std::uint16_t>(length)};
    std::memcpy(frame, &ethernet, sizeof ethernet);
    std::memcpy(frame + sizeof ethernet, &forward, sizeof forward);
    std::memcpy(frame + kForwardOctets, inner + sizeof ethernet, length);
    return kForwardOctets + length;
}

std::size_t unwrap_forward(std::byte* frame, const ForwardView& view) noexcept {
    std::memmove(frame + sizeof(EthernetHeader), frame + kForwardOctets, view.length);
    auto& ethernet = *reinterpret_cast<EthernetHeader*>(frame);
    ethernet.destination = view.destination;
    ethernet.source = view.origin;
    return sizeof(EthernetHeader) + view.length;
}

}  // namespace ulc::wire
