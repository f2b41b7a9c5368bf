// SPDX-License-Identifier: BSD-3-Clause
// A message that has arrived, or is arriving, and is not in the application's hands.
//
//   unexpected   in the lists `all` and `by_source` until a receive or the application takes it
//   claimed      the application's, by its address (ulc_message), until received or discarded
//   open         in the list `open` of its source until its last chunk is there
//   announced    in the list `announced` or `asked` of its source until its rest comes
// Whole messages that meet a posted receive never become an Arrival.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "abi/placement.h"
#include "abi/records.h"
#include "base/group_handle.h"
#include "base/tables/list.h"
#include "client/p2p/request.h"
#include "client/ulc.h"

namespace ulc::client {

enum class Storage : std::uint8_t {
    kFree,    ///< this is no message
    kInline,  ///< inline_octets
    kArena,   ///< a block of the rx arena, given back afterwards
    kHeap,    ///< malloc'ed, grows with the chunks
    kNone,    ///< chunks go straight to the request's buffer
};

/// The handler that the application sets for events of no request (ulc_set_error_handler).
struct ErrorHandler {
    ulc_error_handler call = nullptr;
    void* context = nullptr;

    /// Calls the handler, if there is one.
    void report(int error, std::uint16_t source, std::uint64_t count) const {
        if (call != nullptr) call(context, error, source, count);
    }
};

struct Arrival;

/// The list of its source that a message is in, by its links `open`.
enum class Listed : std::uint8_t {
    kNot,
    kOpen,       ///< chunks are coming
    kAnnounced,  ///< no receive has taken it
    kAsked,      ///< a receive waits for the rest
};

/// A message's place in one of the hash tables of matching.h.
struct Filed {
    Links<Filed> links;
    Arrival* arrival;
};
inline constexpr unsigned kFilings = 4;

struct Arrival {
    Links<Arrival> all;
    Links<Arrival> by_source;
    Links<Arrival> open;
    Links<Arrival> asking;
    Filed filed[kFilings];
    Request* request;  ///< the receive that matched it
    unsigned char* data;
    std::uint64_t tag;
    std::uint64_t length;         ///< bytes of the whole message
    std::uint64_t received;       ///< octets so far
    std::uint64_t until;          ///< bytes of the message when what is open now ends
    std::uint64_t wanted;         ///< announced, asked: bytes that the receive takes
    std::uint64_t counted;        ///< bytes that count for its sender
    std::uint64_t heap_capacity;  ///< bytes allocated at data, kHeap
    std::uint32_t stream;         ///< own rank or group handle
    std::uint32_t arena_offset;   ///< kArena
    std::uint32_t id;             ///< announced: the sender's
    std::uint16_t source;
    Storage storage;
    bool whole;  ///< nothing more comes
    bool claimed;
    bool discarded;      ///< the rest of it is thrown away
    std::int32_t error;  ///< ULC_ERR_… if it was claimed and broke off
    bool unexpected;     ///< in `all` and `by_source`
    bool placed;         ///< the engine copies it into the request's buffer
    bool announced;      ///< its rest comes when it is asked for
    bool asked;          ///< the rest is asked for, or comes unasked
    bool ask_due;        ///< in the inbox's list of those to ask for
    bool retired;        ///< only its Ask is left to be sent
    bool awaited;        ///< the application waits for all of it: its data are in no share
    Listed listed;       ///< by `open`
    unsigned char inline_octets[abi::kInlineOctetsMax];
};

inline bool has(const abi::CompletionRecord& record, abi::CompletionFlag flag) noexcept {
    return (record.flags & flag) != 0;
}

/// Returns the bytes of the whole message that begins with this record.
inline std::uint64_t total_of(const abi::CompletionRecord& record) noexcept {
    return has(record, abi::kCompleteInline) ? record.inline_length
                                             : record.body.block.message_length;
}

/// The result of taking a record of a message.
enum class Taken : std::uint8_t {
    kYes,
    kStalled,  ///< not taken for lack of memory: offer it again
    kCorrupt,  ///< no correct engine writes it
};

/// The group that a message was multicast to; 0: it was sent to this rank alone.
inline std::uint32_t group_of(std::uint32_t stream) noexcept {
    return is_group(stream) ? stream : 0;
}

using AllArrivals = List<Arrival, &Arrival::all>;
using SourceArrivals = List<Arrival, &Arrival::by_source>;
using OpenArrivals = List<Arrival, &Arrival::open>;
using AskingArrivals = List<Arrival, &Arrival::asking>;

/// Copies the part of [at, at + length) of the message that fits into the receive's buffer.
inline void copy_into(Request& request, std::uint64_t at, const unsigned char* payload,
                      std::uint64_t length) noexcept {
    if (at >= request.capacity || length == 0) return;
    if (request.pieces == nullptr) {
        const std::uint64_t part = std::min(length, request.capacity - at);
        if (part <= kCopyShortMax) {
            copy_short(request.buffer + at, payload, part);
        } else {
            std::memcpy(request.buffer + at, payload, part);
        }
    } else {
        scatter(request.pieces, request.piece_count, at, payload, length);
    }
}

/// Returns the buffer of a receive from byte `skip` on.
inline abi::Place place_of(const Request& request, std::uint64_t skip) noexcept {
    static_assert(sizeof(abi::Piece) == sizeof(ulc_piece) &&
                  offsetof(abi::Piece, length) == offsetof(ulc_piece, length) &&
                  abi::kPiecesMax == kPiecesMax);
    return {.base = reinterpret_cast<std::byte*>(request.buffer),
            .pieces = reinterpret_cast<const abi::Piece*>(request.pieces),
            .count = request.piece_count,
            .skip = skip};
}

/// Sets the message of a receive.
inline void describe(Request& request, std::uint16_t source, std::uint32_t stream,
                     std::uint64_t tag) noexcept {
    request.source = source;
    request.stream = group_of(stream);
    request.tag = tag;
}

/// Makes the rest of a message that has begun the receive's.
inline void join(Arrival& arrival, Request& request) noexcept {
    arrival.request = &request;
    request.state = RequestState::kArriving;
    describe(request, arrival.source, arrival.stream, arrival.tag);
}

/// Tells whether the rest of an announced message may have that length. It goes to the end of what
/// was asked for, or, if it came unasked, of the message.
[[nodiscard]] inline bool fits_rest(const Arrival& arrival, std::uint64_t octets) noexcept {
    if (octets == 0 || octets > arrival.length - arrival.received) return false;
    const std::uint64_t end = arrival.received + octets;
    return end == arrival.length || (arrival.asked && end == arrival.wanted);
}

}  // namespace ulc::client
