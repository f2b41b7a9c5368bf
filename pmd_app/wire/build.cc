// SPDX-License-Identifier: BSD-3-Clause
// Builds frames from host values. wire/header.h asserts the layout; the order of extensions is that
// of the flags.
#include "wire/build.h"

#include <cstring>

#include "base/check.h"
#include "wire/crc32c.h"

namespace ulc::wire {
namespace {

constexpr std::size_t kLengthMax = 0xffff;

void write_head(std::byte* frame, const Head& head, std::uint8_t flags, Seq seq,
                std::size_t length) noexcept {
    ULC_CHECK(length <= kLengthMax);
    std::memcpy(frame, &head, sizeof head);
    auto& header = *reinterpret_cast<Header*>(frame + sizeof(EthernetHeader));
    header.flags = flags;
    header.length = static_cast<std::uint16_t>(length);
    header.seq = seq.value;
}

std::size_t pad(std::byte* frame, std::size_t octets) noexcept {
    if (octets >= kFrameOctetsMin) return octets;
    std::memset(frame + octets, 0, kFrameOctetsMin - octets);
    return kFrameOctetsMin;
}

std::byte* put_u64(std::byte* at, std::uint64_t value) noexcept {
    const Be64 wire_value = value;
    std::memcpy(at, &wire_value, sizeof wire_value);
    return at + sizeof wire_value;
}

/// Returns where the payload begins.
std::byte* write_extensions(std::byte* at, std::uint8_t flags, const Extensions& extensions,
                            bool counted) noexcept {
    if (counted) {
        const Be32 global = extensions.global;
        std::memcpy(at, &global, sizeof global);
        at += sizeof global;
    }
    if ((flags & kFlagAck) != 0) {
        std::memcpy(at, &extensions.ack, sizeof(AckEntry));
        at += sizeof(AckEntry);
    }
    if ((flags & kFlagAfter) != 0) {
        ULC_CHECK(extensions.after_count >= 1 && extensions.after_count <= kAfterEntriesMax);
        *at++ = static_cast<std::byte>(extensions.after_count);
        std::memcpy(at, extensions.after, extensions.after_count * sizeof(AfterEntry));
        at += extensions.after_count * sizeof(AfterEntry);
    }
    if ((flags & kFlagSubset) != 0) at = put_u64(at, extensions.subset);
    if ((flags & kFlagTag) != 0) at = put_u64(at, extensions.tag);
    if ((flags & (kFlagFirst | kFlagLast)) == kFlagFirst)
        at = put_u64(at, extensions.message_length);
    return at;
}

}  // namespace

Head make_head(const FrameHead& head) noexcept {
    Head out{};
    out.ethernet = {head.destination, head.source, head.ether_type};
    out.header.version_type = version_type(head.type);
    out.header.handle = head.handle;
    out.header.rank = head.rank;
    return out;
}

std::size_t build_data(std::byte* frame, const Head& head, std::uint8_t flags, Seq seq,
                       const Extensions& extensions, std::size_t payload_octets) noexcept {
    const bool crc = (flags & kFlagCrc) != 0;
    const std::size_t length = payload_octets + (crc ? sizeof(Be32) : 0);
    write_head(frame, head, flags, seq, length);
    const bool counted = head.header.version_type == version_type(FrameType::kCounted);
    const std::byte* payload = write_extensions(frame + kHeadOctets, flags, extensions, counted);
    std::size_t end = static_cast<std::size_t>(payload - frame) + payload_octets;
    if (crc) {
        const Be32 sum = crc32c(frame + sizeof(EthernetHeader), end - sizeof(EthernetHeader));
        std::memcpy(frame + end, &sum, sizeof sum);
        end += sizeof sum;
    }
    return pad(frame, end);
}

std::size_t build_data(std::byte* frame, const FrameHead& head, const Extensions& extensions,
                       std::size_t payload_octets) noexcept {
    return build_data(frame, make_head(head), head.flags, head.seq, extensions, payload_octets);
}

std::size_t build_ack(std::byte* frame, const FrameHead& head,
                      std::span<const AckEntry> entries) noexcept {
    ULC_CHECK(!entries.empty() && entries.size() <= kAckEntriesMax);
    std::memcpy(frame + kHeadOctets, entries.data(), entries.size_bytes());
    return build_control(frame, head, entries.size_bytes());
}

std::size_t build_req(std::byte* frame, const FrameHead& head, const AckEntry& ack,
                      std::span<const std::byte> bitmap) noexcept {
    ULC_CHECK(bitmap.size() <= kReqBitmapOctetsMax);
    auto& body = *reinterpret_cast<ReqBody*>(frame + kHeadOctets);
    body.ack = ack;
    body.bitmap_octets = static_cast<std::uint16_t>(bitmap.size());
    if (!bitmap.empty())
        std::memcpy(frame + kHeadOctets + sizeof(ReqBody), bitmap.data(), bitmap.size());
    return build_control(frame, head, sizeof(ReqBody) + bitmap.size());
}

std::size_t build_probe(std::byte* frame, const FrameHead& head, StreamId stream) noexcept {
    reinterpret_cast<ProbeBody*>(frame + kHeadOctets)->stream = stream;
    return build_control(frame, head, sizeof(ProbeBody));
}

std::size_t build_flow(std::byte* frame, const FrameHead& head, const FlowBody& body) noexcept {
    ULC_CHECK(body.count > 0);
    std::memcpy(frame + kHeadOctets, &body, sizeof body);
    return build_control(frame, head, sizeof body);
}

std::size_t build_status(std::byte* frame, const FrameHead& head, const StatusBody& body,
                         std::span<const Be32> next) noexcept {
    ULC_CHECK(!next.empty() && next.size() <= kStatusEntriesMax && body.count == next.size());
    std::memcpy(frame + kHeadOctets, &body, sizeof body);
    std::memcpy(frame + kHeadOctets + sizeof body, next.data(), next.size_bytes());
    return build_control(frame, head, sizeof body + next.size_bytes());
}

std::size_t build_nack(std::byte* frame, const FrameHead& head, const NackBody& body) noexcept {
    std::memcpy(frame + kHeadOctets, &body, sizeof body);
    return build_control(frame, head, sizeof body);
}

std::size_t build_control(std::byte* frame, const FrameHead& head,
                          std::size_t body_octets) noexcept {
    ULC_CHECK(head.flags == 0);
    write_head(frame, make_head(head), head.flags, head.seq, body_octets);
    std::size_t end = kHeadOctets + body_octets;
    if (head.crc) {
        const Be32 sum = control_crc(frame, end);
        std::memcpy(frame + end, &sum, sizeof sum);
        end += sizeof sum;
    }
    return pad(frame, end);
}

}  // namespace ulc::wire
