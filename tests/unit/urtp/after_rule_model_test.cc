// SPDX-License-Identifier: BSD-3-Clause
// Exhaustive model check of the ordering rule, docs/PROTOCOL.md §5.
//
// One source, two receivers, two groups that overlap, unicast streams: every assignment of four
// packets to streams and subsets. A copy of a sent packet may arrive at any later time, never, or
// often, in any order; an acknowledgement that was true once may arrive at any time or never; a
// packet joins a ready queue at any time after it may. That covers every loss, reordering,
// duplication and delay. The predicates are those of the transport itself
// (urtp/receiver/ordering.h).
//
// Properties: each receiver gets its packets in submission order; and once everything is
// retransmitted and acknowledged, everything is delivered (no deadlock). Weaker rules must be
// refuted, otherwise the checker proves nothing.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#include "urtp/receiver/ordering.h"

namespace ulc::urtp {
namespace {

constexpr int kPackets = 4;
constexpr int kReceivers = 2;
constexpr int kStreams = 4;  // 0: unicast to r0, 1: unicast to r1, 2: group g, 3: group h
constexpr std::uint32_t kFirst = 0xfffffffe;  // numbers wrap within the run
constexpr std::uint32_t kWindow = 8;

enum class Rule {
    kCorrect,
    // Acknowledges packets that arrived without a gap in their stream, held back or not
    kAckOnArrival,
    kNoEntries,
    kRecomputedAtRepair,  // a repair names the packets that are unacknowledged when it is sent
    kOnlyGroupEntries,    // unicast predecessors are not named
};

struct Kind {
    int stream;
    unsigned targets;  // bit r: for receiver r
    const char* name;
};

struct World {
    std::array<unsigned, kStreams> reach;  // bit r: stream reaches receiver r
    std::vector<Kind> kinds;
};

World world_with_h(unsigned h) {
    World w{{1, 2, 3, h}, {}};
    w.kinds = {{0, 1, "u0"}, {1, 2, "u1"}, {2, 3, "g"}, {2, 1, "g/0"}, {2, 2, "g/1"}, {3, h, "h"}};
    return w;
}

/// All counts are relative to kFirst; an entry is number + 1, with 0 for none.
struct State {
    std::uint8_t sent = 0;
    std::array<std::uint8_t, kReceivers> arrived{};                      // bit i: packet i
    std::array<std::array<std::uint8_t, kStreams>, kReceivers> next{};   // in order
    std::array<std::array<std::uint8_t, kStreams>, kReceivers> acked{};  // as the source knows
    std::array<std::array<std::array<std::uint8_t, kStreams>, kPackets>, kReceivers> entry{};
    bool operator==(const State&) const = default;
};
static_assert(sizeof(State) == 1 + 2 + 8 + 8 + 32);

struct Hash {
    std::size_t operator()(const State& s) const noexcept {
        return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&s), sizeof s});
    }
};

struct Verdict {
    bool fifo = true;
    bool live = true;
    std::size_t states = 0;
};

class Checker {
public:
    Checker(const World& world, const std::array<int, kPackets>& choice, Rule rule, int entries_max)
        : world_(world), rule_(rule), entries_max_(entries_max) {
        std::array<std::uint8_t, kStreams> count{};
        for (std::size_t i = 0; i < kPackets; ++i) {
            kind_[i] = world.kinds[static_cast<std::size_t>(choice[i])];
            number_[i] = count[stream(i)]++;
        }
    }

    Verdict run() {
        push(State{});
        while (!todo_.empty() && verdict_.fifo && verdict_.live) {
            const State s = todo_.back();
            todo_.pop_back();
            expand(s);
            if (!finishes(s)) verdict_.live = false;
        }
        verdict_.states = seen_.size();
        return verdict_;
    }

private:
    [[nodiscard]] std::size_t stream(std::size_t i) const {
        return static_cast<std::size_t>(kind_[i].stream);
    }
    [[nodiscard]] static bool has(unsigned set, std::size_t r) { return (set >> r & 1) != 0; }
    [[nodiscard]] static Seq seq(unsigned n) { return Seq{kFirst} + n; }

    void push(const State& s) {
        if (seen_.insert(s).second) todo_.push_back(s);
    }

    /// Returns how many numbers of stream t have been assigned once `sent` packets are sent.
    [[nodiscard]] std::uint8_t tail(std::size_t t, std::size_t sent) const {
        std::uint8_t n = 0;
        for (std::size_t i = 0; i < sent; ++i)
            n = static_cast<std::uint8_t>(n + (stream(i) == t));
        return n;
    }

