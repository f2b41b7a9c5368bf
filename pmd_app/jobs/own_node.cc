// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/own_node.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "jobs/job_records.h"
#include "wire/build.h"

namespace ulc::jobs {

OwnNode::OwnNode(const JobsConfig& config)
    : config_(config), attributes_{config.mtu, 1}, tokens_(config.seed.of(kJobsSeed)) {
    ULC_CHECK(config.incarnation != 0 && config.jobs_max > 0 && config.mtu >= wire::kMtuMin);
    config_.ranks_max = std::min<std::uint16_t>(config.ranks_max, kNoRank - 1);
}

wire::NodeAttributes OwnNode::attributes_in(const JobRecord& record) const noexcept {
    wire::NodeAttributes its = attributes_;
    its.patience_ms = static_cast<std::uint32_t>(
        std::min(record.patience / kMillisecond, Nanos{wire::kPatienceMsMax}));
    return its;
}

void OwnNode::set_mtu(std::uint16_t mtu) {
    ULC_CHECK(mtu >= wire::kMtuMin && mtu <= config_.mtu);
    attributes_.mtu = mtu;
}

// ------------------------------------------------------------------------------ random numbers

wire::Nonce OwnNode::next_nonce() noexcept {
    wire::Nonce nonce;
    for (auto& octet : nonce.octets)
        octet = static_cast<std::uint8_t>(tokens_.next());
    nonce.octets[0] |= 1U;
    return nonce;
}

Nanos OwnNode::jitter(const JobRecord& record) noexcept {
    return static_cast<Nanos>(
        tokens_.below(static_cast<std::uint64_t>(record.size * config_.answer_slot)));
}

// ------------------------------------------------------------------------------ frames

std::size_t OwnNode::tagged(bool by_hand, const wire::JobKey& key, std::byte* body,
                            std::size_t octets) const noexcept {
    if (by_hand || octets == 0) return octets;
    const wire::JobTag tag = wire::job_tag(key, config_.mac, std::span(body, octets));
    std::memcpy(body + octets, &tag, sizeof tag);
    return octets + sizeof tag;
}

std::size_t OwnNode::put_claims(const JobRecord& record, std::byte* body,
                                std::span<const wire::JoinClaim> claims, std::uint8_t flags,
                                std::span<const std::byte> its_attributes) const {
    wire::JoinBody join{};
    join.size = record.size;
    join.version_min = config_.version_min;
    join.version_max = config_.version_max;
    join.incarnation = config_.incarnation;
    join.claims = static_cast<std::uint16_t>(claims.size());
    join.attribute_octets = static_cast<std::uint16_t>(its_attributes.size());
    join.profile = wire::profile_field(record.profile);
    const wire::JobHead head =
        wire::job_head(wire::JobKind::kJoin, record.name, record.nonce, record.by_hand, flags);
    return tagged(record.by_hand, record.key, body,
                  wire::put_join(body, head, join, claims, its_attributes));
}

std::size_t OwnNode::put_introduction(const JobRecord& record, std::byte* body) const {
    wire::JoinClaim claim{};
    claim.handle = record.publisher->rank0;
    return put_claims(record, body, std::span(&claim, 1), wire::kJobIntroduces, {});
}

std::uint16_t OwnNode::padding_of(const JobRecord& record, std::uint16_t mtu,
                                  std::size_t octets) const noexcept {
    octets += sizeof(wire::Header) + (record.by_hand ? 0 : sizeof(wire::JobTag)) +
              (config_.crc ? sizeof(Be32) : 0);
    return octets < mtu ? static_cast<std::uint16_t>(mtu - octets) : std::uint16_t{0};
}

std::size_t OwnNode::complete(std::byte* frame, const Mac& to, wire::FrameType type,
                              std::size_t octets) const noexcept {
    wire::FrameHead head;
    head.destination = to;
    head.source = config_.mac;
    head.ether_type = config_.ether_type;
    head.crc = config_.crc;
    head.type = type;
    return wire::build_control(frame, head, octets);
}

void OwnNode::check_invariants() const {
    ULC_CHECK(attributes_.mtu >= wire::kMtuMin && attributes_.mtu <= config_.mtu);
}

}  // namespace ulc::jobs
