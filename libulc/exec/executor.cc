// SPDX-License-Identifier: BSD-3-Clause
#include "exec/executor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace ulc::exec {
namespace {

using abi::BufferId;
using abi::Schedule;
using abi::Step;
using abi::StepKind;

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kOnStart = 0;
constexpr std::uint32_t kOnDone = 1;
/// Share of kLocalOctetsPerCall that an empty local step costs, so that no number of them is free.
constexpr std::uint64_t kLocalStepCost = 64;
static_assert(abi::kStepsMax <= (1U << 30), "an index and a bit fit into 32 bits");

/// The later of two indices of which either may be kNone.
[[nodiscard]] std::uint32_t later(std::uint32_t a, std::uint32_t b) noexcept {
    if (a == kNone) return b;
    if (b == kNone) return a;
    return std::max(a, b);
}

}  // namespace

Result<Executor> Executor::make(const Schedule& schedule, const Setup& setup,
                                Fault* fault) noexcept {
    const Shape shape{.members = setup.members,
                      .self = setup.self,
                      .octets = {setup.octets[0], setup.octets[1], setup.octets[2]},
                      .may_reduce = setup.reduce.apply != nullptr,
                      .may_copy = setup.may_copy,
                      .steps_max = setup.steps_max};
    const Fault found = validate(schedule, shape);
    if (fault != nullptr) *fault = found;
    if (found.error != Err::kOk) return found.error;
    if ((setup.input == nullptr && setup.octets[0] > 0) ||
        (setup.output == nullptr && setup.octets[1] > 0) ||
        (setup.scratch == nullptr && setup.octets[2] > 0)) {
        return Err::kInvalid;
    }
    ULC_CHECK(setup.reduce.grain > 0 && setup.reduce.grain <= kLocalOctetsPerCall);
    Executor executor(schedule, setup);
    if (const Err error = executor.prepare(); error != Err::kOk) return error;
    return Result<Executor>(std::move(executor));
}

/// Calls on_edge(earlier, later, kind) for every edge. last_out, last_in: `members` cells, kNone. A
/// multicast follows the last send to each peer since the multicast before it (these lie between
/// the two, so all segments together are walked once), else that multicast.
template <typename OnEdge>
void Executor::each_edge(std::uint32_t* last_out, std::uint32_t* last_in,
                         OnEdge on_edge) const noexcept {
    std::uint32_t last_mcast = kNone;
    for (std::uint32_t i = 0; i < schedule_.step_count; ++i) {
        const Step& step = schedule_.steps[i];
        for (std::uint32_t d = 0; d < step.depends_count; ++d) {
            on_edge(schedule_.depends[step.depends_first + d], i, kOnDone);
        }
        if (step.kind == StepKind::kRecv) {
            if (last_in[step.peer] != kNone) on_edge(last_in[step.peer], i, kOnStart);
            last_in[step.peer] = i;
        } else if (step.kind == StepKind::kSend) {
            const std::uint32_t before = later(last_out[step.peer], last_mcast);
            if (before != kNone) on_edge(before, i, kOnStart);
            last_out[step.peer] = i;
        } else if (step.kind == StepKind::kMcast) {
            bool ordered = false;
            for (std::uint32_t j = last_mcast == kNone ? 0 : last_mcast + 1; j < i; ++j) {
                const Step& send = schedule_.steps[j];
                if (send.kind != StepKind::kSend || last_out[send.peer] != j) continue;
                on_edge(j, i, kOnStart);
                ordered = true;
            }
            if (!ordered && last_mcast != kNone) on_edge(last_mcast, i, kOnStart);
            last_mcast = i;
        }
    }
}

Err Executor::prepare() noexcept {
    const std::size_t n = schedule_.step_count;
    const std::size_t members = setup_.members;
    const std::unique_ptr<std::uint32_t[]> last(new (std::nothrow) std::uint32_t[2 * members]);
    state_.reset(new (std::nothrow) State[n]);
    if (!last || !state_) return Err::kNoMemory;

    std::size_t edge_count = 0;
    std::fill_n(last.get(), 2 * members, kNone);
    each_edge(last.get(), last.get() + members,
              [&](std::uint32_t, std::uint32_t, std::uint32_t) { ++edge_count; });
    block_.reset(new (std::nothrow) std::uint32_t[n + (n + 1) + edge_count + n + n + 2 * n]);
    if (!block_) return Err::kNoMemory;
    waits_ = block_.get();
    edge_first_ = waits_ + n;
    edges_ = edge_first_ + n + 1;
    ready_ = edges_ + edge_count;
    local_ = ready_ + n;
    settle_ = local_ + n;
    std::fill_n(waits_, n, 0U);
    std::fill_n(edge_first_, n + 1, 0U);
    std::fill_n(state_.get(), n, State::kWaiting);

    // Rows by counting sort: count, sum up, fill from the end of each row.
    std::fill_n(last.get(), 2 * members, kNone);
    each_edge(last.get(), last.get() + members,
              [&](std::uint32_t from, std::uint32_t to, std::uint32_t) {
                  ++edge_first_[from];
                  ++waits_[to];
              });
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i <= n; ++i)
        edge_first_[i] = sum += edge_first_[i];
    std::fill_n(last.get(), 2 * members, kNone);
    each_edge(last.get(), last.get() + members,
              [&](std::uint32_t from, std::uint32_t to, std::uint32_t kind) {
                  edges_[--edge_first_[from]] = to << 1 | kind;
              });
    release_first();
    return Err::kOk;
}

