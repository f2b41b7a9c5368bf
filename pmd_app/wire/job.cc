// SPDX-License-Identifier: BSD-3-Clause
// Job and node bodies. Like wire/parse.cc: strangers' bytes, so ranges are checked and nothing is
// asserted. Lengths must agree exactly with the counts inside; reserved fields must be zero.
#include "wire/job.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace ulc::wire {
namespace {

/// Walks a body; take() fails rather than pass the end.
class Reader {
public:
    Reader(const std::byte* at, std::size_t left) noexcept : at_(at), left_(left) {}

    template <typename T>
    [[nodiscard]] const T* take(std::size_t count = 1) noexcept {
        static_assert(alignof(T) == 1);
        if (count > left_ / sizeof(T)) return nullptr;
        const T* taken = reinterpret_cast<const T*>(at_);
        at_ += count * sizeof(T);
        left_ -= count * sizeof(T);
        return taken;
    }
    [[nodiscard]] bool take_octets(std::size_t count, std::span<const std::byte>& out) noexcept {
        const std::byte* taken = take<std::byte>(count);
        if (taken != nullptr) out = std::span(taken, count);
        return taken != nullptr;
    }
    /// Takes octets that must be zeros.
    [[nodiscard]] bool take_padding(std::size_t count) noexcept {
        std::span<const std::byte> taken;
        return take_octets(count, taken) &&
               std::ranges::all_of(taken, [](std::byte octet) { return octet == std::byte{0}; });
    }
    [[nodiscard]] bool at_end() const noexcept { return left_ == 0; }

private:
    const std::byte* at_;
    std::size_t left_;
};

bool is_endpoint(std::uint32_t handle) noexcept { return handle != 0 && !is_group(handle); }

bool is_unicast(const Mac& mac) noexcept { return (mac.octets[0] & 1U) == 0 && mac != Mac{}; }

bool is_reason(LeaveReason reason) noexcept {
    return reason == LeaveReason::kLeft || reason == LeaveReason::kDied;
}

bool parse_head(Reader& reader, JobBodyView& out) noexcept {
    const auto* head = reader.take<JobHead>();
    if (head == nullptr) return false;
    if (head->reserved != 0 || (head->flags & ~(kJobByHand | kJobIntroduces)) != 0) return false;
    if (head->name_octets == 0 || head->name_octets > kJobNameOctets) return false;
    out.name = std::string_view(head->name.data(), head->name_octets);
    if (!is_job_name(out.name)) return false;
    const auto* rest = head->name.data() + head->name_octets;
    if (std::any_of(rest, head->name.data() + kJobNameOctets, [](char c) { return c != 0; })) {
        return false;
    }
    out.kind = head->kind;
    out.by_hand = (head->flags & kJobByHand) != 0;
    out.introduces = (head->flags & kJobIntroduces) != 0;
    out.nonce = head->nonce;
    if (out.introduces && out.kind != JobKind::kJoin) return false;
    return out.by_hand || !out.nonce.zero();
}

bool parse_join(Reader& reader, JobBodyView& out) noexcept {
    const auto* join = reader.take<JoinBody>();
    if (join == nullptr) return false;
    const std::uint16_t size = join->size;
    const std::uint16_t claims = join->claims;
    if (size == 0 || size == kNoRank || join->version_min > join->version_max) return false;
    if (join->incarnation == 0 || join->attribute_octets > kAttributeOctetsMax) return false;
    if (claims == 0 || claims > kJoinClaimsMax) return false;
    const auto& profile = join->profile;
    const auto* end = std::find(profile.begin(), profile.end(), char{0});
    if (std::any_of(end, profile.end(), [](char c) { return c != 0; })) return false;
    out.profile = std::string_view(profile.begin(), end);
    if (!is_profile(out.profile)) return false;
    const auto* first = reader.take<JoinClaim>(claims);
    if (first == nullptr) return false;
    out.join = join;
    out.claims = std::span(first, claims);
    if (!reader.take_octets(join->attribute_octets, out.attribute_octets) ||
        !parse_attributes(out.attribute_octets, out.attributes))
        return false;
    return std::all_of(out.claims.begin(), out.claims.end(), [size](const JoinClaim& claim) {
        return claim.rank < size && is_endpoint(claim.handle);
    });
}

/// Takes the attributes of the entries, and judges each.
bool parse_roster_attributes(Reader& reader, JobBodyView& out) noexcept {
    std::size_t octets = 0;
    for (const RosterEntry& entry : out.entries)
        octets += entry.attribute_octets;
    if (!reader.take_octets(octets, out.attribute_octets)) return false;
    std::size_t at = 0;
    for (const RosterEntry& entry : out.entries) {
        NodeAttributes attributes;
        if (!parse_attributes(out.attribute_octets.subspan(at, entry.attribute_octets), attributes))
            return false;
        at += entry.attribute_octets;
    }
    return true;
}

bool parse_roster(Reader& reader, JobBodyView& out) noexcept {
    const auto* roster = reader.take<RosterBody>();
    if (roster == nullptr || roster->version < kVersionOfAttributes) return false;
    const std::uint32_t size = roster->size;
    const std::uint16_t entries = roster->entries;
    if (size == 0 || size == kNoRank || !is_group(roster->world)) return false;
    if (roster->mtu < kMtuMin || roster->reserved != 0) return false;
    std::span<const std::byte> of_job;
    if (roster->attribute_octets > kJobAttributeOctetsMax ||
        !reader.take_octets(roster->attribute_octets, of_job) || !are_items(of_job))
        return false;
    if (roster->parts == 0 || roster->parts > kRosterPartsMax || roster->part >= roster->parts) {
        return false;
    }
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
    if (entries == 0 || std::uint32_t{roster->first_rank} + entries > size) return false;
#endif
    const auto* first = reader.take<RosterEntry>(entries);
    if (first == nullptr || out.nonce.zero()) return false;
    out.roster = roster;
    out.entries = std::span(first, entries);
    if (!parse_roster_attributes(reader, out) || !reader.take_padding(roster->padding))
        return false;
    return std::all_of(out.entries.begin(), out.entries.end(), [](const RosterEntry& entry) {
        return is_unicast(entry.mac) && is_endpoint(entry.handle) && entry.incarnation != 0;
    });
}

bool parse_roster_ack(Reader& reader, JobBodyView& out) noexcept {
    const auto* ack = reader.take<RosterAckBody>();
    if (ack == nullptr) return false;
    const std::size_t parts = ack->parts;
    const std::size_t octets = ack->bitmap_octets;
    if (parts == 0 || parts > kRosterPartsMax) return false;
    switch (ack->state) {
        case RosterAckState::kPartial:
            if (octets != (parts + 7) / 8) return false;
            break;
        case RosterAckState::kHolds:
        case RosterAckState::kFormed:
        case RosterAckState::kRefused:
            if (octets != 0) return false;
            break;
        default:
            return false;
    }
    const auto* bitmap = reader.take<std::byte>(octets);
    if (bitmap == nullptr || !reader.take_padding(ack->padding)) return false;
    if (ack->padding > 0 && ack->state != RosterAckState::kHolds) return false;
    out.ack = ack;
    out.ack_bitmap = std::span(bitmap, octets);
    return true;
}

bool parse_reject(Reader& reader, JobBodyView& out) noexcept {
    const auto* reject = reader.take<RejectBody>();
    if (reject == nullptr || reject->reserved != 0) return false;
    switch (static_cast<Err>(std::uint32_t{reject->error})) {
        case Err::kJobSize:
        case Err::kRankTaken:
        case Err::kTwoRosters:
        case Err::kVersion:
        case Err::kProfile:
        case Err::kLimit:
            break;
        default:
            return false;
    }
    out.reject = reject;
    return reject->scope == RejectScope::kClaim ? is_endpoint(reject->handle)
                                                : reject->scope == RejectScope::kJob;
}

bool parse_bye(Reader& reader, JobBodyView& out) noexcept {
    const auto* bye = reader.take<ByeBody>();
    if (bye == nullptr || bye->reserved != 0) return false;
    out.bye = bye;
    return bye->rank != kNoRank && is_reason(bye->reason) && is_endpoint(bye->handle);
}

bool parse_commit(Reader& reader, JobBodyView& out) noexcept {
    out.commit = reader.take<CommitBody>();
    return out.commit != nullptr && out.commit->reserved == 0 && !out.nonce.zero();
}

template <typename Body>
std::size_t put(std::byte* body, const JobHead& head, const Body& fixed, const void* tail,
                std::size_t tail_octets) noexcept {
    std::memcpy(body, &head, sizeof head);
    std::memcpy(body + sizeof head, &fixed, sizeof fixed);
    if (tail_octets > 0) std::memcpy(body + sizeof head + sizeof fixed, tail, tail_octets);
    return sizeof head + sizeof fixed + tail_octets;
}

std::size_t append(std::byte* body, std::size_t octets, std::span<const std::byte> tail) noexcept {
    if (!tail.empty()) std::memcpy(body + octets, tail.data(), tail.size());
    return octets + tail.size();
}

}  // namespace

