// SPDX-License-Identifier: BSD-3-Clause
// The rounds of an engine in this process, one a poll. Used by Endpoint and, before a thread turns
// to other work, by Waiter.
#pragma once

#include <cstdint>

#include "abi/engine_entry.h"
#include "client/hooks.h"
#include "client/p2p/submitter.h"

namespace ulc::client {

class EngineRounds {
public:
    /// submitter: outlives this.
    EngineRounds(const Hooks& hooks, const Submitter& submitter) noexcept
        : progress_(hooks.progress), context_(hooks.context), submitter_(submitter) {}

    /// Runs a round, if the engine is in this process. Returns true if something moved.
    [[gnu::always_inline]] bool run() {
        if (progress_ == nullptr) return false;
        const std::uint32_t published = submitter_.published();
        const int round = progress_(context_);
        if (round != abi::kRoundElsewhere) {
            taken_ = published;
            owes_ = (round & abi::kRoundOwes) != 0;
        }
        return (round & abi::kRoundMoved) != 0;
    }
    /// Returns whether the engine has submissions to take, or, after a poll, frames to send.
    [[nodiscard]] bool has_work(bool polled) const noexcept {
        return submitter_.published() != taken_ || (polled && owes_);
    }

private:
    int (*progress_)(void* context);
    void* context_;
    const Submitter& submitter_;
    std::uint32_t taken_ = 0;  ///< records published when the last round began
    bool owes_ = false;        ///< the last round left frames pending
};

}  // namespace ulc::client