/// Releases the steps that wait for none.
void Executor::release_first() noexcept {
    for (std::uint32_t i = 0; i < schedule_.step_count; ++i) {
        if (waits_[i] == 0) release(i);
    }
}

void Executor::rewind() noexcept {
    const std::uint32_t n = schedule_.step_count;
    ready_head_ = ready_tail_ = 0;
    local_head_ = local_tail_ = 0;
    settle_head_ = settle_tail_ = 0;
    settle_edge_ = 0;
    local_octets_ = 0;
    in_flight_ = 0;
    done_count_ = 0;
    std::fill_n(waits_, n, 0U);
    std::fill_n(state_.get(), n, State::kWaiting);
    for (std::uint32_t at = 0; at != edge_first_[n]; ++at)
        ++waits_[edges_[at] >> 1];
    release_first();
}

void Executor::release(std::uint32_t step) noexcept {
    state_[step] = State::kReady;
    if (abi::is_local(schedule_.steps[step].kind)) {
        local_[local_tail_++] = step;
    } else {
        ready_[ready_tail_++] = step;
    }
}

void Executor::finish(std::uint32_t step) noexcept {
    state_[step] = State::kDone;
    ++done_count_;
    settle_[settle_tail_++] = step << 1 | kOnDone;
}

void Executor::settle(std::uint32_t& edges_left) noexcept {
    while (settle_head_ != settle_tail_ && edges_left > 0) {
        const std::uint32_t step = settle_[settle_head_] >> 1;
        const std::uint32_t kind = settle_[settle_head_] & 1U;
        std::uint32_t at = edge_first_[step] + settle_edge_;
        const std::uint32_t end = edge_first_[step + 1];
        for (; at != end && edges_left > 0; ++at, --edges_left) {
            if ((edges_[at] & 1U) != kind) continue;
            const std::uint32_t successor = edges_[at] >> 1;
            ULC_CHECK(waits_[successor] > 0);
            if (--waits_[successor] == 0) release(successor);
        }
        settle_edge_ = at - edge_first_[step];
        if (at != end) return;
        settle_edge_ = 0;
        ++settle_head_;
    }
}

void Executor::run_local(std::uint64_t& octets_left) noexcept {
    while (local_head_ != local_tail_ && octets_left > 0) {
        const std::uint32_t index = local_[local_head_];
        const Step& step = schedule_.steps[index];
        std::uint64_t piece = std::min(step.length - local_octets_, octets_left);
        if (step.kind != StepKind::kCopy && piece < step.length - local_octets_) {
            piece -= piece % setup_.reduce.grain;
            if (piece == 0) {
                octets_left = 0;  // less than one element is left of this call's share
                return;
            }
        }
        if (piece > 0) {
            unsigned char* into = write_at(step.buffer, step.offset + local_octets_);
            const unsigned char* from = read_at(step.from_buffer, step.from_offset + local_octets_);
            if (step.kind != StepKind::kCopy) {
                setup_.reduce.apply(setup_.reduce.context, into, from,
                                    read_at(step.with_buffer, step.with_offset + local_octets_),
                                    piece);
            } else if (into != from) {
                std::memmove(into, from, piece);
            }
        }
        local_octets_ += piece;
        octets_left -= std::min(octets_left, piece + kLocalStepCost);
        if (local_octets_ != step.length) return;
        local_octets_ = 0;
        ++local_head_;
        finish(index);
    }
}

bool Executor::next(std::uint32_t& step) noexcept {
    std::uint32_t edges_left = kEdgesPerCall;
    std::uint64_t octets_left = kLocalOctetsPerCall;
    settle(edges_left);
    while (local_head_ != local_tail_ && octets_left > 0 && edges_left > 0) {
        run_local(octets_left);
        settle(edges_left);
    }
    if (ready_head_ == ready_tail_) return false;
    step = ready_[ready_head_];
    return true;
}

void Executor::started() noexcept {
    ULC_CHECK(ready_head_ != ready_tail_);
    const std::uint32_t step = ready_[ready_head_++];
    state_[step] = State::kStarted;
    ++in_flight_;
    settle_[settle_tail_++] = step << 1 | kOnStart;
}

Err Executor::complete(std::uint32_t step) noexcept {
    if (step >= schedule_.step_count || state_[step] != State::kStarted) return Err::kInvalid;
    --in_flight_;
    finish(step);
    return Err::kOk;
}

bool Executor::is_last(std::uint32_t index) const noexcept {
    for (std::uint32_t at = edge_first_[index]; at != edge_first_[index + 1]; ++at)
        if ((edges_[at] & 1U) == kOnStart) return false;
    return true;
}

const unsigned char* Executor::read_at(BufferId buffer, std::uint64_t offset) const noexcept {
    if (buffer == BufferId::kInput) {
        return setup_.input == nullptr ? nullptr : setup_.input + offset;
    }
    return write_at(buffer, offset);
}

unsigned char* Executor::write_at(BufferId buffer, std::uint64_t offset) const noexcept {
    unsigned char* base = buffer == BufferId::kOutput ? setup_.output : setup_.scratch;
    return base == nullptr ? nullptr : base + offset;
}

}  // namespace ulc::exec
