// SPDX-License-Identifier: BSD-3-Clause
// The handshake of abi/attach.h with a hostile client and then with a hostile engine. The engine
// grants no more than its rules allow, and its answers are terminated text. The client accepts a
// layout only if every ring and arena lies inside the memory that it maps.
//
//   input: a Hello, an Offer and a Mapped, each as packet() reads it
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "abi/attach.h"
#include "base/check.h"
#include "client/answers.h"
#include "input.h"
#include "main/hello.h"

namespace {

using namespace ulc;
using fuzz::Input;

/// A good packet with some octets changed, or any octets: kind (1), then changes (1), offset and
/// value of each; or length (2) and as many octets.
template <typename Packet>
std::vector<std::byte> packet(Input& in, const Packet& good) {
    if (in.octet() % 4 == 0) {
        const auto octets = std::as_bytes(in.take(in.get<std::uint16_t>() % 512));
        return {octets.begin(), octets.end()};
    }
    std::vector<std::byte> octets(sizeof good);
    std::memcpy(octets.data(), &good, sizeof good);
    for (unsigned changes = in.below(48); changes > 0; --changes) {
        const std::size_t at = in.octet() % sizeof good;
        octets[at] = static_cast<std::byte>(in.octet());
    }
    return octets;
}

abi::Hello good_hello() {
    abi::Hello hello{};
    hello.magic = abi::kHelloMagic;
    hello.abi_version = abi::kAbiVersion;
    hello.kind = abi::HelloKind::kAttach;
    return hello;
}

/// The first and the last octet of everything that the client will use.
void touch(abi::Region& region) {
    const abi::RegionLayout& layout = region.layout();
    auto* base = static_cast<volatile std::byte*>(region.base());
    const std::array<std::pair<std::uint64_t, std::uint64_t>, 7> parts{{
        {0, sizeof(abi::EndpointControl)},
        {layout.sq_offset, std::uint64_t{layout.sq_slots} * sizeof(abi::SubmissionRecord)},
        {layout.rq_offset, std::uint64_t{layout.rq_entries} * sizeof(std::uint32_t)},
        {layout.cq_offset, std::uint64_t{layout.cq_slots} * sizeof(abi::CompletionRecord)},
        {layout.dq_offset, std::uint64_t{layout.dq_entries} * sizeof(std::uint32_t)},
        {layout.tx_arena_offset, layout.tx_arena_octets},
        {layout.rx_arena_offset, layout.rx_arena_octets},
    }};
    for (const auto& [offset, octets] : parts) {
        base[offset] = std::byte{1};
        base[offset + octets - 1] = std::byte{2};
    }
    ULC_CHECK(region.tx(layout.tx_arena_octets, 0) != nullptr);
    ULC_CHECK(region.rx(0, layout.rx_arena_octets) != nullptr);
    ULC_CHECK(region.rx(1, layout.rx_arena_octets) == nullptr);
}

/// The client's half: judges the Offer, maps as much as it says, and judges the control page.
void take_offer(const std::vector<std::byte>& octets, std::uint64_t available) {
    abi::Offer offer{};
    if (!octets.empty()) std::memcpy(&offer, octets.data(), std::min(octets.size(), sizeof offer));
    if (!client::is_answer(offer, static_cast<std::ptrdiff_t>(octets.size()))) return;
    ULC_CHECK(client::sentence(offer).size() <= abi::kTextOctetsMax);
    if (offer.status != 0) {
        ULC_CHECK(client::refusal(offer.status) != Err::kOk);
        return;
    }
    const std::uint64_t mapped = client::octets_to_map(offer, static_cast<std::int64_t>(available));
    if (mapped == 0) return;
    ULC_CHECK(mapped <= available);
    constexpr std::align_val_t kPage{abi::kPageOctets};
    auto* memory = static_cast<std::byte*>(::operator new(mapped, kPage));
    std::memset(memory, 0, mapped);
    abi::initialise_control(memory, offer.layout, 1, 1);
    ULC_CHECK(abi::validate_control(*reinterpret_cast<abi::EndpointControl*>(memory)) == Err::kOk);
    abi::Region region(memory, offer.layout);
    touch(region);
    ::operator delete(memory, kPage);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const daemon::HelloRules rules{
        {"0", "lab"}, {16, 16, 4096, 4096}, {65536, 65536, 1U << 18, 1U << 18}};
    Input in(data, size);
    const auto hello = packet(in, good_hello());
    daemon::HelloRequest request;
    std::string why;
    const Err error = daemon::judge_hello(rules, hello.data(), hello.size(), request, why);
    auto offer = daemon::reply_with<abi::Offer>(error, why);
    offer.abi_version = abi::kAbiVersion;
    ULC_CHECK(offer.text[abi::kTextOctetsMax - 1] == 0 && (error == Err::kOk) == why.empty());
    for (const char c : client::sentence(offer))
        ULC_CHECK(c >= 0x20 && c < 0x7f);
    if (error == Err::kOk && request.kind == abi::HelloKind::kAttach) {
        const abi::RegionLayout& layout = request.layout;
        ULC_CHECK(request.net < rules.nets.size());
        ULC_CHECK(abi::validate_layout(layout, layout.region_octets) == Err::kOk);
        ULC_CHECK(layout.tx_arena_octets <= rules.sizes_max.tx_arena_octets);
        ULC_CHECK(layout.rx_arena_octets <= rules.sizes_max.rx_arena_octets);
        offer.layout = layout;
    }
    take_offer(packet(in, offer), offer.layout.region_octets);
    const abi::Mapped good{abi::kHelloMagic, 0};
    const auto mapped = packet(in, good);
    if (daemon::is_mapped(mapped.data(), mapped.size()))
        ULC_CHECK(std::memcmp(mapped.data(), &good, sizeof good) == 0);
    return 0;
}
