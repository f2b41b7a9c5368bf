// SPDX-License-Identifier: BSD-3-Clause
// The messages by which an endpoint writes, reads and changes memory of another one (fi_rma.h,
// fi_atomic.h). The target checks the key, the range and the access right of each request.
//
//   initiator                                      target
//   RmaRequest, data of a short write or operands ──▶ applies it
//                             ◀── RmaResponse kDone, data of a read or old values
//   of a long write, after a RmaRequest without data,
//                             ◀── RmaResponse kGo: a receive into the region is posted
//   the data ───────────────────────────────────────▶ lie in the region
//                             ◀── RmaResponse kDone
//   or                        ◀── RmaResponse with the reason of a refusal
//
// Requests of one initiator are applied in their order. A short one may arrive before a longer one
// that was sent earlier is whole; then it is held. A peer on a link has one request under way.
//
// An operation completes at the initiator when its response is there: it was applied then. Tags of
// these messages, 63, 62 and 60 clear:
//
//   bit 61        1 (pull_wire.h)
//   bit 59        1
//   bits 58-57    0: a request, 1: a response, 2: the data of a long write
//   bits 56-0     number of the operation at its initiator; zero of a request
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/endian.h"
#include "ofi/pull/pull_wire.h"

namespace ulc::ofi {

inline constexpr std::uint64_t kRmaTag = kServiceBit | kRmaBit;
inline constexpr std::uint64_t kRmaNumberMax = (std::uint64_t{1} << 57) - 1;
/// Longest data that travel with a request or a response through the buffers of both sides.
inline constexpr std::size_t kRmaInlineMax = 4096;
/// Longest operands of an atomic operation, without values to compare.
inline constexpr std::size_t kAtomicBytesMax = kRmaInlineMax / 2;

[[nodiscard]] constexpr std::uint64_t response_tag(std::uint64_t number) noexcept {
    return kRmaTag | std::uint64_t{1} << 57 | number;
}
[[nodiscard]] constexpr std::uint64_t write_data_tag(std::uint64_t number) noexcept {
    return kRmaTag | std::uint64_t{2} << 57 | number;
}

enum class RmaKind : std::uint8_t {
    kWrite = 1,
    kLongWrite = 2,  ///< its data follow when the target has asked for them
    kRead = 3,
    kAtomic = 4,   ///< changes memory
    kFetch = 5,    ///< returns what was there, too
    kCompare = 6,  ///< likewise, and changes only what compares
};
inline constexpr std::uint8_t kRmaKinds = 7;

[[nodiscard]] constexpr bool is_atomic(RmaKind kind) noexcept { return kind >= RmaKind::kAtomic; }
/// True if a response of this kind has data.
[[nodiscard]] constexpr bool returns_data(RmaKind kind) noexcept {
    return kind == RmaKind::kRead || kind == RmaKind::kFetch || kind == RmaKind::kCompare;
}

struct RmaRequest {
    static constexpr std::uint8_t kVersion = 1;
    static constexpr std::uint8_t kHasData = 1;

    std::uint8_t version;
    std::uint8_t kind;      ///< RmaKind
    std::uint8_t flags;     ///< kHasData: of writes
    std::uint8_t datatype;  ///< fi_datatype of atomic operations
    std::uint8_t op;        ///< fi_op of atomic operations
    std::uint8_t operands;  ///< lists of values that follow an atomic operation, 0 to 2
    Be16 order;             ///< counts the requests to this target, from 0; 0 on links
    Be64 number;
    Be64 key;
    Be64 address;
    Be64 length;  ///< bytes of memory at the target
    Be64 data;    ///< completion data

    [[nodiscard]] RmaKind what() const noexcept { return static_cast<RmaKind>(kind); }
    [[nodiscard]] bool has_data() const noexcept { return (flags & kHasData) != 0; }
    /// Returns how many bytes follow the request.
    [[nodiscard]] std::uint64_t bytes_behind() const noexcept {
        if (what() == RmaKind::kWrite) return length;
        return is_atomic(what()) ? operands * std::uint64_t{length} : 0;
    }
    /// True if this is a request of a message of `octets` bytes. The peer that sent it is not
    /// trusted. The datatype and the operation are checked when they are applied.
    [[nodiscard]] bool is_valid(std::size_t octets) const noexcept {
        if (octets < sizeof(RmaRequest) || version != kVersion) return false;
        if (kind == 0 || kind >= kRmaKinds || number > kRmaNumberMax) return false;
        const bool writes = what() == RmaKind::kWrite || what() == RmaKind::kLongWrite;
        if ((flags & ~kHasData) != 0 || (flags != 0 && !writes) || (flags == 0 && data != 0))
            return false;
        if (!is_atomic(what()) && (datatype != 0 || op != 0 || operands != 0)) return false;
        if (is_atomic(what()) && (operands > 2 || length > kAtomicBytesMax)) return false;
        if (what() == RmaKind::kWrite && length > kRmaInlineMax) return false;
        return bytes_behind() == octets - sizeof(RmaRequest);
    }
};
static_assert(sizeof(RmaRequest) == 48 && alignof(RmaRequest) == 1);

/// The outcome of a request.
enum class RmaResult : std::uint8_t {
    kDone,
    kGo,          ///< the data of a long write shall be sent
    kNoKey,       ///< no region has the key
    kOutside,     ///< the range is not inside the region
    kNotGranted,  ///< the region does not grant this access
    kNoSuchOp,    ///< the operation is not there for the datatype
    kTooMany,     ///< one initiator has more than kRmaHeldMax long transfers under way
    kNoMemory,    ///< at the target
    kMalformed,   ///< the data do not fit the request
    kLate,        ///< the data of a granted write did not come in time
};
inline constexpr std::size_t kRmaResults = 10;
/// The most operations that one initiator has under way. A target takes as many long ones of each
/// source.
inline constexpr std::size_t kRmaHeldMax = 1024;

struct RmaResponse {
    static constexpr std::uint8_t kVersion = 1;

    std::uint8_t version;
    std::uint8_t result;  ///< RmaResult
    Be16 zero;

    [[nodiscard]] RmaResult what() const noexcept { return static_cast<RmaResult>(result); }
    /// True if this is a response of a message of `octets` bytes, for a request that asked for
    /// `wanted` bytes.
    [[nodiscard]] bool is_valid(std::uint64_t octets, std::uint64_t wanted) const noexcept {
        if (octets < sizeof(RmaResponse) || version != kVersion || zero != 0) return false;
        if (result >= kRmaResults) return false;
        return octets - sizeof(RmaResponse) == (what() == RmaResult::kDone ? wanted : 0);
    }
};
static_assert(sizeof(RmaResponse) == 4 && alignof(RmaResponse) == 1);

}  // namespace ulc::ofi
