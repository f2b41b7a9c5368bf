// SPDX-License-Identifier: BSD-3-Clause
#include "client/attach/fork_guard.h"

#include <pthread.h>

#include <mutex>

namespace ulc::client {

/// All guards of the process. Locked across fork(), so that the child finds a whole list.
struct ForkGuards {
    std::mutex mutex;
    ForkGuard* first = nullptr;

    static ForkGuards& all() {
        static auto* const kept = [] {
            static_cast<void>(
                pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); }, in_child));
            return new ForkGuards;  // guards may outlive the destructors of statics
        }();
        return *kept;
    }
    static void in_child() {
        for (ForkGuard* guard = all().first; guard != nullptr; guard = guard->next_)
            guard->in_child_(guard->context_);
        all().mutex.unlock();
    }
};

ForkGuard::ForkGuard(InChild in_child, void* context) : in_child_(in_child), context_(context) {
    ForkGuards& guards = ForkGuards::all();
    const std::lock_guard lock(guards.mutex);
    next_ = guards.first;
    if (next_ != nullptr) next_->before_ = this;
    guards.first = this;
}

ForkGuard::~ForkGuard() {
    ForkGuards& guards = ForkGuards::all();
    const std::lock_guard lock(guards.mutex);
    if (next_ != nullptr) next_->before_ = before_;
    (before_ != nullptr ? before_->next_ : guards.first) = next_;
}

}  // namespace ulc::client
