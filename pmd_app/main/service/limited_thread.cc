// SPDX-License-Identifier: BSD-3-Clause
#include "main/service/limited_thread.h"

#include <chrono>
#include <utility>

namespace ulc::daemon {

void LimitedThread::start(std::function<void()> run) {
    state_ = std::make_shared<State>();
    thread_ = std::thread([state = state_, work = std::move(run)] {
        work();
        const std::lock_guard lock(state->mutex);
        state->ended = true;
        state->changed.notify_all();
    });
}

bool LimitedThread::join(Nanos limit) {
    if (!thread_.joinable()) return true;
    {
        std::unique_lock lock(state_->mutex);
        const bool ended = state_->changed.wait_for(lock, std::chrono::nanoseconds(limit),
                                                    [this] { return state_->ended; });
        if (!ended) return false;
    }
    thread_.join();  // only its exit is left
    return true;
}

}  // namespace ulc::daemon
