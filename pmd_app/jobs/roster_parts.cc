// SPDX-License-Identifier: BSD-3-Clause
// Attributes of the nodes of a job that is published here, and the parts of its roster, which each
// node can take (docs/protocol/JOBS.md §7.3).
#include <algorithm>
#include <numeric>
#include <utility>

#include "jobs/job_records.h"
#include "wire/mac_text.h"

namespace ulc::jobs {

// J-39, J-47
void Jobs::Impl::settle_attributes(JobRecord& record) {
    record.mtu = attributes.mtu;
    record.has_bonds = attributes.links > 1;
    for (const RemoteClaim& claim : record.publisher->claims) {
        if (claim.handle == 0) continue;
        wire::NodeAttributes its;
        ULC_CHECK(wire::parse_attributes(std::as_bytes(std::span(claim.attributes)), its));
        record.mtu = std::min(record.mtu, its.mtu);
        record.has_bonds = record.has_bonds || its.links > 1;
        record.patience = std::max(record.patience, its.patience_ms * kMillisecond);
    }
}

std::vector<Mac> Jobs::Impl::bonded_of(const JobRecord& record) const {
    std::vector<Mac> bonded;
    for (const RemoteClaim& claim : record.publisher->claims) {
        if (claim.handle == 0 || claim.mac == config.mac) continue;
        wire::NodeAttributes its;
        ULC_CHECK(wire::parse_attributes(std::as_bytes(std::span(claim.attributes)), its));
        if (its.links > 1) bonded.push_back(claim.mac);
    }
    return bonded;
}

// A job that formed before the links of its nodes are proved would use one of them, and the others
// would join in its streams, which costs bulk some hundred milliseconds.
bool Jobs::Impl::waits_for_proofs(std::span<const Mac> bonded, Nanos until, Nanos now) const {
    return now < until && !std::ranges::all_of(bonded, [this](const Mac& node) {
               return addresses.is_settled(node);
           });
}

wire::NodeAttributes Jobs::Impl::attributes_in(const JobRecord& record) const noexcept {
    wire::NodeAttributes its = attributes;
    its.patience_ms = static_cast<std::uint32_t>(
        std::min(record.patience / kMillisecond, Nanos{wire::kPatienceMsMax}));
    return its;
}

wire::AttributeOctets Jobs::Impl::attributes_of(const JobRecord& record, Rank rank) const {
    const RemoteClaim& claim = record.publisher->claims[rank];
    if (claim.handle == 0) return wire::octets_of(attributes_in(record));
    wire::AttributeOctets octets;
    for (const std::uint8_t octet : claim.attributes)
        ULC_CHECK(octets.push_back(static_cast<std::byte>(octet)));
    return octets;
}

bool Jobs::Impl::cut_parts(JobRecord& record) {
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

std::uint16_t Jobs::Impl::padding_of(const JobRecord& record, std::uint16_t mtu,
                                     std::size_t octets) const noexcept {
    octets += sizeof(wire::Header) + (record.by_hand ? 0 : sizeof(wire::JobTag)) +
              (config.crc ? sizeof(Be32) : 0);
    return octets < mtu ? static_cast<std::uint16_t>(mtu - octets) : std::uint16_t{0};
}

// J-44
void Jobs::Impl::shorten(JobRecord& record, Nanos now) {
    Publisher& publisher = *record.publisher;
    const auto lost = std::ranges::find(publisher.engines, false, &RosterEngine::acknowledged);
    ULC_CHECK(lost != publisher.engines.end());
    JobEvent event;
    event.kind = JobEventKind::kShortened;
    event.job = record.id;
    event.first = lost->mac;
    event.text = "frames of " + std::to_string(record.mtu) + " bytes do not pass to or from node " +
                 text_of(lost->mac) + ": this job sends " + std::to_string(config.mtu_sure) +
                 "; raise the MTU of the switches and routers between, or lower it on the nodes";
    events.push_back(std::move(event));
    record.mtu = config.mtu_sure;
    publisher.roster = ++last_roster;
    ULC_CHECK(cut_parts(record));  // into the same parts
    start_rounds(record, PublisherStage::kRoster, publisher.parts, now);
}

}  // namespace ulc::jobs
