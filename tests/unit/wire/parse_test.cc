// SPDX-License-Identifier: BSD-3-Clause
// Compares wire/parse.h with wire/build.h: every frame built is read back; every other frame is
// dropped under its name.
#include "tests/unit/wire/frames.h"

namespace ulc::wire {
namespace {

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

Octets tagged(const Octets& frame, std::uint16_t type, std::uint16_t control) {
    Octets out(frame.begin(), frame.begin() + kEtherTypeAt);
    for (const std::uint16_t word : {type, control})
        for (const unsigned shift : {8U, 0U})
            out.push_back(static_cast<std::byte>(word >> shift & 255U));
    out.insert(out.end(), frame.begin() + kEtherTypeAt, frame.end());
    return out;
}

TEST(WireParse, a_frame_with_the_tag_of_a_vlan_is_dropped_as_such) {
    const Octets plain = data_frame(FrameType::kData, kFlagFirst | kFlagLast, 30);
    for (const std::uint16_t type : {0x8100, 0x88A8}) {
        EXPECT_EQ(reason(tagged(plain, type, 7)), Counter::drop_vlan);
        EXPECT_EQ(reason(tagged(plain, type, 0xe000)), Counter::drop_vlan);
        const Octets others = tagged(changed(plain, kEtherTypeAt, 0x08), type, 7);
        EXPECT_EQ(reason(others), Counter::drop_ethertype) << "of another protocol";
    }
    Octets cut = tagged(plain, 0x8100, 7);
    cut.resize(sizeof(EthernetHeader) + 3);
    EXPECT_EQ(reason(cut), Counter::drop_ethertype) << "no octet outside the frame is read";
}

TEST(WireParse, a_tag_of_vlan_0_has_a_priority_alone) {
    const Octets plain = data_frame(FrameType::kData, kFlagFirst | kFlagLast, 30);
    const auto untagged = [](Octets frame) {
        frame.resize(remove_priority_tag(frame.data(), frame.size(), kEtherTypeDefault));
        return frame;
    };
    EXPECT_EQ(untagged(tagged(plain, 0x8100, 0xe000)), plain);
    EXPECT_EQ(untagged(tagged(plain, 0x8100, 0x1000)), plain);
    EXPECT_TRUE(untagged(tagged(plain, 0x8100, 0xe007)).empty()) << "VLAN 7";
    EXPECT_TRUE(untagged(tagged(plain, 0x8100, 0x0fff)).empty());
    EXPECT_TRUE(untagged(plain).empty()) << "no tag";
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

}  // namespace
}  // namespace ulc::wire
