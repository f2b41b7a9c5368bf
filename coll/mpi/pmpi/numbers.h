// SPDX-License-Identifier: BSD-3-Clause
// Numbers of the communicators whose rank 0 is this process, for the keys of their groups. libulc
// keeps memory for each key that was used (ulc_group_create_keyed()), so the numbers of freed
// communicators are used again. Used by world.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ulc::pmpi {

/// Any thread may call it. The lock is a leaf: nothing is called while it is held.
class Numbers {
public:
    /// Returns the lowest number that is free. May throw std::bad_alloc.
    [[nodiscard]] std::uint32_t take() {
        const std::lock_guard<std::mutex> hold(lock_);
        const auto free = std::find(taken_.begin(), taken_.end(), false);
        const auto number = static_cast<std::uint32_t>(free - taken_.begin());
        if (free == taken_.end()) taken_.push_back(true);
        taken_[number] = true;
        return number;
    }
    void give_back(std::uint32_t number) noexcept {
        const std::lock_guard<std::mutex> hold(lock_);
        taken_[number] = false;
    }

private:
    std::mutex lock_;
    std::vector<bool> taken_;
};

}  // namespace ulc::pmpi
