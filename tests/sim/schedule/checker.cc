// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/schedule/checker.h"

#include <algorithm>
#include <deque>
#include <map>

#include "exec/validate.h"
#include "tests/sim/schedule/buffers.h"

namespace ulc::sim {
namespace {

using abi::BufferId;
using abi::Schedule;
using abi::Step;
using abi::StepKind;

/// A step of a rank, in one numbering over all ranks.
struct Place {
    std::uint16_t rank;
    std::uint32_t step;
};

class Machine {
public:
    Machine(const std::vector<Schedule>& schedules, const std::vector<RankGoal>& goals)
        : schedules_(schedules), goals_(goals) {
        for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
            first_.push_back(places_.size());
            for (std::uint32_t i = 0; i < schedules[rank].step_count; ++i) {
                places_.push_back({rank, i});
            }
        }
    }

    Verdict run(const Demands& demands) {
        (void)(valid() && matched() && without_race() && live() &&
               (!demands.barrier || together()) && right(demands.commutative) &&
               (!demands.alike || alike()) && within(demands.buffers_max));
        return verdict_;
    }
    Verdict buffers(std::uint64_t octets) {
        octets_ = octets;
        (void)(valid() && matched() && live() && within(UINT32_MAX));
        return verdict_;
    }
    Verdict fit(std::uint64_t octets) {
        octets_ = octets;
        (void)(valid() && matched() && without_race() && live());
        return verdict_;
    }

private:
    [[nodiscard]] std::uint16_t ranks() const {
        return static_cast<std::uint16_t>(schedules_.size());
    }
    [[nodiscard]] const Step& at(std::size_t place) const {
        return schedules_[places_[place].rank].steps[places_[place].step];
    }

    bool fail(std::uint16_t rank, std::uint32_t step, std::string what) {
        verdict_.ok = false;
        verdict_.rank = rank;
        verdict_.step = step;
        verdict_.what = std::move(what);
        return false;
    }

    bool valid() {
        for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
            const exec::Fault fault = exec::validate(
                schedules_[rank], {.members = ranks(),
                                   .self = rank,
                                   .octets = {goals_.empty() ? octets_ : goals_[rank].input.size(),
                                              goals_.empty() ? octets_ : goals_[rank].output.size(),
                                              schedules_[rank].scratch_octets},
                                   .may_reduce = true});
            if (fault.error != Err::kOk) return fail(rank, fault.step, fault.reason);
        }
        return true;
    }

    [[nodiscard]] bool targets(const Step& step, std::uint16_t rank) const {
        if (step.kind == StepKind::kSend) return step.peer == rank;
        if (step.kind != StepKind::kMcast) return false;
        return step.from_offset == 0 || (step.from_offset >> rank & 1U) != 0;
    }

