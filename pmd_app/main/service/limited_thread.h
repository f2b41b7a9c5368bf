// SPDX-License-Identifier: BSD-3-Clause
// A thread whose end is awaited within a limit, so that one that is stuck cannot keep a process
// that ends. Used for the threads of ulc-engine.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/units.h"

namespace ulc::daemon {

/// One thread calls all functions. A thread that was started is joined before the object ends.
class LimitedThread {
public:
    /// Starts the thread. Throws std::system_error if there is none.
    void start(std::function<void()> run);
    [[nodiscard]] bool joinable() const noexcept { return thread_.joinable(); }
    /// Waits for the end of the thread. False: it has not ended within the limit, so all that it
    /// uses must stay.
    [[nodiscard]] bool join(Nanos limit);

private:
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        bool ended = false;
    };

    std::thread thread_;
    std::shared_ptr<State> state_;  ///< the thread's as well
};

}  // namespace ulc::daemon
