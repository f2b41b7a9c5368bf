// Received frames that a client of the same process (abi::Reach::kProcess) reads where the port put them, until it gives them
// back: no copy into the rx arena. Few, for they are the port's: who is slow to give back gets copies.
//
// In the release ring a frame goes by a block beyond the end of the rx arena; the arena gives up as many granules as there are
// frames here, so that the ring has an entry for each of both.
#pragma once

#include <array>
#include <cstdint>

#include "wire/segment.h"

namespace ulc::engine {

class LentFrames {
public:
    static constexpr std::uint32_t kMax = 128;
    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// room: frames at most, 0 to kMax. port_frames: how many more received frames may be held; outlives this.
    LentFrames(const SegmentPool& pool, std::uint32_t room, std::uint32_t* port_frames) noexcept
        : pool_(pool), port_frames_(port_frames), room_(room), free_count_(room) {
        for (std::uint32_t i = 0; i < room; ++i)
            free_[i] = static_cast<std::uint8_t>(room - 1 - i);
    }
    ~LentFrames() {
        for (std::uint32_t i = 0; i < kMax; ++i)
            static_cast<void>(take_back(i));
    }
    LentFrames(const LentFrames&) = delete;
    LentFrames& operator=(const LentFrames&) = delete;

    /// Holds the frame; its number, or kNone: as many as may be are out.
    [[nodiscard]] std::uint32_t lend(Segment* segment) noexcept {
        if (free_count_ == 0 || *port_frames_ == 0) return kNone;
        --*port_frames_;
        const std::uint32_t number = free_[--free_count_];
        pool_.hold(segment);
        lent_[number] = segment;
        return number;
    }
    /// False: no such frame is out.
    [[nodiscard]] bool take_back(std::uint32_t number) noexcept {
        if (number >= kMax || lent_[number] == nullptr) return false;
        pool_.drop(lent_[number]);
        lent_[number] = nullptr;
        free_[free_count_++] = static_cast<std::uint8_t>(number);
        ++*port_frames_;
        return true;
    }
    [[nodiscard]] bool any_out() const noexcept { return free_count_ != room_; }

private:
    const SegmentPool& pool_;
    std::uint32_t* port_frames_;
    std::uint32_t room_;
    std::uint32_t free_count_;
    std::array<std::uint8_t, kMax> free_{};  ///< the first free_count_ are numbers not out
    std::array<Segment*, kMax> lent_{};
};

}  // namespace ulc::engine
