// SPDX-License-Identifier: BSD-3-Clause
// Receives from any source, where the source may be of the job or a stranger (peers/strangers.h).
// Two endpoints of libulc match messages, so such a receive is posted with the job, and given a
// message of a stranger when one is there that it matches and none of the job has matched it. A
// receive from a stranger that follows it is not posted, but waits in the list of operations, so
// that it gets no message that the earlier one matches.
//
// A receive for many messages takes those of the job alone.
#include "ofi/endpoint.h"

namespace ulc::ofi {
namespace {

bool may_take_of_strangers(const Operation& one) noexcept {
    return one.kind == Operation::Kind::kReceive && one.pull == nullptr && one.many == nullptr &&
           (one.waits || (one.peer == ULC_RANK_ANY && !one.taken));
}

}  // namespace

bool Endpoint::must_wait(const Operation& operation) const noexcept {
    if (operation.kind != Operation::Kind::kReceive || !is_stranger(operation.peer)) return false;
    for (const Operation* one = operations_.first(); one != nullptr; one = one->next)
        if (may_take_of_strangers(*one)) return true;
    return false;
}

bool Endpoint::take_of_strangers(Operation& operation) noexcept {
    ulc_endpoint* links = peers_.strangers().ep();
    if (links == nullptr) return false;
    ulc_status status{};
    int error = ulc_probe(links, number_of(operation.peer), operation.tag, operation.mask, &status);
    if (error == ULC_ERR_AGAIN) return false;
    if (!operation.waits &&
        (error != ULC_OK || ulc_cancel(operation.ep, &operation.request) != ULC_OK))
        return false;
    if (error == ULC_OK)
        error = ulc_receivev(links, status.source, operation.tag, operation.mask, operation.pieces,
                             operation.count, &operation.request);
    operation.waits = false;
    operation.taken = true;
    operation.ep = links;
    if (error == ULC_OK) {
        static_cast<void>(ulc_collect(links, &operation.request));
        return true;
    }
    operations_.remove(operation);
    fail(operation, fi_error_of(error), error, 0);
    pool_.release(operation);
    return true;
}

void Endpoint::match_strangers() noexcept {
    for (Operation* one = operations_.first(); one != nullptr;) {
        Operation& operation = *one;
        one = one->next;
        if (may_take_of_strangers(operation)) static_cast<void>(take_of_strangers(operation));
    }
    harvest();
}

}  // namespace ulc::ofi
