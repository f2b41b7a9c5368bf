// SPDX-License-Identifier: BSD-3-Clause
// Names the members that hold up a group's stream: a packet waits, and another member could take
// it. Each member has a leaky bucket of time:
//
//   level + t        the member held the stream up for t
//   level − t / 9    it did not, so a member that holds it up for a tenth of the time is not named
//
// A member whose level reaches the limit is named, and its level begins at 0 again. The stream's
// timer takes kSamples samples in the time of the limit; no packet costs anything.
//
// Used by Sender (tail.cc). Invariant: while a level is not 0, or a packet waits, a sample is due.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/units.h"

namespace ulc::state {
class Archive;  // base/state/archive.h
}

namespace ulc::urtp {

struct TxStream;
struct HoldRules;

class Holders {
public:
    static constexpr Nanos kSamples = 16;

    /// Allocates; nothing else here does.
    explicit Holders(std::uint16_t members);

    /// A packet waits for window, credit or the pacer. True: samples begin.
    bool on_wait(Nanos now, Nanos limit) noexcept {
        waited_at_ = now;
        if (sample_at_ != kNever || limit == kNever) return false;
        sampled_at_ = now;
        sample_at_ = now + period(limit);
        return true;
    }
    /// The member asks for a packet again.
    void on_request(std::uint32_t at) noexcept {
        ++members_[at].requests;
        ++requests_;
    }
    [[nodiscard]] Nanos sample_at() const noexcept { return sample_at_; }  ///< kNever: none is due
    /// Takes a sample. Ends them all if nothing waits and no level is left.
    void sample(const TxStream& tx, Nanos now, Nanos limit) noexcept;
    /// Returns the next member that is to be named; kNoHolder: none. Call after sample().
    [[nodiscard]] std::uint32_t next_named(const TxStream& tx, Nanos limit) noexcept;
    /// Time for which a member was named, and how, since the last call.
    struct News {
        std::uint32_t ms = 0;
        bool silent = false;
    };
    void name(std::uint32_t at, std::uint32_t ms, bool silent) noexcept {
        members_[at].news = {members_[at].news.ms + ms, silent};
    }
    [[nodiscard]] bool has_news(std::uint32_t at) const noexcept {
        return members_[at].news.ms > 0;
    }
    News take_news(std::uint32_t at) noexcept { return std::exchange(members_[at].news, {}); }
    /// Tells whether some destination did not hold the stream up in the latest sample.
    [[nodiscard]] bool others_wait(const TxStream& tx) const noexcept;

    static constexpr std::uint32_t kNoHolder = UINT32_MAX;
    void fields(state::Archive& archive, std::uint16_t members);  ///< urtp/state/

private:
    struct Member {
        Nanos level = 0;
        std::uint32_t requests = 0;  ///< since the latest sample
        News news;
        bool holds = false;  ///< in the latest sample
    };
    [[nodiscard]] static Nanos period(Nanos limit) noexcept {
        return limit / kSamples > kMicrosecond ? limit / kSamples : kMicrosecond;
    }

    std::unique_ptr<Member[]> members_;
    std::uint32_t requests_ = 0;
    Nanos waited_at_ = -1;
    Nanos sampled_at_ = 0;
    Nanos sample_at_ = kNever;
};

/// Tells whether a member that was named is to be excluded: some other could go on without it, and
/// the client does not keep it.
[[nodiscard]] bool may_exclude(const HoldRules& rules, const TxStream& tx,
                               std::uint32_t at) noexcept;

}  // namespace ulc::urtp
