// SPDX-License-Identifier: BSD-3-Clause
// Messages of client and engine on the unix socket (SOCK_SEQPACKET: one struct, one packet; an
// abstract or path address).
//
//   client                                   engine
//   Hello(kAttach) ────────────────────────▶ checks credentials against the allow list, makes the
//                                            memfd, seals SHRINK|GROW, writes the control page
//                ◀────────────────────────── Offer + the memfd (SCM_RIGHTS)
//   reads the seals, then the size, maps
//   Mapped ────────────────────────────────▶ seals FUTURE_WRITE|SEAL, populates, locks, admits
//                ◀────────────────────────── Ready
//   one byte kDoorbell, whenever engine_asleep is 1; one byte kBye before closing in order
//                ◀────────────────────────── one byte kUpcall, when something was published
//                                            while the client computed (ClientState)
//
// Hello(kCounters) is answered by an Offer with a read-only memfd of the counter page, and
// Hello(kStreams) by one with the page of streams; then both close. Hello(kUpgrade) is followed by
// an UpgradeRequest, and answered by an UpgradeAnswer when the upgrade has ended. An engine that
// refuses answers with an Offer that has a status and a text, then closes. The engine writes with
// MSG_DONTWAIT only and gives a connection a deadline until Ready; each side closes on a packet of
// another size or magic. Later versions may lengthen the structs at the end; the first three fields
// of Hello are frozen.
#pragma once

#include <cstdint>

#include "abi/endpoint_region.h"
#include "abi/endpoint_row.h"
#include "abi/region.h"

namespace ulc::abi {

inline constexpr std::uint32_t kHelloMagic = 0x55'4c'43'31U;
inline constexpr std::size_t kNetNameOctetsMax = 32;
inline constexpr char kDefaultSocketPath[] = "/run/ulc/engine.sock";

enum class HelloKind : std::uint32_t { kAttach = 1, kCounters = 2, kUpgrade = 3, kStreams = 4 };

struct Hello {
    std::uint32_t magic;
    std::uint32_t abi_version;
    HelloKind kind;
    std::uint32_t client_pid;     ///< for logs; SO_PEERCRED is authoritative
    RegionSizes wanted;           ///< 0 in a field: the engine's default
    char net[kNetNameOctetsMax];  ///< terminated; empty: the engine's first net
};
static_assert(sizeof(Hello) == 64);

struct Offer {
    std::uint32_t magic;
    std::uint32_t abi_version;  ///< the engine's
    std::int32_t status;        ///< Err as a number; not 0: refused
    std::uint32_t endpoint;     ///< index within this engine, for logs
    RegionLayout layout;        ///< kCounters: only region_octets
    char text[kTextOctetsMax];  ///< terminated; the reason of the refusal and the advice
};
static_assert(sizeof(Offer) == 840);

struct Mapped {
    std::uint32_t magic;
    std::int32_t status;  ///< Err as a number; not 0: the client failed
};

struct Ready {
    std::uint32_t magic;
    std::int32_t status;
    char text[kTextOctetsMax];
};

/// Follows a Hello(kUpgrade) of root or the engine's user; no answer comes before.
struct UpgradeRequest {
    std::uint32_t magic;
    std::uint32_t evicts;  ///< 1: a client that is in the way for a second is ended
    char file[4088];       ///< terminated; path of the library, absolute; empty: the installed one
};
static_assert(sizeof(UpgradeRequest) == 4096);

/// The answer when the upgrade has ended; an Offer if the Hello was refused.
struct UpgradeAnswer {
    std::uint32_t magic;
    std::int32_t status;  ///< Err as a number; not 0: the old core goes on
    std::uint64_t load_ns;
    std::uint64_t create_ns;
    std::uint64_t export_ns;
    std::uint64_t import_ns;
    std::uint64_t switch_ns;
    std::uint64_t blackout_ns;   ///< between two rounds: export, import and switch
    std::uint64_t state_octets;  ///< size of the exported state
    std::uint32_t frames;        ///< named by the state
    std::uint32_t tries;         ///< exports, of which all but the last found something in the way
    std::uint32_t endpoints;
    std::uint32_t reserved;
    char build[104];  ///< terminated; of the new core
    /// Terminated; why it was refused and what to do. It may name the file.
    char text[sizeof(UpgradeRequest::file) + kTextOctetsMax];
};
static_assert(sizeof(UpgradeAnswer) == 5040);

inline constexpr unsigned char kDoorbell = 'd';
inline constexpr unsigned char kBye = 'b';
inline constexpr unsigned char kUpcall = 'u';

// ---------------------------------------------------------------- the counter page
//
// A read-only memfd, by Hello(kCounters):
//
//   CounterPageHeader │ count names of kCounterNameOctets │ count 64-bit values │ EndpointRow …
//
// The engine's process alone writes it. Readers see each value whole, not a common instant. Values
// are always current. Rows are taken when a reader says Hello(kCounters), at most ten
// times a second; `rows_sequence` is odd while they are written, and a reader that sees it change
// copies them again.

inline constexpr std::uint64_t kCounterPageMagic = 0x31764354'4e435555U;
inline constexpr std::uint32_t kCounterPageVersion = 4;  ///< 3 had 256 bytes for its ports
inline constexpr std::size_t kCounterNameOctets = 32;
inline constexpr std::uint32_t kRowsMax = 256;

struct CounterPageHeader {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t count;
    std::uint32_t names_offset;
    std::uint32_t values_offset;
    std::uint32_t engine_pid;
    std::uint32_t endpoints;  ///< attached now
    char ports[2048];         ///< terminated; for readers
    std::uint32_t rows_offset;
    std::uint32_t rows;  ///< at most kRowsMax
    std::uint32_t rows_sequence;
    std::uint32_t reserved;
};
static_assert(sizeof(CounterPageHeader) % 8 == 0);

// ---------------------------------------------------------------- the page of streams
//
// A sealed memfd that never changes, by Hello(kStreams):
//
//   StreamPageHeader │ count StreamRow, by endpoint, each with its peers by rank
//
// It has the endpoints of the user that asks; root and the engine's own user get all.

inline constexpr std::uint64_t kStreamPageMagic = 0x31764d52'54534355U;
inline constexpr std::uint32_t kStreamPageVersion = 1;
inline constexpr std::uint32_t kStreamRowsMax = 4096;

struct StreamPageHeader {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t count;  ///< rows here; at most kStreamRowsMax
    std::uint32_t all;    ///< rows that there are, of which the first are here
    std::uint32_t engine_pid;
    std::uint32_t reserved[2];
};
static_assert(sizeof(StreamPageHeader) == 32);

}  // namespace ulc::abi
