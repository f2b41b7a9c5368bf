// SPDX-License-Identifier: BSD-3-Clause
// How the latest endpoints of this engine ended, for answers about them. Used by Liveness.
//
// Invariant: each handle of the ring is in the table once, with the place of its latest end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tables/keyed_index.h"
#include "wire/ids.h"
#include "wire/job.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::jobs {

class EndedEndpoints {
public:
    static constexpr std::size_t kMax = 1024;  ///< ends that are kept

    /// seed: random bits that strangers do not know.
    explicit EndedEndpoints(std::uint64_t seed) : ring_(kMax), places_(seed) {}

    /// Keeps an end in the place of the oldest one.
    void add(Handle handle, wire::LeaveReason reason) noexcept;
    /// Returns how the endpoint ended. One that is not kept was of an engine that ran here before,
    /// so it died.
    [[nodiscard]] wire::LeaveReason reason_of(Handle handle) const noexcept;
    /// Returns how many places of the table were looked at, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept { return places_.steps(); }

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    struct Ended {
        Handle handle = 0;
        wire::LeaveReason reason{};
        void fields(state::Archive& archive);
    };

    std::vector<Ended> ring_;
    std::size_t next_ = 0;
    KeyedIndex places_;  ///< places of the ring, by handle
};

}  // namespace ulc::jobs
