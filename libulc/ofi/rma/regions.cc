// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/rma/regions.h"

#include <rdma/fi_errno.h>
#include <sys/random.h>

#include <new>

namespace ulc::ofi {
namespace {

constexpr int kKeyTries = 8;

}  // namespace

int RegionTable::add(Region& region, std::uint64_t& key) noexcept try {
    const std::lock_guard hold(mutex);
    if (!mode_.own_keys) return regions_.try_emplace(key, &region).second ? 0 : -FI_ENOKEY;
    for (int i = 0; i < kKeyTries; ++i) {
        std::uint64_t drawn = 0;
        if (::getrandom(&drawn, sizeof drawn, 0) != ssize_t{sizeof drawn}) return -FI_EAGAIN;
        if (!regions_.try_emplace(drawn, &region).second) continue;
        key = drawn;
        return 0;
    }
    return -FI_ENOKEY;
} catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
}

void RegionTable::remove(std::uint64_t key) noexcept {
    const std::lock_guard hold(mutex);
    regions_.erase(key);
}

RmaResult RegionTable::find(std::uint64_t key, std::uint64_t address, std::uint64_t length,
                            std::uint64_t access, Region*& region, unsigned char*& first) noexcept {
    const auto known = regions_.find(key);
    if (known == regions_.end()) return RmaResult::kNoKey;
    Region& found = *known->second;
    if ((access & ~found.access) != 0) return RmaResult::kNotGranted;
    const std::uint64_t begin =
        mode_.virtual_addresses ? reinterpret_cast<std::uintptr_t>(found.base) : 0;
    const std::uint64_t offset = address - begin;
    if (address < begin || offset > found.length || length > found.length - offset)
        return RmaResult::kOutside;
    region = &found;
    first = found.base + offset;
    return RmaResult::kDone;
}

}  // namespace ulc::ofi
