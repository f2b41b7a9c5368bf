// SPDX-License-Identifier: BSD-3-Clause
// Writes a completion that has only a status: a request of the client is done.
#pragma once

#include <cstdint>

#include "abi/records.h"
#include "abi/slot_ring.h"
#include "base/error.h"

namespace ulc::engine {

/// Returns false if the ring is full; nothing was written.
[[nodiscard]] inline bool write_status(abi::CompletionProducer& cq, abi::CompletionKind kind,
                                       std::uint32_t cookie, Err status) noexcept {
    abi::CompletionRecord* out = cq.claim();
    if (out == nullptr) return false;
    out->kind = kind;
    out->flags = 0;
    out->inline_length = 0;
    out->source = 0;
    out->status = static_cast<std::int16_t>(status);
    out->stream = cookie;
    out->tag = 0;
    cq.publish();
    return true;
}

}  // namespace ulc::engine
