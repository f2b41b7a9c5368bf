// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of fi_atomic.h on memory that need not be aligned. The caller serialises.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

#include "ofi/rma/rma_wire.h"

namespace ulc::ofi {

/// Returns the bytes of an element; 0: the datatype is not there.
[[nodiscard]] std::size_t element_bytes(std::uint8_t datatype) noexcept;

/// True if an operation of this kind is there for the datatype.
[[nodiscard]] bool is_there(RmaKind kind, std::uint8_t datatype, std::uint8_t op) noexcept;

/// Returns how many lists of values a request has: 0 if it only reads, 2 if it compares.
[[nodiscard]] std::uint8_t operands_of(RmaKind kind, std::uint8_t op) noexcept;

/// Changes `count` elements at `target`. `operands` has as many lists as operands_of() tells, first
/// the values, then those to compare. old, if it is not nullptr, gets what was there. The operation
/// must be there.
void apply_atomic(std::uint8_t datatype, std::uint8_t op, std::size_t count, unsigned char* target,
                  const unsigned char* operands, unsigned char* old) noexcept;

}  // namespace ulc::ofi
