// SPDX-License-Identifier: BSD-3-Clause
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "ofi/endpoint.h"
#include "ofi/info.h"
#include "ofi/rma/atomics.h"
#include "ofi/rma/rma.h"

namespace ulc::ofi {
namespace {

int fi_error_of(RmaResult result) noexcept {
    switch (result) {
        case RmaResult::kDone:
        case RmaResult::kGo:
            return 0;
        case RmaResult::kNoKey:
            return FI_ENOKEY;
        case RmaResult::kOutside:
            return FI_EFAULT;
        case RmaResult::kNotGranted:
            return FI_EACCES;
        case RmaResult::kNoSuchOp:
            return FI_EOPNOTSUPP;
        case RmaResult::kTooMany:
            return FI_EBUSY;
        case RmaResult::kNoMemory:
            return FI_ENOMEM;
        case RmaResult::kMalformed:
            return FI_EIO;
        case RmaResult::kLate:
            return FI_ETIMEDOUT;
    }
    return FI_EIO;
}

std::uint64_t completion_flags(RmaKind kind) noexcept {
    return (is_atomic(kind) ? FI_ATOMIC : FI_RMA) | (returns_data(kind) ? FI_READ : FI_WRITE);
}

}  // namespace

bool Rma::describe(Operation& operation, const RmaCall& call, Rank to) noexcept {
    operation.kind = Operation::Kind::kRma;
    operation.report = call.report;
    operation.flags = completion_flags(call.kind);
    operation.context = call.context;
    operation.peer = to;
    operation.ep = endpoint_.ep_of(to);
    operation.level = 0;
    operation.tag = 0;
    operation.capacity = 0;
    operation.pieces[0] = {&operation.rma.response, sizeof operation.rma.response};
    operation.count = 1;
    for (std::size_t i = 0; i < call.count; ++i) {
        if (call.pieces[i].iov_len == 0) continue;
        operation.pieces[operation.count++] = {call.pieces[i].iov_base, call.pieces[i].iov_len};
        operation.capacity += call.pieces[i].iov_len;
    }
    operation.rma = {};
    operation.rma.kind = call.kind;
    operation.rma.memory = returns_data(call.kind) ? call.memory : nullptr;
    operation.rma.awaited = 1;
    operation.rma.number = next_number_++;
    if (call.kind != RmaKind::kWrite || operation.capacity <= kRmaInlineMax) return true;
    operation.rma.kind = RmaKind::kLongWrite;
    Operation* data = endpoint_.pool_.allocate();
    if (data == nullptr) return false;
    data->kind = Operation::Kind::kRmaData;
    data->report = false;
    data->rma = {};
    data->rma.other = &operation;
    data->ep = operation.ep;
    operation.rma.other = data;
    return true;
}

int Rma::await_response(Operation& operation) noexcept {
    const unsigned count = returns_data(operation.rma.kind) ? operation.count : 1;
    return ulc_receivev(operation.ep, number_of(operation.peer), response_tag(operation.rma.number),
                        ~std::uint64_t{0}, operation.pieces, count, &operation.request);
}

int Rma::submit(Operation& operation, const RmaCall& call) noexcept try {
    const RmaKind kind = operation.rma.kind;
    RmaRequest request{};
    request.version = RmaRequest::kVersion;
    request.kind = static_cast<std::uint8_t>(kind);
    request.number = operation.rma.number;
    request.key = call.key;
    request.address = call.address;
    request.length = is_atomic(kind) ? call.length : operation.capacity;
    if ((call.flags & FI_REMOTE_CQ_DATA) != 0) {
        request.flags = RmaRequest::kHasData;
        request.data = call.data;
    }
    ulc_piece pieces[ULC_PIECES_MAX];
    pieces[0] = {&request, sizeof request};
    unsigned count = 1;
    if (is_atomic(kind)) {
        request.datatype = call.datatype;
        request.op = call.op;
        request.operands = operands_of(kind, call.op);
        if (request.bytes_behind() > 0)
            pieces[count++] = {const_cast<unsigned char*>(call.operands), request.bytes_behind()};
    } else if (kind == RmaKind::kWrite) {
        for (unsigned i = 1; i < operation.count; ++i)
            pieces[count++] = operation.pieces[i];
    }
    std::uint16_t no_order = 0;
    std::uint16_t& order = is_stranger(operation.peer) ? no_order : sent_[operation.peer];
    request.order = order;
    // Without a request libulc copies the payload, so the caller may change it.
    const int error =
        ulc_sendv(operation.ep, number_of(operation.peer), kRmaTag, pieces, count, 0, nullptr);
    if (error != ULC_OK) return error;
    ++order;
    return await_response(operation);
} catch (const std::bad_alloc&) {
    return ULC_ERR_NO_MEMORY;
}

ssize_t Rma::start(const RmaCall& call) noexcept {
    if (const int state = endpoint_.ready(); state != 0) return state;
    if (call.count > kPiecesMax) return -FI_EINVAL;
    Rank to = ULC_RANK_ANY;
    int error = endpoint_.peers().rank_of(call.peer, to);
    if (error == 0 && (under_way_ >= kRmaHeldMax || (is_stranger(to) && on_links_ > 0)))
        error = -FI_EAGAIN;
    if (error != 0) {
        if (error == -FI_EAGAIN) endpoint_.progress();
        return error;
    }
    Operation* operation = endpoint_.pool_.allocate();
    if (operation == nullptr) return -FI_ENOMEM;
    error = describe(*operation, call, to) ? submit(*operation, call) : int{ULC_ERR_NO_MEMORY};
    if (error != ULC_OK) {
        if (operation->rma.other != nullptr) endpoint_.pool_.release(*operation->rma.other);
        endpoint_.pool_.release(*operation);
        if (error == ULC_ERR_AGAIN) endpoint_.progress();
        return -ofi::fi_error_of(error);
    }
    ++under_way_;
    on_links_ += is_stranger(to) ? 1 : 0;
    endpoint_.keep(*operation);
    return 0;
}

void Rma::take_response(Operation& operation, const ulc_status& status) noexcept {
    RmaState& state = operation.rma;
    if (status.error != ULC_OK && status.error != ULC_ERR_TRUNCATED) {
        settle(operation, ofi::fi_error_of(status.error), status.error);
        return;
    }
    const std::uint64_t wanted = returns_data(state.kind) ? operation.capacity : 0;
    const bool may_go = state.kind == RmaKind::kLongWrite && state.other != nullptr;
    if (!state.response.is_valid(status.length, wanted) ||
        (state.response.what() == RmaResult::kGo && !may_go) ||
        (state.response.what() == RmaResult::kDone && may_go)) {
        endpoint_.dropped_.add(HeaderFault::kResponse, endpoint_.peers().own_rank(), status.source);
        settle(operation, FI_EIO, ULC_OK);
        return;
    }
    if (state.response.what() != RmaResult::kGo) {
        settle(operation, fi_error_of(state.response.what()), ULC_OK);
        return;
    }
    Operation& data = *std::exchange(state.other, nullptr);
    ++state.awaited;
    send_data(data);
    if (const int error = await_response(operation); error != ULC_OK)
        settle(operation, ofi::fi_error_of(error), error);
    else
        endpoint_.keep(operation);
}

void Rma::send_data(Operation& data) noexcept {
    const Operation& access = *data.rma.other;
    const int error =
        ulc_sendv(access.ep, number_of(access.peer), write_data_tag(access.rma.number),
                  access.pieces + 1, access.count - 1, 0, &data.request);
    if (error == ULC_OK) {
        endpoint_.keep(data);
    } else if (error == ULC_ERR_AGAIN) {
        endpoint_.stuck_.append(data);
    } else {
        Operation& owner = *data.rma.other;
        endpoint_.pool_.release(data);
        settle(owner, ofi::fi_error_of(error), error);
    }
}

void Rma::settle(Operation& operation, int fi_error, int ulc_error) noexcept {
    RmaState& state = operation.rma;
    if (fi_error != 0 && state.fi_error == 0) {
        state.fi_error = fi_error;
        state.ulc_error = ulc_error;
    }
    if (--state.awaited > 0) return;
    if (state.other != nullptr) endpoint_.pool_.release(*state.other);
    --under_way_;
    on_links_ -= is_stranger(operation.peer) ? 1 : 0;
    Counter* counter = returns_data(state.kind) ? read_counter_ : write_counter_;
    CompletionQueue* queue = endpoint_.sends_;
    if (state.fi_error != 0) {
        if (counter != nullptr) ++counter->errors;
        fi_cq_err_entry entry{};
        entry.op_context = operation.context;
        entry.flags = operation.flags;
        entry.err = state.fi_error;
        entry.prov_errno = state.ulc_error;
        if (queue != nullptr) queue->add_error(entry);
    } else {
        if (counter != nullptr) ++counter->count;
        if (queue != nullptr && operation.report)
            queue->add({operation.context, operation.flags, operation.capacity, nullptr, 0, 0,
                        FI_ADDR_NOTAVAIL});
    }
    endpoint_.pool_.release(operation);
}

void Rma::count_by(Counter& counter, std::uint64_t flags) noexcept {
    if ((flags & FI_READ) != 0) read_counter_ = &counter;
    if ((flags & FI_WRITE) != 0) write_counter_ = &counter;
    if ((flags & FI_REMOTE_READ) != 0) remote_read_counter_ = &counter;
    if ((flags & FI_REMOTE_WRITE) != 0) remote_write_counter_ = &counter;
}

void Rma::detach_counters() noexcept {
    for (Counter* counter :
         {read_counter_, write_counter_, remote_read_counter_, remote_write_counter_})
        if (counter != nullptr) counter->detach(endpoint_);
}

}  // namespace ulc::ofi
