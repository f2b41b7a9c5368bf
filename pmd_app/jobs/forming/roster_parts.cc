// SPDX-License-Identifier: BSD-3-Clause
// The parts of a roster, which each node can take (docs/protocol/JOBS.md §7.3), and their frames.
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "jobs/forming/roster_publisher.h"

namespace ulc::jobs {

wire::AttributeOctets RosterPublisher::attributes_of(const JobRecord& record, Rank rank) const {
    const RemoteClaim& claim = record.publisher->claims[rank];
    if (claim.handle == 0) return wire::octets_of(node_.attributes_in(record));
    wire::AttributeOctets octets;
    for (const std::uint8_t octet : claim.attributes)
        ULC_CHECK(octets.push_back(static_cast<std::byte>(octet)));
    return octets;
}

bool RosterPublisher::cut_parts(JobRecord& record) const {
    const JobsConfig& config = node_.config();
    Publisher& publisher = *record.publisher;
    publisher.leads.assign(record.size, false);
    std::vector<Rank> by_node(record.size);
    std::iota(by_node.begin(), by_node.end(), Rank{0});
    const auto node = [&](Rank rank) { return record.roster[rank].mac; };
    std::sort(by_node.begin(), by_node.end(),
              [&](Rank a, Rank b) { return node(a) == node(b) ? a < b : node(a) < node(b); });
    for (std::size_t i = 0; i < by_node.size(); ++i)
        publisher.leads[by_node[i]] = i == 0 || node(by_node[i]) != node(by_node[i - 1]);
    publisher.pads = record.mtu > config.mtu_sure;
    const std::size_t fit = wire::roster_part_octets(std::min(record.mtu, config.mtu_sure), 0);
    publisher.part_first.assign(1, 0);
    std::size_t used = 0;
    for (Rank rank = 0; rank < record.size; ++rank) {
        std::size_t octets = sizeof(wire::RosterEntry);
        if (publisher.leads[rank]) octets += attributes_of(record, rank).size();
        if (used + octets > fit) {
            publisher.part_first.push_back(rank);
            used = 0;
        }
        used += octets;
    }
    publisher.part_first.push_back(record.size);
    return publisher.part_first.size() <= wire::kRosterPartsMax + 1;
}

std::size_t RosterPublisher::put_part(JobRecord& record, std::byte* body, Mac& to, Nanos now) {
    Publisher* publisher = record.publisher.get();
    if (publisher == nullptr || publisher->due_count == 0) return 0;
    const auto due = std::find(publisher->due.begin(), publisher->due.end(), true);
    ULC_CHECK(due != publisher->due.end());
    *due = false;
    if (--publisher->due_count == 0) {
        publisher->round_at = now + publisher->wait + record.size * node_.config().answer_slot;
        publisher->wait = std::min(publisher->wait * 2, node_.config().roster_wait_max);
    }
    if (publisher->waiting == 1) {
        const auto last = std::find_if(publisher->engines.begin(), publisher->engines.end(),
                                       [](const RosterEngine& e) { return !e.acknowledged; });
        to = last->mac;
    }
    if (publisher->stage == PublisherStage::kCommit) {
        wire::CommitBody commit{};
        commit.roster = publisher->roster;
        const std::size_t octets = wire::put_commit(
            body, wire::job_head(wire::JobKind::kCommit, record.name, record.nonce, record.by_hand),
            commit);
        return node_.tagged(record.by_hand, record.key, body, octets);
    }
    const auto part = static_cast<std::size_t>(due - publisher->due.begin());
    const bool pads = part == publisher->parts;
    return put_roster(record, pads ? 0 : part, pads, body);
}

std::size_t RosterPublisher::put_roster(const JobRecord& record, std::size_t part, bool pads,
                                        std::byte* body) const {
    const Publisher* publisher = record.publisher.get();
    const std::size_t first = publisher->part_first[part];
    const std::size_t count = publisher->part_first[part + 1] - first;
    std::vector<wire::RosterEntry> entries(count);
    std::vector<std::byte> attributes_of_all;
    for (std::size_t i = 0; i < count; ++i) {
        const auto rank = static_cast<Rank>(first + i);
        const urtp::Peer& peer = record.roster[rank];
        entries[i].mac = peer.mac;
        entries[i].handle = peer.handle;
        entries[i].incarnation = peer.incarnation;
        if (!publisher->leads[rank]) continue;
        const wire::AttributeOctets octets = attributes_of(record, rank);
        entries[i].attribute_octets = static_cast<std::uint8_t>(octets.size());
        attributes_of_all.insert(attributes_of_all.end(), octets.begin(), octets.end());
    }
    wire::RosterBody roster{};
    roster.roster = publisher->roster;
    roster.world = record.world;
    roster.first_seq = record.first_seq.value;
    roster.size = record.size;
    roster.part = static_cast<std::uint16_t>(part);
    roster.parts = publisher->parts;
    roster.first_rank = static_cast<std::uint16_t>(first);
    roster.entries = static_cast<std::uint16_t>(count);
    roster.version = record.version;
    roster.medium = static_cast<std::uint8_t>(record.medium);
    roster.mtu = record.mtu;
    if (pads)
        roster.padding = node_.padding_of(record, record.mtu,
                                          sizeof(wire::JobHead) + sizeof roster +
                                              entries.size() * sizeof(wire::RosterEntry) +
                                              attributes_of_all.size());
    const std::size_t octets = wire::put_roster(
        body, wire::job_head(wire::JobKind::kRoster, record.name, record.nonce, record.by_hand),
        roster, entries, attributes_of_all);
    return node_.tagged(record.by_hand, record.key, body, octets);
}

}  // namespace ulc::jobs
