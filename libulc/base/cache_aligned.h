// SPDX-License-Identifier: BSD-3-Clause
// A base of objects that begin with a cache line where they are allocated alone. Their size stays:
// alignas would round it up where they are members.
#pragma once

#include <cstddef>
#include <new>

#include "base/units.h"

namespace ulc {

struct CacheAligned {
    static void* operator new(std::size_t octets) {
        return ::operator new (octets, std::align_val_t{kCacheLine});
    }
    static void operator delete(void* memory) noexcept {
        ::operator delete (memory, std::align_val_t{kCacheLine});
    }
};

}  // namespace ulc
