// SPDX-License-Identifier: BSD-3-Clause
// The addresses of nodes with several links (docs/protocol/NODES.md §8.6): announces this node's,
// and keeps those that others announced.
//
//   set_own() ──▶ LINKS, broadcast: at once, after a JOIN of another node, every second
//   on_links() ──▶ table, bounded ──▶ next_change(): for the port, which sends to all of them
//
// Invariant: no address is of two nodes. An announcement that would break it is refused whole.
// Sans-IO, engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bounded.h"
#include "base/counters.h"
#include "base/tables/keyed_index.h"
#include "base/units.h"
#include "jobs/liveness.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

using AddressList = FixedVector<NodeAddress, kNodeLinksMax>;

/// The addresses of a node have changed. One address: it has a single link.
struct AddressChange {
    Mac node;
    AddressList addresses;
    void fields(state::Archive& archive);
};

class NodeAddresses {
public:
    static constexpr std::size_t kNodesMax = 4096;  ///< with several links
    static constexpr Nanos kRepeat = kSecond;
    static constexpr Nanos kGreetGap = 10 * kMillisecond;
    /// A node that was not heard for this long may lose its place, and its addresses, to another.
    static constexpr Nanos kForget = 10 * kSecond;

    /// Announcements that change something, each second: of nodes of jobs, and of all others.
    static constexpr std::uint32_t kChangesPerSecond = 1000;
    static constexpr std::size_t kChangesBurst = 1024;

    /// seed: random bits that strangers do not know.
    NodeAddresses(const Mac& own, std::uint32_t incarnation, std::uint64_t seed,
                  Counters& counters);

    /// Takes this node's links, the first with the node's address; announces them if they changed.
    /// A node with one link that never had more announces nothing.
    void set_own(std::span<const NodeAddress> links, Nanos now);
    /// Another node begins a job here: it may not know this node's addresses.
    void greet(Nanos now) noexcept;
    /// A LINKS body that passed parse_node(). watched: some job knows a node by that address.
    void on_links(const wire::NodeView& view, const Mac& source,
                  bool (*watched)(const void* context, const Mac& mac), const void* context,
                  Nanos now);

    /// Returns the octets of the announcement that is due, written to body; 0: none is.
    [[nodiscard]] std::size_t next_tx(std::byte* body, Nanos now);
    [[nodiscard]] bool has_tx() const noexcept { return due_; }
    [[nodiscard]] Nanos next_timer() const noexcept { return repeat_at_; }
    void on_timer(Nanos now) noexcept;
    /// Call until false.
    [[nodiscard]] bool next_change(AddressChange& out);
    [[nodiscard]] bool has_change() const noexcept { return !changes_.empty(); }
    void fields(state::Archive& archive);

private:
    struct Known {
        Mac node;
        std::uint32_t incarnation = 0;
        std::uint64_t number = 0;
        Nanos heard = 0;
        AddressList addresses;
        void fields(state::Archive& archive);
    };
    [[nodiscard]] Known* find(const Mac& node) noexcept;
    [[nodiscard]] bool is_taken(const wire::NodeView& view, const Mac& node,
                                bool (*watched)(const void* context, const Mac& mac),
                                const void* context) const noexcept;
    void forget_old(Nanos now);
    [[nodiscard]] bool index_nodes();

    Mac own_;
    std::uint32_t incarnation_;
    Counters& counters_;
    AddressList links_;
    std::uint64_t number_ = 0;  ///< the last announcement's
    bool due_ = false;
    Nanos sent_at_ = -kNever / 2;
    Nanos repeat_at_ = kNever;
    std::vector<Known> known_;
    KeyedIndex by_node_;         ///< places in `known_`
    RateLimit members_limit_;    ///< announcements of nodes that jobs know
    RateLimit strangers_limit_;  ///< announcements of others
    std::vector<AddressChange> changes_;
};

}  // namespace ulc::engine
