// SPDX-License-Identifier: BSD-3-Clause
// Links of one net are on one segment: each must hear what another one broadcasts. The frames are
// LINKS of the node, which tell other engines nothing wrong (docs/protocol/NODES.md §8.6).
#include "main/bonded_links.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "base/check.h"
#include "main/clock.h"
#include "port/node_frame.h"
#include "wire/job.h"
#include "wire/mac_text.h"
#include "wire/node_address.h"

namespace ulc::daemon {
namespace {

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kTryWait{20};

bool is_up(const Port& port) { return port.link_up == nullptr || port.link_up(port.context); }

/// Takes what has come by link `at`, and notes whose announcements are among it.
void listen(std::span<const Port> links, std::size_t at, std::uint16_t ether_type,
            std::uint32_t life, std::array<bool, kNodeLinksMax>& heard) {
    const Port& port = links[at];
    std::array<Segment*, 32> burst;
    const std::uint16_t count = port.rx(port.context, burst.data(), burst.size());
    for (std::uint16_t n = 0; n < count; ++n) {
        Mac source;
        wire::NodeView node;
        if (port::parse_node_frame(*burst[n], ether_type, source, node) &&
            node.kind == wire::NodeKind::kLinks && node.links[0].mac == links[0].info.mac &&
            node.incarnation == life && node.token >= 1 && node.token <= links.size())
            heard[node.token - 1] = true;
        port.pool.drop(burst[n]);
    }
    if (port.tx_pending != nullptr) (void)port.tx_pending(port.context);
}

}  // namespace

Err check_links(std::span<const Port> links, const std::string& net, std::uint16_t ether_type,
                const seal::Seed& seed, std::string& why) {
    ULC_CHECK(links.size() <= kNodeLinksMax);
    for (std::size_t n = 1; n < links.size(); ++n) {
        const PortInfo& first = links[0].info;
        const PortInfo& other = links[n].info;
        if (other.mtu != first.mtu) {
            why = fmt::format(
                "the links of net {} have MTUs of {} ({}) and {} ({}); give --mtu {} or set both "
                "alike",
                net, first.mtu, text_of(first.mac), other.mtu, text_of(other.mac),
                std::min(first.mtu, other.mtu));
            return Err::kInvalid;
        }
        for (std::size_t before = 0; before < n; ++before) {
            if (links[before].info.mac != other.mac) continue;
            why = fmt::format("two links of net {} have the address {}; change one", net,
                              text_of(other.mac));
            return Err::kInvalid;
        }
    }
    std::array<std::array<bool, kNodeLinksMax>, kNodeLinksMax> heard{};
    const auto find_deaf = [&](std::size_t& from, std::size_t& to) {
        for (from = 0; from < links.size(); ++from)
            for (to = 0; to < links.size(); ++to)
                if (from != to && !heard[to][from]) return true;
        return false;
    };
    const std::uint32_t life = static_cast<std::uint32_t>(seed.number(0)) | 1U;
    std::vector<NodeAddress> addresses;
    for (const Port& link : links)
        addresses.push_back({link.info.mac, 1});
    std::size_t from = 0;
    std::size_t to = 0;
    for (int tries = 0; tries < kTries && find_deaf(from, to); ++tries) {
        for (std::size_t n = 0; n < links.size(); ++n)
            if (is_up(links[n]))
                port::broadcast_links(links[n], ether_type, life, n + 1, addresses);
        std::this_thread::sleep_for(kTryWait);
        for (std::size_t n = 0; n < links.size(); ++n)
            listen(links, n, ether_type, life, heard[n]);
    }
    for (from = 0; from < links.size(); ++from) {
        for (to = 0; to < links.size(); ++to) {
            if (from == to || heard[to][from] || !is_up(links[from]) || !is_up(links[to])) continue;
            why = fmt::format(
                "the links {} and {} of net {} are on different segments; join both to one switch, "
                "or give them different net names",
                text_of(links[from].info.mac), text_of(links[to].info.mac), net);
            return Err::kInvalid;
        }
    }
    return Err::kOk;
}

}  // namespace ulc::daemon
