// SPDX-License-Identifier: BSD-3-Clause
// Closes sockets of clients on a separate thread, where a close may take long: a socket that a
// client passed by SCM_RIGHTS is closed with the packet that holds it, and with SO_LINGER that
// waits as long as the client chose. Used only where the kernel cannot refuse such packets (before
// Linux 6.16).
//
// A close that lingers ends when a signal is pending, so nudge() bounds each one. The process can
// end at any time: the kernel does not linger for a process that ends.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace ulc::daemon {

class Disposer {
public:
    Disposer();
    ~Disposer();  ///< does not wait for sockets that are still open
    Disposer(const Disposer&) = delete;
    Disposer& operator=(const Disposer&) = delete;

    /// Shuts the socket down now, so that its client hears of it, and closes it soon. Never blocks.
    void close(int socket);
    /// Interrupts a close that began before the last call. Call it every few milliseconds.
    void nudge();
    /// Sockets not closed yet.
    [[nodiscard]] std::size_t waiting() const;

private:
    struct State {
        std::mutex mutex;
        std::condition_variable wake;
        std::deque<int> sockets;
        std::uint64_t closed = 0;
        bool closing = false;
        bool stop = false;
    };
    static void run(const std::shared_ptr<State>& state);

    std::shared_ptr<State> state_;  ///< shared: the thread may outlive this object
    pthread_t thread_{};
    std::uint64_t nudged_at_ = 0;  ///< State::closed at the last nudge() during a close
};

}  // namespace ulc::daemon
