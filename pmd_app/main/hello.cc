// SPDX-License-Identifier: BSD-3-Clause
#include "main/hello.h"

#include <algorithm>

#include "main/attach/printable.h"

namespace ulc::daemon {
namespace {

std::string net_name(const abi::Hello& hello) {
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
    return {hello.net, strnlen(hello.net, sizeof hello.net)};
#else
    return {hello.net};
#endif
}

std::string no_such_net(const std::string& name, const std::vector<std::string>& nets) {
    std::string text = "this engine has no net called " + printable(name) + "; it has:";
    for (const std::string& net : nets)
        text += " " + net;
    return text;
}

abi::RegionSizes sizes_for(const abi::RegionSizes& wanted, const HelloRules& rules) {
    const auto choose = [](std::uint32_t wish, std::uint32_t usual, std::uint32_t most) {
        return std::min(wish == 0 ? usual : wish, most);
    };
    const abi::RegionSizes& usual = rules.sizes;
    const abi::RegionSizes& most = rules.sizes_max;
    return {choose(wanted.sq_slots, usual.sq_slots, most.sq_slots),
            choose(wanted.cq_slots, usual.cq_slots, most.cq_slots),
            // Offloading clients ask for more; an engine that was configured with more keeps it.
            choose(std::max(wanted.tx_arena_octets, usual.tx_arena_octets), usual.tx_arena_octets,
                   most.tx_arena_octets),
            choose(wanted.rx_arena_octets, usual.rx_arena_octets, most.rx_arena_octets)};
}

Err judge_attach(const HelloRules& rules, const abi::Hello& hello, HelloRequest& out,
                 std::string& why) {
    if (const std::string name = net_name(hello); !name.empty()) {
        const auto at = std::find(rules.nets.begin(), rules.nets.end(), name);
        if (at == rules.nets.end()) {
            why = no_such_net(name, rules.nets);
            return Err::kInvalid;
        }
        out.net = static_cast<std::uint32_t>(at - rules.nets.begin());
    }
    const auto layout = abi::compute_layout(sizes_for(hello.wanted, rules));
    if (!layout) {
        why = "ring sizes must be powers of two from 8 to 65536";
        return Err::kInvalid;
    }
    out.layout = layout.value();
    return Err::kOk;
}

}  // namespace

Err judge_hello(const HelloRules& rules, const void* packet, std::size_t octets, HelloRequest& out,
                std::string& why) {
    out = {};
    abi::Hello hello{};
    if (octets != sizeof hello) {
        why = "this is not a ULC client of this version";
        return Err::kVersion;
    }
    std::memcpy(&hello, packet, sizeof hello);
    if (hello.magic != abi::kHelloMagic) {
        why = "this is not a ULC client";
        return Err::kVersion;
    }
    if (hello.abi_version != abi::kAbiVersion) {
        why =
            "the client's libulc and this engine are of different versions; rebuild or restart "
            "the older one";
        return Err::kVersion;
    }
    out.kind = hello.kind;
    switch (hello.kind) {
        case abi::HelloKind::kCounters:
        case abi::HelloKind::kStreams:
        case abi::HelloKind::kUpgrade:
            return Err::kOk;
        case abi::HelloKind::kAttach:
            return judge_attach(rules, hello, out, why);
    }
    why = "unknown request";
    return Err::kInvalid;
}

bool is_mapped(const void* packet, std::size_t octets) noexcept {
    abi::Mapped mapped{};
    if (octets != sizeof mapped) return false;
    std::memcpy(&mapped, packet, sizeof mapped);
    return mapped.magic == abi::kHelloMagic && mapped.status == 0;
}

}  // namespace ulc::daemon
