// SPDX-License-Identifier: BSD-3-Clause
// Several links of a node to one segment as one port (docs/protocol/NODES.md §8.6; GAMMA §3.3.1.1).
//
//   engine ── tx() ──▶ least loaded link that is up ──▶ waiting ──▶ device     addresses are
//   engine ◀── rx() ── links in turn ◀── one brings frames for groups   filled in, taken out
//
// The engine and its transports know each node by its first address alone. A port of one link that
// hears of nodes with several is wrapped in the same way.
//
// Invariant: a frame that tx() took lies with one link, until its device took it or the link went
// down, when another one gets it. Engine thread only; no allocation but in set_addresses().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bounded.h"
#include "base/tables/keyed_index.h"
#include "base/units.h"
#include "port/link_watch.h"
#include "port/port.h"
#include "seal/tokens.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::port {

struct BondConfig {
    std::uint16_t ether_type = 0;  ///< type of the engine's frames
    seal::Seed seed;               ///< for tokens of echo requests and tables
};

class BondPort {
public:
    /// links: 1 … kNodeLinksMax ports on one segment, of one kind and MTU. They outlive this.
    BondPort(std::span<const Port> links, const BondConfig& config);
    ~BondPort();  ///< drops what waits
    BondPort(const BondPort&) = delete;
    BondPort& operator=(const BondPort&) = delete;

    /// Returns a table over this object.
    [[nodiscard]] Port table() noexcept;
    /// Costs the same for any number of nodes. proved: else nothing changes.
    void set_addresses(std::span<const NodeAddress> addresses, bool proved);
    [[nodiscard]] Nanos reorder_wait(std::uint32_t megabits) const noexcept;
    /// State for an upgrade of the engine that owns this (engine/state/port_state.cc).
    void fields(state::Archive& archive);

private:
    static constexpr std::uint32_t kRing = 1024;   ///< frames with a device; power of two
    static constexpr std::uint32_t kWaiting = 32;  ///< frames that the device did not take yet
    static constexpr std::uint32_t kRequestsWaiting = 8;  ///< echo requests beyond these
    static constexpr std::uint16_t kNone = UINT16_MAX;

    struct Link {
        Port port;
        bool up = true;       ///< frames may go by it
        bool carrier = true;  ///< its device says that it is up
        /// Time that an octet takes, in units that suit all links.
        std::uint64_t octet_time = 1;
        /// Time that all frames so far took: it decides between links without a queue.
        std::uint64_t given = 0;
        std::uint64_t octets = 0;  ///< in `lengths`, from `left` to `next`
        std::uint32_t left = 0;    ///< frames that left the device; free running
        std::uint32_t next = 0;
        std::array<std::uint16_t, kRing> lengths{};
        std::array<Segment*, kWaiting + kRequestsWaiting> waiting{};
        std::uint32_t waits = 0;
        std::uint64_t waiting_octets = 0;
        Mac last_source;  ///< the sender of the last frame, and its node's address
        Mac last_node;

        void fields(state::Archive& archive);
    };
    struct Peer {
        FixedVector<NodeAddress, kNodeLinksMax> addresses;
        void fields(state::Archive& archive);
    };
    /// A node that asked at further links.
    struct Asker {
        Mac node;
        unsigned takes = 0;  ///< links, by bits, from which it said to take frames (N-58)
    };
    static constexpr std::size_t kAskersMax = 8192;

    std::uint16_t rx(Segment** out, std::uint16_t n);
    Segment* rx_landing(const Landing& landing);
    std::uint16_t tx(Segment* const* frames, std::uint16_t n);
    std::uint32_t tx_pending();
    Segment* tx_failed();
    static void lend_memory(Port& port) noexcept;
    [[nodiscard]] std::uint64_t missed() const;
    [[nodiscard]] PortCosts costs() const;
    bool set_multicasts(std::span<const Mac> addresses);
    bool tell_multicasts() noexcept;
    bool look_at_links();
    std::span<const NodeAddress> addresses() noexcept;
    const InterfaceState* interface() noexcept;
    [[nodiscard]] bool lost_address(const Link& link) const noexcept;
    Mac take_address() noexcept;

    [[nodiscard]] bool take(Link& link, Segment& segment) noexcept;
    [[nodiscard]] Link* choose(const Segment& segment) noexcept;
    [[nodiscard]] Link* least_loaded(std::uint32_t octets, unsigned links) noexcept;
    [[nodiscard]] Link* fixed_link(const Mac& to, unsigned links) noexcept;
    [[nodiscard]] Link* first_link() noexcept;
    [[nodiscard]] static bool is_full(const Link& link) noexcept { return link.waits >= kWaiting; }
    void put(Link& link, Segment* segment) noexcept;
    void address(Link& link, Segment& segment) noexcept;
    [[nodiscard]] Mac address_of(const Peer& peer, const Link& link) const noexcept;
    void flush(Link& link) noexcept;
    void look_at_device(Link& link) noexcept;
    void leave(Link& link) noexcept;
    void watch() noexcept;
    [[nodiscard]] bool send_echo(Link& link, wire::NodeKind kind, const Mac& to,
                                 std::uint64_t token) noexcept;
    [[nodiscard]] bool take_echo(Link& link, const Segment& segment) noexcept;
    void listen() noexcept;
    void show_addresses(const Segment& announcement) noexcept;
    [[nodiscard]] bool is_own(const Mac& mac) const noexcept;
    [[nodiscard]] std::uint16_t find(const Mac& mac) const noexcept;
    void note_asker(const Mac& from, const Link& link, bool takes);
    [[nodiscard]] unsigned links_to(const Mac& node) const noexcept;
    void forget_nodes() noexcept;
    void remove(std::uint16_t peer);
    void enter(std::uint16_t peer);
    [[nodiscard]] bool rebuild();
    void fit_speeds() noexcept;

    std::array<Link, kNodeLinksMax> links_;
    std::size_t count_;
    BondConfig config_;
    PortInfo info_;
    InterfaceState interface_;  ///< all links as one
    std::array<NodeAddress, kNodeLinksMax> own_{};
    std::size_t listens_ = 0;  ///< the link that takes frames for groups
    std::size_t up_ = 0;       ///< links that are
    std::uint32_t turn_ = 0;
    LinkWatch watch_;
    Mac asks_;                   ///< node to which a frame of a stream went last
    std::uint32_t looks_ = 0;    ///< at the links, since the round began
    bool busy_ = false;          ///< frames went or came in this round
    std::uint32_t replies_ = 0;  ///< to echo requests, since the last look
    std::vector<Mac> multicasts_;
    bool told_multicasts_ = false;
    std::vector<Peer> peers_;
    KeyedIndex places_;  ///< places in `peers_`, by address
    std::vector<Asker> askers_;
    KeyedIndex asker_places_;  ///< places in `askers_`, by node
};

}  // namespace ulc::port
