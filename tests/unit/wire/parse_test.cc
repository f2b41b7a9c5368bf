// SPDX-License-Identifier: BSD-3-Clause
// Compares wire/parse.h with wire/build.h: every frame built is read back; every other frame is
// dropped under its name.
#include "wire/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy_short.h"
#include "base/prng.h"
#include "wire/build.h"
#include "wire/crc32c.h"
#include "wire/job.h"
#include "wire/short_frame.h"

namespace ulc::wire {
namespace {

using Octets = std::vector<std::byte>;
constexpr Mac kSender{{2, 0, 0, 0, 0, 1}};
constexpr Mac kReceiver{{2, 0, 0, 0, 0, 2}};

/// Returns true if the short frame equals the view.
bool is_same(const ShortFrame& brief, const FrameView& view) {
    const FrameType type = brief.to_group() ? FrameType::kMcast : FrameType::kData;
    return view.type == type && view.after_count == 0 && !view.after && view.subset == 0 &&
           *brief.source == view.source && brief.ack == view.ack && brief.payload == view.body &&
           brief.tag == view.tag && brief.handle == view.handle && brief.seq == view.seq &&
           brief.rank == view.rank && brief.length == view.length && brief.flags == view.flags;
}

/// Parses a copy of exactly the frame's size, so that the sanitizer detects a read past the end.
Counter parse_copy(const Octets& frame, FrameView& out, Octets& copy) {
    copy = Octets(frame.begin(), frame.end());
    copy.shrink_to_fit();
    const Counter verdict = parse(copy.data(), copy.size(), kEtherTypeDefault, out);
    FrameView by_rules;
    EXPECT_EQ(parse_by_rules(copy.data(), copy.size(), kEtherTypeDefault, by_rules), verdict);
    EXPECT_TRUE(verdict != Counter::kCount || out == by_rules);
    ShortFrame brief;
    if (parse_short(copy.data(), copy.size(), kEtherTypeDefault, brief)) {
        EXPECT_EQ(verdict, Counter::kCount);
        EXPECT_TRUE(is_same(brief, by_rules));
    }
    return verdict;
}
Counter reason(const Octets& frame) {
    FrameView view;
    Octets copy;
    return parse_copy(frame, view, copy);
}

FrameHead head_of(FrameType type, std::uint8_t flags, std::uint32_t handle) {
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

Extensions some_extensions(std::size_t payload) {
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

Octets data_frame(FrameType type, std::uint8_t flags, std::size_t payload) {
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

bool allowed(FrameType type, std::uint8_t flags) {
    if (type == FrameType::kData && (flags & kFlagSubset) != 0) return false;
    if (type != FrameType::kData && (flags & kFlagAck) != 0) return false;
    return (flags & kFlagTag) == 0 || (flags & kFlagFirst) != 0;
}

// F-3, F-13, F-14, F-16
TEST(WireParse, every_flag_combination_round_trips_or_is_refused) {
    for (const FrameType type : {FrameType::kData, FrameType::kMcast, FrameType::kCounted}) {
        for (unsigned bits = 0; bits < 256; ++bits) {
            const auto flags = static_cast<std::uint8_t>(bits);
            for (const std::size_t payload : {0U, 1U, 46U, 1400U}) {
                const Octets frame = data_frame(type, flags, payload);
                FrameView view;
                Octets copy;
                const Counter result = parse_copy(frame, view, copy);
                if (!allowed(type, flags)) {
                    EXPECT_EQ(result, Counter::drop_flags) << bits;
                    continue;
                }
                ASSERT_EQ(result, Counter::kCount) << bits << " payload " << payload;
                EXPECT_EQ(view.type, type);
                EXPECT_EQ(view.flags, flags);
                EXPECT_EQ(view.source, kSender);
                EXPECT_EQ(view.destination, kReceiver);
                EXPECT_EQ(view.rank, 513);
                EXPECT_EQ(view.seq, Seq{0xfffffffeU});
                ASSERT_EQ(view.length, payload);
                for (std::size_t i = 0; i < payload; ++i) {
                    ASSERT_EQ(view.body[i], static_cast<std::byte>(i * 7));
                }
                EXPECT_EQ(view.ack != nullptr, (flags & kFlagAck) != 0);
                if (view.ack != nullptr) {
                    EXPECT_EQ(view.ack->next, 0x01020304U);
                }
                EXPECT_EQ(view.after_count, (flags & kFlagAfter) != 0 ? 3 : 0);
                if (view.after_count != 0) {
                    EXPECT_EQ(view.after[2].seq, 102U);
                }
                EXPECT_EQ(view.subset, (flags & kFlagSubset) != 0 ? 0x8000000000000001U : 0U);
                EXPECT_EQ(view.tag, (flags & kFlagTag) != 0 ? 0x1122334455667788U : 0U);
                std::uint64_t whole = 0;
                if ((flags & kFlagFirst) != 0) whole = payload + 1000;
                if ((flags & kFlagFirst) != 0 && (flags & kFlagLast) != 0) whole = payload;
                EXPECT_EQ(view.message_length, whole);
                EXPECT_EQ(view.global, type == FrameType::kCounted ? 0xcafe0001U : 0U);
            }
        }
    }
}

// Tests the fields with which a port asks before it has copied the rest (engine/landing.cc).
// F-29
TEST(WireParse, what_is_judged_by_its_front_is_not_read_beyond_it) {
    for (unsigned type = 0; type < 16; ++type) {
        const bool data = type == static_cast<unsigned>(FrameType::kData);
        const bool mcast = type == static_cast<unsigned>(FrameType::kMcast);
        for (unsigned bits = 0; bits < 256; ++bits) {
            const auto flags = static_cast<std::uint8_t>(bits);
            Octets whole = data_frame(data ? FrameType::kData : FrameType::kMcast, flags, 1400);
            auto& version_type = whole[sizeof(EthernetHeader)];
            version_type = (version_type & std::byte{0xf0}) | static_cast<std::byte>(type);
            Octets front(whole.begin(), whole.begin() + kFrontOctetsMax);
            front.shrink_to_fit();
            const bool judged = is_judged_by_front(front.data(), front.size());
            EXPECT_EQ(judged, (data || mcast) && (flags & kFlagCrc) == 0) << type << " " << bits;
            EXPECT_FALSE(is_judged_by_front(front.data(), kHeadOctets - 1));
            if (!judged) continue;
            FrameView seen;
            FrameView expected;
            ASSERT_EQ(parse(front.data(), whole.size(), kEtherTypeDefault, seen),
                      parse(whole.data(), whole.size(), kEtherTypeDefault, expected));
            EXPECT_EQ(seen.length, expected.length);
            EXPECT_EQ(seen.tag, expected.tag);
            EXPECT_EQ(seen.message_length, expected.message_length);
            if (expected.body != nullptr) {
                EXPECT_EQ(seen.body - front.data(), expected.body - whole.data());
            }
        }
    }
}

// F-29
TEST(WireParse, a_frame_cut_at_any_length_is_short) {
    const std::uint8_t all = kFlagFirst | kFlagAck | kFlagAfter | kFlagTag | kFlagCrc;
    const Octets frame = data_frame(FrameType::kData, all, 100);
    ASSERT_EQ(reason(frame), Counter::kCount);
    for (std::size_t octets = 0; octets < frame.size(); ++octets) {
        const Octets cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(octets));
        EXPECT_EQ(reason(cut), Counter::drop_short) << octets;
    }
}

// F-2, F-4
TEST(WireParse, padding_is_not_payload) {
    Octets frame = data_frame(FrameType::kData, kFlagFirst | kFlagLast, 3);
    EXPECT_EQ(frame.size(), kFrameOctetsMin);
    frame.resize(200, std::byte{0xee});
    FrameView view;
    Octets copy;
    ASSERT_EQ(parse_copy(frame, view, copy), Counter::kCount);
    EXPECT_EQ(view.length, 3);
}

/// Changes one octet of a good frame.
Octets changed(Octets frame, std::size_t offset, unsigned value) {
    frame[offset] = static_cast<std::byte>(value);
    return frame;
}
constexpr std::size_t kEtherTypeAt = 12;
constexpr std::size_t kVersionTypeAt = 14;
constexpr std::size_t kFlagsAt = 15;
constexpr std::size_t kLengthAt = 16;
constexpr std::size_t kHandleAt = 18;
constexpr std::size_t kRankAt = 22;
constexpr std::size_t kSeqAt = 24;

// F-1, F-5, F-9
TEST(WireParse, fixed_fields_are_named_when_wrong) {
    const Octets good = data_frame(FrameType::kData, kFlagFirst | kFlagLast, 30);
    ASSERT_EQ(reason(good), Counter::kCount);
    EXPECT_EQ(reason(changed(good, kEtherTypeAt, 0x08)), Counter::drop_ethertype);
    for (unsigned octet = 0; octet < 256; ++octet) {
        const unsigned version = octet >> 4;
        const unsigned type = octet & 15;
        const Counter result = reason(changed(good, kVersionTypeAt, octet));
        if (version > 1) {
            EXPECT_EQ(result, Counter::drop_version) << octet;
        } else if (type == 0 || type > 12) {
            EXPECT_EQ(result, Counter::drop_type) << octet;
        } else if (version != (type == 6 || type == 7 || type == 12 ? 0U : 1U)) {
            EXPECT_EQ(result, Counter::drop_version) << octet;
        }
    }
    EXPECT_EQ(reason(changed(good, kHandleAt, 0x80)), Counter::drop_unknown_handle);
    EXPECT_EQ(reason(changed(good, kLengthAt, 0xff)), Counter::drop_short);
    const Octets group = data_frame(FrameType::kMcast, kFlagFirst | kFlagLast, 30);
    EXPECT_EQ(reason(changed(group, kHandleAt, 0)), Counter::drop_unknown_handle);
}

// F-15, F-17, F-18
TEST(WireParse, extensions_out_of_range_are_named) {
    const std::uint8_t one = kFlagFirst | kFlagLast;
    const Octets after = data_frame(FrameType::kData, one | kFlagAfter, 60);
    for (unsigned count = 0; count < 256; ++count) {
        const Counter result = reason(changed(after, kHeadOctets, count));
        if (count == 0 || count > kAfterEntriesMax) {
            EXPECT_EQ(result, Counter::drop_extension);
        }
    }
    // after stream 0x00xx…: neither a group nor a rank
    Octets stream = changed(after, kHeadOctets + 1, 0x00);
    stream[kHeadOctets + 2] = std::byte{1};
    EXPECT_EQ(reason(stream), Counter::drop_extension);
    Octets subset = data_frame(FrameType::kMcast, one | kFlagSubset, 60);
    std::memset(subset.data() + kHeadOctets, 0, 8);
    EXPECT_EQ(reason(subset), Counter::drop_extension);
    // A message that continues after its first packet is longer than it.
    for (const std::size_t whole : {0U, 59U, 60U, 61U}) {
        Octets first = data_frame(FrameType::kData, kFlagFirst, 60);
        *reinterpret_cast<Be64*>(first.data() + kHeadOctets) = whole;
        EXPECT_EQ(reason(first), whole > 60 ? Counter::kCount : Counter::drop_extension);
    }
    // The frame is too short for the CRC.
    Octets crc = data_frame(FrameType::kData, one | kFlagCrc, 0);
    EXPECT_EQ(reason(changed(crc, kLengthAt + 1, 3)), Counter::drop_extension);
}

// Control frames have no flag for it: the bytes after their body are a CRC if the wire is
// configured so, and padding if not.
// F-25, F-26, F-27
TEST(WireParse, a_wire_with_crc_takes_no_frame_without) {
    for (const bool job : {false, true}) {
        std::byte frame[128] = {};
        FrameHead head;
        head.destination = kBroadcastMac;
        head.source = Mac{{2, 0, 0, 0, 0, 1}};
        head.type = job ? FrameType::kNode : FrameType::kProbe;
        if (!job) head.handle = 7;
        for (const bool crc : {true, false}) {
            head.crc = crc;
            const std::size_t octets =
                job ? build_control(frame, head, put_node(frame + kHeadOctets, NodeBody{}))
                    : build_probe(frame, head, 3);
            FrameView view;
            EXPECT_EQ(parse(frame, octets, kEtherTypeDefault, view), Counter::kCount);
            EXPECT_EQ(parse(frame, octets, kEtherTypeDefault, view, true),
                      crc ? Counter::kCount : Counter::drop_crc);
            const std::size_t end = kHeadOctets + view.length + (crc ? 4U : 0U);
            for (std::size_t at = sizeof(Mac); crc && at < end; ++at) {
                frame[at] ^= std::byte{0x10};
                EXPECT_NE(parse(frame, octets, kEtherTypeDefault, view, true), Counter::kCount)
                    << at;
                frame[at] ^= std::byte{0x10};
            }
            EXPECT_EQ(parse(frame, kHeadOctets + view.length, kEtherTypeDefault, view, true),
                      Counter::drop_crc)
                << "cut short";
        }
    }
}

// F-24
TEST(WireParse, crc_covers_header_extensions_and_payload) {
    const std::uint8_t flags = kFlagFirst | kFlagLast | kFlagTag | kFlagAck | kFlagCrc;
    const Octets good = data_frame(FrameType::kData, flags, 40);
    ASSERT_EQ(reason(good), Counter::kCount);
    for (std::size_t i = sizeof(EthernetHeader); i < good.size(); ++i) {
        Octets bad = good;
        bad[i] ^= std::byte{0x10};
        EXPECT_NE(reason(bad), Counter::kCount) << "octet " << i;
        if (i >= kRankAt) {
            EXPECT_EQ(reason(bad), Counter::drop_crc) << "octet " << i;
        }
    }
}

// F-19, F-21, F-22
TEST(WireParse, control_frames_round_trip_and_their_lengths_are_checked) {
    Octets frame(512);
    AckEntry entries[kAckEntriesMax]{};
    entries[1].next = 77U;
    FrameHead head = head_of(FrameType::kAck, 0, 5);
    head.seq = Seq{0};
    for (std::size_t n = 1; n <= kAckEntriesMax; ++n) {
        frame.resize(512);
        frame.resize(build_ack(frame.data(), head, std::span(entries, n)));
        FrameView view;
        ASSERT_EQ(parse(frame.data(), frame.size(), kEtherTypeDefault, view), Counter::kCount);
        EXPECT_EQ(view.length, n * sizeof(AckEntry));
        frame[kLengthAt + 1] = static_cast<std::byte>(n * sizeof(AckEntry) - 1);
        EXPECT_EQ(reason(frame), Counter::drop_extension);
        frame[kLengthAt + 1] = std::byte{0};
        EXPECT_EQ(reason(frame), Counter::drop_extension);
    }
    head.type = FrameType::kReq;
    for (std::size_t n = 0; n <= kReqBitmapOctetsMax; ++n) {
        const Octets bitmap(n, std::byte{0xa5});
        frame.resize(512);
        frame.resize(build_req(frame.data(), head, entries[1], bitmap));
        FrameView view;
        ASSERT_EQ(parse(frame.data(), frame.size(), kEtherTypeDefault, view), Counter::kCount);
        const auto& body = *reinterpret_cast<const ReqBody*>(view.body);
        EXPECT_EQ(body.ack.next, 77U);
        EXPECT_EQ(body.bitmap_octets, n);
        frame.resize(512);
        EXPECT_EQ(reason(changed(frame, kHeadOctets + sizeof(AckEntry) + 1, n + 1)),
                  Counter::drop_extension);
    }
    head.type = FrameType::kProbe;
    head.handle = kGroupBit | 9;
    head.seq = Seq{12};
    frame.resize(512);
    frame.resize(build_probe(frame.data(), head, kGroupBit | 9));
    EXPECT_EQ(frame.size(), kFrameOctetsMin);
    EXPECT_EQ(reason(frame), Counter::kCount);
    EXPECT_EQ(reason(changed(frame, kLengthAt + 1, 5)), Counter::drop_extension);
}

//
TEST(WireParse, flow_frames_round_trip_and_are_whole) {
    for (const FlowKind kind : {FlowKind::kReserve, FlowKind::kGrant, FlowKind::kRefuse}) {
        for (const bool group : {false, true}) {
            FlowBody body{};
            body.stream = group ? kGroupBit | 9 : 7;
            body.first = 0xfffffff0U;
            body.count = std::uint16_t{40};
            body.kind = kind;
            FrameHead head = head_of(FrameType::kFlow, 0, 5);
            head.seq = Seq{0};
            Octets frame(128);
            frame.resize(build_flow(frame.data(), head, body));
            FrameView view;
            ASSERT_EQ(parse(frame.data(), frame.size(), kEtherTypeDefault, view), Counter::kCount);
            const auto& got = *reinterpret_cast<const FlowBody*>(view.body);
            EXPECT_EQ(got.first, 0xfffffff0U);
            EXPECT_EQ(got.count, 40);
            EXPECT_EQ(got.kind, kind);
            constexpr std::size_t kBody = kHeadOctets;
            EXPECT_EQ(reason(changed(frame, kBody + 9, 0)), Counter::drop_extension) << "count 0";
            for (const unsigned wrong : {0U, 4U, 255U})
                EXPECT_EQ(reason(changed(frame, kBody + 10, wrong)), Counter::drop_extension);
            EXPECT_EQ(reason(changed(frame, kBody + 11, 1)),
                      kind == FlowKind::kGrant ? Counter::kCount : Counter::drop_extension)
                << "only a grant says what it lacks";
            EXPECT_EQ(reason(changed(frame, kBody, 0x01)), Counter::drop_extension) << "stream";
            EXPECT_EQ(reason(changed(frame, kLengthAt + 1, 11)), Counter::drop_extension);
            // Only a reservation goes to a group, and to that of its stream.
            head.handle = kGroupBit | 9;
            frame.resize(128);
            frame.resize(build_flow(frame.data(), head, body));
            EXPECT_EQ(reason(frame), kind == FlowKind::kReserve && group ? Counter::kCount
                                                                         : Counter::drop_extension);
        }
    }
}

// F-9, K-2, K-3
TEST(WireParse, status_frames_round_trip_and_are_whole) {
    FrameHead head = head_of(FrameType::kStatus, 0, kGroupBit | 5);
    head.seq = Seq{0};
    for (const std::size_t n : {std::size_t{1}, std::size_t{17}, kStatusEntriesMax}) {
        StatusBody body{};
        body.global = 77U;
        body.first = std::uint16_t{3};
        body.count = static_cast<std::uint16_t>(n);
        body.flags = kStatusWanted;
        std::vector<Be32> next(n);
        next[n - 1] = 99U;
        Octets frame(2048);
        frame.resize(build_status(frame.data(), head, body, next));
        FrameView view;
        ASSERT_EQ(parse(frame.data(), frame.size(), kEtherTypeDefault, view), Counter::kCount);
        ASSERT_EQ(view.length, sizeof(StatusBody) + 4 * n);
        EXPECT_EQ(*reinterpret_cast<const Be32*>(view.body + sizeof(StatusBody) + 4 * (n - 1)),
                  99U);
        constexpr std::size_t kBody = kHeadOctets;
        EXPECT_EQ(reason(changed(frame, kBody + 7, (n + 1) & 0xff)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(changed(frame, kBody + 6, 0), kBody + 7, 0)),
                  Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kBody + 8, 2)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kBody + 10, 1)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kHandleAt, 0)), Counter::drop_unknown_handle);
    }
}

