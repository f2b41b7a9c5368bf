// SPDX-License-Identifier: BSD-3-Clause
#include "main/attach/disposer.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/check.h"

namespace ulc::daemon {
namespace {

constexpr int kNudge =
    SIGURG;  // ignored unless it has a handler, so no tool sends it to end a process

}  // namespace

Disposer::Disposer() : state_(std::make_shared<State>()) {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART;
    ULC_CHECK(sigaction(kNudge, &nothing, nullptr) == 0);
    std::thread thread([state = state_] { run(state); });
    thread_ = thread.native_handle();
    thread.detach();
}

Disposer::~Disposer() {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->wake.notify_one();
}

void Disposer::close(int socket) {
    shutdown(socket, SHUT_RDWR);
    const std::lock_guard lock(state_->mutex);
    state_->sockets.push_back(socket);
    state_->wake.notify_one();
}

void Disposer::nudge() {
    const std::lock_guard lock(state_->mutex);
    if (!state_->closing) return;
    const std::uint64_t number = state_->closed + 1;
    if (nudged_at_ == number) pthread_kill(thread_, kNudge);
    nudged_at_ = number;
}

std::size_t Disposer::waiting() const {
    const std::lock_guard lock(state_->mutex);
    return state_->sockets.size() + (state_->closing ? 1 : 0);
}

void Disposer::run(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    for (;;) {
        state->wake.wait(lock, [&] { return state->stop || !state->sockets.empty(); });
        if (state->sockets.empty()) return;
        const int socket = state->sockets.front();
        state->sockets.pop_front();
        state->closing = true;
        lock.unlock();
        ::close(socket);
        lock.lock();
        state->closing = false;
        ++state->closed;
    }
}

}  // namespace ulc::daemon
