// SPDX-License-Identifier: BSD-3-Clause
// Memory that two processes of one node share: the receiver makes it and names its descriptor in a
// word, the engine names the receiver's process, and the sender maps it by both names. Used by
// Near, through a table, so that tests need no process.
#pragma once

#include <cstddef>

#include "abi/records.h"
#include "base/endian.h"
#include "client/near/near_ring.h"

namespace ulc::client {

/// The word by which a receiver offers its ring. It is a claim: the descriptor is looked up in the
/// process that the engine names, and the token must lie in what is there.
struct NearOffer {
    Be32 descriptor;
    NearToken token;
};
static_assert(sizeof(NearOffer) == 20 && alignof(NearOffer) == 1);

struct NearMemory {
    /// True if `rows.self` is this process, and `rows.peer` a process of the same user that is
    /// there by that number. False in another PID namespace than the engine's.
    bool (*sees)(const abi::NearRows& rows) noexcept;
    /// Makes the memory of a ring and fills the offer. nullptr: not possible.
    std::byte* (*make)(NearOffer& offer) noexcept;
    /// Maps what a process that sees() knows offers. nullptr: that process has ended, its memory
    /// cannot be reached, or the descriptor is something else.
    std::byte* (*map)(const abi::ProcessRow& owner, const NearOffer& offer) noexcept;
    /// The sender has mapped it: the name is not needed any more.
    void (*hide)(const NearOffer& offer) noexcept;
    void (*unmap)(std::byte* memory) noexcept;
};

/// Memory of the kernel: a memfd that can be neither shrunk nor grown, found under /proc.
[[nodiscard]] const NearMemory& kernel_memory() noexcept;

}  // namespace ulc::client
