// SPDX-License-Identifier: BSD-3-Clause
// Reads announced messages of another process of this node from its memory.
#pragma once

#include <cstdint>

#include "client/ulc.h"
#include "ofi/pull/peer_process.h"
#include "ofi/pull/pull_wire.h"

namespace ulc::ofi {

/// Returns false if the process has ended, the kernel refuses, or no descriptor with this seal is
/// there.
[[nodiscard]] bool read_descriptor(const PeerProcess& process, std::uint64_t address,
                                   const PullSeal& seal, PullDescriptor& out) noexcept;

/// Reads `bytes` bytes of the message from `offset` on into the same place of the buffer that
/// `pieces` make up, and checks that the descriptor at `address` still has its seal then. The
/// buffer must be that long, and the descriptor valid. Returns false if the kernel refuses, or if
/// the sender's process ended or took its message back; the buffer is undefined then.
[[nodiscard]] bool read_bytes(const PeerProcess& process, std::uint64_t address,
                              const PullDescriptor& descriptor, std::uint64_t offset,
                              std::uint64_t bytes, const ulc_piece* pieces,
                              unsigned count) noexcept;

}  // namespace ulc::ofi
