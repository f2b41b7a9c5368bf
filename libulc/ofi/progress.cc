// SPDX-License-Identifier: BSD-3-Clause
// Turns completed operations of libulc into completions of libfabric.
#include <algorithm>
#include <utility>

#include "ofi/endpoint.h"
#include "ofi/say.h"

namespace ulc::ofi {

bool Endpoint::progress() noexcept {
    if (ep_ == nullptr) return false;
    const int events = ulc_poll(ep_);
    if (events < 0 && events != -ULC_ERR_LIMIT && ended_ == 0) ended_ = -events;
    harvest();
    const bool strange = peers_.strangers().poll();
    if (strange) [[unlikely]] {
        rma_.serve_strangers();
        harvest();
        match_strangers();
    }
    if (!deferred_.empty()) [[unlikely]]
        start_deferred();
    if (!pulls_.empty() || !stuck_.empty()) [[unlikely]]
        advance_pulls();
    rma_.expire_grants();
    if (ended_ != 0) [[unlikely]]
        end_all();
    return events > 0 || strange || !pulls_.empty();
}

void Endpoint::keep(Operation& operation) noexcept {
    operations_.append(operation);
    if (operation.kind != Operation::Kind::kMultiReceive && !operation.waits)
        static_cast<void>(ulc_collect(operation.ep, &operation.request));
}

void Endpoint::harvest() noexcept {
    harvest_of(ep_);
    if (peers_.strangers().in_use()) [[unlikely]]
        harvest_of(peers_.strangers().ep());
}

void Endpoint::harvest_of(ulc_endpoint* ep) noexcept {
    ulc_status status;
    while (ulc_request* request = ulc_next_done(ep, &status)) {
        Operation& operation = Operation::of(*request);
        operations_.remove(operation);
        finish(operation, status);
    }
}

void Endpoint::end_all() noexcept {
    ulc_status status{};
    status.error = ended_;
    for (OperationList* list : {&operations_, &pulls_, &stuck_}) {
        for (Operation* one = list->first(); one != nullptr;) {
            Operation& operation = *one;
            one = one->next;
            // libulc's endpoint for links ends its own.
            if (!operation.waits && operation.ep != nullptr && operation.ep != ep_) continue;
            list->remove(operation);
            finish(operation, status);
        }
    }
}

void Endpoint::finish(Operation& operation, const ulc_status& status) noexcept {
    if (operation.kind != Operation::Kind::kSend) {
        finish_receive(operation, status);
        return;
    }
    if (operation.pull != nullptr && !take_answer(operation, status)) return;
    if (status.error != ULC_OK) {
        fail(operation, fi_error_of(status.error), status.error, 0);
    } else {
        if (send_counter_ != nullptr) ++send_counter_->count;
        if (operation.report && sends_ != nullptr)
            sends_->add({operation.context, operation.flags, operation.capacity, nullptr, 0, 0,
                         FI_ADDR_NOTAVAIL});
    }
    pool_.release(operation);
}

void Endpoint::finish_other(Operation& operation, const ulc_status& status) noexcept {
    if (operation.kind != Operation::Kind::kMultiReceive) {
        rma_.finish(operation, status);
    } else if (status.error != ULC_OK && status.error != ULC_ERR_TRUNCATED) {
        fail(operation, fi_error_of(status.error), status.error, 0);
        pool_.release(operation);
    } else {
        end_silently(operation);
    }
}

void Endpoint::finish_receive(Operation& operation, const ulc_status& status) noexcept {
    if (operation.kind != Operation::Kind::kReceive) [[unlikely]] {
        finish_other(operation, status);
        return;
    }
    const bool cut = status.error == ULC_ERR_TRUNCATED;
    if (status.error != ULC_OK && !cut) {
        if (operation.ep != nullptr) operation.peer = source_in(operation.ep, status.source);
        fail(operation, fi_error_of(status.error), status.error, 0);
        pool_.release(operation);
        return;
    }
    HeaderFault fault = operation.header.fault(status.length);
#ifdef ULC_PLANTED_BUG  // the fuzzer must find what this forgets (tests/fuzz/)
    if (fault == HeaderFault::kShort) fault = HeaderFault::kNone;
#endif
    // The message itself follows its announcement; another announcement does not.
    if (fault == HeaderFault::kNone && operation.pull != nullptr && operation.header.announces())
        fault = HeaderFault::kAnnouncement;
    // Nor does a stranger announce.
    if (fault == HeaderFault::kNone && operation.ep != ep_ && operation.header.announces())
        fault = HeaderFault::kAnnouncement;
    std::uint64_t tag = status.tag;
    if (operation.pull != nullptr) {
        tag = operation.pull->tag;
        OperationPool::end_pull(operation);
    }
    if (fault != HeaderFault::kNone) {
        dropped_.add(fault, peers_.own_rank(), status.source);
        receive_again(operation);
    } else if (operation.header.announces()) {
        start_pull(operation, status);
    } else {
        take_message(operation, source_in(operation.ep, status.source), tag,
                     status.length - sizeof(MessageHeader));
    }
}

void Endpoint::take_message(Operation& operation, Rank source, std::uint64_t tag,
                            std::size_t length) noexcept {
    void* buffer = operation.count > 1 ? operation.pieces[1].base : nullptr;
    operation.flags |= operation.header.has_data() ? FI_REMOTE_CQ_DATA : 0;
    if (length > operation.capacity) {
        operation.tag = tag;
        fail(operation, FI_ETRUNC, ULC_ERR_TRUNCATED, length - operation.capacity);
    } else {
        const bool used_up = pool_.leave_buffer(operation);
        if (used_up) operation.flags |= FI_MULTI_RECV;
        if (receive_counter_ != nullptr) ++receive_counter_->count;
        if (receives_ != nullptr && (operation.report || used_up))
            receives_->add({operation.context, operation.flags, length, buffer,
                            operation.header.data, tag & kUserTagMask, peers_.address_of(source)});
    }
    pool_.release(operation);
}

void Endpoint::receive_again(Operation& operation) noexcept {
    if (operation.many != nullptr)
        end_silently(operation);
    else if (post(operation))
        keep(operation);
}

void Endpoint::end_silently(Operation& operation) noexcept {
    if (pool_.leave_buffer(operation) && receives_ != nullptr)
        receives_->add({operation.context, operation.flags | FI_MULTI_RECV, 0, nullptr, 0, 0,
                        FI_ADDR_NOTAVAIL});
    pool_.release(operation);
}

void Endpoint::fail(Operation& operation, int fi_error, int ulc_error, std::size_t over) noexcept {
    const bool sends = operation.kind == Operation::Kind::kSend;
    if (ulc_error == ULC_ERR_PEER_DIED) report_death(operation);
    if (pool_.leave_buffer(operation)) operation.flags |= FI_MULTI_RECV;
    Counter* counter = sends ? send_counter_ : receive_counter_;
    if (counter != nullptr) ++counter->errors;
    CompletionQueue* queue = sends ? sends_ : receives_;
    if (queue == nullptr) return;
    fi_cq_err_entry entry{};
    entry.op_context = operation.context;
    entry.flags = operation.flags;
    entry.len = fi_error == FI_ETRUNC ? operation.capacity : 0;
    entry.buf = operation.count > 1 && !sends ? operation.pieces[1].base : nullptr;
    entry.data =
        (operation.flags & FI_REMOTE_CQ_DATA) != 0 ? std::uint64_t{operation.header.data} : 0;
    entry.tag = operation.tag & kUserTagMask;
    entry.olen = over;
    entry.err = fi_error;
    entry.prov_errno = ulc_error;
    queue->add_error(entry);
}

void Endpoint::report_death(const Operation& operation) noexcept {
    if (std::exchange(reported_death_, true)) return;
    const bool sends = operation.kind == Operation::Kind::kSend;
    say("rank %u: a message %s %s %u failed: %s. Further ones are not printed.",
        unsigned{peers_.own_rank()}, sends ? "to" : "from",
        is_stranger(operation.peer) ? "link" : "rank", unsigned{number_of(operation.peer)},
        ulc_error_text(ULC_ERR_PEER_DIED));
}

}  // namespace ulc::ofi