bool is_job_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > kJobNameOctets) return false;
    return std::none_of(name.begin(), name.end(), [](char c) {
        const auto octet = static_cast<unsigned char>(c);
        return octet < 0x20 || octet == 0x7f;
    });
}

bool is_profile(std::string_view profile) noexcept {
    if (profile.empty() || profile.size() > kProfileOctets) return false;
    return std::all_of(profile.begin(), profile.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+';
    });
}

std::array<char, kProfileOctets> profile_field(std::string_view profile) noexcept {
    ULC_CHECK(is_profile(profile));
    std::array<char, kProfileOctets> field{};
    std::copy(profile.begin(), profile.end(), field.begin());
    return field;
}

bool parse_job(const std::byte* body, std::size_t octets, JobBodyView& out) noexcept {
    out = JobBodyView{};
    Reader reader(body, octets);
    if (!parse_head(reader, out)) return false;
    bool ok = false;
    switch (out.kind) {
        case JobKind::kJoin:
            ok = parse_join(reader, out);
            break;
        case JobKind::kRoster:
            ok = parse_roster(reader, out);
            break;
        case JobKind::kRosterAck:
            ok = parse_roster_ack(reader, out);
            break;
        case JobKind::kReject:
            ok = parse_reject(reader, out);
            break;
        case JobKind::kBye:
            ok = parse_bye(reader, out);
            break;
        case JobKind::kCommit:
            ok = parse_commit(reader, out);
            break;
    }
    if (!ok) return false;
    if (!out.by_hand) {
        out.old = out.kind == JobKind::kJoin && out.join->version_max < kVersionOfKeys;
        if (out.old) return reader.at_end();
        out.tagged = std::span(body, octets - std::min(octets, sizeof(JobTag)));
        out.tag = reader.take<JobTag>();
        if (out.tag == nullptr) return false;
    }
    return reader.at_end();
}

