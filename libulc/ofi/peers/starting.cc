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
    if (operation.kind == Operation::Kind::kSend)
        return ulc_sendv(ep_, operation.peer, operation.tag, operation.pieces, operation.count,
                         operation.level, &operation.request);
    if (operation.kind == Operation::Kind::kMultiReceive)
        return ulc_receive_many(ep_, operation.peer, operation.tag, operation.mask, give_part,
                                &operation.request);
    return ulc_receivev(ep_, operation.peer, operation.tag, operation.mask, operation.pieces,
                        operation.count, &operation.request);
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
    if (ulc_test(ep_, &operation.request, &status) == ULC_OK)
        finish(operation, status);
    else
        keep(operation);
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
            fail(*operation, fi_error_of(error), error, 0);
            pool_.release(*operation);
        }
    }
    harvest();
}

}  // namespace ulc::ofi
