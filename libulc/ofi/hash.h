// SPDX-License-Identifier: BSD-3-Clause
// FNV-1a over memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fnv.h"

namespace ulc::ofi {

[[nodiscard]] inline std::uint64_t hash_of(const void* bytes, std::size_t length) noexcept {
    std::uint64_t hash = kFnvBasis;
    for (std::size_t i = 0; i < length; ++i)
        hash = fnv1a(hash, static_cast<const unsigned char*>(bytes)[i]);
    return hash;
}

}  // namespace ulc::ofi