namespace {

/// Returns whether the entries are those of no mesh, or of a row and a column of one.
bool are_segments_whole(std::span<const LinkEntry> links) noexcept {
    const bool meshed = links.size() == 2 && links[0].segment != 0;
    for (const LinkEntry& link : links)
        if ((link.segment != 0) != meshed || link.segment > kMeshLinesMax) return false;
    return true;
}

/// Takes the entries of LINKS: as many as the length says, with different addresses.
bool parse_links(const std::byte* at, std::size_t octets, NodeView& out) noexcept {
    const std::size_t count = octets / sizeof(LinkEntry);
    if (octets % sizeof(LinkEntry) != 0 || count == 0 || count > kNodeLinksMax) return false;
    out.links = {reinterpret_cast<const LinkEntry*>(at), count};
    for (std::size_t n = 0; n < count; ++n) {
        if (!is_unicast(out.links[n].mac)) return false;
        for (std::size_t other = 0; other < n; ++other)
            if (out.links[other].mac == out.links[n].mac) return false;
    }
    return are_segments_whole(out.links);
}

/// Takes what stands behind the head of LINKS or LINKS_REPLY.
bool parse_announcement(const std::byte* at, std::size_t octets, NodeView& out) noexcept {
    out.number = out.token;
    if (out.kind == NodeKind::kLinks) return parse_links(at, octets, out);
    if (octets < sizeof(Be64)) return false;
    out.number = *reinterpret_cast<const Be64*>(at);
    return parse_links(at + sizeof(Be64), octets - sizeof(Be64), out);
}

}  // namespace

bool parse_node(const std::byte* body, std::size_t octets, NodeView& out) noexcept {
    if (octets < sizeof(NodeBody)) return false;
    const std::size_t beyond = octets - sizeof(NodeBody);
    out.links = {};
    out.number = 0;
    const auto& node = *reinterpret_cast<const NodeBody*>(body);
    out.kind = node.kind;
    out.reason = node.reason;
    out.incarnation = node.incarnation;
    out.token = node.token;
    out.ours = node.ours;
    out.theirs = node.theirs;
    if (node.reserved != 0 || out.incarnation == 0) return false;
    if (is_group(out.ours) || is_group(out.theirs)) return false;
    if (out.kind != NodeKind::kGone && out.reason != LeaveReason{} &&
        (out.kind != NodeKind::kExpelled || out.reason != LeaveReason::kExcluded))
        return false;
    const bool announces = out.kind == NodeKind::kLinks || out.kind == NodeKind::kLinksReply;
    if (announces) {
        if (out.token == kNoToken || out.ours != 0 || out.theirs != 0) return false;
        return parse_announcement(body + sizeof(NodeBody), beyond, out);
    }
    if (beyond != 0) return false;
    switch (out.kind) {
        case NodeKind::kLinks:  // above
        case NodeKind::kLinksReply:
            break;
        case NodeKind::kPing:
            return out.token != kNoToken;
        case NodeKind::kPong:
        case NodeKind::kEchoRequest:
        case NodeKind::kEchoReply:
            return out.token != kNoToken && out.ours == 0 && out.theirs == 0;
        case NodeKind::kLinksRequest:
            return out.token != kNoToken && out.ours <= 1 && out.theirs == 0;
        case NodeKind::kGone:
            return is_reason(out.reason) && out.ours != 0 && out.theirs == 0;
        case NodeKind::kExpelled:
            return out.ours == 0 && out.theirs != 0;
    }
    return false;
}

