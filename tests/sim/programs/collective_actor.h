// What one rank of a group does with coll.h: a list of collective operations, one after the other or several under way, every
// octet checked.
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
    /// program: outlives this; the same at every rank of the group. seed: of the skew of step(). width: so many are under way
    /// at most; they are tested in any order.
    CollectiveActor(ulc_endpoint* ep, ulc_group group, const std::vector<Operation>& program,
                    std::uint64_t seed, std::size_t width = 1);

    [[nodiscard]] bool done() const { return at_ == program_->size(); }
    /// Operations that are done.
    [[nodiscard]] std::size_t at() const { return at_; }
    [[nodiscard]] int error() const { return error_; }
    /// The oldest that is under way; nullptr: nothing.
    [[nodiscard]] ulc_coll* running() const {
        return running_.empty() ? nullptr : running_.front().operation;
    }
    /// What ulc_last_error_text() said of it.
    [[nodiscard]] const std::string& error_text() const { return error_text_; }
    /// What was wrong with a result; empty: nothing.
    [[nodiscard]] const std::string& wrong() const { return wrong_; }
    [[nodiscard]] bool ended() const { return done() || error_ != ULC_OK || !wrong_.empty(); }

    /// As a program that calls the blocking forms: on and on, until ulc_wait() would wait.
    void run_until_waiting();
    /// Now and then one thing, so that ranks drift apart. When to call again by itself.
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
    bool test(std::size_t which);  ///< false: under way
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
