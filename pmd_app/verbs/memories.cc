// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/memories.h"

#include "base/check.h"

namespace ulc::verbs {
namespace {

constexpr std::uint32_t kFailureLooks = 100;  ///< between a registration that failed and the next

}  // namespace

std::uint32_t Memories::add(ibv_pd* pd, std::span<const std::byte> memory,
                            std::uint32_t looks) noexcept {
    for (const Entry& entry : entries_)
        if (!entry.is_removed && entry.first == memory.data() && entry.octets == memory.size())
            return entry.region->lkey;
    if (memory.empty() || memory.size() > kEachMax || memory.size() > kOctetsMax - octets_ ||
        entries_.full() || (has_tried_ && looks - tried_at_ < wait_))
        return 0;
    has_tried_ = true;
    tried_at_ = looks;
    wait_ = kFailureLooks;
    // The library takes a pointer to what it could write, and is permitted nothing but reading.
    ibv_mr* region = verbs_.reg_mr(pd, const_cast<std::byte*>(memory.data()), memory.size(), 0);
    if (region == nullptr) return 0;
    if (region->lkey == 0) {  // the number that says "none" here
        verbs_.dereg_mr(region);
        return 0;
    }
    wait_ = 1;
    ULC_CHECK(entries_.push_back({region, memory.data(), memory.size()}));
    octets_ += memory.size();
    return region->lkey;
}

void Memories::remove(const std::byte* first, std::uint64_t posted) noexcept {
    for (Entry& entry : entries_) {
        if (entry.is_removed || entry.first != first) continue;
        entry.is_removed = true;
        entry.until = posted;
    }
}

void Memories::settle(std::uint64_t completed) noexcept {
    for (std::size_t n = entries_.size(); n-- > 0;)
        if (entries_[n].is_removed && entries_[n].until <= completed) forget(n);
}

void Memories::drop_all() noexcept {
    while (!entries_.empty())
        forget(entries_.size() - 1);
}

void Memories::forget(std::size_t at) noexcept {
    verbs_.dereg_mr(entries_[at].region);
    octets_ -= entries_[at].octets;
    entries_[at] = entries_[entries_.size() - 1];
    entries_.pop_back();
}

bool Memories::hold(std::uint32_t key, const std::byte* first, std::size_t octets) const noexcept {
    for (const Entry& entry : entries_) {
        if (entry.is_removed || entry.region->lkey != key) continue;
        return first >= entry.first && octets <= entry.octets &&
               static_cast<std::size_t>(first - entry.first) <= entry.octets - octets;
    }
    return false;
}

}  // namespace ulc::verbs
