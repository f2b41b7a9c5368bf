// SPDX-License-Identifier: BSD-3-Clause
#include "wire/link.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace ulc::wire {
namespace {

bool is_endpoint(Handle handle) noexcept { return handle != 0 && !is_group(handle); }
bool is_unicast(const Mac& mac) noexcept { return (mac.octets[0] & 1U) == 0 && mac != Mac{}; }

bool is_refusal(std::uint8_t reason) noexcept {
    switch (static_cast<Err>(reason)) {
        case Err::kVersion:
        case Err::kClosed:
        case Err::kLimit:
        case Err::kProfile:
            return true;
        default:
            return false;
    }
}

bool is_reason(std::uint8_t reason) noexcept {
    return reason == static_cast<std::uint8_t>(LeaveReason::kLeft) ||
           reason == static_cast<std::uint8_t>(LeaveReason::kDied);
}

/// Slot and first number are those of the two kinds that make a link.
bool names_no_stream(const LinkView& view) noexcept {
    return view.slot == 0 && view.first_seq == Seq{};
}

/// Tells whether names and reason are those of the kind.
bool fields_fit(const LinkView& view, std::uint8_t reason) noexcept {
    const bool ours = view.ours != 0;
    const bool theirs = view.theirs != 0;
    switch (view.kind) {
        case LinkKind::kRequest:
            return ours && !theirs && reason == 0 && view.slot != kNoRank;
        case LinkKind::kAccept:
            return ours && theirs && reason == 0 && view.slot != kNoRank;
        case LinkKind::kConfirm:
            return ours && theirs && reason == 0 && names_no_stream(view);
        case LinkKind::kRefuse:
            return !ours && theirs && is_refusal(reason) && names_no_stream(view);
        case LinkKind::kUnlink:
            return ours && theirs && is_reason(reason) && names_no_stream(view);
        case LinkKind::kUnlinked:
            if (ours || reason != 0) return false;
            return theirs ? names_no_stream(view) : view.slot != kNoRank && view.first_seq == Seq{};
        case LinkKind::kWhere:
            return ours && theirs && reason == 0 && names_no_stream(view);
        case LinkKind::kHere:
            return !ours && theirs && reason == 0 && names_no_stream(view);
    }
    return false;
}

bool has_attributes(LinkKind kind) noexcept {
    return kind == LinkKind::kRequest || kind == LinkKind::kAccept;
}

/// Octets behind the fixed fields, without attributes.
std::size_t tail_octets(LinkKind kind) noexcept {
    switch (kind) {
        case LinkKind::kRequest:
            return sizeof(LinkProfile) + sizeof(JobTag);
        case LinkKind::kAccept:
        case LinkKind::kWhere:
        case LinkKind::kHere:
            return sizeof(JobTag);
        case LinkKind::kConfirm:
        case LinkKind::kRefuse:
        case LinkKind::kUnlink:
        case LinkKind::kUnlinked:
            break;
    }
    return 0;
}

bool parse_profile(const std::byte* at, std::string_view& out) noexcept {
    const auto& profile = *reinterpret_cast<const LinkProfile*>(at);
    const auto* end = std::find(profile.begin(), profile.end(), char{0});
    out = std::string_view(profile.begin(), end);
    return is_profile(out) && std::all_of(end, profile.end(), [](char c) { return c == 0; });
}

}  // namespace

bool parse_link(const std::byte* body, std::size_t octets, LinkView& out) noexcept {
    out = LinkView{};
    if (octets < sizeof(LinkBody)) return false;
    const auto& link = *reinterpret_cast<const LinkBody*>(body);
    out.kind = link.kind;
    out.version = link.version;
    out.incarnation = link.incarnation;
    out.ours = link.ours;
    out.theirs = link.theirs;
    out.from = link.from;
    out.to = link.to;
    out.slot = link.slot;
    out.first_seq = Seq{link.first_seq};
    if (link.reserved != 0 || out.version == 0 || out.incarnation == 0) return false;
    const std::size_t attribute_octets = link.attribute_octets;
    if (attribute_octets > (has_attributes(out.kind) ? kAttributeOctetsMax : 0)) return false;
    const bool hint = out.kind == LinkKind::kUnlinked && out.theirs == 0;
    const bool to_none = hint || out.kind == LinkKind::kWhere;
    if (!is_endpoint(out.from) || (to_none ? out.to != 0 : !is_endpoint(out.to))) return false;
    if (!fields_fit(out, link.reason)) return false;
    if (octets != sizeof(LinkBody) + tail_octets(out.kind) + attribute_octets) return false;
    if (out.kind == LinkKind::kRefuse) out.refused = static_cast<Err>(link.reason);
    if (out.kind == LinkKind::kUnlink) out.left = static_cast<LeaveReason>(link.reason);
    if (out.kind == LinkKind::kRequest && !parse_profile(body + sizeof link, out.profile))
        return false;
    if (tail_octets(out.kind) > 0) {
        out.tagged = std::span(body, octets - sizeof(JobTag));
        out.tag = reinterpret_cast<const JobTag*>(body + octets - sizeof(JobTag));
    }
    return attribute_octets == 0 ||
           parse_attributes(out.tagged.last(attribute_octets), out.attributes);
}

std::size_t put_link(std::byte* body, LinkBody link, std::string_view profile, const LinkKey& key,
                     const Mac& source, std::span<const std::byte> attributes) noexcept {
    ULC_CHECK(attributes.empty() || has_attributes(link.kind));
    link.attribute_octets = static_cast<std::uint16_t>(attributes.size());
    std::memcpy(body, &link, sizeof link);
    std::size_t octets = sizeof link;
    if (link.kind == LinkKind::kRequest) {
        const LinkProfile field = profile_field(profile);
        std::memcpy(body + octets, field.data(), sizeof field);
        octets += sizeof field;
    }
    if (tail_octets(link.kind) == 0) return octets;
    if (!attributes.empty()) std::memcpy(body + octets, attributes.data(), attributes.size());
    octets += attributes.size();
    const JobTag tag = job_tag(link_key_of(key), source, std::span(body, octets));
    std::memcpy(body + octets, &tag, sizeof tag);
    return octets + sizeof tag;
}

bool proves_key(const LinkView& view, const Mac& source, const LinkKey& key) noexcept {
    ULC_CHECK(view.tag != nullptr);
    return same_tag(job_tag(link_key_of(key), source, view.tagged), *view.tag);
}

Err judge_address(const LinkAddress& address) noexcept {
    if (address.version != kProtocolVersion)
        return address.version == 0 ? Err::kInvalid : Err::kVersion;
    const bool fits = address.reserved == 0 && is_unicast(address.mac) &&
                      is_endpoint(address.handle) && address.incarnation != 0 &&
                      !address.key.zero();
    return fits ? Err::kOk : Err::kInvalid;
}

Err judge_name(const LinkName& name) noexcept {
    if (name.version != kProtocolVersion) return name.version == 0 ? Err::kInvalid : Err::kVersion;
    const bool fits =
        name.mark == LinkName::kMark && name.name != decltype(name.name){} && !name.secret.zero();
    return fits ? Err::kOk : Err::kInvalid;
}

LinkKey key_of(const LinkName& name) noexcept { return named_key_of(name.secret, name.name); }

LinkId lookup_of(const LinkKey& key) noexcept {
    const Nonce hash = link_lookup_of(key);
    LinkId id = 0;
    for (std::size_t n = 0; n < sizeof id; ++n)
        id = id << 8 | hash.octets[n];
    return id == 0 ? 1 : id;
}

}  // namespace ulc::wire
