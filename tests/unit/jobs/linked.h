// SPDX-License-Identifier: BSD-3-Clause
// Engines whose endpoints are open for links, joined by a bus.
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "tests/unit/jobs/bus.h"

namespace ulc::jobs {

inline constexpr Handle kEndpoint = 10;  ///< endpoint of node 0; others: that and 100 for each node

inline wire::LinkKey key_of(Handle endpoint) {
    wire::LinkKey key;
    key.octets[0] = static_cast<std::uint8_t>(endpoint);
    key.octets[1] = static_cast<std::uint8_t>(endpoint >> 8);
    key.octets[15] = 1;
    return key;
}

/// Engines whose endpoints are open for links.
class Linked {
public:
    explicit Linked(std::uint64_t seed, double loss = 0, double duplicate = 0)
        : bus(seed, loss, duplicate) {}

    BusNode& add(unsigned number, std::uint16_t slots = 8, std::string_view profile = "urtp") {
        BusNode& node = bus.add(number);
        open(node, endpoint(number), slots, profile);
        return node;
    }
    static Handle endpoint(unsigned node) { return kEndpoint + 100 * node; }
    static void open(BusNode& node, Handle handle, std::uint16_t slots,
                     std::string_view profile = "urtp") {
        node.jobs->links().open(handle, key_of(handle), slots, profile);
    }
    static wire::LinkAddress address(const BusNode& node, Handle handle) {
        wire::LinkAddress address;
        address.mac = node.config.mac;
        address.handle = handle;
        address.incarnation = node.config.incarnation;
        address.key = key_of(handle);
        return address;
    }
    Rank call(BusNode& from, Handle caller, const wire::LinkAddress& to,
              Nanos limit = 5 * kSecond) {
        const Result<Rank> slot = from.jobs->links().call(caller, to, bus.now + limit, bus.now);
        EXPECT_TRUE(slot.ok());
        return slot.ok() ? slot.value() : kNoRank;
    }
    /// The end of the link from one endpoint to another; nullptr: there is none that is up.
    static const LinkEnd* up(const BusNode& node, Handle handle, Handle peer) {
        for (Rank slot = 0;; ++slot) {
            const LinkEnd* end = node.jobs->links().at(handle, slot);
            if (end == nullptr) return nullptr;
            if (end->state == LinkEnd::State::kUp && end->peer == peer) return end;
        }
    }
    static Rank slot_of(const BusNode& node, Handle handle, Handle peer) {
        for (Rank slot = 0;; ++slot) {
            const LinkEnd* end = node.jobs->links().at(handle, slot);
            if (end == nullptr) return kNoRank;
            if (end->state == LinkEnd::State::kUp && end->peer == peer) return slot;
        }
    }
    static std::size_t used(const BusNode& node, Handle handle) {
        std::size_t count = 0;
        for (Rank slot = 0;; ++slot) {
            const LinkEnd* end = node.jobs->links().at(handle, slot);
            if (end == nullptr) return count;
            if (end->state != LinkEnd::State::kVacant) ++count;
        }
    }
    static std::size_t told(const BusNode& node, LinkEventKind kind) {
        return static_cast<std::size_t>(std::ranges::count_if(
            node.link_events, [kind](const LinkEvent& e) { return e.kind == kind; }));
    }
    static Err failed(const BusNode& node) {
        for (const LinkEvent& event : node.link_events)
            if (event.kind == LinkEventKind::kFailed) return event.error;
        return Err::kOk;
    }
    /// Releases all slots whose peers are gone, as an engine whose client has let go of them.
    static void release_all(BusNode& node) {
        for (const LinkEvent& event : node.link_events) {
            const LinkEnd* end = node.jobs->links().at(event.endpoint, event.slot);
            if (end != nullptr &&
                (end->state == LinkEnd::State::kGone || end->state == LinkEnd::State::kFree))
                node.jobs->links().release(event.endpoint, event.slot);
        }
    }
    bool run(Nanos span, const std::function<bool()>& until) {
        return bus.run(span, [&] {
            for (std::size_t n = 0; n < bus.size(); ++n)
                if (bus.node(n).running) bus.node(n).jobs->links().check_invariants();
            return until();
        });
    }
    void run(Nanos span) {
        (void)run(span, [] { return false; });
    }
    /// Nodes 0 and 1, linked by a call of 0.
    void link_two() {
        BusNode& a = add(0);
        BusNode& b = add(1);
        (void)call(a, endpoint(0), address(b, endpoint(1)));
        ASSERT_TRUE(run(5 * kSecond, [&] { return both_up(); }));
    }
    [[nodiscard]] bool both_up() {
        return up(bus.node(0), endpoint(0), endpoint(1)) != nullptr &&
               up(bus.node(1), endpoint(1), endpoint(0)) != nullptr;
    }

    JobBus bus;
};

inline void expect_one_link(Linked& w) {
    const LinkEnd* a = Linked::up(w.bus.node(0), Linked::endpoint(0), Linked::endpoint(1));
    const LinkEnd* b = Linked::up(w.bus.node(1), Linked::endpoint(1), Linked::endpoint(0));
    ASSERT_NE(a, nullptr);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(a->ours, b->theirs);
    EXPECT_EQ(a->theirs, b->ours);
    EXPECT_EQ(a->in, b->out);
    EXPECT_EQ(a->out, b->in);
    EXPECT_EQ(a->self, Linked::slot_of(w.bus.node(1), Linked::endpoint(1), Linked::endpoint(0)));
    EXPECT_EQ(b->self, Linked::slot_of(w.bus.node(0), Linked::endpoint(0), Linked::endpoint(1)));
    for (unsigned n = 0; n < 2; ++n) {
        EXPECT_EQ(Linked::used(w.bus.node(n), Linked::endpoint(n)), 1U);
        EXPECT_EQ(Linked::told(w.bus.node(n), LinkEventKind::kOpened), 1U);
        EXPECT_EQ(Linked::told(w.bus.node(n), LinkEventKind::kConfirmed), 1U);
    }
}

}  // namespace ulc::jobs
