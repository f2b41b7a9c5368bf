// SPDX-License-Identifier: BSD-3-Clause
// Parses in the order of docs/PROTOCOL.md §2: Ethernet, header, the fields that the type allows,
// extensions in flag order, then the length against the rest. Everything here comes from an
// untrusted node: no check may be an assertion, and no octet is read before it is known to be
// inside the frame.
#include "wire/parse.h"

#include <array>
#include <cstring>

#include "wire/crc32c.h"

namespace ulc::wire {
namespace {

/// IEEE 802.1Q: a tag stands between the addresses and the type.
struct VlanTag {
    Be16 type;
    Be16 control;  ///< priority 3, drop eligible 1, VLAN 12
};
static_assert(sizeof(VlanTag) == 4);
constexpr std::size_t kTagAt = offsetof(EthernetHeader, type);
constexpr std::uint16_t kVlanType = 0x8100;
constexpr std::uint16_t kServiceVlanType = 0x88A8;
constexpr std::uint16_t kVlanMask = 0x0fff;  ///< 0: the tag has a priority alone

/// Contents that each frame type may have. `version`: the only one supported here.
struct TypeRule {
    bool known = false;
    std::uint8_t version = 0;
    std::uint8_t flags_allowed = 0;
    bool group_forbidden = false;  ///< handle must name an endpoint
    bool group_required = false;   ///< handle must name a group
    bool seq_zero = false;
    bool handle_and_rank_zero = false;
};

constexpr std::uint8_t kFlagsBoth =
    kFlagFirst | kFlagLast | kFlagAfter | kFlagTag | kFlagAckNow | kFlagCrc;

constexpr std::array<TypeRule, 16> kRules = [] {
    std::array<TypeRule, 16> rules{};
    const auto at = [&rules](FrameType type) -> TypeRule& {
        return rules[static_cast<std::size_t>(type)];
    };
    at(FrameType::kData) = {true, kVersion, kFlagsBoth | kFlagAck, true, false, false, false};
    at(FrameType::kMcast) = {true, kVersion, kFlagsBoth | kFlagSubset, false, true, false, false};
    at(FrameType::kAck) = {true, kVersion, 0, true, false, true, false};
    at(FrameType::kReq) = {true, kVersion, 0, true, false, true, false};
    at(FrameType::kProbe) = {true, kVersion, 0, false, false, false, false};
    at(FrameType::kJob) = {true, kVersionFrozen, 0, false, false, true, true};
    at(FrameType::kNode) = {true, kVersionFrozen, 0, false, false, true, true};
    at(FrameType::kFlow) = {true, kVersion, 0, false, false, true, false};
    at(FrameType::kCounted) = {true, kVersion, kFlagsBoth | kFlagSubset, false, true, false, false};
    at(FrameType::kStatus) = {true, kVersion, 0, false, true, true, false};
    at(FrameType::kNack) = {true, kVersion, 0, false, false, true, false};
    at(FrameType::kLink) = {true, kVersionFrozen, 0, false, false, true, true};
    return rules;
}();

/// Walks the octets after the header; take() fails rather than pass the end.
struct Cursor {
    const std::byte* at;
    std::size_t left;

