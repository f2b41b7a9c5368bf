// A message that has arrived, or is arriving, and is not in the application's hands.
//
//   unexpected   in the lists `all` and `by_source` until a receive or the application takes it
//   claimed      the application's, by its address (ulc_message), until received or discarded
//   open         in the list `open` of its source until its last chunk is there
// Whole messages that meet a posted receive never become an Arrival.
#pragma once

#include <cstdint>

#include "abi/records.h"
#include "client/list.h"
#include "client/request.h"

namespace ulc::client {

enum class Storage : std::uint8_t {
    kInline,  ///< inline_octets
    kArena,   ///< a block of the rx arena, given back afterwards
    kHeap,    ///< malloc'ed, grows with the chunks
    kNone,    ///< chunks go straight to the request's buffer
};

struct Arrival;

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
    Filed filed[kFilings];
    Request* request;  ///< the receive that matched it
    unsigned char* data;
    std::uint64_t tag;
    std::uint64_t length;         ///< of the whole message
    std::uint64_t received;       ///< octets so far
    std::uint64_t heap_capacity;  ///< of data, kHeap
    std::uint32_t stream;         ///< own rank or group handle
    std::uint32_t arena_offset;   ///< kArena
    std::uint16_t source;
    Storage storage;
    bool whole;  ///< nothing more comes
    bool claimed;
    bool discarded;      ///< the rest of it is thrown away
    std::int32_t error;  ///< ULC_ERR_… if it was claimed and broke off
    bool unexpected;     ///< in `all` and `by_source`
    bool placed;         ///< the engine copies it into the request's buffer
    unsigned char inline_octets[abi::kInlineOctetsMax];
};

/// The group that a message was multicast to; 0: it was sent to this rank alone.
inline std::uint32_t group_of(std::uint32_t stream) noexcept {
    constexpr std::uint32_t kGroupBit = 1U << 31;
    return (stream & kGroupBit) != 0 ? stream : 0;
}

using AllArrivals = List<Arrival, &Arrival::all>;
using SourceArrivals = List<Arrival, &Arrival::by_source>;
using OpenArrivals = List<Arrival, &Arrival::open>;

}  // namespace ulc::client
