#include "tests/sim/programs/collective_actor.h"

namespace ulc::sim {
namespace {

constexpr Nanos kSkew = kMicrosecond;
constexpr Nanos kLookAgain =
    kMillisecond;  ///< as ulc_coll_wait(), which looks for members that died

unsigned char octet_of(std::size_t operation, std::uint16_t rank, std::size_t i) {
    return static_cast<unsigned char>(operation * 31 + rank * 7 + i * 13 + i / 251);
}

const char* name_of(const Operation& operation) {
    return operation.algorithm.empty() ? nullptr : operation.algorithm.c_str();
}

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
    if (state != ULC_OK) return true;
    verify();
    ++at_;
    return true;
}

int CollectiveActor::start() {
    const Operation& op = (*program_)[at_];
    if (op.kind == CollectiveKind::kBarrier)
        return ulc_barrier_start(ep_, group_, name_of(op), &running_);
    if (op.kind == CollectiveKind::kBroadcast) {
        output_.assign(op.octets, 0);
        if (self_ == op.root) fill(output_.data(), op.octets, self_);
        return ulc_broadcast_start(ep_, group_, op.root, output_.data(), op.octets, name_of(op),
                                   &running_);
    }
    output_.assign(op.octets * ranks_, 0);
    input_.assign(op.octets, 0);
    fill(op.in_place ? output_.data() + self_ * op.octets : input_.data(), op.octets, self_);
    return ulc_allgather_start(ep_, group_, op.in_place ? nullptr : input_.data(), output_.data(),
                               op.octets, name_of(op), &running_);
}

void CollectiveActor::fill(unsigned char* to, std::size_t octets, std::uint16_t rank) const {
    for (std::size_t i = 0; i < octets; ++i)
        to[i] = octet_of(at_, rank, i);
}

void CollectiveActor::verify() {
    const Operation& op = (*program_)[at_];
    if (op.kind == CollectiveKind::kBarrier) return;
    for (std::size_t n = 0; n < output_.size(); ++n) {
        const auto source = op.kind == CollectiveKind::kBroadcast
                                ? op.root
                                : static_cast<std::uint16_t>(n / op.octets);
        const std::size_t i = op.kind == CollectiveKind::kBroadcast ? n : n % op.octets;
        if (output_[n] == octet_of(at_, source, i)) continue;
        wrong_ = "operation " + std::to_string(at_) + " octet " + std::to_string(n);
        return;
    }
}

}  // namespace ulc::sim
