#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {
namespace {

constexpr Nanos kSkew = kMicrosecond;
constexpr Nanos kLookAgain =
    kMillisecond;  ///< as ulc_coll_wait(), which looks for members that died

}  // namespace

CollectiveActor::CollectiveActor(ulc_endpoint* ep, ulc_group group,
                                 const std::vector<Operation>& program, std::uint64_t seed)
    : ep_(ep),
      group_(group),
      self_(ulc_group_index(ep, group)),
      ranks_(ulc_group_size(ep, group)),
      program_(&program),
      prng_(seed) {}

void CollectiveActor::run_until_waiting() {
    while (!ended()) {
        if (running_ == nullptr && (error_ = start()) != ULC_OK) return;
        if (!test()) return;
    }
}

Nanos CollectiveActor::step(Nanos now) {
    if (ended()) return kNever;
    if (running_ == nullptr) {
        if (prng_.chance(0.7)) return now + kSkew;
        error_ = start();
        return now;
    }
    return test() ? now : now + kLookAgain;
}

bool CollectiveActor::test() {
    const int state = ulc_coll_test(ep_, running_);
    if (state == ULC_ERR_AGAIN) return false;
    running_ = nullptr;
    error_ = state;
    if (state != ULC_OK) {
        error_text_ = ulc_last_error_text();
        return true;
    }
    const std::string octet = data_.wrong();
    if (!octet.empty()) wrong_ = "operation " + std::to_string(at_) + " " + octet;
    ++at_;
    return true;
}

int CollectiveActor::start() {
    data_ = CollectiveData((*program_)[at_], self_, ranks_, at_);
    return data_.start(ep_, group_, &running_);
}

}  // namespace ulc::sim
