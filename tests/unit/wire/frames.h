// SPDX-License-Identifier: BSD-3-Clause
// Frames of every kind, and their parse compared with the rules, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy_short.h"
#include "base/prng.h"
#include "wire/build.h"
#include "wire/crc32c.h"
#include "wire/job.h"
#include "wire/parse.h"
#include "wire/short_frame.h"

namespace ulc::wire {

using Octets = std::vector<std::byte>;
inline constexpr Mac kSender{{2, 0, 0, 0, 0, 1}};
inline constexpr Mac kReceiver{{2, 0, 0, 0, 0, 2}};

/// Parses a short frame. Returns false if it is none, or not whole.
inline bool parse_short(const Octets& frame, ShortBody& out) {
    if (frame.size() < kFrameOctetsMin || !has_short_head(frame.data(), kEtherTypeDefault) ||
        !read_body(frame.data(), frame.size(), out))
        return false;
    const auto& header = *reinterpret_cast<const Header*>(frame.data() + sizeof(EthernetHeader));
    return !is_group(header.handle) || out.ack == nullptr;  // the transport judges that
}
/// Returns true if the short frame equals the view.
inline bool is_same(const ShortBody& brief, const FrameView& view) {
    const FrameType type = is_group(view.handle) ? FrameType::kMcast : FrameType::kData;
    return view.type == type && view.after_count == 0 && !view.after && view.subset == 0 &&
           brief.ack == view.ack && brief.payload == view.body && brief.tag == view.tag &&
           brief.length == view.length && brief.flags == view.flags;
}

/// Parses a copy of exactly the frame's size, so that the sanitizer detects a read past the end.
inline Counter parse_copy(const Octets& frame, FrameView& out, Octets& copy) {
    copy = Octets(frame.begin(), frame.end());
    copy.shrink_to_fit();
    const Counter verdict = parse(copy.data(), copy.size(), kEtherTypeDefault, out);
    ShortBody brief;
    if (parse_short(copy, brief)) {
        EXPECT_EQ(verdict, Counter::kCount);
        EXPECT_TRUE(is_same(brief, out));
    }
    return verdict;
}
inline Counter reason(const Octets& frame) {
    FrameView view;
    Octets copy;
    return parse_copy(frame, view, copy);
}

inline FrameHead head_of(FrameType type, std::uint8_t flags, std::uint32_t handle) {
    FrameHead head;
    head.destination = kReceiver;
    head.source = kSender;
    head.type = type;
    head.flags = flags;
    head.handle = handle;
    head.rank = 513;
    head.seq = Seq{0xfffffffeU};
    return head;
}

inline Extensions some_extensions(std::size_t payload) {
    Extensions extensions;
    extensions.ack.stream = 7U;
    extensions.ack.next = 0x01020304U;
    extensions.ack.credit = std::uint16_t{99};
    extensions.ack.delay_us = std::uint16_t{5};
    extensions.after_count = 3;
    for (std::uint32_t i = 0; i < 3; ++i) {
        extensions.after[i].stream = i == 1 ? i : (kGroupBit | i);
        extensions.after[i].seq = 100 + i;
    }
    extensions.subset = 0x8000000000000001U;
    extensions.tag = 0x1122334455667788U;
    extensions.message_length = payload + 1000;
    extensions.global = 0xcafe0001U;
    return extensions;
}

inline Octets data_frame(FrameType type, std::uint8_t flags, std::size_t payload) {
    const Extensions extensions = some_extensions(payload);
    Octets frame(2048);
    std::byte* at =
        frame.data() + payload_offset(flags, extensions.after_count, type == FrameType::kCounted);
    for (std::size_t i = 0; i < payload; ++i)
        at[i] = static_cast<std::byte>(i * 7);
    const std::uint32_t handle = type == FrameType::kData ? 5U : kGroupBit | 5U;
    frame.resize(build_data(frame.data(), head_of(type, flags, handle), extensions, payload));
    return frame;
}

inline bool allowed(FrameType type, std::uint8_t flags) {
    if (type == FrameType::kData && (flags & kFlagSubset) != 0) return false;
    if (type != FrameType::kData && (flags & kFlagAck) != 0) return false;
    return (flags & kFlagTag) == 0 || (flags & kFlagFirst) != 0;
}

/// Changes one octet of a good frame.
inline Octets changed(Octets frame, std::size_t offset, unsigned value) {
    frame[offset] = static_cast<std::byte>(value);
    return frame;
}
inline constexpr std::size_t kEtherTypeAt = 12;
inline constexpr std::size_t kVersionTypeAt = 14;
inline constexpr std::size_t kFlagsAt = 15;
inline constexpr std::size_t kLengthAt = 16;
inline constexpr std::size_t kHandleAt = 18;
inline constexpr std::size_t kRankAt = 22;
inline constexpr std::size_t kSeqAt = 24;

}  // namespace ulc::wire
