// SPDX-License-Identifier: BSD-3-Clause
// Words that a client publishes for readers of the counter page. Written by libulc, passed on in
// EndpointRow by the engine, which acts on none of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "abi/endpoint_region.h"
#include "abi/region.h"

namespace ulc::abi {

/// Kinds of handlers that ClientNotes::handler names.
enum class HandlerKind : std::uint8_t {
    kNone = 0,
    kPort = 1,     ///< a port's in libgamma; the number is the port
    kExpress = 2,  ///< one of libexpress; the number is its place in express_init()'s list
};

/// ClientNotes::handler: 8 bits of kind │ 8 zeros │ 16 bits of number │ 32 bits of the monotonic
/// time in milliseconds at which the handler was called. 0: no handler runs.
[[nodiscard]] constexpr std::uint64_t handler_word(HandlerKind kind, std::uint16_t number,
                                                   std::uint32_t since_ms) noexcept {
    const auto named = std::uint32_t{static_cast<std::uint8_t>(kind)} << 24 | number;
    return std::uint64_t{named} << 32 | since_ms;
}

/// Words of the client for readers of the counter page, in the control page behind EndpointControl.
/// No engine acts on them. A client of an earlier release leaves zeros.
struct ClientNotes {
    alignas(kCacheLine) std::atomic<std::uint64_t> handler;  ///< handler_word()
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
inline constexpr std::size_t kNotesOffset = kPageOctets / 2;
static_assert(sizeof(EndpointControl) <= kNotesOffset);
static_assert(kNotesOffset + sizeof(ClientNotes) <= kPageOctets);

[[nodiscard]] inline ClientNotes& notes_of(const Region& region) noexcept {
    return *reinterpret_cast<ClientNotes*>(static_cast<std::byte*>(region.base()) + kNotesOffset);
}

}  // namespace ulc::abi
