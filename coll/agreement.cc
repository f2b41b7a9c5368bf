// SPDX-License-Identifier: BSD-3-Clause
#include "coll/agreement.h"

#include "base/fnv.h"

namespace ulc::coll {
namespace {

[[nodiscard]] constexpr std::uint32_t halved(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

[[nodiscard]] std::uint64_t length_of(const Call& call, const Blocks* blocks) noexcept {
    // Each member knows only its own lengths of these; messages tell.
    if (call.op == Op::kGatherv || call.op == Op::kScatterv || call.op == Op::kAlltoallv) return 0;
    if (blocks == nullptr) return call.octets;
    std::uint64_t length = 0;
    for (std::uint16_t rank = 0; rank < call.ranks; ++rank)
        length = fnv1a(length, blocks->length(rank));
    return length;
}

}  // namespace

client::Agreement agreement_of(const Call& call, const Algorithm& algorithm,
                               const ulc_reduction* reduction, const Blocks* blocks) noexcept {
    const auto op = static_cast<std::uint32_t>(call.op);
    const std::uint64_t length = length_of(call, blocks);
    std::uint64_t type = 0;
    // Without a reduction there is space for eight bits more of the length.
    auto code = static_cast<std::uint8_t>(client::Signature::highest(11, length));
    if (reduction != nullptr) {
        type = std::uint64_t{16} * reduction->type + reduction->op;
        code = reduction_code(reduction->type, reduction->op);
    }
    const auto place = static_cast<std::uint64_t>(&algorithm - algorithms().data());
    std::uint64_t taken = fnv1a(fnv1a(place, call.concurrent), call.segment);
    if (!call.commutative) taken = fnv1a(taken, 1);
    return {client::Signature(op, call.root, code, halved(taken), length),
            halved(fnv1a(fnv1a(fnv1a(op, call.root), type), length)), halved(taken)};
}

}  // namespace ulc::coll
