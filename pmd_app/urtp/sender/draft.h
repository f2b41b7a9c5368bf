// SPDX-License-Identifier: BSD-3-Clause
// The packet on its way from Sender::may_send() through plan() to commit().
#pragma once

#include "base/bounded.h"
#include "urtp/sender/stream_tx.h"
#include "wire/build.h"

namespace ulc::urtp {

struct Draft {
    using Blockers = FixedVector<TxStream*, wire::kAfterEntriesMax + 1>;

    TxStream* stream = nullptr;  ///< the one admitted
    Blockers predecessors;       ///< those of its next packet
    std::uint8_t flags = 0;
    wire::Extensions extensions;
};

}  // namespace ulc::urtp
