// SPDX-License-Identifier: BSD-3-Clause
// The endpoints of a process to which messages come, and the right to use them (ulc_upcall.h). A
// thread has all of them or none. Used by Process.
//
// Threads. Their thread promises and revokes, others borrow and give back. An endpoint may
// interrupt its thread while that changes the promise of another one, which must not be touched
// until that is done: was_put_off().
#pragma once

#include <ulc_upcall.h>

#include <array>
#include <atomic>
#include <span>

namespace ulc::ports {

class Endpoints {
public:
    static constexpr unsigned kMost = 6;

    /// Endpoints are added and removed by their thread, which has promised to poll all.
    void add(ulc_endpoint* ep) noexcept;
    void remove(ulc_endpoint* ep) noexcept;
    void clear() noexcept { count_ = 0; }

    /// Promises to poll all of them but `except`.
    void promise(const ulc_endpoint* except = nullptr) noexcept;
    /// Revokes the promises of all but `except`. AGAIN: something has come. All stand after an
    /// error.
    [[nodiscard]] int revoke(const ulc_endpoint* except = nullptr) noexcept;
    /// In an upcall: true if it came in the midst of promise() or revoke(). Then the promise of
    /// `from` stands, and revoke() returns AGAIN.
    [[nodiscard]] bool was_put_off(ulc_endpoint* from) noexcept;
    /// Borrows all or none: a thread that kept one and waited for another would block upcalls.
    [[nodiscard]] bool borrow() noexcept;
    void give_back(bool interrupt) noexcept;
    /// Polls all but `except`. Returns the number of events; errors are left to later calls.
    int poll(const ulc_endpoint* except = nullptr) noexcept;

private:
    [[nodiscard]] std::span<ulc_endpoint* const> all() const noexcept {
        return {all_.data(), count_};
    }

    std::array<ulc_endpoint*, kMost> all_{};
    unsigned count_ = 0;
    // Written by the thread and by upcalls, which interrupt it.
    std::atomic<bool> changes_{false};          ///< in promise() or revoke()
    std::atomic<bool> was_interrupted_{false};  ///< meanwhile
};

}  // namespace ulc::ports
