// SPDX-License-Identifier: BSD-3-Clause
// Runs one rank's calls of coll.h: a list of collective operations, one after the other or several
// at the same time, with every byte checked.
#pragma once

#include <coll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "tests/sim/programs/collective_data.h"

namespace ulc::sim {

class CollectiveActor {
public:
    /// `program`: outlives this; the same at every rank of the group. `seed`: that of the skew of
    /// step(). `width`: maximum number of operations at the same time; they are tested in any
    /// order.
    CollectiveActor(ulc_endpoint* ep, ulc_group group, const std::vector<Operation>& program,
                    std::uint64_t seed, std::size_t width = 1);

    [[nodiscard]] bool done() const { return at_ == program_->size(); }
    /// Returns the number of operations that are done.
    [[nodiscard]] std::size_t at() const { return at_; }
    [[nodiscard]] int error() const { return error_; }
    /// Returns the oldest operation in progress; nullptr if there is none.
    [[nodiscard]] ulc_coll* running() const {
        return running_.empty() ? nullptr : running_.front().operation;
    }
    /// Returns the text of ulc_last_error_text() for that operation.
    [[nodiscard]] const std::string& error_text() const { return error_text_; }
    /// Returns the fault of a result; empty if there is none.
    [[nodiscard]] const std::string& wrong() const { return wrong_; }
    [[nodiscard]] bool ended() const { return done() || error_ != ULC_OK || !wrong_.empty(); }

    /// Acts like a program that calls the blocking forms: continues until ulc_wait() would wait.
    void run_until_waiting();
    /// Performs one action now and then, so that ranks drift apart. Returns when it must be called
    /// again.
    Nanos step(Nanos now);

private:
    struct Running {
        std::size_t number;
        ulc_coll* operation;
        CollectiveData data;
    };
    [[nodiscard]] bool may_start() const {
        return begun_ < program_->size() && running_.size() < width_;
    }
    bool test(std::size_t which);  ///< false: in progress
    int start();

    ulc_endpoint* ep_;
    ulc_group group_;
    std::uint16_t self_;
    std::uint16_t ranks_;
    const std::vector<Operation>* program_;
    Prng prng_;
    std::size_t width_;
    std::vector<Running> running_;  ///< oldest first
    std::size_t begun_ = 0;
    std::size_t at_ = 0;
    int error_ = ULC_OK;
    std::string wrong_;
    std::string error_text_;
};

}  // namespace ulc::sim
