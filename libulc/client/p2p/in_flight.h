// SPDX-License-Identifier: BSD-3-Clause
// The sends of one endpoint of which the engine has not said that they are done, by cookie. Used by
// Outbox.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "base/check.h"
#include "client/p2p/request.h"
#include "client/p2p/tx_arena.h"

namespace ulc::client {

class InFlight {
public:
    static constexpr std::uint32_t kNoCookie = UINT32_MAX;

    struct Entry {
        Request* request = nullptr;  ///< waits for it: payload in the caller's arena memory
        std::uint32_t block = TxArena::kNone;
        std::uint32_t octets = 0;
        std::uint32_t stream = 0;
        std::uint32_t next_free = kNoCookie;
        bool used = false;
    };

    explicit InFlight(std::uint32_t limit) noexcept : limit_(limit) {}
    /// Reserves enough for a steady state without another allocation. May throw std::bad_alloc.
    void reserve() { table_.reserve(std::min(limit_, 256U)); }
    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    /// Returns an empty entry; kNoCookie: the limit is reached, or out of memory.
    [[nodiscard]] std::uint32_t take() noexcept {
        std::uint32_t cookie = free_;
        if (cookie != kNoCookie) {
            free_ = table_[cookie].next_free;
        } else {
            if (table_.size() == limit_) return kNoCookie;
            try {
                table_.emplace_back();
            } catch (const std::bad_alloc&) {
                return kNoCookie;
            }
            cookie = static_cast<std::uint32_t>(table_.size()) - 1;
        }
        table_[cookie] = {};
        table_[cookie].used = true;
        ++count_;
        return cookie;
    }
    void drop(std::uint32_t cookie) noexcept {
        table_[cookie].used = false;
        table_[cookie].next_free = free_;
        free_ = cookie;
        --count_;
    }
    [[nodiscard]] bool has(std::uint32_t cookie) const noexcept {
        return cookie < table_.size() && table_[cookie].used;
    }
    [[nodiscard]] Entry& operator[](std::uint32_t cookie) noexcept { return table_[cookie]; }
    /// Ends the requests that wait for an entry. The entries stay.
    void fail_all(int error) noexcept {
        for (Entry& entry : table_) {
            if (entry.used && entry.request != nullptr) entry.request->done(error);
            entry.request = nullptr;
        }
    }
    /// Returns the bytes of the arena that entries hold. Checks the table.
    [[nodiscard]] std::uint64_t check_invariants() const {
        std::uint32_t used = 0;
        std::uint64_t octets = 0;
        for (const Entry& entry : table_) {
            used += entry.used ? 1 : 0;
            octets += entry.used ? entry.octets : 0;
        }
        ULC_CHECK(used == count_ && table_.size() <= limit_);
        return octets;
    }

private:
    friend struct Breaker;
    std::uint32_t limit_;
    std::uint32_t free_ = kNoCookie;
    std::uint32_t count_ = 0;
    std::vector<Entry> table_;
};

}  // namespace ulc::client
