// SPDX-License-Identifier: BSD-3-Clause
// The last messages of collective operations that went to the client. A schedule that was being
// submitted meanwhile learns from it which of its messages it will not see (endpoint/offload.h).
// The client cannot know: they were in its completion ring, or came between its last poll and the
// engine's read of its submissions.
#pragma once

#include <cstdint>

#include "wire/ids.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

/// Returns true for tags of collective operations (client/ulc_internal.h): bit 63 set, bit 62
/// clear.
[[nodiscard]] constexpr bool is_operation(std::uint64_t tag) noexcept { return tag >> 62 == 2; }

class PassedLog {
public:
    static constexpr std::uint32_t kEntries = 32;

    /// `number`: that of the completion that reported it first, free running.
    void note(std::uint32_t number, Rank source, std::uint64_t tag) noexcept {
        entries_[count_++ % kEntries] = {tag, number, source};
    }

    /// Calls found(source) for each message of that tag from completion number `seen` on, in order.
    /// Returns false if some may be forgotten.
    template <typename Found>
    [[nodiscard]] bool since(std::uint32_t seen, std::uint64_t tag, std::uint64_t mask,
                             Found found) const {
        const std::uint64_t first = count_ > kEntries ? count_ - kEntries : 0;
        if (first > 0 && !before(entries_[first % kEntries].number, seen)) return false;
        for (std::uint64_t n = first; n != count_; ++n) {
            const Entry& entry = entries_[n % kEntries];
            if (!before(entry.number, seen) && ((entry.tag ^ tag) & mask) == 0) found(entry.source);
        }
        return true;
    }

    void fields(state::Archive& archive);

private:
    struct Entry {
        std::uint64_t tag = 0;
        std::uint32_t number = 0;
        Rank source = 0;
        void fields(state::Archive& archive);
    };
    static bool before(std::uint32_t a, std::uint32_t b) noexcept {
        return static_cast<std::int32_t>(a - b) < 0;
    }

    Entry entries_[kEntries];
    std::uint64_t count_ = 0;
};

}  // namespace ulc::endpoint
