// SPDX-License-Identifier: BSD-3-Clause
// Memory that two processes of one node share: the receiver makes it and names it in a word, the
// sender maps it by that name. Used by Near, through a table, so that tests need no process.
#pragma once

#include <cstddef>

#include "base/endian.h"
#include "client/near/near_ring.h"

namespace ulc::client {

/// The word by which a receiver offers its ring. It is authentic because the engine says who sent
/// it; that its numbers mean the receiver's memory is shown by the token that lies there.
struct NearOffer {
    Be32 process;
    Be32 descriptor;  ///< in that process
    NearToken token;
};
static_assert(sizeof(NearOffer) == 24 && alignof(NearOffer) == 1);

struct NearMemory {
    /// Makes the memory of a ring and fills the offer. nullptr: not possible.
    std::byte* (*make)(NearOffer& offer) noexcept;
    /// Maps what another process offers. nullptr: it cannot be reached, or is something else.
    std::byte* (*map)(const NearOffer& offer) noexcept;
    /// The sender has mapped it: the name is not needed any more.
    void (*hide)(const NearOffer& offer) noexcept;
    void (*unmap)(std::byte* memory) noexcept;
};

/// Memory of the kernel: a memfd that can be neither shrunk nor grown, found under /proc.
[[nodiscard]] const NearMemory& kernel_memory() noexcept;

}  // namespace ulc::client