// K-4
TEST(WireParse, nack_frames_round_trip_and_are_whole) {
    for (const NackKind kind : {NackKind::kRequest, NackKind::kPersonal, NackKind::kGlobal}) {
        const bool global = kind == NackKind::kGlobal;
        NackBody body{};
        body.group = kGroupBit | 5;
        body.from = 10U;
        body.to = 12U;
        body.kind = kind;
        FrameHead head = head_of(FrameType::kNack, 0, global ? kGroupBit | 5 : 5);
        head.seq = Seq{0};
        Octets frame(128);
        frame.resize(build_nack(frame.data(), head, body));
        ASSERT_EQ(reason(frame), Counter::kCount);
        constexpr std::size_t kBody = kHeadOctets;
        EXPECT_EQ(reason(changed(frame, kBody + 11, 10)),
                  global ? Counter::drop_extension : Counter::kCount)
            << "open at the end";
        EXPECT_EQ(reason(changed(frame, kBody + 12, 4)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kBody + 13, 1)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kBody, 0)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kHandleAt, global ? 0 : 0x80)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kLengthAt + 1, 15)), Counter::drop_extension);
    }
}

// F-6, F-7, F-8
TEST(WireParse, control_frames_have_no_flags_and_no_stray_fields) {
    for (const auto type :
         {FrameType::kAck, FrameType::kReq, FrameType::kProbe, FrameType::kJob, FrameType::kNode}) {
        FrameHead head = head_of(type, 0, 0);
        head.seq = Seq{0};
        head.rank = 0;
        Octets frame(128);
        const std::size_t body = type == FrameType::kAck     ? sizeof(AckEntry)
                                 : type == FrameType::kReq   ? sizeof(ReqBody)
                                 : type == FrameType::kProbe ? sizeof(ProbeBody)
                                                             : 40;
        frame.resize(build_control(frame.data(), head, body));
        ASSERT_EQ(reason(frame), Counter::kCount) << static_cast<int>(type);
        for (unsigned bit = 0; bit < 8; ++bit) {
            EXPECT_EQ(reason(changed(frame, kFlagsAt, 1U << bit)), Counter::drop_flags);
        }
        const Counter seq = type == FrameType::kProbe ? Counter::kCount : Counter::drop_flags;
        EXPECT_EQ(reason(changed(frame, kSeqAt, 1)), seq);
        const bool frozen = type == FrameType::kJob || type == FrameType::kNode;
        const Counter rank = frozen ? Counter::drop_flags : Counter::kCount;
        EXPECT_EQ(reason(changed(frame, kRankAt, 1)), rank);
        EXPECT_EQ(reason(changed(frame, kHandleAt + 3, 1)), rank);
    }
}

