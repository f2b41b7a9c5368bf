// SPDX-License-Identifier: BSD-3-Clause
// Finds the records of the job that a frame names, that of an endpoint here, and those that have
// ranks at a node. Used by the parts of Jobs::Impl, for each JOB and NODE frame: its work does not
// grow with the number of jobs.
//
// Invariant: each record is there once by its key, and once for each of its local ranks. While it
// knows ranks of other nodes, it is there once for each of these nodes and of their endpoints. A
// job that forms knows the publisher that it watches.
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

/// Names a rank of another node that is excluded from its job.
struct ExcludedRank {
    const JobRecord* record = nullptr;
    Rank rank = 0;
    bool operator==(const ExcludedRank&) const = default;
};

class JobIndex {
public:
    explicit JobIndex(std::uint64_t seed) noexcept
        : hash_(seed),
          by_key_(seed ^ 1U),
          by_endpoint_(seed ^ 2U),
          ended_(seed ^ 3U),
          by_node_(seed ^ 4U),
          by_peer_(seed ^ 5U),
          excluded_(seed ^ 6U) {}

    void add(JobRecord& record);
    void remove(JobRecord& record);
    void claim(Handle endpoint, JobRecord& record) { by_endpoint_.add(endpoint, &record); }
    void release(Handle endpoint, JobRecord& record) { by_endpoint_.remove(endpoint, &record); }
    /// The record knows ranks of other nodes from now on, or is about to forget them.
    void list_peers(JobRecord& record);
    void unlist_peers(JobRecord& record);
    /// A rank of another node is excluded, for as long as the record is there.
    void exclude(const JobRecord& record, Rank rank);
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
    /// Returns the records that know ranks of that node. The caller counts those that it visits.
    /// Valid until one is listed or unlisted.
    [[nodiscard]] std::span<JobRecord* const> at_node(const Mac& node) const noexcept;
    /// Returns those that may know this endpoint of that node.
    [[nodiscard]] std::span<JobRecord* const> with_peer(const Mac& node,
                                                        Handle endpoint) const noexcept {
        return by_peer_.find(key_of(node, endpoint));
    }
    /// Returns the excluded ranks of that node.
    [[nodiscard]] std::span<const ExcludedRank> excluded_at(const Mac& node) const noexcept;
    /// Returns the key of the ended job; nullptr: not kept.
    [[nodiscard]] const wire::JobKey* key_of_ended(const wire::Nonce& id,
                                                   std::span<const EndedJob> jobs) const noexcept;
    [[nodiscard]] std::uint64_t steps() const noexcept {
        return by_key_.steps() + by_endpoint_.steps() + ended_.steps() + by_node_.steps() +
               by_peer_.steps() + excluded_.steps();
    }

private:
    [[nodiscard]] std::uint64_t key_of(bool by_hand, std::string_view name,
                                       const wire::Nonce& id) const noexcept;
    [[nodiscard]] std::uint64_t key_of(const Mac& node, Handle endpoint) const noexcept;
    [[nodiscard]] bool is_listed(const JobRecord& record, std::uint64_t peer) const noexcept;
    [[nodiscard]] std::uint64_t of(const wire::Nonce& id) const noexcept {
        return key_of(false, {}, id);
    }

    KeyedHash hash_;
    KeyedLists<JobRecord*> by_key_;
    KeyedLists<JobRecord*> by_endpoint_;
    KeyedLists<std::uint32_t> ended_;  ///< places of EndedJob
    KeyedLists<JobRecord*> by_node_;
    KeyedLists<JobRecord*> by_peer_;
    KeyedLists<ExcludedRank> excluded_;
};

}  // namespace ulc::jobs
