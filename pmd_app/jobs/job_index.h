// SPDX-License-Identifier: BSD-3-Clause
// Finds the records of the job that a frame names, and that of an endpoint. Used by the parts of
// Jobs::Impl, for each JOB frame of strangers: its work does not grow with the number of jobs.
//
// Invariant: each record is there once by its key, and once for each of its local ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/tables/keyed_lists.h"
#include "wire/ids.h"
#include "wire/job_key.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::jobs {

struct JobRecord;

/// Keeps the key of a launcher's job that is forgotten.
struct EndedJob {
    wire::Nonce id;
    wire::JobKey key;
    void fields(state::Archive& archive);
};

class JobIndex {
public:
    explicit JobIndex(std::uint64_t seed) noexcept
        : hash_(seed), by_key_(seed ^ 1U), by_endpoint_(seed ^ 2U), ended_(seed ^ 3U) {}

    void add(JobRecord& record);
    void remove(JobRecord& record);
    void claim(Handle endpoint, JobRecord& record) { by_endpoint_.add(endpoint, &record); }
    void release(Handle endpoint, JobRecord& record) { by_endpoint_.remove(endpoint, &record); }
    void add_ended(const wire::Nonce& id, std::uint32_t place) { ended_.add(of(id), place); }
    void remove_ended(const wire::Nonce& id, std::uint32_t place) { ended_.remove(of(id), place); }

    /// Returns the records that may have that key, the oldest first. Jobs by hand are found by
    /// name, those of launchers by id.
    [[nodiscard]] std::span<JobRecord* const> find(bool by_hand, std::string_view name,
                                                   const wire::Nonce& id) const noexcept {
        return by_key_.find(key_of(by_hand, name, id));
    }
    /// Returns the record with that endpoint; nullptr: none.
    [[nodiscard]] JobRecord* of_endpoint(Handle endpoint) const noexcept {
        const auto there = by_endpoint_.find(endpoint);
        return there.empty() ? nullptr : there.front();
    }
    /// Returns the key of the ended job; nullptr: not kept.
    [[nodiscard]] const wire::JobKey* key_of_ended(const wire::Nonce& id,
                                                   std::span<const EndedJob> jobs) const noexcept;
    [[nodiscard]] std::uint64_t steps() const noexcept {
        return by_key_.steps() + by_endpoint_.steps() + ended_.steps();
    }

private:
    [[nodiscard]] std::uint64_t key_of(bool by_hand, std::string_view name,
                                       const wire::Nonce& id) const noexcept;
    [[nodiscard]] std::uint64_t of(const wire::Nonce& id) const noexcept {
        return key_of(false, {}, id);
    }

    KeyedHash hash_;
    KeyedLists<JobRecord*> by_key_;
    KeyedLists<JobRecord*> by_endpoint_;
    KeyedLists<std::uint32_t> ended_;  ///< places of EndedJob
};

}  // namespace ulc::jobs
