// SPDX-License-Identifier: BSD-3-Clause
// Three engines, and the frames about links of nodes that a test plays.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/jobs/bus.h"
#include "wire/build.h"

namespace ulc::jobs {

/// The address of link `link` of a node.
inline Mac link_mac(unsigned node, unsigned link) {
    Mac mac = mac_of(node);
    mac.octets[2] = static_cast<std::uint8_t>(link);
    return mac;
}

inline std::vector<NodeAddress> links_of(unsigned node,
                                         const std::vector<std::uint32_t>& megabits) {
    std::vector<NodeAddress> links;
    for (unsigned n = 0; n < megabits.size(); ++n)
        links.push_back({link_mac(node, n), megabits[n]});
    return links;
}

/// Returns the last change of proved addresses that the node made; empty: none.
inline std::vector<NodeAddress> changed(BusNode& at, Mac* node = nullptr) {
    AddressChange change;
    std::vector<NodeAddress> last;
    while (at.jobs->next_address_change(change)) {
        if (!change.proved) continue;
        last.assign(change.addresses.begin(), change.addresses.end());
        if (node != nullptr) *node = change.node;
    }
    return last;
}

class Addresses : public testing::Test {
protected:
    static constexpr std::uint32_t kLife = 5;
    static constexpr unsigned kPlayed = 5;  ///< a node that the test plays

    Addresses() : bus(1) {
        bus.logs = true;
        for (unsigned n = 0; n < 3; ++n)
            bus.add(n);
    }
    void announce(unsigned node, const std::vector<NodeAddress>& links) {
        for (std::size_t n = 1; n < links.size(); ++n)
            bus.node(node).further.push_back(links[n].mac);
        bus.node(node).jobs->set_links(links, bus.now);
        bus.run(5 * kMillisecond);
    }
    /// LINKS for node 0 as node `from` would send it, from the address `source`.
    void hint(const Mac& source, std::uint64_t number, const std::vector<NodeAddress>& links,
              std::uint32_t incarnation = kLife) {
        wire::NodeBody head{};
        head.kind = wire::NodeKind::kLinks;
        head.incarnation = incarnation;
        head.token = number;
        std::vector<std::byte> body(sizeof head + links.size() * sizeof(wire::LinkEntry));
        (void)wire::put_links(body.data(), head, links);
        bus.inject(bus.node(0), source, wire::FrameType::kNode, body);
        bus.run(step);
    }
    /// LINKS_REPLY to the question with that token.
    void reply(std::uint64_t token, std::uint64_t number, const std::vector<NodeAddress>& links,
               std::uint32_t incarnation = kLife) {
        wire::NodeBody head{};
        head.kind = wire::NodeKind::kLinksReply;
        head.incarnation = incarnation;
        head.token = token;
        std::vector<std::byte> body(sizeof head + sizeof(Be64) +
                                    links.size() * sizeof(wire::LinkEntry));
        (void)wire::put_links_reply(body.data(), head, number, links);
        bus.inject(bus.node(0), links[0].mac, wire::FrameType::kNode, body);
        bus.run(step);
    }
    /// Returns the token of the last question to that address; 0: there was none.
    [[nodiscard]] std::uint64_t token_to(const Mac& to) const {
        std::uint64_t token = 0;
        for (const auto& frame : bus.log) {
            wire::FrameView view;
            wire::NodeView node;
            const auto& head = *reinterpret_cast<const wire::EthernetHeader*>(frame.data());
            if (head.destination == to &&
                wire::parse(frame.data(), frame.size(), wire::kEtherTypeDefault, view) ==
                    Counter::kCount &&
                view.type == wire::FrameType::kNode &&
                wire::parse_node(view.body, view.length, node) &&
                node.kind == wire::NodeKind::kLinksRequest)
                token = node.token;
        }
        return token;
    }
    /// Plays a node that announces these links and answers for each of them.
    void prove(const std::vector<NodeAddress>& links, std::uint64_t number = 1,
               std::uint32_t incarnation = kLife) {
        bus.log.clear();
        hint(links[0].mac, number, links, incarnation);
        for (const NodeAddress& link : links)
            if (const std::uint64_t token = token_to(link.mac); token != 0)
                reply(token, number, links, incarnation);
    }
    [[nodiscard]] std::uint64_t count(Counter counter) { return bus.node(0).counters.get(counter); }
    [[nodiscard]] std::uint64_t refused() { return count(Counter::drop_links_address); }
    [[nodiscard]] std::uint64_t unproven() { return count(Counter::drop_unproven); }
    void form_job_with_node_2() {
        bus.must_join(bus.node(0), Rank{0}, std::uint16_t{2}, Handle{10});
        bus.must_join(bus.node(2), Rank{1}, std::uint16_t{2}, Handle{11});
        ASSERT_TRUE(bus.run(kSecond, [&] { return bus.node(0).formed(10); }));
    }
    JobBus bus;
    Nanos step = kMillisecond;  ///< runs after each frame
};

}  // namespace ulc::jobs
