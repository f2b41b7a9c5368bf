// SPDX-License-Identifier: BSD-3-Clause
// A node announces itself by both links, as its engine does later (docs/protocol/NODES.md §8.8).
// Nodes that hear it for the first time announce themselves at once.
//
//   LINKS that speaks against the place ─▶ suspect ─▶ LINKS_REQUEST ─┬─ LINKS_REPLY ─▶ judged again
//                                                                    └─ no reply ─▶ it was forged
//
// Invariant: no announcement alone refuses a start (N-60), since any node can send one in the name
// of any other.
#include "main/mesh_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "port/node_frame.h"
#include "wire/forward.h"
#include "wire/job.h"
#include "wire/mac_text.h"
#include "wire/node_address.h"

namespace ulc::daemon {
namespace {

constexpr int kTries = 10;
constexpr int kAnswerTries = 40;  ///< further ones while a suspect may still reply
constexpr std::size_t kSuspectsMax = 64;
constexpr std::chrono::milliseconds kTryWait{20};
constexpr const char* kLines[] = {"row", "column"};

bool is_up(const Port& port) { return port.link_up == nullptr || port.link_up(port.context); }

/// Returns why a node whose announcement came by link `line` cannot be there; empty: it can.
std::string judge(const wire::NodeView& node, std::size_t line,
                  const std::array<NodeAddress, 2>& own, const std::string& net) {
    const Mac mac = node.links[0].mac;
    const std::string link = text_of(own[line].mac);
    if (mac == own[0].mac)
        return fmt::format(
            "the links {} and {} of net {} are on one segment; a mesh needs a switch or VLAN for "
            "each row and each column",
            text_of(own[0].mac), text_of(own[1].mac), net);
    if (node.links.size() != own.size() || node.links[0].segment == 0)
        return fmt::format(
            "the link {} of net {} hears the node {}, which is in no mesh; start its engine with "
            "--mesh, or use another switch",
            link, net, text_of(mac));
    if (node.links[line].segment != own[line].segment)
        return fmt::format(
            "the link {} of net {} hears the node {} of {} {}, and is to be in {} {}; compare "
            "--mesh with the cables",
            link, net, text_of(mac), kLines[line], std::uint16_t{node.links[line].segment},
            kLines[line], own[line].segment);
    if (node.links[1 - line].segment == own[1 - line].segment)
        return fmt::format(
            "the node {} is in row {}, column {} of net {} already; give each node its own --mesh",
            text_of(mac), own[0].segment, own[1].segment, net);
    return {};
}

/// Takes what a node sends to its segment out of FORWARD, in which it spreads its announcements by
/// one of its links. False: the frame is of another segment.
bool unwrap(Segment& segment, std::uint16_t ether_type) {
    wire::ForwardView forward;
    if (!wire::parse_forward(segment.frame, segment.length, ether_type, forward)) return true;
    if (forward.hops == 0) return false;
    segment.length = static_cast<std::uint32_t>(wire::unwrap_forward(segment.frame, forward));
    return true;
}

class Check {
public:
    Check(const Port& row, const Port& column, const port::MeshPlace& place, const std::string& net,
          std::uint16_t ether_type, const seal::Seed& seed)
        : ports_{&row, &column},
          own_{NodeAddress{row.info.mac, 1, place.row},
               NodeAddress{column.info.mac, 1, place.column}},
          net_(net),
          ether_type_(ether_type),
          tokens_(seed) {
        for (std::uint32_t& life : lives_)
            life = static_cast<std::uint32_t>(tokens_.next()) | 1U;
    }

    /// Returns the first reason against the links; empty: there is none.
    std::string run() {
        if (std::string why = compare(); !why.empty()) return why;
        for (int tries = 0; tries < kTries + kAnswerTries; ++tries) {
            if (tries >= kTries && suspects_.empty()) break;
            for (std::size_t line = 0; line < own_.size() && tries < kTries; ++line)
                if (is_up(*ports_[line]))
                    port::broadcast_links(*ports_[line], ether_type_, lives_[line], 1, own_);
            for (const Suspect& suspect : suspects_)
                ask(suspect);
            std::this_thread::sleep_for(kTryWait);
            for (std::size_t line = 0; line < own_.size(); ++line)
                if (std::string why = listen(line); !why.empty()) return why;
        }
        return {};
    }

private:
    /// A node that announced something against the place, and has not confirmed it.
    struct Suspect {
        Mac node;
        Mac asked;
        std::size_t line = 0;
        std::uint64_t token = wire::kNoToken;
    };

