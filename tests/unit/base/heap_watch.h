// SPDX-License-Identifier: BSD-3-Clause
// Counts the bytes of heap in use, for tests of memory budgets. In a program that links
// heap_watch.cc, the count covers what its own objects take from new, malloc, calloc and
// aligned_alloc.
#pragma once

#include <cstddef>

namespace ulc::test {

/// Bytes in use, by the sizes requested. Any thread may call it.
[[nodiscard]] std::size_t heap_octets() noexcept;

}  // namespace ulc::test
