// SPDX-License-Identifier: BSD-3-Clause
// Starts operations. One that is called before all ranks of the job are there is deferred:
// libfabric has no such state, and programs that post receives at once take no FI_EAGAIN.
#include "ofi/endpoint.h"
#include "ofi/info.h"

namespace ulc::ofi {

int Endpoint::ready() noexcept {
    if (ep_ == nullptr) return -FI_EOPBADSTATE;
    if (deferred_.empty()) [[likely]] {
        const int state = peers_.state();
        if (state != -FI_EAGAIN) return state;
    }
    progress();
    const int state = peers_.state();
    return state == 0 && !deferred_.empty() ? -FI_EAGAIN : state;
}

int Endpoint::may_defer() const noexcept {
    return deferred_.size() < kDeferredMax ? 0 : -FI_EAGAIN;
}

int Endpoint::submit(Operation& operation) noexcept {
    if (operation.pull != nullptr) [[unlikely]]
        return submit_pull(operation);
    ulc_endpoint* ep = ep_of(operation.peer);
    const std::uint16_t peer = number_of(operation.peer);
    operation.ep = ep;
    operation.taken = false;
    if (operation.kind == Operation::Kind::kSend)
        return ulc_sendv(ep, peer, operation.tag, operation.pieces, operation.count,
                         operation.level, &operation.request);
    if (operation.kind == Operation::Kind::kMultiReceive)
        return ulc_receive_many(ep, peer, operation.tag, operation.mask, give_part,
                                &operation.request);
    operation.waits = must_wait(operation);
    if (operation.waits) return ULC_OK;
    return ulc_receivev(ep, peer, operation.tag, operation.mask, operation.pieces, operation.count,
                        &operation.request);
}

ssize_t Endpoint::start(Operation& operation) noexcept {
    const int error = submit(operation);
    if (error != ULC_OK) {
        pool_.release(operation);
        return -fi_error_of(error);
    }
    if (operation.kind == Operation::Kind::kMultiReceive) {
        keep(operation);
        harvest();
        return 0;
    }
    ulc_status status;
    if (!operation.waits && ulc_test(operation.ep, &operation.request, &status) == ULC_OK) {
        finish(operation, status);
        return 0;
    }
    keep(operation);
    const bool wild = operation.waits || operation.peer == ULC_RANK_ANY;
    if (wild && peers_.strangers().in_use() && take_of_strangers(operation)) [[unlikely]]
        harvest();
    return 0;
}

void Endpoint::start_deferred() noexcept {
    const int state = peers_.state();
    if (state == -FI_EAGAIN) return;
    while (Operation* operation = deferred_.first()) {
        const int error = state == 0 ? submit(*operation) : ulc_job_state(ep_);
        if (error == ULC_ERR_AGAIN) return;
        deferred_.remove(*operation);
        if (error == ULC_OK) {
            keep(*operation);
        } else {
            ulc_status status{};
            status.error = error;
            finish(*operation, status);
        }
    }
    harvest();
    if (peers_.strangers().in_use()) match_strangers();
}

}  // namespace ulc::ofi