TEST(WireParse, a_short_frame_is_a_whole_message_in_one_packet) {
    const auto is_short = [](std::uint8_t flags, std::size_t octets) {
        const Octets frame = data_frame(FrameType::kData, flags, octets);
        FrameView view;
        Octets copy;
        EXPECT_EQ(parse_copy(frame, view, copy), Counter::kCount);
        ShortFrame brief;
        return parse_short(copy.data(), copy.size(), kEtherTypeDefault, brief);
    };
    constexpr std::uint8_t kWhole = kFlagFirst | kFlagLast;
    for (const std::size_t octets : {0, 1, 31, 40, 41, 64, 1000, 1400}) {
        EXPECT_TRUE(is_short(kWhole, octets)) << octets;
        EXPECT_TRUE(is_short(kWhole | kFlagAck | kFlagTag | kFlagAckNow, octets)) << octets;
    }
    EXPECT_FALSE(is_short(kFlagFirst, 8));
    EXPECT_FALSE(is_short(kWhole | kFlagAfter, 8));
    EXPECT_FALSE(is_short(kWhole | kFlagCrc, 8));
}

TEST(WireParse, the_copy_of_a_short_payload_touches_no_other_octet) {
    for (std::size_t octets = 0; octets <= kCopyShortMax; ++octets) {
        Octets from(octets);
        for (std::size_t i = 0; i < octets; ++i)
            from[i] = static_cast<std::byte>(i + 1);
        Octets to(octets + 2, std::byte{0xee});
        copy_short(to.data() + 1, from.data(), octets);
        EXPECT_EQ(to.front(), std::byte{0xee});
        EXPECT_EQ(to.back(), std::byte{0xee});
        EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin() + 1)) << octets;
    }
}

