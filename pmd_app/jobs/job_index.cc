// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/job_index.h"

#include "jobs/job_records.h"

namespace ulc::jobs {

std::uint64_t JobIndex::key_of(bool by_hand, std::string_view name,
                               const wire::Nonce& id) const noexcept {
    return by_hand ? hash_.of(name.data(), name.size())
                   : hash_.of(id.octets.data(), id.octets.size());
}

void JobIndex::add(JobRecord& record) {
    by_key_.add(key_of(record.by_hand, record.name, record.nonce), &record);
    for (const LocalRank& local : record.locals)
        claim(local.endpoint, record);
}

void JobIndex::remove(JobRecord& record) {
    by_key_.remove(key_of(record.by_hand, record.name, record.nonce), &record);
    for (const LocalRank& local : record.locals)
        release(local.endpoint, record);
}

const wire::JobKey* JobIndex::key_of_ended(const wire::Nonce& id,
                                           std::span<const EndedJob> jobs) const noexcept {
    for (const std::uint32_t place : ended_.find(of(id)))
        if (jobs[place].id == id) return &jobs[place].key;
    return nullptr;
}

}  // namespace ulc::jobs
