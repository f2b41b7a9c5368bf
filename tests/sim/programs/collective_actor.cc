// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {
namespace {

constexpr Nanos kSkew = kMicrosecond;
constexpr Nanos kLookAgain =
    kMillisecond;  ///< as ulc_coll_wait(), which looks for members that died

}  // namespace

CollectiveActor::CollectiveActor(ulc_endpoint* ep, ulc_group group,
                                 const std::vector<Operation>& program, std::uint64_t seed,
                                 std::size_t width)
    : ep_(ep),
      group_(group),
      self_(ulc_group_index(ep, group)),
      ranks_(ulc_group_size(ep, group)),
      program_(&program),
      prng_(seed),
      width_(width) {}

void CollectiveActor::run_until_waiting() {
    for (bool moved = true; moved && !ended();) {
        moved = false;
        while (may_start() && (error_ = start()) == ULC_OK)
            moved = true;
        for (std::size_t n = running_.size(); n-- > 0 && error_ == ULC_OK;)
            moved |= test(n);
    }
}

Nanos CollectiveActor::step(Nanos now) {
    if (ended()) return kNever;
    const bool more = may_start();
    if (more) {
        if (!prng_.chance(0.7)) {
            error_ = start();
            return now;
        }
        if (running_.empty()) return now + kSkew;
    }
    const std::size_t first = running_.size() == 1 ? 0 : prng_.below(running_.size());
    for (std::size_t n = 0; n < running_.size(); ++n)
        if (test((first + n) % running_.size())) return now;
    return now + (more ? kSkew : kLookAgain);
}

bool CollectiveActor::test(std::size_t which) {
    Running& one = running_[which];
    const int state = ulc_coll_test(ep_, one.operation);
    if (state == ULC_ERR_AGAIN) return false;
    if (state == ULC_OK) {
        const std::string octet = one.data.wrong();
        if (!octet.empty()) wrong_ = "operation " + std::to_string(one.number) + " " + octet;
        ++at_;
    } else {
        error_ = state;
        error_text_ = ulc_last_error_text();
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
    return true;
}

int CollectiveActor::start() {
    Running one{begun_, nullptr, CollectiveData((*program_)[begun_], self_, ranks_, begun_)};
    const int error = one.data.start(ep_, group_, &one.operation);
    if (error != ULC_OK) return error;
    ++begun_;
    running_.push_back(std::move(one));
    return error;
}

}  // namespace ulc::sim
