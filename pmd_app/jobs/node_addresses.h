// SPDX-License-Identifier: BSD-3-Clause
// The addresses of nodes with several links (docs/protocol/NODES.md §8.6): announces this node's,
// and keeps those of others that were proved.
//
//   set_own() ──▶ LINKS, broadcast: at once, after a JOIN of another node, every second
//
//   LINKS of a stranger ──rate──▶ asked at its first address ──reply──▶ list of the node
//   LINKS of a known node ──▶ asked at the addresses that answered       │ each new address asked
//        ▲                                                               ▼ ──reply──▶ it counts
//        └── each 4 s; no reply for 10 s: forgotten        next_change(): what counts, for the port
//
// LINKS is a hint. A list counts if the node gave it in reply to a fresh token at an address that
// counts already, and a further address if it replied to a token that went to it alone. If the
// first address of a node gives no reply for half a second, the others count provisionally until
// it replies, unless a job knows the node (N-56).
//
// Invariant: no address that counts is of two nodes. Work for a frame does not grow with the number
// of nodes. Sans-IO, engine thread only. Parts: nodes/own_links.h (own links),
// nodes/node_addresses.cc (the table), nodes/node_proofs.cc (questions and replies).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/bounded.h"
#include "base/counters.h"
#include "base/tables/keyed_index.h"
#include "base/units.h"
#include "jobs/liveness.h"
#include "jobs/nodes/own_links.h"
#include "seal/tokens.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::jobs {

/// The addresses of a node have changed. One address: it has a single link.
struct AddressChange {
    Mac node;
    AddressList addresses;
    /// False: a place in a mesh that the node has not confirmed, for questions to it.
    bool proved = true;
    void fields(state::Archive& archive);
};

class NodeAddresses {
public:
    static constexpr std::size_t kNodesMax = 8192;  ///< with several links, or asked whether
    static constexpr Nanos kRepeat = OwnLinks::kRepeat;
    /// A node that gave no reply for this long is forgotten, unless a job has a rank there.
    static constexpr Nanos kForget = 10 * kSecond;
    static constexpr Nanos kProve = 4 * kSecond;  ///< between two proofs of a list
    /// Repeats questions without a reply after this, which doubles up to kAskWaitMax.
    static constexpr Nanos kAskWait = 4 * kMillisecond;
    static constexpr Nanos kAskWaitMax = 128 * kMillisecond;
    static constexpr std::uint8_t kTries = 8;          ///< where a job has a rank
    static constexpr std::uint8_t kStrangerTries = 3;  ///< else: little comes back for little
    /// Asks further addresses once the first one is silent for this long.
    static constexpr Nanos kSilence = 500 * kMillisecond;
    /// A node that confirmed nothing is forgotten when it was not asked for this long.
    static constexpr Nanos kStrangerLife = 1500 * kMillisecond;
    static constexpr Nanos kAskGap = kMillisecond;  ///< between two rounds of one node
    static constexpr std::uint32_t kStrangersPerSecond = 1000;
    static constexpr std::size_t kStrangersBurst = 1024;
    static constexpr std::size_t kRepliesMax = 256;

    /// liveness: says which nodes jobs know. It and counters outlive this.
    NodeAddresses(const Mac& own, std::uint32_t incarnation, const seal::Seed& seed,
                  const Liveness& liveness, Counters& counters);

    /// Takes this node's links, the first with the node's address; announces them if they changed.
    /// A node with one link that never had more announces nothing.
    void set_own(std::span<const NodeAddress> links, Nanos now) { own_.set(links, now); }
    /// Another node begins a job here: it may not know this node's addresses. If it is known with
    /// another incarnation, it is asked.
    void on_join(const Mac& node, std::uint32_t incarnation, Nanos now);
    /// LINKS, LINKS_REQUEST and LINKS_REPLY that passed parse_node().
    void on_links(const wire::NodeView& view, const Mac& source, Nanos now);
    void on_request(const wire::NodeView& view, const Mac& source, Nanos now);
    void on_reply(const wire::NodeView& view, const Mac& source, Nanos now);

    /// Returns the speed of the slowest link of a node, in Mb/s, among addresses that it confirmed;
    /// 0: it has one link, as far as is known.
    [[nodiscard]] std::uint32_t slowest_link(const Mac& node) const noexcept;

    /// Returns whether each of the nodes has confirmed its list, and no question to it is open.
    [[nodiscard]] bool are_settled(std::span<const Mac> nodes) const noexcept;

