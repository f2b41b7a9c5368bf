// SPDX-License-Identifier: BSD-3-Clause
// The counters of one engine: written by its thread only, read by anybody through the counter page.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace ulc {

enum class Counter : std::uint16_t {
#define ULC_COUNTER(id, unit, help) id,
#include "base/counters.def"
#undef ULC_COUNTER
    kCount
};

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCount);

struct CounterInfo {
    std::string_view id;
    std::string_view unit;
    std::string_view help;
};

inline constexpr CounterInfo kCounterInfo[] = {
#define ULC_COUNTER(id, unit, help) {#id, unit, help},
#include "base/counters.def"
#undef ULC_COUNTER
};

/// One writer (the engine thread); readers see each value whole, not a common instant.
class Counters {
public:
    void add(Counter id, std::uint64_t n = 1) noexcept {
        auto& cell = cells_[static_cast<std::size_t>(id)];
#ifdef __x86_64__
        // One instruction in place of three. Readers see its aligned store whole. It needs no lock
        // prefix, since only one thread writes.
        asm("addq %1, %0" : "+m"(cell) : "er"(n) : "cc");
#else
        cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
#endif
    }
    [[nodiscard]] std::uint64_t get(Counter id) const noexcept {
        return cells_[static_cast<std::size_t>(id)].load(std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint64_t> cells_[kCounterCount]{};
};

}  // namespace ulc