    [[nodiscard]] const std::byte* take(std::size_t octets) noexcept {
        if (octets > left) return nullptr;
        const std::byte* taken = at;
        at += octets;
        left -= octets;
        return taken;
    }
    [[nodiscard]] bool take_u64(std::uint64_t& out) noexcept {
        const std::byte* taken = take(sizeof(Be64));
        if (taken == nullptr) return false;
        out = *reinterpret_cast<const Be64*>(taken);
        return true;
    }
};

/// True if it is a group handle or a rank.
bool is_stream_id(std::uint32_t id) noexcept { return is_group(id) || id < kNoRank; }

Counter parse_after(Cursor& cursor, FrameView& out) noexcept {
    const std::byte* count = cursor.take(1);
    if (count == nullptr) return Counter::drop_short;
    out.after_count = static_cast<std::uint8_t>(*count);
    if (out.after_count == 0 || out.after_count > kAfterEntriesMax) return Counter::drop_extension;
    const std::byte* entries = cursor.take(out.after_count * sizeof(AfterEntry));
    if (entries == nullptr) return Counter::drop_short;
    out.after = reinterpret_cast<const AfterEntry*>(entries);
    for (std::size_t i = 0; i < out.after_count; ++i) {
        if (!is_stream_id(out.after[i].stream)) return Counter::drop_extension;
    }
    return Counter::kCount;
}

Counter parse_extensions(Cursor& cursor, FrameView& out) noexcept {
    if (out.type == FrameType::kCounted) {
        const std::byte* global = cursor.take(sizeof(Be32));
        if (global == nullptr) return Counter::drop_short;
        out.global = *reinterpret_cast<const Be32*>(global);
    }
    if ((out.flags & kFlagAck) != 0) {
        out.ack = reinterpret_cast<const AckEntry*>(cursor.take(sizeof(AckEntry)));
        if (out.ack == nullptr) return Counter::drop_short;
    }
    if ((out.flags & kFlagAfter) != 0) {
        const Counter reason = parse_after(cursor, out);
        if (reason != Counter::kCount) return reason;
    }
    if ((out.flags & kFlagSubset) != 0) {
        if (!cursor.take_u64(out.subset)) return Counter::drop_short;
        if (out.subset == 0) return Counter::drop_extension;
    }
    if ((out.flags & kFlagTag) != 0 && !cursor.take_u64(out.tag)) return Counter::drop_short;
    if ((out.flags & (kFlagFirst | kFlagLast)) == kFlagFirst &&
        !cursor.take_u64(out.message_length)) {
        return Counter::drop_short;
    }
    return Counter::kCount;
}

/// Checks CRC and message length of a data frame, once its body is known to be inside it.
Counter check_payload(const std::byte* header, FrameView& out) noexcept {
    if ((out.flags & kFlagCrc) != 0) {
        if (out.length < sizeof(Be32)) return Counter::drop_extension;
        out.length = static_cast<std::uint16_t>(out.length - sizeof(Be32));
        const std::byte* crc = out.body + out.length;
        const std::uint32_t sent = *reinterpret_cast<const Be32*>(crc);
        if (crc32c(header, static_cast<std::size_t>(crc - header)) != sent)
            return Counter::drop_crc;
    }
    if ((out.flags & kFlagFirst) != 0) {
        if ((out.flags & kFlagLast) != 0) {
            out.message_length = out.length;
        } else if (out.message_length <= out.length) {
            return Counter::drop_extension;  // more packets follow, so more octets must
        }
    }
    return Counter::kCount;
}

bool flow_is_whole(const FrameView& out) noexcept {
    if (out.length != sizeof(FlowBody)) return false;
    const auto& body = *reinterpret_cast<const FlowBody*>(out.body);
    if (!is_stream_id(body.stream) || body.count == 0) return false;
    if (body.lacks != 0 && body.kind != FlowKind::kGrant) return false;
    switch (body.kind) {
        case FlowKind::kReserve:  // to all members of a group at once
            return !is_group(out.handle) || out.handle == body.stream;
        case FlowKind::kGrant:
        case FlowKind::kRefuse:
            return !is_group(out.handle);
    }
    return false;
}

bool status_is_whole(const FrameView& out) noexcept {
    if (out.length < sizeof(StatusBody)) return false;
    const auto& body = *reinterpret_cast<const StatusBody*>(out.body);
    const std::uint16_t count = body.count;
    const bool zeros = body.reserved[0] == 0 && body.reserved[1] == 0 && body.reserved[2] == 0;
    return zeros && (body.flags & ~kStatusWanted) == 0 && count >= 1 &&
           count <= kStatusEntriesMax && out.length == sizeof(StatusBody) + count * sizeof(Be32);
}

bool nack_is_whole(const FrameView& out) noexcept {
    if (out.length != sizeof(NackBody)) return false;
    const auto& body = *reinterpret_cast<const NackBody*>(out.body);
    const bool zeros = body.reserved == 0 && (body.kind == NackKind::kNamed || body.target == 0);
    if (!zeros || !is_group(body.group)) return false;
    switch (body.kind) {
        case NackKind::kRequest:
        case NackKind::kPersonal:
            return !is_group(out.handle);
        case NackKind::kGlobal:
            return out.handle == body.group && body.from != body.to;
        case NackKind::kNamed:
            return out.handle == body.group && body.from == body.to;
    }
    return false;
}

/// Checks body lengths of control frames; wire/job.h has the bodies of kJob and kNode, wire/link.h
/// those of kLink.
Counter check_control(const FrameView& out) noexcept {
    switch (out.type) {
        case FrameType::kAck: {
            const bool whole = out.length % sizeof(AckEntry) == 0;
            const std::size_t entries = out.length / sizeof(AckEntry);
            return whole && entries >= 1 && entries <= kAckEntriesMax ? Counter::kCount
                                                                      : Counter::drop_extension;
        }
        case FrameType::kReq: {
            if (out.length < sizeof(ReqBody)) return Counter::drop_extension;
            const std::uint16_t bitmap = reinterpret_cast<const ReqBody*>(out.body)->bitmap_octets;
            const bool fits =
                bitmap <= kReqBitmapOctetsMax && out.length == sizeof(ReqBody) + bitmap;
            return fits ? Counter::kCount : Counter::drop_extension;
        }
        case FrameType::kProbe:
            return out.length == sizeof(ProbeBody) ? Counter::kCount : Counter::drop_extension;
        case FrameType::kFlow:
            return flow_is_whole(out) ? Counter::kCount : Counter::drop_extension;
        case FrameType::kStatus:
            return status_is_whole(out) ? Counter::kCount : Counter::drop_extension;
        case FrameType::kNack:
            return nack_is_whole(out) ? Counter::kCount : Counter::drop_extension;
        case FrameType::kData:
        case FrameType::kMcast:
        case FrameType::kCounted:
        case FrameType::kJob:
        case FrameType::kNode:
        case FrameType::kLink:
            break;
    }
    return Counter::kCount;
}

/// Returns true if the frame's CRC follows the body. If it is not asked for, it is padding.
bool has_control_crc(const std::byte* frame, std::size_t octets, const FrameView& out) noexcept {
    const std::size_t end = kHeadOctets + out.length;
    return octets >= end + sizeof(Be32) &&
           control_crc(frame, end) == *reinterpret_cast<const Be32*>(frame + end);
}

/// Returns whether a frame of ours has the tag of a VLAN. Reads nothing outside the frame.
bool is_tagged(const std::byte* frame, std::size_t octets, std::uint16_t ether_type) noexcept {
    if (octets < sizeof(EthernetHeader) + sizeof(VlanTag)) return false;
    const auto& tag = *reinterpret_cast<const VlanTag*>(frame + kTagAt);
    const auto& inner = *reinterpret_cast<const Be16*>(frame + kTagAt + sizeof(VlanTag));
    return (tag.type == kVlanType || tag.type == kServiceVlanType) && inner == ether_type;
}

/// Checks version, type, flags and the fixed fields; fills the view from the header.
Counter check_header(const Header& header, FrameView& out) noexcept {
    const TypeRule& rule = kRules[header.version_type & 0x0fU];
    const unsigned version = header.version_type >> 4U;
    if (version != kVersion && version != kVersionFrozen) return Counter::drop_version;
    if (!rule.known) return Counter::drop_type;
    if (version != rule.version) return Counter::drop_version;
    out.type = static_cast<FrameType>(header.version_type & 0x0fU);
    out.flags = header.flags;
    out.rank = header.rank;
    out.handle = header.handle;
    out.seq = Seq{header.seq};
    out.length = header.length;
    if ((out.flags & static_cast<std::uint8_t>(~rule.flags_allowed)) != 0)
        return Counter::drop_flags;
    if ((out.flags & kFlagTag) != 0 && (out.flags & kFlagFirst) == 0) return Counter::drop_flags;
    if (rule.seq_zero && out.seq.value != 0) return Counter::drop_flags;
    if (rule.handle_and_rank_zero && (out.handle != 0 || out.rank != 0)) return Counter::drop_flags;
    if (is_group(out.handle) ? rule.group_forbidden : rule.group_required)
        return Counter::drop_unknown_handle;
    return Counter::kCount;
}

}  // namespace

std::size_t remove_priority_tag(std::byte* frame, std::size_t octets,
                                std::uint16_t ether_type) noexcept {
    if (!is_tagged(frame, octets, ether_type)) return 0;
    const std::uint16_t control = reinterpret_cast<const VlanTag*>(frame + kTagAt)->control;
    if ((control & kVlanMask) != 0) return 0;
    std::memmove(frame + kTagAt, frame + kTagAt + sizeof(VlanTag),
                 octets - kTagAt - sizeof(VlanTag));
    return octets - sizeof(VlanTag);
}

bool is_judged_by_front(const std::byte* frame, std::size_t octets) noexcept {
    if (octets < kHeadOctets) return false;
    const auto& header = *reinterpret_cast<const Header*>(frame + sizeof(EthernetHeader));
    const auto type = static_cast<FrameType>(header.version_type & 0x0fU);
    const bool data = type == FrameType::kData || type == FrameType::kMcast;
    return data && (header.flags & kFlagCrc) == 0;
}

[[gnu::flatten]] Counter parse(const std::byte* frame, std::size_t octets, std::uint16_t ether_type,
                               FrameView& out, bool must_have_crc) noexcept {
    out = FrameView{};
    if (octets < sizeof(EthernetHeader)) return Counter::drop_short;
    const auto& ethernet = *reinterpret_cast<const EthernetHeader*>(frame);
    if (ethernet.type != ether_type)
        return is_tagged(frame, octets, ether_type) ? Counter::drop_vlan : Counter::drop_ethertype;
    if (octets < kHeadOctets) return Counter::drop_short;
    out.destination = ethernet.destination;
    out.source = ethernet.source;

    const std::byte* header = frame + sizeof(EthernetHeader);
    Counter reason = check_header(*reinterpret_cast<const Header*>(header), out);
    if (reason != Counter::kCount) return reason;

    Cursor cursor{frame + kHeadOctets, octets - kHeadOctets};
    const bool data = out.type == FrameType::kData || out.type == FrameType::kMcast ||
                      out.type == FrameType::kCounted;
    if (data) {
        reason = parse_extensions(cursor, out);
        if (reason != Counter::kCount) return reason;
    }
#ifndef ULC_PLANTED_BUG  // the fuzzer must find what this line prevents (tests/fuzz/)
    if (out.length > cursor.left) return Counter::drop_short;
#endif
    out.body = cursor.at;
    if (must_have_crc &&
        !(data ? (out.flags & kFlagCrc) != 0 : has_control_crc(frame, octets, out)))
        return Counter::drop_crc;
    return data ? check_payload(header, out) : check_control(out);
}

}  // namespace ulc::wire
