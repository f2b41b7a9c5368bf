// SPDX-License-Identifier: BSD-3-Clause
// This file judges what an engine answers in the handshake (abi/attach.h). Pure: no socket. Used by
// attach_client.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "abi/attach.h"
#include "base/error.h"

namespace ulc::client {

/// Tells whether a packet is an Offer or a Ready of this version.
template <typename Reply>
[[nodiscard]] bool is_answer(const Reply& reply, std::ptrdiff_t octets) noexcept {
    return octets == std::ptrdiff_t{sizeof(Reply)} && reply.magic == abi::kHelloMagic;
}

/// Returns the engine's sentence, terminated or not.
template <typename Reply>
[[nodiscard]] std::string_view sentence(const Reply& reply) noexcept {
    return {reply.text, strnlen(reply.text, sizeof reply.text)};
}

/// Returns why an engine refused. status: not 0, or an Offer that brought no memory.
[[nodiscard]] inline Err refusal(std::int32_t status) noexcept {
    const auto error = static_cast<Err>(status);
    return status == 0 || text_of(error) == "unknown error" ? Err::kSystem : error;
}

/// Returns how many octets of the offered memory to map; 0: the layout does not fit them.
/// available: size of the memory.
[[nodiscard]] inline std::uint64_t octets_to_map(const abi::Offer& offer,
                                                 std::int64_t available) noexcept {
    if (available <= 0 ||
        abi::validate_layout(offer.layout, static_cast<std::uint64_t>(available)) != Err::kOk)
        return 0;
    return offer.layout.region_octets;
}

}  // namespace ulc::client