    [[nodiscard]] std::string compare() const {
        const PortInfo& row = ports_[0]->info;
        const PortInfo& column = ports_[1]->info;
        if (row.mtu != column.mtu)
            return fmt::format(
                "the links of net {} have MTUs of {} ({}) and {} ({}); give --mtu {} or set both "
                "alike",
                net_, row.mtu, text_of(own_[0].mac), column.mtu, text_of(own_[1].mac),
                std::min(row.mtu, column.mtu));
        if (row.mtu < wire::kMtuMin + sizeof(wire::ForwardHeader))
            return fmt::format("the links of net {} have an MTU of {}; a mesh needs {}", net_,
                               row.mtu, wire::kMtuMin + sizeof(wire::ForwardHeader));
        if (own_[0].mac == own_[1].mac)
            return fmt::format("two links of net {} have the address {}; change one", net_,
                               text_of(own_[0].mac));
        return {};
    }

    /// Takes what has come by a link. Returns the first reason against it.
    std::string listen(std::size_t line) {
        const Port& port = *ports_[line];
        std::array<Segment*, 32> burst;
        const std::uint16_t count = port.rx(port.context, burst.data(), burst.size());
        std::string wrong;
        for (std::uint16_t n = 0; n < count; ++n) {
            Mac source;
            wire::NodeView node;
            if (wrong.empty() && unwrap(*burst[n], ether_type_) &&
                port::parse_node_frame(*burst[n], ether_type_, source, node) &&
                !node.links.empty() && node.links[0].mac == source)
                wrong = take(line, node);
            port.pool.drop(burst[n]);
        }
        if (port.tx_pending != nullptr) (void)port.tx_pending(port.context);
        return wrong;
    }

    /// Takes LINKS or LINKS_REPLY.
    std::string take(std::size_t line, const wire::NodeView& node) {
        const Mac from = node.links[0].mac;
        if (from == own_[0].mac)  // no other node knows the number of the other link
            return node.incarnation == lives_[1 - line] ? judge(node, line, own_, net_) : "";
        const auto suspect = std::ranges::find_if(
            suspects_, [&](const Suspect& each) { return each.node == from && each.line == line; });
        std::string wrong = judge(node, line, own_, net_);
        if (node.kind == wire::NodeKind::kLinks) {
            if (wrong.empty()) return {};
            if (suspect == suspects_.end()) return add(line, node);
            suspect->asked = address_of(node, line);  // the one before may have been forged
            return {};
        }
        if (suspect == suspects_.end() || suspect->token != node.token) return {};
        suspects_.erase(suspect);
        return wrong;
    }

    /// Returns the node's address on the segment of a line.
    [[nodiscard]] static Mac address_of(const wire::NodeView& node, std::size_t line) {
        const bool meshed = node.links.size() == 2 && node.links[0].segment != 0;
        return node.links[meshed ? line : 0].mac;
    }

    /// Asks the node. The oldest of too many suspects is forgotten. Returns no reason.
    std::string add(std::size_t line, const wire::NodeView& node) {
        const Suspect suspect{node.links[0].mac, address_of(node, line), line, tokens_.next()};
        if (suspects_.size() == kSuspectsMax) suspects_.erase(suspects_.begin());
        suspects_.push_back(suspect);
        ask(suspect);
        return {};
    }

    void ask(const Suspect& suspect) const {
        port::ask_for_links(*ports_[suspect.line], ether_type_, suspect.asked, suspect.token);
    }

    std::array<const Port*, 2> ports_;
    std::array<NodeAddress, 2> own_;
    const std::string& net_;
    std::uint16_t ether_type_;
    seal::Tokens tokens_;
    std::array<std::uint32_t, 2> lives_;  ///< incarnations in the announcements by each link
    std::vector<Suspect> suspects_;
};

}  // namespace

Err check_mesh(const Port& row, const Port& column, const port::MeshPlace& place,
               const std::string& net, std::uint16_t ether_type, const seal::Seed& seed,
               std::string& why) {
    why = Check(row, column, place, net, ether_type, seed).run();
    return why.empty() ? Err::kOk : Err::kInvalid;
}

}  // namespace ulc::daemon