// The short path for common packets reads and refuses the same frames as the rules: parse_copy()
// compares.
// F-28, F-29
TEST(WireParse, common_packets_with_wrong_octets_are_judged_by_the_rules) {
    Prng random(7);
    int whole = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::uint8_t flags = kFlagFirst | kFlagLast;
        for (const std::uint8_t flag : {kFlagAck, kFlagTag, kFlagAckNow})
            if (random.chance(0.5)) flags |= flag;
        Extensions extensions;
        extensions.ack = {513, 7, 64, 0};
        extensions.tag = random.next();
        const auto payload = static_cast<std::size_t>(random.below(41));
        Octets frame(256);
        frame.resize(
            build_data(frame.data(), head_of(FrameType::kData, flags, 5), extensions, payload));
        for (std::uint64_t n = random.below(3); n > 0; --n)
            frame[12 + random.below(16)] ^= static_cast<std::byte>(1U << random.below(8));
        if (random.chance(0.3)) frame.resize(static_cast<std::size_t>(random.below(90)));
        whole += reason(frame) == Counter::kCount ? 1 : 0;
    }
    EXPECT_GT(whole, 5000);
    EXPECT_LT(whole, 19'000);
}

// F-23
TEST(WireCrc, agrees_with_the_standard_and_with_its_table) {
    const char* digits = "123456789";
    const auto* at = reinterpret_cast<const std::byte*>(digits);
    EXPECT_EQ(crc32c(at, 9), 0xE3069283U);  // RFC 3720 B.4 and the CRC catalogue
    EXPECT_EQ(crc32c_portable(at, 9), 0xE3069283U);
    EXPECT_EQ(crc32c(at, 0), 0U);
    const Octets zeros(32);
    EXPECT_EQ(crc32c(zeros.data(), 32), 0x8A9136AAU);
    Octets bytes(300);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * i);
    for (std::size_t n = 0; n < 290; ++n) {
        EXPECT_EQ(crc32c(bytes.data() + n % 9, n), crc32c_portable(bytes.data() + n % 9, n));
    }
}

}  // namespace
}  // namespace ulc::wire
