// SPDX-License-Identifier: BSD-3-Clause
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "ofi/endpoint.h"
#include "ofi/rma/atomics.h"
#include "ofi/rma/rma.h"

namespace ulc::ofi {
namespace {

constexpr std::size_t kSlotBytes = sizeof(RmaRequest) + kRmaInlineMax;

/// Time in which the data of a granted write must come. An initiator sends them when its program
/// calls libfabric next, which may compute for long before.
constexpr Nanos kGrantMax = 3600 * kSecond;
constexpr Nanos kNanosPerByte = 1000;  ///< added for each byte of the data: 1 MB/s

/// Returns the right that a region must grant.
std::uint64_t right_for(const RmaRequest& request) noexcept {
    switch (request.what()) {
        case RmaKind::kWrite:
        case RmaKind::kLongWrite:
        case RmaKind::kAtomic:
            return FI_REMOTE_WRITE;
        case RmaKind::kRead:
            return FI_REMOTE_READ;
        case RmaKind::kFetch:
        case RmaKind::kCompare:
            break;
    }
    return request.op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/// True if an atomic operation is there, of whole elements, with its values.
bool is_there(const RmaRequest& request) noexcept {
    return is_there(request.what(), request.datatype, request.op) &&
           request.length % element_bytes(request.datatype) == 0 &&
           request.operands == operands_of(request.what(), request.op);
}

}  // namespace

Operation* Rma::make_slot(ulc_endpoint* ep) noexcept {
    Operation* slot = endpoint_.pool_.allocate();
    if (slot == nullptr) return nullptr;
    slot->copy = new (std::nothrow) unsigned char[kSlotBytes];
    if (slot->copy == nullptr) {
        endpoint_.pool_.release(*slot);
        return nullptr;
    }
    slot->kind = Operation::Kind::kRmaServe;
    slot->report = false;
    slot->context = nullptr;
    slot->ep = ep;
    slot->peer = ULC_RANK_ANY;
    slot->tag = kRmaTag;
    slot->mask = ~std::uint64_t{0};
    slot->pieces[0] = {slot->copy, kSlotBytes};
    slot->count = 1;
    return slot;
}

int Rma::defer_slots(OperationList& deferred) noexcept {
    for (unsigned i = 0; serves_ && i < kSlots; ++i) {
        Operation* slot = make_slot(nullptr);
        if (slot == nullptr) return -FI_ENOMEM;
        deferred.append(*slot);
    }
    return 0;
}

void Rma::serve_strangers() noexcept {
    if (!serves_ || serves_strangers_) return;
    serves_strangers_ = true;
    for (unsigned i = 0; i < kSlots; ++i) {
        Operation* slot = make_slot(endpoint_.peers().strangers().ep());
        if (slot == nullptr || !post(*slot)) return;
    }
}

bool Rma::post(Operation& slot) noexcept {
    const int error =
        ulc_receivev(slot.ep, ULC_RANK_ANY, slot.tag, slot.mask, slot.pieces, 1, &slot.request);
    if (error != ULC_OK) {
        endpoint_.pool_.release(slot);
        return false;
    }
    endpoint_.keep(slot);
    return true;
}

void Rma::finish(Operation& operation, const ulc_status& status) noexcept {
    switch (operation.kind) {
        case Operation::Kind::kRma:
            take_response(operation, status);
            return;
        case Operation::Kind::kRmaData: {
            Operation& access = *operation.rma.other;
            endpoint_.pool_.release(operation);
            settle(access, fi_error_of(status.error), status.error);
            return;
        }
        case Operation::Kind::kRmaServe:
            if (status.error != ULC_OK && status.error != ULC_ERR_TRUNCATED) {
                endpoint_.pool_.release(operation);
                return;
            }
            operation.peer = endpoint_.source_in(operation.ep, status.source);
            operation.capacity = status.length;
            take_request(operation);
            serve_waiting();
            return;
        case Operation::Kind::kRmaTake:
            take_data(operation, status);
            return;
        default:  // kRmaReply
            let_go(operation);
            endpoint_.pool_.release(operation);
            return;
    }
}

void Rma::take_request(Operation& slot) noexcept try {
    RmaRequest request{};
    std::memcpy(&request, slot.copy, std::min(slot.capacity, sizeof request));
    bool valid = slot.capacity <= kSlotBytes && request.is_valid(slot.capacity);
#ifdef ULC_PLANTED_BUG  // the fuzzer must find what this forgets (tests/fuzz/)
    if (request.what() == RmaKind::kWrite) valid = slot.capacity >= sizeof request;
#endif
    if (valid && is_stranger(slot.peer)) {
        waiting_.append(slot);
        return;
    }
    Source& source = sources_[slot.peer];
    const auto gap = static_cast<std::uint16_t>(request.order - source.expected);
    if (!valid || (gap != 0 && !hold_request(slot, gap))) {
        endpoint_.dropped_.add(HeaderFault::kRequest, endpoint_.peers().own_rank(),
                               number_of(slot.peer));
        static_cast<void>(post(slot));
        return;
    }
    if (gap != 0) return;
    ++source.expected;
    waiting_.append(slot);
    for (Operation* one = source.held.first(); one != nullptr;) {
        Operation& held = *one;
        one = one->next;
        std::memcpy(&request, held.copy, sizeof request);
        if (request.order != source.expected) continue;
        source.held.remove(held);
        ++source.expected;
        waiting_.append(held);
        one = source.held.first();
    }
} catch (const std::bad_alloc&) {
    static_cast<void>(post(slot));
}

bool Rma::hold_request(Operation& slot, std::uint16_t gap) noexcept {
    Source& source = sources_.find(slot.peer)->second;
    if (gap >= kRmaHeldMax || source.held.size() >= kRmaHeldMax) return false;
    // Another slot takes its place, and it is not posted again.
    Operation* other = make_slot(slot.ep);
    if (other == nullptr || !post(*other)) return false;
    slot.taken = true;
    source.held.append(slot);
    return true;
}

void Rma::serve_waiting() noexcept {
    while (!waiting_.empty() && stuck_replies_ == 0) {
        Operation& slot = *waiting_.first();
        waiting_.remove(slot);
        RmaRequest request;
        std::memcpy(&request, slot.copy, sizeof request);
        serve(request, slot.copy + sizeof request, slot.ep, slot.peer);
        if (slot.taken)
            endpoint_.pool_.release(slot);
        else
            static_cast<void>(post(slot));
    }
}

void Rma::serve(const RmaRequest& request, unsigned char* behind, ulc_endpoint* ep,
                Rank source) noexcept {
    const std::uint64_t length = request.length;
    RegionTable& regions = endpoint_.domain.regions;
    Region* region = nullptr;
    unsigned char* first = nullptr;
    const std::lock_guard hold_regions(regions.mutex);
    RmaResult result =
        regions.find(request.key, request.address, length, right_for(request), region, first);
    if (result == RmaResult::kDone && is_atomic(request.what()) && !is_there(request))
        result = RmaResult::kNoSuchOp;
    if (result != RmaResult::kDone) {
        refuse(result, request.number, ep, source);
        return;
    }
    switch (request.what()) {
        case RmaKind::kWrite:
            if (length > 0) std::memcpy(first, behind, length);
            applied(*region, true, request.has_data(), request.data, length, source);
            respond(RmaResult::kDone, request.number, ep, source);
            return;
        case RmaKind::kLongWrite:
            result = start_take(request, *region, first, ep, source);
            break;
        case RmaKind::kRead:
            if (length > kRmaInlineMax) {
                result = start_give(request, *region, first, ep, source);
                break;
            }
            applied(*region, false, false, 0, length, source);
            respond(RmaResult::kDone, request.number, ep, source, first, length);
            return;
        case RmaKind::kAtomic:
        case RmaKind::kFetch:
        case RmaKind::kCompare:
            serve_atomic(request, first, behind, *region, ep, source);
            return;
    }
    if (result != RmaResult::kDone) refuse(result, request.number, ep, source);
}

void Rma::serve_atomic(const RmaRequest& request, unsigned char* first,
                       const unsigned char* operands, Region& region, ulc_endpoint* ep,
                       Rank source) noexcept {
    unsigned char old[kAtomicBytesMax];
    const std::size_t bytes = request.length;
    const bool returns = returns_data(request.what());
    apply_atomic(request.datatype, request.op, bytes / element_bytes(request.datatype), first,
                 operands, returns ? old : nullptr);
    applied(region, request.op != FI_ATOMIC_READ, false, 0, bytes, source);
    respond(RmaResult::kDone, request.number, ep, source, old, returns ? bytes : 0);
}

RmaResult Rma::start_take(const RmaRequest& request, Region& region, unsigned char* first,
                          ulc_endpoint* ep, Rank source) noexcept {
    Operation* take = endpoint_.pool_.allocate();
    if (take == nullptr) return RmaResult::kNoMemory;
    take->rma = {};
    take->kind = Operation::Kind::kRmaTake;
    take->report = false;
    take->context = nullptr;
    take->ep = ep;
    take->peer = source;
    take->capacity = request.length;
    take->flags = request.has_data() ? FI_REMOTE_CQ_DATA : 0;
    take->rma.number = request.number;
    take->rma.data = request.data;
    take->pieces[0] = {first, take->capacity};
    take->count = 1;
    if (!hold(region, source)) {
        endpoint_.pool_.release(*take);
        return RmaResult::kTooMany;
    }
    take->rma.region = &region;
    take->rma.held = true;
    const int error = ulc_receivev(ep, number_of(source), write_data_tag(request.number),
                                   ~std::uint64_t{0}, take->pieces, 1, &take->request);
    if (error != ULC_OK) {
        let_go(*take);
        endpoint_.pool_.release(*take);
        return RmaResult::kNoMemory;
    }
    take->rma.deadline = now() + kGrantMax + static_cast<Nanos>(request.length) * kNanosPerByte;
    ++grants_;
    endpoint_.keep(*take);
    respond(RmaResult::kGo, request.number, ep, source);
    return RmaResult::kDone;
}

void Rma::take_data(Operation& operation, const ulc_status& status) noexcept {
    const Rank source = operation.peer;
    const bool arrived = status.error == ULC_OK || status.error == ULC_ERR_TRUNCATED;
    if (operation.rma.region == nullptr) {  // closed meanwhile
        if (arrived && !operation.rma.refused)
            refuse(RmaResult::kNoKey, operation.rma.number, operation.ep, source);
        let_go(operation);
        endpoint_.pool_.release(operation);
        return;
    }
    Region& region = *operation.rma.region;
    --grants_;
    if (arrived && status.length == operation.capacity) {
        applied(region, true, (operation.flags & FI_REMOTE_CQ_DATA) != 0, operation.rma.data,
                operation.capacity, source);
        respond(RmaResult::kDone, operation.rma.number, operation.ep, source);
    } else if (arrived) {
        refuse(RmaResult::kMalformed, operation.rma.number, operation.ep, source);
    }
    let_go(operation);
    endpoint_.pool_.release(operation);
}

RmaResult Rma::start_give(const RmaRequest& request, Region& region, unsigned char* first,
                          ulc_endpoint* ep, Rank source) noexcept {
    Operation* reply = endpoint_.pool_.allocate();
    if (reply == nullptr) return RmaResult::kNoMemory;
    reply->rma = {};
    reply->kind = Operation::Kind::kRmaReply;
    reply->report = false;
    reply->context = nullptr;
    reply->ep = ep;
    reply->peer = source;
    reply->rma.number = request.number;
    if (!hold(region, source)) {
        endpoint_.pool_.release(*reply);
        return RmaResult::kTooMany;
    }
    reply->rma.region = &region;
    reply->rma.held = true;
    reply->rma.response = {RmaResponse::kVersion, static_cast<std::uint8_t>(RmaResult::kDone), 0};
    reply->pieces[0] = {&reply->rma.response, sizeof reply->rma.response};
    reply->pieces[1] = {first, static_cast<std::size_t>(request.length)};
    reply->count = 2;
    applied(region, false, false, 0, request.length, source);
    send_reply(*reply);
    return RmaResult::kDone;
}

void Rma::refuse(RmaResult why, std::uint64_t number, ulc_endpoint* ep, Rank source) noexcept {
    refused_.add(why, endpoint_.peers().own_rank(), number_of(source));
    respond(why, number, ep, source);
}

void Rma::respond(RmaResult result, std::uint64_t number, ulc_endpoint* ep, Rank source,
                  const void* data, std::size_t bytes) noexcept {
    RmaResponse response{RmaResponse::kVersion, static_cast<std::uint8_t>(result), 0};
    const ulc_piece pieces[] = {{&response, sizeof response}, {const_cast<void*>(data), bytes}};
    const unsigned count = bytes > 0 ? 2 : 1;
    // A source that is gone needs no response.
    if (ulc_sendv(ep, number_of(source), response_tag(number), pieces, count, 0, nullptr) !=
        ULC_ERR_AGAIN)
        return;
    Operation* reply = endpoint_.pool_.allocate();
    unsigned char* copy = new (std::nothrow) unsigned char[sizeof response + bytes];
    if (reply == nullptr || copy == nullptr) {  // its source waits until one of the two ends
        if (reply != nullptr) endpoint_.pool_.release(*reply);
        delete[] copy;
        return;
    }
    std::memcpy(copy, &response, sizeof response);
    if (bytes > 0) std::memcpy(copy + sizeof response, data, bytes);
    reply->rma = {};
    reply->kind = Operation::Kind::kRmaReply;
    reply->report = false;
    reply->context = nullptr;
    reply->ep = ep;
    reply->peer = source;
    reply->copy = copy;
    reply->rma.number = number;
    reply->pieces[0] = {copy, sizeof response + bytes};
    reply->count = 1;
    endpoint_.stuck_.append(*reply);
    ++stuck_replies_;
}

void Rma::send_reply(Operation& reply) noexcept {
    const int error = ulc_sendv(reply.ep, number_of(reply.peer), response_tag(reply.rma.number),
                                reply.pieces, reply.count, 0, &reply.request);
    if (error == ULC_OK) {
        endpoint_.keep(reply);
    } else if (error == ULC_ERR_AGAIN) {
        endpoint_.stuck_.append(reply);
        ++stuck_replies_;
    } else {
        let_go(reply);
        endpoint_.pool_.release(reply);
    }
}

void Rma::send_again(Operation& operation) noexcept {
    if (operation.kind == Operation::Kind::kRmaData) {
        send_data(operation);
        return;
    }
    --stuck_replies_;
    send_reply(operation);
    serve_waiting();
}

void Rma::applied(Region& region, bool wrote, bool has_data, std::uint64_t data,
                  std::uint64_t length, Rank source) noexcept {
    for (Counter* counter : {wrote ? remote_write_counter_ : remote_read_counter_,
                             wrote ? region.writes.load() : region.reads.load()})
        if (counter != nullptr) ++counter->count;
    if (has_data && endpoint_.receives_ != nullptr)
        endpoint_.receives_->add({nullptr, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, length,
                                  nullptr, data, 0, endpoint_.peers().address_of(source)});
}

}  // namespace ulc::ofi
