// SPDX-License-Identifier: BSD-3-Clause
// Memory that operations under way use, and that is given back meanwhile.
//
//   a write is late         its memory is not used any more, as if its region were closed.
//   a region is closed      granted writes: the receive is taken back, the source is refused, and
//                           its data are dropped when they come. Replies to reads: the bytes that
//                           are still to be sent are sent from a copy.
//   local memory is closed  answers to reads and fetches: the receive is taken back. The operation
//                           completes with its answer, whose data are dropped and counted.
//
// No peer writes to memory after fi_close(). A peer that takes none of the data that it asked for
// delays fi_close() by 10 s (kCloseMax in memory.cc) if an embedded engine reads the region itself
// or if the replies under way exceed kCopiedMax. fi_close() then fails, as it does if an embedded
// engine is stuck with a receive, and the memory stays in use.
#include <cstring>
#include <new>

#include "client/ulc_memory.h"
#include "ofi/endpoint.h"
#include "ofi/rma/rma.h"
#include "ofi/say.h"

namespace ulc::ofi {
namespace {

/// Bytes of replies that one fi_close() copies at most.
constexpr std::size_t kCopiedMax = 64U << 20;

std::size_t bytes_of(const Operation& operation) noexcept {
    std::size_t bytes = 0;
    for (unsigned i = 0; i < operation.count; ++i)
        bytes += operation.pieces[i].length;
    return bytes;
}

}  // namespace

bool Rma::hold(Region& region, Rank source) noexcept try {
    std::size_t& held = held_[source];
    if (held >= kRmaHeldMax) return false;
    ++held;
    ++region.users;
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

void Rma::leave_region(Operation& operation) noexcept {
    if (Region* region = std::exchange(operation.rma.region, nullptr); region != nullptr)
        --region->users;
}

void Rma::let_go(Operation& operation) noexcept {
    leave_region(operation);
    if (!std::exchange(operation.rma.held, false)) return;
    const auto known = held_.find(operation.peer);
    if (--known->second == 0) held_.erase(known);
}

void Rma::end() noexcept {
    for (OperationList* list : {&endpoint_.operations_, &endpoint_.stuck_}) {
        for (Operation* one = list->first(); one != nullptr; one = one->next) {
            if (one->kind == Operation::Kind::kRmaTake || one->kind == Operation::Kind::kRmaReply)
                let_go(*one);
        }
    }
}

void Rma::withdraw(Operation& take, RmaResult why) noexcept {
    Region* region = take.rma.region;
    leave_region(take);
    --grants_;
    if (ulc_cancel(take.ep, &take.request) == ULC_OK) {
        refuse(why, take.rma.number, take.ep, take.peer);
        take.rma.refused = true;
        // A receive without memory takes the data, so that they do not wait for another one.
        take.count = 0;
        const int error =
            ulc_receivev(take.ep, number_of(take.peer), write_data_tag(take.rma.number),
                         ~std::uint64_t{0}, nullptr, 0, &take.request);
        if (error == ULC_OK) {
            static_cast<void>(ulc_collect(take.ep, &take.request));
            return;
        }
    } else if (const int error = ulc_abandon(take.ep, &take.request); error == ULC_OK) {
        refuse(why, take.rma.number, take.ep, take.peer);
    } else {
        // All data are there, and take_data() finds no region; or the engine still has the memory.
        if (error != ULC_ERR_TIMEOUT) return;
        take.rma.region = region;
        ++region->users;
        ++grants_;
        return;
    }
    endpoint_.operations_.remove(take);
    let_go(take);
    endpoint_.pool_.release(take);
}

void Rma::refuse_late(Nanos at) noexcept {
    for (Operation* one = endpoint_.operations_.first(); one != nullptr;) {
        Operation& operation = *one;
        one = one->next;
        const bool granted =
            operation.kind == Operation::Kind::kRmaTake && operation.rma.region != nullptr;
        if (granted && at >= operation.rma.deadline) withdraw(operation, RmaResult::kLate);
    }
}

void Rma::detach_reply(Operation& reply, std::size_t& budget) noexcept {
    const std::size_t bytes = bytes_of(reply);
    if (bytes > budget) return;
    auto* copy = new (std::nothrow) unsigned char[bytes];
    if (copy == nullptr) return;
    if (ulc_move_payload(reply.ep, &reply.request, copy, bytes) != ULC_OK) {
        delete[] copy;  // it is sent, or the engine reads the region itself
        return;
    }
    budget -= bytes;
    reply.copy = copy;
    leave_region(reply);
}

void Rma::forget(Region& region) noexcept {
    std::size_t budget = kCopiedMax;
    for (Operation* one = endpoint_.operations_.first(); one != nullptr;) {
        Operation& operation = *one;
        one = one->next;
        const bool serves = operation.kind == Operation::Kind::kRmaTake ||
                            operation.kind == Operation::Kind::kRmaReply;
        if (!serves || operation.rma.region != &region) continue;
        if (operation.kind == Operation::Kind::kRmaTake)
            withdraw(operation, RmaResult::kNoKey);
        else
            detach_reply(operation, budget);
    }
    for (Operation* one = endpoint_.stuck_.first(); one != nullptr;) {
        Operation& reply = *one;
        one = one->next;
        if (reply.kind != Operation::Kind::kRmaReply || reply.rma.region != &region) continue;
        endpoint_.stuck_.remove(reply);
        --stuck_replies_;
        let_go(reply);
        refuse(RmaResult::kNoKey, reply.rma.number, reply.ep, reply.peer);
        endpoint_.pool_.release(reply);
    }
}

bool Rma::forget_local(const void* memory) noexcept {
    bool all = true;
    for (Operation* one = endpoint_.operations_.first(); one != nullptr;) {
        Operation& operation = *one;
        one = one->next;
        if (operation.kind != Operation::Kind::kRma || operation.rma.memory != memory) continue;
        operation.rma.memory = nullptr;
        if (ulc_cancel(operation.ep, &operation.request) == ULC_OK) {
            operation.count = 1;  // the response; its data are cut off
            operation.rma.given_back = true;
            ++given_back_;
            if (await_response(operation) == ULC_OK) {
                static_cast<void>(ulc_collect(operation.ep, &operation.request));
                continue;
            }
        } else {
            const int error = ulc_abandon(operation.ep, &operation.request);
            if (error == ULC_ERR_TIMEOUT) {
                operation.rma.memory = memory;
                all = false;
            }
            if (error != ULC_OK) continue;  // otherwise the answer is there
            ++given_back_;
        }
        endpoint_.operations_.remove(operation);
        settle(operation, 0, ULC_OK);
    }
    return all;
}

void Rma::print_refused(std::uint16_t rank) const noexcept {
    refused_.print_total(rank);
    if (given_back_ > 0)
        say("rank %u closed memory while %llu of its reads into it were under way: the answers "
            "were dropped. Close memory after its operations are complete.",
            unsigned{rank}, static_cast<unsigned long long>(given_back_));
}

}  // namespace ulc::ofi