JobHead job_head(JobKind kind, std::string_view name, const Nonce& nonce, bool by_hand,
                 std::uint8_t flags) noexcept {
    ULC_CHECK(is_job_name(name));
    JobHead head;
    head.kind = kind;
    head.flags = static_cast<std::uint8_t>(flags | (by_hand ? kJobByHand : 0));
    head.name_octets = static_cast<std::uint8_t>(name.size());
    std::copy(name.begin(), name.end(), head.name.begin());
    head.nonce = nonce;
    return head;
}

std::size_t put_join(std::byte* body, const JobHead& head, const JoinBody& join,
                     std::span<const JoinClaim> claims,
                     std::span<const std::byte> attributes) noexcept {
    ULC_CHECK(!claims.empty() && claims.size() <= kJoinClaimsMax && join.claims == claims.size());
    ULC_CHECK(join.attribute_octets == attributes.size());
    const std::size_t octets = put(body, head, join, claims.data(), claims.size_bytes());
    return append(body, octets, attributes);
}

std::size_t put_roster(std::byte* body, const JobHead& head, const RosterBody& roster,
                       std::span<const RosterEntry> entries,
                       std::span<const std::byte> attributes) noexcept {
    ULC_CHECK(!entries.empty() && roster.entries == entries.size());
    std::size_t octets = put(body, head, roster, entries.data(), entries.size_bytes());
    octets = append(body, octets, attributes);
    std::memset(body + octets, 0, roster.padding);
    return octets + roster.padding;
}

std::size_t put_roster_ack(std::byte* body, const JobHead& head, const RosterAckBody& ack,
                           std::span<const std::byte> bitmap) noexcept {
    ULC_CHECK(ack.bitmap_octets == bitmap.size() && bitmap.size() <= kRosterBitmapOctetsMax);
    const std::size_t octets = put(body, head, ack, bitmap.data(), bitmap.size());
    std::memset(body + octets, 0, ack.padding);
    return octets + ack.padding;
}

std::size_t put_reject(std::byte* body, const JobHead& head, const RejectBody& reject) noexcept {
    return put(body, head, reject, nullptr, 0);
}

std::size_t put_bye(std::byte* body, const JobHead& head, const ByeBody& bye) noexcept {
    return put(body, head, bye, nullptr, 0);
}

std::size_t put_commit(std::byte* body, const JobHead& head, const CommitBody& commit) noexcept {
    return put(body, head, commit, nullptr, 0);
}

std::size_t put_node(std::byte* body, const NodeBody& node) noexcept {
    std::memcpy(body, &node, sizeof node);
    return sizeof node;
}

namespace {

std::size_t put_entries(std::byte* at, std::span<const NodeAddress> links) noexcept {
    ULC_CHECK(!links.empty() && links.size() <= kNodeLinksMax);
    std::size_t octets = 0;
    for (const NodeAddress& link : links) {
        const LinkEntry entry{link.mac, link.segment, link.megabits};
        std::memcpy(at + octets, &entry, sizeof entry);
        octets += sizeof entry;
    }
    return octets;
}

}  // namespace

std::size_t put_links(std::byte* body, const NodeBody& node,
                      std::span<const NodeAddress> links) noexcept {
    ULC_CHECK(node.kind == NodeKind::kLinks);
    const std::size_t octets = put_node(body, node);
    return octets + put_entries(body + octets, links);
}

std::size_t put_links_reply(std::byte* body, const NodeBody& node, std::uint64_t number,
                            std::span<const NodeAddress> links) noexcept {
    ULC_CHECK(node.kind == NodeKind::kLinksReply);
    const Be64 wire_number = number;
    std::size_t octets = put_node(body, node);
    std::memcpy(body + octets, &wire_number, sizeof wire_number);
    octets += sizeof wire_number;
    return octets + put_entries(body + octets, links);
}

}  // namespace ulc::wire
