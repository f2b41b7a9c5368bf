// SPDX-License-Identifier: BSD-3-Clause
// This node as its jobs show it to others: its configuration and attributes, its random numbers,
// and the parts that its JOB frames have in common. Used by all parts of jobs/jobs.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.h"
#include "jobs/jobs.h"
#include "seal/tokens.h"
#include "wire/job_key.h"

namespace ulc::jobs {

struct JobRecord;

/// Parts of jobs that have a seed each, of JobsConfig::seed.
enum SeedPart : std::uint64_t { kJobsSeed, kLinksSeed, kLivenessSeed, kAddressesSeed, kPortSeed };

class OwnNode {
public:
    explicit OwnNode(const JobsConfig& config);

    [[nodiscard]] const JobsConfig& config() const noexcept { return config_; }
    [[nodiscard]] const wire::NodeAttributes& attributes() const noexcept { return attributes_; }
    /// Returns the attributes of this node in that job, which knows its patience.
    [[nodiscard]] wire::NodeAttributes attributes_in(const JobRecord& record) const noexcept;
    /// Requires at least wire::kMtuMin and at most JobsConfig::mtu.
    void set_mtu(std::uint16_t mtu);
    void set_links(std::size_t links) noexcept {
        attributes_.links = static_cast<std::uint8_t>(links);
    }

    // --- random numbers
    [[nodiscard]] std::uint32_t next_number() noexcept {
        return static_cast<std::uint32_t>(tokens_.next());
    }
    /// Returns a nonce, never zeros.
    [[nodiscard]] wire::Nonce next_nonce() noexcept;
    /// Returns a time below size × answer_slot, by which answers to a broadcast are spread.
    [[nodiscard]] Nanos jitter(const JobRecord& record) noexcept;

    // --- frames: `body` stands at wire::kHeadOctets of a frame; each returns its octets
    /// Appends the tag of a job with a key.
    [[nodiscard]] std::size_t tagged(bool by_hand, const wire::JobKey& key, std::byte* body,
                                     std::size_t octets) const noexcept;
    /// Writes a JOIN of the record's job with these claims.
    [[nodiscard]] std::size_t put_claims(const JobRecord& record, std::byte* body,
                                         std::span<const wire::JoinClaim> claims,
                                         std::uint8_t flags,
                                         std::span<const std::byte> its_attributes) const;
    /// Writes the JOIN that introduces this node as that of rank 0, before it rejects a claim.
    [[nodiscard]] std::size_t put_introduction(const JobRecord& record, std::byte* body) const;
    /// Returns the octets that make a JOB frame of that record as long as a packet may be.
    [[nodiscard]] std::uint16_t padding_of(const JobRecord& record, std::uint16_t mtu,
                                           std::size_t octets) const noexcept;
    /// Writes the headers of a frame with that body. Returns the octets of the frame.
    [[nodiscard]] std::size_t complete(std::byte* frame, const Mac& to, wire::FrameType type,
                                       std::size_t octets) const noexcept;

    void check_invariants() const;
    void fields(state::Archive& archive);

private:
    JobsConfig config_;
    wire::NodeAttributes attributes_;
    seal::Tokens tokens_;
};

}  // namespace ulc::jobs
