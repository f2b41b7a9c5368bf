// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/job_index.h"

#include <algorithm>
#include <cstring>

#include "jobs/job_records.h"
#include "wire/node_address.h"

namespace ulc::jobs {
namespace {

/// Calls of_node(node) for each node of which the record knows ranks, and of_rank(node, endpoint).
template <typename OfNode, typename OfRank>
void for_each_peer(const JobRecord& record, const OfNode& of_node, const OfRank& of_rank) {
    const Mac* node = nullptr;
    for (const Rank rank : record.by_mac) {
        const urtp::Peer& peer = record.roster[rank];
        if (node == nullptr || *node != peer.mac) of_node(peer.mac);
        node = &peer.mac;
        of_rank(peer.mac, peer.handle);
    }
    const Assembly* held = record.assembly.get();
    if (!record.by_mac.empty() || held == nullptr || !held->watched) return;
    of_node(held->publisher);
    of_rank(held->publisher, held->peers[0].handle);
}

}  // namespace

std::uint64_t JobIndex::key_of(const Mac& node, Handle endpoint) const noexcept {
    std::byte name[sizeof node + sizeof endpoint];
    std::memcpy(name, &node, sizeof node);
    std::memcpy(name + sizeof node, &endpoint, sizeof endpoint);
    return hash_.of(name, sizeof name);
}

std::uint64_t JobIndex::key_of(bool by_hand, std::string_view name,
                               const wire::Nonce& id) const noexcept {
    return by_hand ? hash_.of(name.data(), name.size())
                   : hash_.of(id.octets.data(), id.octets.size());
}

void JobIndex::add(JobRecord& record) {
    by_key_.add(key_of(record.by_hand, record.name, record.nonce), &record);
    for (const LocalRank& local : record.locals)
        claim(local.endpoint, record);
    list_peers(record);
    for (const Rank rank : record.excluded)
        exclude(record, rank);
}

void JobIndex::remove(JobRecord& record) {
    by_key_.remove(key_of(record.by_hand, record.name, record.nonce), &record);
    for (const LocalRank& local : record.locals)
        release(local.endpoint, record);
    unlist_peers(record);
    for (const Rank rank : record.excluded)
        excluded_.remove(number_of(record.roster[rank].mac), {&record, rank});
}

bool JobIndex::is_listed(const JobRecord& record, std::uint64_t peer) const noexcept {
    const auto there = by_peer_.find(peer);
    return std::ranges::find(there, &record) != there.end();
}

void JobIndex::list_peers(JobRecord& record) {
    for_each_peer(
        record, [&](const Mac& node) { by_node_.add(number_of(node), &record); },
        [&](const Mac& node, Handle endpoint) {
            // Ranks of a roster may claim one endpoint: the record is listed once.
            const std::uint64_t key = key_of(node, endpoint);
            if (!is_listed(record, key)) by_peer_.add(key, &record);
        });
}

void JobIndex::unlist_peers(JobRecord& record) {
    for_each_peer(
        record, [&](const Mac& node) { by_node_.remove(number_of(node), &record); },
        [&](const Mac& node, Handle endpoint) {
            const std::uint64_t key = key_of(node, endpoint);
            if (is_listed(record, key)) by_peer_.remove(key, &record);
        });
}

void JobIndex::exclude(const JobRecord& record, Rank rank) {
    excluded_.add(number_of(record.roster[rank].mac), {&record, rank});
}

std::span<JobRecord* const> JobIndex::at_node(const Mac& node) const noexcept {
    return by_node_.all(number_of(node));
}

std::span<const ExcludedRank> JobIndex::excluded_at(const Mac& node) const noexcept {
    return excluded_.all(number_of(node));
}

const wire::JobKey* JobIndex::key_of_ended(const wire::Nonce& id,
                                           std::span<const EndedJob> jobs) const noexcept {
    for (const std::uint32_t place : ended_.find(of(id)))
        if (jobs[place].id == id) return &jobs[place].key;
    return nullptr;
}

}  // namespace ulc::jobs