    /// Computes the entries of packet i, if it were composed at this time. Returns false if it
    /// needs too many.
    bool compose(const State& s, std::size_t i, std::size_t sent,
                 std::array<std::uint8_t, kStreams>& out) const {
        out = {};
        if (rule_ == Rule::kNoEntries) return true;
        int count = 0;
        for (std::size_t t = 0; t < kStreams; ++t) {
            if (t == stream(i) || (rule_ == Rule::kOnlyGroupEntries && t < 2)) continue;
            for (std::size_t r = 0; r < kReceivers; ++r) {
                if (!has(kind_[i].targets & world_.reach[t], r)) continue;
                if (!need_entry(seq(s.acked[r][t]), seq(tail(t, sent)))) continue;
                out[t] = static_cast<std::uint8_t>(entry_number(seq(tail(t, sent))) - seq(0) + 1);
            }
            count += out[t] != 0;
        }
        return count <= entries_max_;
    }

    /// Returns true if packet i, held at r, may join the ready queue.
    [[nodiscard]] bool may_join(const State& s, std::size_t i, std::size_t r) const {
        if (!has(s.arrived[r], i) || number_[i] != s.next[r][stream(i)]) return false;
        if (!has(kind_[i].targets, r)) return true;  // takes its number and disappears
        for (std::size_t t = 0; t < kStreams; ++t) {
            const std::uint8_t e = s.entry[r][i][t];
            if (e == 0 || !has(world_.reach[t], r)) continue;
            if (judge_entry(seq(s.next[r][t]), seq(e - 1U), kWindow) != Judgement::kMet)
                return false;
        }
        return true;
    }

    /// Adds it to the ready queue. Returns false if an earlier packet for r has not joined.
    bool join(State& s, std::size_t i, std::size_t r) const {
        bool in_turn = true;
        if (has(kind_[i].targets, r)) {
            for (std::size_t j = 0; j < i; ++j) {
                if (has(kind_[j].targets, r) && s.next[r][stream(j)] <= number_[j]) in_turn = false;
            }
        }
        ++s.next[r][stream(i)];
        return in_turn;
    }

    [[nodiscard]] std::uint8_t acknowledgeable(const State& s, std::size_t r, std::size_t t) const {
        std::uint8_t n = s.next[r][t];
        if (rule_ != Rule::kAckOnArrival) return n;
        for (std::size_t i = 0; i < s.sent; ++i) {
            if (stream(i) == t && number_[i] == n && has(s.arrived[r], i)) ++n;
        }
        return n;
    }

    bool submit(State& s) const {
        if (s.sent == kPackets) return false;
        std::array<std::uint8_t, kStreams> entries;
        if (!compose(s, s.sent, s.sent, entries)) return false;
        for (auto& copy : s.entry)
            copy[s.sent] = entries;
        ++s.sent;
        return true;
    }

    void expand(const State& s) {
        if (State t = s; submit(t)) push(t);
        for (std::size_t r = 0; r < kReceivers; ++r) {
            for (std::size_t i = 0; i < s.sent; ++i) {
                if (!has(world_.reach[stream(i)], r)) continue;
                if (!has(s.arrived[r], i)) {
                    State t = s;
                    t.arrived[r] = static_cast<std::uint8_t>(t.arrived[r] | 1U << i);
                    push(t);
                    if (rule_ == Rule::kRecomputedAtRepair) {
                        State u = s;
                        (void)compose(u, i, u.sent, u.entry[r][i]);
                        push(u);
                    }
                }
                if (may_join(s, i, r)) {
                    State t = s;
                    if (!join(t, i, r)) verdict_.fifo = false;
                    push(t);
                }
            }
            for (std::size_t t = 0; t < kStreams; ++t) {
                if (!has(world_.reach[t], r)) continue;
                // An acknowledgement sent at an earlier `next` may arrive as well. One step covers
                // it, since every value between is a separate state.
                for (std::uint8_t n = static_cast<std::uint8_t>(s.acked[r][t] + 1);
                     n <= acknowledgeable(s, r, t); ++n) {
                    State u = s;
                    u.acked[r][t] = n;
                    push(u);
                }
            }
        }
    }

