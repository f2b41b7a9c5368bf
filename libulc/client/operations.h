// The numbers of a group's collective operations at this member: 0, 1, … in the order in which they start.
//
// A tag has room for the last kNumberBits of a number. So that two operations under way never share one, none starts that is
// kAheadMax or more behind the oldest that is under way. (A member whose operations wait for nobody may be farther ahead of another
// one: its messages are in order, so receives take the older ones first.)
#pragma once

#include <cstdint>
#include <deque>

namespace ulc::client {

class Operations {
public:
    static constexpr unsigned kNumberBits = 16;
    static constexpr std::size_t kAheadMax = (std::size_t{1} << kNumberBits) - 1;

    /// False: the oldest must end first. May throw std::bad_alloc.
    [[nodiscard]] bool begin(std::uint32_t& number) {
        if (open_.size() >= kAheadMax) return false;
        open_.push_back(true);
        number = next_++;
        return true;
    }
    void end(std::uint32_t number) {
        const std::size_t ago = static_cast<std::uint32_t>(next_ - 1 - number);
        if (ago >= open_.size()) return;  // of a group that was freed and made again
        open_[open_.size() - 1 - ago] = false;
        while (!open_.empty() && !open_.front())
            open_.pop_front();
    }

    /// The operation before is over here.
    [[nodiscard]] bool ended_before(std::uint32_t number) const {
        const std::size_t ago = static_cast<std::uint32_t>(next_ - number);
        return number > 0 && (ago >= open_.size() || !open_[open_.size() - 1 - ago]);
    }

    bool broken =
        false;  ///< members gave different arguments: no operation of the group can go well any more

private:
    std::deque<bool> open_;  ///< from the oldest under way to the last begun
    std::uint32_t next_ = 0;
};

}  // namespace ulc::client
