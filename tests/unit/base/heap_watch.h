// How much of the heap is in use, for tests of memory budgets. A program with heap_watch.cc in it counts what its own
// objects take from new, malloc, calloc and aligned_alloc.
#pragma once

#include <cstddef>

namespace ulc::test {

/// Octets in use, as they were asked for. Any thread.
[[nodiscard]] std::size_t heap_octets() noexcept;

}  // namespace ulc::test
