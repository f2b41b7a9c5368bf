// SPDX-License-Identifier: BSD-3-Clause
// The content of a caller's ulc_request: one operation under way. The request is the list node,
// so starting an operation allocates nothing.
//
//   send      kQueued ──all bytes handed over──▶ kDone    (from ulc_alloc() memory: kSubmitted in
//                                                          between, until the engine has copied it)
//             kQueued ──announcement handed over──▶ kAnnounced ──asked for──▶ kQueued, the rest
//             kQueued ──to be delivered──▶ kSubmitted ──acknowledged──▶ kDone
//   receive   kPosted ──first chunk──▶ kArriving ──last──▶ kDone    (whole messages: to kDone)
//   group     kForming ──all members registered, or one failed──▶ kDone
//
// A request that its caller collects is put into a list of its endpoint when it becomes kDone.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/tables/list.h"
#include "client/p2p/pieces.h"
#include "client/ulc.h"

namespace ulc::client {

enum class RequestState : std::uint8_t {
    kQueued = 1,  ///< send: in the pending list, some octets may have been handed over
    kSubmitted,   ///< send: with the engine, which reads the caller's arena memory
    kAnnounced,   ///< send: waits for the receiver's Ask (rendezvous.h)
    kPosted,      ///< receive: nothing has matched
    kArriving,    ///< receive: matched, chunks are coming
    kForming,     ///< group creation
    kDone,
};

struct Collector;

struct Request {
    Links<Request> links;
    Links<Request> hashed;  ///< receive: matching.h; done: in the collector's list
    RequestState state;
    bool detached;  ///< owned by libulc (a send without a request): freed when done
    union {
        bool has_subset;  ///< send
        bool many;        ///< receive: takes one message after the other, each into a part
    };
    std::uint8_t shape;  ///< receive: matching.h
    std::int32_t error;
    std::uint64_t tag;
    std::uint64_t mask;  ///< receive
    union {
        const unsigned char* payload;  ///< send
        unsigned char* buffer;         ///< receive
        ulc_part_giver give;           ///< receive of many messages
    };
    const ulc_piece* pieces;  ///< nullptr: all of it is at payload or buffer
    std::uint64_t capacity;   ///< receive: of buffer; send: octets of the message
    std::uint64_t length;     ///< receive: octets of the message; send: octets handed over
    union {
        std::uint64_t subset;  ///< send
        std::uint64_t order;   ///< receive: when it was posted
    };
    std::uint32_t stream;  ///< send: destination; receive and group: the group
    std::uint16_t from;    ///< receive: as asked
    std::uint16_t source;  ///< receive: as matched
    union {
        void* owner;           ///< detached: the block that it lies in
        Collector* collector;  ///< not detached: where to tell that it is done; nullptr: nowhere
    };
    std::uint8_t piece_count;
    bool delivered;    ///< send: done when every receiver's engine has it
    bool matched;      ///< send: to be announced, and done when a receive has matched as well
    bool announces;    ///< send: the announcement is due, the payload is not
    std::uint32_t id;  ///< send: of the announcement

    /// Sets the place of the payload.
    void lies_in(const Pieces& where) noexcept {
        buffer = where.base;
        pieces = where.list;
        piece_count = static_cast<std::uint8_t>(where.count);
        capacity = where.length;
    }
    /// Leaves out the first octets of what is to be sent: of pieces, whole ones.
    void skip(std::uint64_t octets) noexcept {
        if (pieces == nullptr) {
            payload += octets;
            return;
        }
        for (; octets > 0; ++pieces, --piece_count) {
            ULC_CHECK(piece_count > 0 && pieces->length <= octets);
            octets -= pieces->length;
        }
        if (piece_count > 1) return;
        payload = static_cast<const unsigned char*>(pieces->base);
        pieces = nullptr;
        piece_count = 0;
    }
    /// Copies [at, at + octets) of what is to be sent to `to`.
    void read(std::uint64_t at, void* to, std::uint64_t octets) const noexcept {
        if (pieces == nullptr) {
            std::memcpy(to, payload + at, octets);
        } else {
            gather(pieces, piece_count, at, static_cast<unsigned char*>(to), octets);
        }
    }

    /// Starts the life of a caller's request.
    static Request& begin(ulc_request* memory, RequestState state) noexcept {
        auto* request = ::new (static_cast<void*>(memory)) Request{};
        request->state = state;
        return *request;
    }
    /// Starts the life of a send that is done already. Sets only what a done request tells.
    static void begin_done(ulc_request* memory, std::uint32_t stream, std::uint64_t tag,
                           std::uint64_t length) noexcept {
        auto* request = ::new (static_cast<void*>(memory)) Request;
        request->state = RequestState::kDone;
        request->detached = false;
        request->error = ULC_OK;
        request->tag = tag;
        request->length = length;
        request->stream = stream;
        request->source = 0;
        request->collector = nullptr;
    }
    static Request& of(ulc_request* memory) noexcept {
        return *std::launder(reinterpret_cast<Request*>(memory));
    }
    static ulc_request* memory_of(Request& request) noexcept {
        return std::launder(reinterpret_cast<ulc_request*>(&request));
    }
    void done(int with_error) noexcept {
        error = with_error;
        state = RequestState::kDone;
        if (!detached && collector != nullptr) tell_collector();
    }
    /// The engine has taken the whole payload of a send.
    void handed_over() noexcept {
        if (delivered)
            state = RequestState::kSubmitted;
        else
            done(matched ? ULC_ERR_CLOSED : ULC_OK);  // sent at a leave, without a match
    }
    void tell_collector() noexcept;
};
static_assert(sizeof(Request) <= sizeof(ulc_request));
static_assert(alignof(Request) <= alignof(ulc_request));

using RequestList = List<Request, &Request::links>;

/// The requests that ulc_collect() named and that are done, in the order in which they ended.
struct Collector {
    List<Request, &Request::hashed> ended;

    /// Puts the request into the list, at once or when it is done. Returns false if it is collected
    /// already.
    [[nodiscard]] bool add(Request& request) noexcept {
        if (request.collector != nullptr) return false;
        request.collector = this;
        if (request.state == RequestState::kDone) request.tell_collector();
        return true;
    }
    /// Takes over the requests of another list.
    void take_from(Collector& other) noexcept {
        while (Request* request = other.ended.pop_front())
            ended.push_back(*request);
    }
};

inline void Request::tell_collector() noexcept { collector->ended.push_back(*this); }

}  // namespace ulc::client