    /// Losses stop: everything sent arrives, what may join joins, everything is acknowledged.
    /// Returns true if all is delivered.
    [[nodiscard]] bool finishes(State s) const {
        for (bool moved = true; moved;) {
            moved = submit(s);
            for (std::size_t r = 0; r < kReceivers; ++r) {
                for (std::size_t i = 0; i < s.sent; ++i) {
                    if (!has(world_.reach[stream(i)], r)) continue;
                    s.arrived[r] = static_cast<std::uint8_t>(s.arrived[r] | 1U << i);
                    if (may_join(s, i, r)) {
                        (void)join(s, i, r);
                        moved = true;
                    }
                }
                for (std::size_t t = 0; t < kStreams; ++t) {
                    if (!has(world_.reach[t], r)) continue;
                    moved |= s.acked[r][t] != acknowledgeable(s, r, t);
                    s.acked[r][t] = acknowledgeable(s, r, t);
                }
            }
        }
        if (s.sent != kPackets) return false;
        for (std::size_t r = 0; r < kReceivers; ++r) {
            for (std::size_t t = 0; t < kStreams; ++t) {
                if (has(world_.reach[t], r) && s.next[r][t] != tail(t, kPackets)) return false;
            }
        }
        return true;
    }

    const World& world_;
    const Rule rule_;
    const int entries_max_;
    std::array<Kind, kPackets> kind_{};
    std::array<std::uint8_t, kPackets> number_{};
    std::unordered_set<State, Hash> seen_;
    std::vector<State> todo_;
    Verdict verdict_;
};

struct Summary {
    std::size_t states = 0;
    std::size_t runs = 0;
    std::size_t out_of_order = 0;
    std::size_t deadlocked = 0;
    std::string first_refuted;
};

Summary check_all(unsigned h, Rule rule, int entries_max) {
    const World world = world_with_h(h);
    const int kinds = static_cast<int>(world.kinds.size());
    Summary sum;
    std::array<int, kPackets> choice{};
    for (int code = 0, codes = kinds * kinds * kinds * kinds; code < codes; ++code) {
        std::string names;
        for (int rest = code, i = 0; i < kPackets; ++i, rest /= kinds) {
            choice[static_cast<std::size_t>(i)] = rest % kinds;
            names += std::string(world.kinds[static_cast<std::size_t>(rest % kinds)].name) + ' ';
        }
        const Verdict v = Checker(world, choice, rule, entries_max).run();
        ++sum.runs;
        sum.states += v.states;
        sum.out_of_order += !v.fifo;
        sum.deadlocked += !v.live;
        if (!v.fifo || !v.live) {
            sum.first_refuted = names;
            break;
        }
    }
    return sum;
}

constexpr unsigned kSubgroup = 1;   // h = {r0}
constexpr unsigned kSameGroup = 3;  // h = {r0, r1}

// O-1, O-5
TEST(AfterRuleModel, delivers_in_order_and_never_deadlocks_with_a_subgroup) {
    const Summary s = check_all(kSubgroup, Rule::kCorrect, 4);
    EXPECT_EQ(s.out_of_order + s.deadlocked, 0U) << s.first_refuted;
    std::printf("%zu assignments, %zu states\n", s.runs, s.states);
}

TEST(AfterRuleModel, delivers_in_order_and_never_deadlocks_with_two_equal_groups) {
    const Summary s = check_all(kSameGroup, Rule::kCorrect, 4);
    EXPECT_EQ(s.out_of_order + s.deadlocked, 0U) << s.first_refuted;
    std::printf("%zu assignments, %zu states\n", s.runs, s.states);
}

// O-3
TEST(AfterRuleModel, waiting_for_acknowledgements_instead_of_entries_never_deadlocks) {
    const Summary s = check_all(kSubgroup, Rule::kCorrect, 1);
    EXPECT_EQ(s.out_of_order + s.deadlocked, 0U) << s.first_refuted;
}

// S-9
TEST(AfterRuleModel, refutes_acknowledging_on_arrival) {
    EXPECT_GT(check_all(kSubgroup, Rule::kAckOnArrival, 4).out_of_order, 0U);
}

// O-1
TEST(AfterRuleModel, refutes_no_entries) {
    EXPECT_GT(check_all(kSubgroup, Rule::kNoEntries, 4).out_of_order, 0U);
}

// O-2
TEST(AfterRuleModel, refutes_entries_recomputed_at_repair) {
    EXPECT_GT(check_all(kSubgroup, Rule::kRecomputedAtRepair, 4).deadlocked, 0U);
}

// O-1
TEST(AfterRuleModel, refutes_only_group_entries) {
    EXPECT_GT(check_all(kSubgroup, Rule::kOnlyGroupEntries, 4).out_of_order, 0U);
}

}  // namespace
}  // namespace ulc::urtp