    /// Pairs messages with receives in FIFO order; fills source_ and takers_.
    bool matched() {
        std::map<std::pair<std::uint16_t, std::uint16_t>, std::deque<std::size_t>> sent;
        source_.assign(places_.size(), places_.size());
        takers_.resize(places_.size());
        for (std::size_t place = 0; place < places_.size(); ++place) {
            const Step& step = at(place);
            if (step.kind != StepKind::kSend && step.kind != StepKind::kMcast) continue;
            ++verdict_.wire_messages;
            verdict_.wire_octets += step.length;
            for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
                if (rank != places_[place].rank && targets(step, rank)) {
                    sent[{places_[place].rank, rank}].push_back(place);
                }
            }
        }
        for (std::size_t place = 0; place < places_.size(); ++place) {
            const auto [rank, index] = places_[place];
            const Step& step = at(place);
            if (step.kind != StepKind::kRecv) continue;
            auto& queue = sent[{step.peer, rank}];
            if (queue.empty()) return fail(rank, index, "receives what is never sent");
            if (at(queue.front()).length != step.length) {
                return fail(rank, index, "length differs from the message it matches");
            }
            source_[place] = queue.front();
            takers_[queue.front()].push_back(place);
            queue.pop_front();
        }
        std::size_t first_bad = places_.size();
        for (const auto& [pair, queue] : sent) {
            if (!queue.empty()) first_bad = std::min(first_bad, queue.front());
        }
        if (first_bad == places_.size()) return true;
        return fail(places_[first_bad].rank, places_[first_bad].step, "message is never received");
    }

    struct Touch {
        BufferId buffer;
        std::uint64_t begin, end;
        bool writes;
    };
    static std::vector<Touch> touches(const Step& step) {
        const bool writes = step.kind != StepKind::kSend && step.kind != StepKind::kMcast;
        std::vector<Touch> all{{step.buffer, step.offset, step.offset + step.length, writes}};
        if (abi::is_local(step.kind)) {
            all.push_back(
                {step.from_buffer, step.from_offset, step.from_offset + step.length, false});
        }
        if (step.kind == StepKind::kReduce) {
            all.push_back(
                {step.with_buffer, step.with_offset, step.with_offset + step.length, false});
        }
        return all;
    }
    static bool conflict(const Step& a, const Step& b) {
        for (const Touch& x : touches(a)) {
            for (const Touch& y : touches(b)) {
                if ((x.writes || y.writes) && x.buffer == y.buffer && x.begin < y.end &&
                    y.begin < x.end) {
                    return true;
                }
            }
        }
        return false;
    }

    bool without_race() {
        for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
            const Schedule& schedule = schedules_[rank];
            // before[i][j]: step j is done before step i starts
            std::vector<std::vector<bool>> before(schedule.step_count);
            for (std::uint32_t i = 0; i < schedule.step_count; ++i) {
                const Step& step = schedule.steps[i];
                before[i].assign(i, false);
                for (std::uint32_t d = 0; d < step.depends_count; ++d) {
                    const std::uint32_t dependency = schedule.depends[step.depends_first + d];
                    before[i][dependency] = true;
                    for (std::uint32_t j = 0; j < dependency; ++j) {
                        if (before[dependency][j]) before[i][j] = true;
                    }
                }
                for (std::uint32_t j = 0; j < i; ++j) {
                    if (!before[i][j] && conflict(step, schedule.steps[j])) {
                        return fail(rank, i, "races with step " + std::to_string(j));
                    }
                }
            }
        }
        return true;
    }

    // Events: 2·place = the step starts, 2·place + 1 = it is done.
    struct Graph {
        std::vector<std::vector<std::size_t>> next;
        std::vector<std::uint32_t> waits;
        void edge(std::size_t from, std::size_t to) {
            next[from].push_back(to);
            ++waits[to];
        }
    };

    [[nodiscard]] Graph graph() const {
        Graph graph;
        graph.next.resize(2 * places_.size());
        graph.waits.assign(2 * places_.size(), 0);
        for (std::size_t place = 0; place < places_.size(); ++place) {
            const auto [rank, index] = places_[place];
            const Step& step = at(place);
            graph.edge(2 * place, 2 * place + 1);
            for (std::uint32_t d = 0; d < step.depends_count; ++d) {
                const std::uint32_t dependency = schedules_[rank].depends[step.depends_first + d];
                graph.edge(2 * (first_[rank] + dependency) + 1, 2 * place);
            }
            for (const std::size_t taker : takers_[place]) {
                graph.edge(2 * place, 2 * taker + 1);
            }
        }
        for (std::uint16_t rank = 0; rank < ranks(); ++rank)
            keep_order(rank, graph);
        return graph;
    }
    /// Steps of a rank with the same peer and direction start in order (schedule.h), and messages
    /// of one source come in order.
    void keep_order(std::uint16_t rank, Graph& graph) const {
        const std::size_t none = places_.size();
        std::vector<std::size_t> last_out(ranks(), none);
        std::vector<std::size_t> last_in(ranks(), none);
        for (std::uint32_t index = 0; index < schedules_[rank].step_count; ++index) {
            const Step& step = schedules_[rank].steps[index];
            const std::size_t place = first_[rank] + index;
            if (abi::is_local(step.kind)) continue;
            const bool receives = step.kind == StepKind::kRecv;
            for (std::uint16_t peer = 0; peer < ranks(); ++peer) {
                if (step.kind != StepKind::kMcast && peer != step.peer) continue;
                std::size_t& last = receives ? last_in[peer] : last_out[peer];
                if (last != none) graph.edge(2 * last, 2 * place);
                if (last != none && receives) graph.edge(2 * last + 1, 2 * place + 1);
                last = place;
            }
        }
    }

    /// Runs all events in some order, kept in order_. A deadlock if some never can.
    bool live() {
        graph_ = graph();
        std::vector<std::uint32_t> waits = graph_.waits;
        std::deque<std::size_t> ready;
        for (std::size_t event = 0; event < waits.size(); ++event) {
            if (waits[event] == 0) ready.push_back(event);
        }
        while (!ready.empty()) {
            const std::size_t event = ready.front();
            ready.pop_front();
            order_.push_back(event);
            for (const std::size_t successor : graph_.next[event]) {
                if (--waits[successor] == 0) ready.push_back(successor);
            }
        }
        if (order_.size() == waits.size()) return true;
        for (std::size_t place = 0; place < places_.size(); ++place) {
            if (waits[2 * place] > 0 || waits[2 * place + 1] > 0) {
                return fail(places_[place].rank, places_[place].step, "deadlock");
            }
        }
        return false;
    }

    /// Checks that some event of every rank comes after the beginning of every other rank.
    bool together() {
        for (std::uint16_t from = 0; from < ranks(); ++from) {
            std::vector<bool> after(graph_.next.size(), false);
            std::vector<bool> reached(ranks(), false);
            reached[from] = true;
            for (const std::size_t event : order_) {
                const std::uint16_t rank = places_[event / 2].rank;
                if (rank == from) after[event] = true;
                if (!after[event]) continue;
                reached[rank] = true;
                for (const std::size_t successor : graph_.next[event])
                    after[successor] = true;
            }
            for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
                if (reached[rank]) continue;
                return fail(rank, schedules_[rank].step_count,
                            "is done without waiting for rank " + std::to_string(from));
            }
        }
        return true;
    }

    static constexpr std::uint64_t field(Symbol symbol, unsigned at) {
        return symbol >> at & 0xfffU;
    }
    /// Returns a ∘ b; 0 if b is not the next operand after a.
    [[nodiscard]] Symbol folded(Symbol a, Symbol b) const {
        const std::uint64_t count = field(a, 32) + field(b, 32);
        const bool next = (field(a, 20) + field(a, 32)) % ranks() == field(b, 20);
        if (a == 0 || b == 0 || !next || count > ranks() || (a & 0xfffffU) != (b & 0xfffffU))
            return 0;
        const std::uint64_t brackets =
            ((a >> 44) * 31 + (b >> 44) * 17 + field(a, 32) * 7 + field(b, 32)) % 0x7ffffU;
        return symbol_of(field(a, 20), count, a & 0xfffffU) | brackets << 44;
    }

    bool right(bool commutative) {
        std::vector<RankGoal>& memory = memory_;
        memory = goals_;
        std::vector<Symbols> scratch(ranks());
        for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
            scratch[rank].assign(schedules_[rank].scratch_octets, 0);
        }
        const auto of = [&](std::uint16_t rank, BufferId buffer) -> Symbols& {
            if (buffer == BufferId::kInput) return memory[rank].input;
            return buffer == BufferId::kOutput ? memory[rank].output : scratch[rank];
        };
        std::vector<Symbols> message(places_.size());
        for (const std::size_t event : order_) {
            const std::size_t place = event / 2;
            const auto [rank, index] = places_[place];
            const Step& step = at(place);
            const bool starts = event % 2 == 0;
            Symbols& mine = of(rank, step.buffer);
            const auto begin = mine.begin() + static_cast<std::ptrdiff_t>(step.offset);
            if (starts && !takers_[place].empty()) {
                message[place].assign(begin, begin + static_cast<std::ptrdiff_t>(step.length));
                if (std::find(message[place].begin(), message[place].end(), 0U) !=
                    message[place].end()) {
                    return fail(rank, index, "sends octets that nothing has written");
                }
            } else if (!starts && step.kind == StepKind::kRecv) {
                const Symbols& got = message[source_[place]];
                std::copy(got.begin(), got.end(), begin);
            } else if (!starts && step.kind == StepKind::kCopy) {
                const Symbols& from = of(rank, step.from_buffer);
                std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(step.from_offset),
                            step.length, begin);
            } else if (!starts && abi::is_local(step.kind)) {
                const Symbols& from = of(rank, step.from_buffer);
                const Symbols& with = of(rank, step.with_buffer);
                for (std::uint64_t i = 0; i < step.length; ++i) {
                    Symbol& into = begin[static_cast<std::ptrdiff_t>(i)];
                    into = folded(from[step.from_offset + i], with[step.with_offset + i]);
                    if (into != 0) continue;
                    return fail(rank, index, "reduces what does not come next");
                }
            }
        }
        for (std::uint16_t rank = 0; rank < ranks(); ++rank) {
            for (std::size_t i = 0; i < goals_[rank].expected.size(); ++i) {
                const Symbol wanted = goals_[rank].expected[i];
                Symbol got = memory[rank].output[i] & ~kBrackets;
                if (commutative && field(got, 32) == ranks())
                    got = symbol_of(0, ranks(), got & 0xfffffU);
                if (wanted == 0 || got == wanted) continue;
                return fail(rank, last_writer(rank, i),
                            "octet " + std::to_string(i) + " of the output ends wrong");
            }
        }
        return true;
    }
    bool alike() {
        for (std::uint16_t rank = 1; rank < ranks(); ++rank) {
            for (std::size_t i = 0; i < goals_[rank].expected.size(); ++i) {
                if (memory_[rank].output[i] == memory_[0].output[i]) continue;
                return fail(rank, last_writer(rank, i),
                            "octet " + std::to_string(i) + " is folded unlike that of rank 0");
            }
        }
        return true;
    }
    /// Returns the step that is responsible for a byte: the last that writes it, else the number of
    /// steps.
    [[nodiscard]] std::uint32_t last_writer(std::uint16_t rank, std::size_t octet) const {
        const Schedule& schedule = schedules_[rank];
        for (std::uint32_t i = schedule.step_count; i-- > 0;) {
            const Step& step = schedule.steps[i];
            const bool writes = step.kind != StepKind::kSend && step.kind != StepKind::kMcast;
            if (writes && step.buffer == BufferId::kOutput && octet >= step.offset &&
                octet - step.offset < step.length) {
                return i;
            }
        }
        return schedule.step_count;
    }

    bool within(std::uint32_t buffers_max) {
        for (std::uint16_t lazy = 0; lazy < ranks(); ++lazy) {
            Arrivals arrivals{graph_.next, order_, {}, {}};
            for (std::size_t place = 0; place < places_.size(); ++place) {
                if (places_[place].rank != lazy) {
                    if (targets(at(place), lazy)) arrivals.sent.push_back(2 * place);
                } else if (at(place).kind == StepKind::kRecv) {
                    arrivals.taken.push_back(2 * place + 1);
                }
            }
            const WorstArrivals worst = worst_arrivals(arrivals);
            verdict_.buffers = std::max(verdict_.buffers, worst.held);
            if (!hold(worst, lazy, buffers_max)) return false;
        }
        return true;
    }
    /// Follows an execution that reaches the worst case, to find its bytes and the first message
    /// beyond.
    bool hold(const WorstArrivals& worst, std::uint16_t lazy, std::uint32_t buffers_max) {
        std::vector<std::int8_t> more(graph_.next.size(), 0);
        for (const std::size_t event : worst.sent)
            more[event] = 1;
        for (const std::size_t event : worst.taken)
            more[event] = -1;
        std::uint32_t held = 0;
        std::uint64_t held_octets = 0;
        for (const std::size_t event : order_) {
            if (more[event] == 0) continue;
            const Place& place = places_[event / 2];
            if (more[event] < 0) {
                --held;
                held_octets -= at(event / 2).length;
                continue;
            }
            held_octets += at(event / 2).length;
            verdict_.buffer_octets = std::max(verdict_.buffer_octets, held_octets);
            if (++held <= buffers_max) continue;
            return fail(place.rank, place.step,
                        "needs more than " + std::to_string(buffers_max) + " buffers at rank " +
                            std::to_string(lazy));
        }
        return true;
    }

    const std::vector<Schedule>& schedules_;
    const std::vector<RankGoal>& goals_;
    std::uint64_t octets_ = 0;  ///< length of each buffer, without goals
    Verdict verdict_;
    std::vector<Place> places_;
    std::vector<std::size_t> first_;                ///< first step of each rank, in places_
    std::vector<std::size_t> source_;               ///< the message of each receive
    std::vector<std::vector<std::size_t>> takers_;  ///< the receives of each message
    Graph graph_;
    std::vector<std::size_t> order_;
    std::vector<RankGoal> memory_;  ///< after the run
};

}  // namespace

Verdict check_schedules(const std::vector<Schedule>& schedules, const std::vector<RankGoal>& goals,
                        const Demands& demands) {
    return Machine(schedules, goals).run(demands);
}

Verdict check_buffers(const std::vector<Schedule>& schedules, std::uint64_t octets) {
    const std::vector<RankGoal> none;
    return Machine(schedules, none).buffers(octets);
}

Verdict check_fit(const std::vector<Schedule>& schedules, std::uint64_t octets) {
    const std::vector<RankGoal> none;
    return Machine(schedules, none).fit(octets);
}

}  // namespace ulc::sim
