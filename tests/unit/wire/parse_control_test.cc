// SPDX-License-Identifier: BSD-3-Clause
// Control frames, and short frames, which wire/short_frame.h reads in one look.
#include "tests/unit/wire/frames.h"

namespace ulc::wire {
namespace {

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
    for (const NackKind kind :
         {NackKind::kRequest, NackKind::kPersonal, NackKind::kGlobal, NackKind::kNamed}) {
        const bool named = kind == NackKind::kNamed;
        const bool global = kind == NackKind::kGlobal || named;  // to all
        NackBody body{};
        body.group = kGroupBit | 5;
        body.from = 10U;
        body.to = named ? 10U : 12U;
        body.kind = kind;
        if (named) body.target = 3;
        FrameHead head = head_of(FrameType::kNack, 0, global ? kGroupBit | 5 : 5);
        head.seq = Seq{0};
        Octets frame(128);
        frame.resize(build_nack(frame.data(), head, body));
        ASSERT_EQ(reason(frame), Counter::kCount);
        constexpr std::size_t kBody = kHeadOctets;
        EXPECT_EQ(reason(changed(frame, kBody + 11, named ? 12 : 10)),
                  global ? Counter::drop_extension : Counter::kCount)
            << "open at the end";
        EXPECT_EQ(reason(changed(frame, kBody + 12, 5)), Counter::drop_extension);
        EXPECT_EQ(reason(changed(frame, kBody + 15, 2)),
                  named ? Counter::kCount : Counter::drop_extension)
            << "a target";
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
        ShortBody brief;
        return parse_short(copy, brief);
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

// Short frames are read and refused as the rules say: parse_copy() compares.
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
