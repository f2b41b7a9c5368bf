// SPDX-License-Identifier: BSD-3-Clause
// This file lends received frames to a client of this process. The client reads a message of one
// packet in its frame, without a copy, until it gives the frame back [Express §4.2.1].
//
// A frame is lent together with the smallest block of the rx arena, which stands for it in the
// completion and in the release ring. So the rules of blocks hold for frames too: a block that the
// client does not hold is found, and the release ring is never full.
//
// The frames that all endpoints of a net may have lent are bounded, so that handlers which keep
// messages cannot take the port's receive memory; further messages are copied. Engine thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/check.h"
#include "port/segment.h"

namespace ulc::endpoint {

class FrameLoans {
public:
    /// Frames that the endpoints of one net may have lent.
    static constexpr std::uint32_t kMost = 64;
    /// Returns that bound for a port: an eighth of the frames that may be held, at most kMost.
    /// `rx_frames`: PortInfo::rx_frames.
    [[nodiscard]] static std::uint32_t bound(std::uint32_t rx_frames) noexcept {
        return rx_frames == 0 ? kMost : std::min(kMost, rx_frames / 8);
    }

    FrameLoans() = default;
    ~FrameLoans() {
        while (count_ > 0)
            remove(count_ - 1);
    }
    FrameLoans(const FrameLoans&) = delete;
    FrameLoans& operator=(const FrameLoans&) = delete;

    /// Allows loans. `pool`: of the net's port. `left`: how many frames the net may still lend, at
    /// most kMost. Both outlive this object. Allocates the first time.
    void allow(const SegmentPool& pool, std::uint32_t& left) {
        if (loans_ == nullptr) loans_ = std::make_unique<Loan[]>(kMost);
        pool_ = &pool;
        left_ = &left;
        allowed_ = true;
    }
    /// Forbids further loans.
    void forbid() noexcept { allowed_ = false; }
    [[nodiscard]] bool may_lend() const noexcept { return allowed_ && *left_ > 0; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    /// Takes over one reference to the segment, which `block` stands for. may_lend() is true.
    void lend(std::uint32_t block, Segment& segment) noexcept {
        ULC_CHECK(may_lend() && count_ < kMost);
        loans_[count_++] = {block, &segment};
        --*left_;
    }
    /// Adds a reference to a segment, which lend() takes over. may_lend() was true.
    void hold(Segment& segment) const noexcept { pool_->hold(&segment); }
    /// Drops the frame that a returned block stands for, if it stands for one.
    void take_back(std::uint32_t block) noexcept {
        for (std::uint32_t n = 0; n < count_; ++n)
            if (loans_[n].block == block) return remove(n);
    }

private:
    struct Loan {
        std::uint32_t block;
        Segment* segment;
    };
    void remove(std::uint32_t n) noexcept {
        pool_->drop(loans_[n].segment);
        loans_[n] = loans_[--count_];
        ++*left_;
    }

    const SegmentPool* pool_ = nullptr;
    std::uint32_t* left_ = nullptr;
    std::uint32_t count_ = 0;
    bool allowed_ = false;
    std::unique_ptr<Loan[]> loans_;  ///< kMost, of which the first count_ are lent
};

}  // namespace ulc::endpoint
