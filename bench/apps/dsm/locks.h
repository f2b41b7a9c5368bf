// SPDX-License-Identifier: BSD-3-Clause
// The locks that a process of the shared memory is home to: which process holds each, and which
// wait, in the order of asking. Pure. Used by Memory, and by its counterpart in the simulator.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace ulc::dsm {

class Locks {
public:
    /// Returns true if the lock is granted to `from` at once. Otherwise `from` waits.
    [[nodiscard]] bool ask(std::uint16_t from, unsigned number) {
        Lock& lock = locks_[number];
        if (lock.is_held) {
            lock.waiting.push_back(from);
            return false;
        }
        lock.is_held = true;
        return true;
    }
    /// Returns the process to which the lock passes, if one waits.
    [[nodiscard]] std::optional<std::uint16_t> give_back(unsigned number) {
        Lock& lock = locks_[number];
        lock.is_held = !lock.waiting.empty();
        if (!lock.is_held) return std::nullopt;
        const std::uint16_t next = lock.waiting.front();
        lock.waiting.pop_front();
        return next;
    }

private:
    struct Lock {
        bool is_held = false;
        std::deque<std::uint16_t> waiting;
    };
    std::map<unsigned, Lock> locks_;
};

}  // namespace ulc::dsm