    /// Returns the octets of the NODE body that is due, written to body, and its destination; 0:
    /// none is.
    [[nodiscard]] std::size_t next_tx(Mac& to, std::byte* body, Nanos now);
    [[nodiscard]] bool has_tx() const noexcept {
        return own_.is_due() || !probes_.empty() || !replies_.empty();
    }
    [[nodiscard]] Nanos next_timer() const noexcept {
        return std::min({own_.next_timer(), sweep_at_, ask_at_});
    }
    void on_timer(Nanos now);
    /// Call until false.
    [[nodiscard]] bool next_change(AddressChange& out);
    [[nodiscard]] bool has_change() const noexcept { return !changes_.empty(); }
    /// Returns how many places of its tables all frames have looked at, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept {
        return by_node_.steps() + by_address_.steps() + by_place_.steps();
    }
    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    struct Question {
        Mac to;
        std::uint64_t token = wire::kNoToken;
        bool open = true;  ///< no reply to it, or to another one that served as well
        void fields(state::Archive& archive);
    };
    struct Address {
        NodeAddress link;
        bool counts = false;  ///< it replied itself
        void fields(state::Archive& archive);
    };
    /// A node that announced several links. incarnation 0: it has confirmed nothing yet.
    struct Known {
        Mac node;
        bool used = false;
        bool tentative = false;    ///< `given` is a place in a mesh that is not confirmed
        bool provisional = false;  ///< confirmed by a further address alone
        bool asking = false;       ///< is in asking_, at `place`
        bool wanted = false;       ///< another round is due
        std::uint8_t tries = 0;    ///< repetitions in this round
        std::uint32_t place = 0;
        std::uint32_t incarnation = 0;
        std::uint64_t number = 0;
        Nanos proved = 0;            ///< the last reply that confirmed the list
        Nanos asked = -kNever / 2;   ///< the last round began
        Nanos first_asked = kNever;  ///< the first question of all, without a reply so far
        Nanos next = 0;              ///< asking: when it goes on
        FixedVector<Address, kNodeLinksMax> addresses;  ///< confirmed
        AddressList claimed;  ///< as announced, until something is confirmed
        AddressList given;    ///< last change; empty: none
        FixedVector<Question, 3 * kNodeLinksMax> questions;

        /// Returns the question of this round with that token; nullptr: none.
        [[nodiscard]] Question* asked_with(std::uint64_t token) noexcept;
        /// Returns whether an address other than the first one replied in this round.
        [[nodiscard]] bool is_answered() const noexcept;
        /// Returns a confirmed address; nullptr: it is none.
        [[nodiscard]] Address* address_of(const Mac& mac) noexcept;
        /// Returns the confirmed place in a mesh; 0: none.
        [[nodiscard]] std::uint64_t place_in_mesh() const noexcept;
        void fields(state::Archive& archive);
    };
    struct Probe {
        Mac to;
        std::uint64_t token = wire::kNoToken;
        void fields(state::Archive& archive);
    };

    // node_addresses.cc
    [[nodiscard]] Known* find(const Mac& node) noexcept;
    [[nodiscard]] Known* add(const Mac& node);
    void release(Known& known);
    void enter(const Known& known);
    void withdraw(const Known& known);
    void give(Known& known);
    void sweep(Nanos now);
    [[nodiscard]] bool is_free(const Mac& mac, const Known& known) const noexcept;
    [[nodiscard]] bool is_possible(const wire::NodeView& view, const Mac& source) noexcept;
    [[nodiscard]] bool may_claim(const wire::NodeView& view, const Known& known) const noexcept;
    [[nodiscard]] std::uint32_t slot_of(const Known& known) const noexcept;
    [[nodiscard]] bool is_whole() const;
    void index_all();

    // node_proofs.cc
    void want(Known& known, Nanos now);
    void begin_round(Known& known, Nanos now);
    bool add_question(Known& known, const Mac& to);
    void ask_once_more(Known& known, const Mac& mac);
    void send_questions(Known& known, Nanos now);
    void go_on(Known& known, Nanos now);
    void ask_at(Known& known, Nanos at);
    void ask_no_more(Known& known) noexcept;
    void close(Known& known, bool all) noexcept;
    void settle(Known& known) noexcept;
    void on_stranger(const wire::NodeView& view, const Mac& source, Nanos now);
    void claim(Known& known, const wire::NodeView& view, Nanos now);
    void confirm(Known& known, const wire::NodeView& view, Nanos now);
    void confirm_address(Known& known, const wire::NodeView& view, const Mac& mac, Nanos now);

    std::uint32_t incarnation_;
    const Liveness& liveness_;
    Counters& counters_;
    seal::Tokens tokens_;
    OwnLinks own_;
    Nanos sweep_at_ = kNever;
    std::vector<Known> known_;  ///< slots are stable
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> asking_;  ///< slots
    Nanos ask_at_ = kNever;              ///< no earlier than this one of them goes on
    KeyedIndex by_node_;                 ///< slots
    KeyedIndex by_address_;              ///< slots, by addresses that count
    KeyedIndex by_place_;                ///< slots, by confirmed places in a mesh
    std::deque<Probe> probes_;
    FixedVector<Probe, kRepliesMax> replies_;
    RateLimit strangers_;      ///< questions to nodes that are not known
    RateLimit replies_limit_;  ///< replies to them
    std::deque<AddressChange> changes_;
};

}  // namespace ulc::jobs
