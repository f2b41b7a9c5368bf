// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/schedule/text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "tests/sim/schedule/goals.h"

namespace ulc::sim {
namespace {

using abi::BufferId;
using abi::Step;
using abi::StepKind;

constexpr std::uint64_t kRanksMax = 1024;
constexpr std::uint64_t kOctetsMax = 1U << 20;
constexpr std::uint64_t kGoalOctetsMax = 1U << 26;
constexpr std::size_t kStepsMax = 1U << 20;
constexpr std::array<std::string_view, 3> kBuffers{"input", "output", "scratch"};

std::vector<std::string_view> words_of(std::string_view line) {
    line = line.substr(0, line.find('#'));
    std::vector<std::string_view> words;
    constexpr std::string_view kBlank = " \t\r";
    for (std::size_t at = line.find_first_not_of(kBlank); at != std::string_view::npos;
         at = line.find_first_not_of(kBlank, at)) {
        const std::size_t end = std::min(line.find_first_of(kBlank, at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

/// Finds an operation that a text can name: all except those with lengths by rank.
bool find_op(std::string_view word, coll::Op& op) {
    for (std::uint8_t i = 0; i < coll::kOps; ++i) {
        const auto one = static_cast<coll::Op>(i);
        if (is_uneven(one) || coll::name_of(one) != word) continue;
        op = one;
        return true;
    }
    return false;
}

std::string quoted(std::string_view word) { return '"' + std::string(word) + '"'; }

class Parser {
public:
    explicit Parser(ScheduleText& out) : out_(out) {}

    std::string run(std::string_view text) {
        for (std::size_t at = 0; at < text.size() && error_.empty();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            ++line_;
            words_ = words_of(text.substr(at, end - at));
            next_ = 0;
            if (!words_.empty()) line();
            if (error_.empty() && next_ != words_.size())
                fail(quoted(words_[next_]) + " is not understood here");
            at = end + 1;
        }
        if (error_.empty() && rank_ == nullptr) fail("no rank; write \"rank 0\" and its steps");
        if (error_.empty()) set_goals();
        return error_;
    }

private:
    void fail(const std::string& what) {
        if (error_.empty()) error_ = "line " + std::to_string(line_) + ": " + what;
    }

    [[nodiscard]] std::string_view peek() const {
        return next_ < words_.size() ? words_[next_] : std::string_view();
    }

    std::uint64_t number(const char* what, std::uint64_t most) {
        std::uint64_t value = 0;
        const std::string_view word = peek();
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
#ifdef ULC_PLANTED_BUG  // the fuzzer must find what the bound prevents (tests/fuzz/)
        most = UINT64_MAX;
#endif
        if (word.empty() || error != std::errc() || end != word.data() + word.size() ||
            value > most) {
            fail(std::string(what) + " is a number up to " + std::to_string(most) + ", not " +
                 quoted(word));
            return 0;
        }
        ++next_;
        return value;
    }

    BufferId buffer() {
        for (std::size_t i = 0; i < kBuffers.size(); ++i) {
            if (peek() != kBuffers[i]) continue;
            ++next_;
            return static_cast<BufferId>(i);
        }
        fail("a buffer is input, output or scratch, not " + quoted(peek()));
        return BufferId::kInput;
    }

    void line() {
        const std::string_view word = words_[next_++];
        if (word == "rank") {
            begin_rank();
        } else if (rank_ == nullptr) {
            header(word);
        } else {
            step(word);
        }
    }

    void header(std::string_view word) {
        if (word == "op") {
            if (peek() != "none" && !find_op(peek(), call_.op)) {
                fail("op is an operation of coll.h without a v, as broadcast, or none, not " +
                     quoted(peek()));
                return;
            }
            op_ = peek();
            ++next_;
        } else if (word == "ranks") {
            ranks_ = number("ranks", kRanksMax);
        } else if (word == "octets") {
            octets_ = number("octets", kOctetsMax);
        } else if (word == "root") {
            root_ = number("root", kRanksMax - 1);
        } else if (word == "input") {
            input_ = number("input", kOctetsMax);
        } else if (word == "output") {
            output_ = number("output", kOctetsMax);
        } else {
            fail(quoted(word) +
                 " before the first rank; expected op, ranks, octets, root, input, "
                 "output or rank");
        }
    }

    void begin_rank() {
        if (rank_ == nullptr) {
            if (op_.empty() || ranks_ == 0 || root_ >= ranks_) {
                fail("before the first rank come op, ranks (≥ 1) and a root below ranks");
                return;
            }
            const std::uint64_t memory =
                ranks_ *
                (op_ == "none" ? input_ + output_ : octets_ * (has_blocks() ? 2 * ranks_ : 2));
            if (memory > kGoalOctetsMax) {
                fail("the memory of all ranks together is " + std::to_string(memory) +
                     " octets; at most " + std::to_string(kGoalOctetsMax));
                return;
            }
            out_.ranks.resize(ranks_);
        }
        const std::uint64_t rank = number("rank", ranks_ - 1);
        if (!error_.empty()) return;
        rank_ = &out_.ranks[rank];
        if (rank_->line != 0)
            fail("rank " + std::to_string(rank) + " began in line " + std::to_string(rank_->line));
        rank_->line = line_;
        if (peek() != "scratch") return;
        ++next_;
        rank_->scratch = number("scratch", kOctetsMax);
    }

    void range(Step& step) {
        step.buffer = buffer();
        step.offset = number("offset", kGoalOctetsMax);
        step.length = number("length", kGoalOctetsMax);
    }

    std::uint16_t peer() { return static_cast<std::uint16_t>(number("peer", ranks_ - 1)); }

    void step(std::string_view word) {
        Step step{};
        if (word == "send" || word == "recv") {
            step.kind = word == "send" ? StepKind::kSend : StepKind::kRecv;
            step.peer = peer();
            range(step);
        } else if (word == "mcast") {
            step.kind = StepKind::kMcast;
            range(step);
            if (peek() == "to") targets(step);
        } else if (word == "copy" || word == "reduce") {
            step.kind = word == "copy" ? StepKind::kCopy : StepKind::kReduce;
            range(step);
            step.from_buffer = buffer();
            step.from_offset = number("offset", kGoalOctetsMax);
            if (step.kind == StepKind::kReduce) {
                step.with_buffer = buffer();
                step.with_offset = number("offset", kGoalOctetsMax);
            }
        } else {
            fail(quoted(word) + " is no step; expected send, recv, mcast, copy, reduce or rank");
        }
        depends(step);
        if (++steps_ > kStepsMax) fail("more than " + std::to_string(kStepsMax) + " steps");
        rank_->steps.push_back(step);
        rank_->lines.push_back(line_);
    }

    void targets(Step& step) {
        ++next_;
        if (ranks_ > 64) fail("\"to\" needs at most 64 ranks");
        do {
            step.from_offset |= 1ULL << (peer() & 63U);
        } while (error_.empty() && next_ < words_.size() && peek() != "after");
    }

    void depends(Step& step) {
        step.depends_first = static_cast<std::uint32_t>(rank_->depends.size());
        if (peek() != "after") return;
        ++next_;
        if (rank_->steps.empty()) {
            fail("the first step of a rank has nothing to come after");
            return;
        }
        do {
            rank_->depends.push_back(static_cast<std::uint32_t>(
                number("an earlier step of the same rank", rank_->steps.size() - 1)));
            ++step.depends_count;
        } while (error_.empty() && next_ < words_.size() && step.depends_count < UINT16_MAX);
    }

    [[nodiscard]] bool has_blocks() const {
        const coll::Op op = call_.op;
        return op == coll::Op::kGather || op == coll::Op::kScatter || op == coll::Op::kAllgather ||
               op == coll::Op::kAlltoall || op == coll::Op::kReduceScatter;
    }

    void set_goals() {
        call_.ranks = static_cast<std::uint16_t>(ranks_);
        call_.root = static_cast<std::uint16_t>(root_);
        call_.octets = octets_;
        if (op_ != "none") {
            out_.demands = {.barrier = call_.op == coll::Op::kBarrier,
                            .alike = call_.op == coll::Op::kAllreduce,
                            .commutative = is_reduction(call_.op)};
        }
        for (call_.rank = 0; call_.rank < call_.ranks; ++call_.rank) {
            RankGoal goal = op_ == "none" ? RankGoal{} : goal_of(even(call_));
            if (op_ == "none") {
                goal.input = contribution(call_.rank, input_);
                goal.output = contribution(call_.rank, output_);
            }
            out_.goals.push_back(std::move(goal));
        }
    }

    ScheduleText& out_;
    ScheduleText::Rank* rank_ = nullptr;
    std::string_view op_;
    coll::Call call_;  ///< call of op_
    std::uint64_t ranks_ = 0;
    std::uint64_t octets_ = 0;
    std::uint64_t root_ = 0;
    std::uint64_t input_ = 0;
    std::uint64_t output_ = 0;
    std::vector<std::string_view> words_;
    std::size_t next_ = 0;  ///< word
    std::size_t line_ = 0;
    std::size_t steps_ = 0;
    std::string error_;
};

std::string range_text(const Step& step) {
    return std::string(kBuffers[static_cast<std::size_t>(step.buffer)]) + ' ' +
           std::to_string(step.offset) + ' ' + std::to_string(step.length);
}

/// Returns the text for the start of a range of the step's length.
std::string place_text(BufferId buffer, std::uint64_t offset) {
    return ' ' + std::string(kBuffers[static_cast<std::size_t>(buffer)]) + ' ' +
           std::to_string(offset);
}

}  // namespace

std::vector<abi::Schedule> ScheduleText::schedules() const {
    std::vector<abi::Schedule> all;
    for (const Rank& rank : ranks) {
        all.push_back({.steps = rank.steps.data(),
                       .depends = rank.depends.data(),
                       .step_count = static_cast<std::uint32_t>(rank.steps.size()),
                       .depends_count = static_cast<std::uint32_t>(rank.depends.size()),
                       .scratch_octets = rank.scratch});
    }
    return all;
}

Verdict ScheduleText::check(std::uint32_t buffers_max) const {
    Demands all = demands;
    all.buffers_max = buffers_max;
    return check_schedules(schedules(), goals, all);
}

std::string parse_schedule(std::string_view text, ScheduleText& out) {
    out = ScheduleText{};
    return Parser(out).run(text);
}

std::string describe_step(const abi::Schedule& schedule, std::uint32_t index) {
    if (index >= schedule.step_count) return "end";
    const Step& step = schedule.steps[index];
    std::string text;
    switch (step.kind) {
        case StepKind::kSend:
            text = "send " + std::to_string(step.peer) + ' ' + range_text(step);
            break;
        case StepKind::kRecv:
            text = "recv " + std::to_string(step.peer) + ' ' + range_text(step);
            break;
        case StepKind::kMcast:
            text = "mcast " + range_text(step);
            if (step.from_offset != 0) text += " to";
            for (std::uint32_t rank = 0; rank < 64; ++rank)
                if ((step.from_offset >> rank & 1U) != 0) text += ' ' + std::to_string(rank);
            break;
        case StepKind::kCopy:
        case StepKind::kReduce:
            text = step.kind == StepKind::kCopy ? "copy " : "reduce ";
            text += range_text(step) + place_text(step.from_buffer, step.from_offset);
            if (step.kind == StepKind::kReduce)
                text += place_text(step.with_buffer, step.with_offset);
            break;
    }
    if (step.depends_count > 0) text += " after";
    for (std::uint32_t d = 0; d < step.depends_count; ++d)
        text += ' ' + std::to_string(schedule.depends[step.depends_first + d]);
    return text;
}

}  // namespace ulc::sim
