// SPDX-License-Identifier: BSD-3-Clause
// wire/link.h: bodies of LINK frames, and addresses. Built bodies are read back; others are
// malformed.
#include "wire/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "wire/build.h"
#include "wire/parse.h"

namespace ulc::wire {
namespace {

using Octets = std::vector<std::byte>;
constexpr Mac kSender{{2, 0, 0, 0, 0, 1}};
constexpr LinkKind kAllKinds[] = {LinkKind::kRequest, LinkKind::kAccept, LinkKind::kConfirm,
                                  LinkKind::kRefuse,  LinkKind::kUnlink, LinkKind::kUnlinked,
                                  LinkKind::kWhere,   LinkKind::kHere};

bool has_tag(LinkKind kind) {
    return kind == LinkKind::kRequest || kind == LinkKind::kAccept || kind == LinkKind::kWhere ||
           kind == LinkKind::kHere;
}

LinkKey some_key() {
    LinkKey key;
    for (std::size_t i = 0; i < key.octets.size(); ++i)
        key.octets[i] = static_cast<std::uint8_t>(i);
    return key;
}

/// A body as an honest engine makes it.
LinkBody body_of(LinkKind kind) {
    const bool makes = kind == LinkKind::kRequest || kind == LinkKind::kAccept;
    const bool answers =
        kind == LinkKind::kRefuse || kind == LinkKind::kUnlinked || kind == LinkKind::kHere;
    LinkBody body{};
    body.kind = kind;
    if (kind == LinkKind::kRefuse) body.reason = static_cast<std::uint8_t>(Err::kLimit);
    if (kind == LinkKind::kUnlink) body.reason = static_cast<std::uint8_t>(LeaveReason::kDied);
    body.version = kProtocolVersion;
    body.incarnation = 77U;
    body.ours = answers ? 0U : 0x1122334455667788U;
    body.theirs = kind == LinkKind::kRequest ? 0U : 0x99aabbccddeeff00U;
    body.from = 5U;
    body.to = kind == LinkKind::kWhere ? 0U : 6U;
    if (makes) body.slot = std::uint16_t{900};
    if (makes) body.first_seq = 0xfffffff0U;
    return body;
}

Octets octets_of(const LinkBody& body) {
    Octets octets(kLinkOctetsMax);
    AttributeOctets attributes;
    if (body.kind == LinkKind::kRequest || body.kind == LinkKind::kAccept)
        attributes = wire::octets_of(NodeAttributes{9000, 2});
    octets.resize(put_link(octets.data(), body, "urtp", some_key(), kSender, span_of(attributes)));
    octets.shrink_to_fit();
    return octets;
}

bool parses(const LinkBody& body) {
    const Octets octets = octets_of(body);
    LinkView view;
    return parse_link(octets.data(), octets.size(), view);
}

// L-4
TEST(WireLink, every_kind_round_trips) {
    for (const LinkKind kind : kAllKinds) {
        const LinkBody body = body_of(kind);
        const Octets octets = octets_of(body);
        LinkView view;
        ASSERT_TRUE(parse_link(octets.data(), octets.size(), view)) << static_cast<int>(kind);
        EXPECT_EQ(view.kind, kind);
        EXPECT_EQ(view.version, kProtocolVersion);
        EXPECT_EQ(view.incarnation, 77U);
        EXPECT_EQ(view.ours, body.ours);
        EXPECT_EQ(view.theirs, body.theirs);
        EXPECT_EQ(view.from, 5U);
        EXPECT_EQ(view.to, body.to);
        EXPECT_EQ(view.slot, body.slot);
        EXPECT_EQ(view.first_seq.value, body.first_seq);
        EXPECT_EQ(view.profile, kind == LinkKind::kRequest ? "urtp" : "");
        EXPECT_EQ(view.refused, kind == LinkKind::kRefuse ? Err::kLimit : Err::kOk);
        EXPECT_EQ(view.left, kind == LinkKind::kUnlink ? LeaveReason::kDied : LeaveReason{});
        ASSERT_EQ(view.tag != nullptr, has_tag(kind));
        if (has_tag(kind)) {
            EXPECT_TRUE(proves_key(view, kSender, some_key()));
        }
    }
}

// As JOB and NODE frames: version 0, and nothing in the header.
// F-5, F-8
TEST(WireLink, frames_have_a_frozen_header) {
    std::vector<std::byte> frame(kHeadOctets + kLinkOctetsMax + 64);
    const Octets body = octets_of(body_of(LinkKind::kConfirm));
    FrameHead head;
    head.source = kSender;
    head.type = FrameType::kLink;
    const auto reason = [&](std::size_t at, unsigned octet) {
        std::copy(body.begin(), body.end(), frame.begin() + kHeadOctets);
        const std::size_t octets = build_control(frame.data(), head, body.size());
        if (at > 0) frame[at] = static_cast<std::byte>(octet);
        FrameView view;
        const Counter verdict = parse(frame.data(), octets, kEtherTypeDefault, view);
        if (verdict == Counter::kCount) {
            EXPECT_EQ(view.length, body.size());
        }
        return verdict;
    };
    const std::size_t header = sizeof(EthernetHeader);
    EXPECT_EQ(reason(0, 0), Counter::kCount);
    EXPECT_EQ(reason(header, 0x1cU), Counter::drop_version);
    EXPECT_EQ(reason(header + 1, kFlagLast), Counter::drop_flags);
    EXPECT_EQ(reason(header + offsetof(Header, handle) + 3, 1), Counter::drop_flags);
    EXPECT_EQ(reason(header + offsetof(Header, rank) + 1, 1), Counter::drop_flags);
    EXPECT_EQ(reason(header + offsetof(Header, seq) + 3, 1), Counter::drop_flags);
}

// L-10
TEST(WireLink, lengths_other_than_the_kinds_are_malformed) {
    for (const LinkKind kind : kAllKinds) {
        const Octets whole = octets_of(body_of(kind));
        for (std::size_t octets = 0; octets < whole.size() + 40; ++octets) {
            if (octets == whole.size()) continue;
            Octets cut(whole.begin(),
                       whole.begin() + static_cast<std::ptrdiff_t>(std::min(octets, whole.size())));
            cut.resize(octets);
            cut.shrink_to_fit();
            LinkView view;
            EXPECT_FALSE(parse_link(cut.data(), cut.size(), view)) << octets;
        }
    }
}

// L-5, L-7, L-8
TEST(WireLink, names_that_a_kind_must_or_must_not_bear) {
    for (const LinkKind kind : kAllKinds) {
        const bool hint_is_legal = kind == LinkKind::kUnlinked;
        LinkBody body = body_of(kind);
        body.ours = body.ours == 0 ? 1U : 0U;
        EXPECT_FALSE(parses(body)) << "ours " << static_cast<int>(kind);
        body = body_of(kind);
        body.theirs = body.theirs == 0 ? 1U : 0U;
        EXPECT_FALSE(parses(body)) << "theirs " << static_cast<int>(kind);  // a hint names no `to`
        body.to = 0U;
        EXPECT_EQ(parses(body), hint_is_legal) << static_cast<int>(kind);
        body = body_of(kind);
        body.to = body.to == 0 ? 6U : 0U;
        EXPECT_FALSE(parses(body)) << "to " << static_cast<int>(kind);
        body = body_of(kind);
        body.from = kGroupBit | 5U;
        EXPECT_FALSE(parses(body)) << "from " << static_cast<int>(kind);
        body = body_of(kind);
        body.incarnation = 0U;
        EXPECT_FALSE(parses(body));
        body = body_of(kind);
        body.version = 0;
        EXPECT_FALSE(parses(body));
        body = body_of(kind);
        body.reserved = 1;
        EXPECT_FALSE(parses(body));
        Octets octets = octets_of(body_of(kind));
        octets[offsetof(LinkBody, attribute_octets) + 1] ^= std::byte{1};
        LinkView view;
        EXPECT_FALSE(parse_link(octets.data(), octets.size(), view)) << "attributes";
        const bool makes = kind == LinkKind::kRequest || kind == LinkKind::kAccept;
        body = body_of(kind);
        body.first_seq = 9U;
        EXPECT_EQ(parses(body), makes);
        body = body_of(kind);
        body.slot = std::uint16_t{9};
        EXPECT_EQ(parses(body), makes);
        body.slot = kNoRank;
        EXPECT_FALSE(parses(body));
    }
}

// L-9
TEST(WireLink, a_hint_names_a_slot_and_no_receiver) {
    LinkBody body = body_of(LinkKind::kUnlinked);
    body.theirs = 0U;
    body.to = 0U;
    body.slot = std::uint16_t{12};
    EXPECT_TRUE(parses(body));
    body.slot = kNoRank;
    EXPECT_FALSE(parses(body));
}

// L-7
TEST(WireLink, reasons_are_those_of_the_kind) {
    for (unsigned reason = 0; reason < 256; ++reason) {
        for (const LinkKind kind : kAllKinds) {
            LinkBody body = body_of(kind);
            body.reason = static_cast<std::uint8_t>(reason);
            bool legal = reason == 0;
            if (kind == LinkKind::kRefuse)
                legal = reason == 4 || reason == 8 || reason == 18 || reason == 22;
            if (kind == LinkKind::kUnlink) legal = reason == 1 || reason == 2;
            EXPECT_EQ(parses(body), legal) << reason << " of " << static_cast<int>(kind);
        }
    }
}

// L-10
TEST(WireLink, a_kind_that_is_none_is_malformed) {
    for (unsigned kind = 0; kind < 256; ++kind) {
        Octets octets = octets_of(body_of(LinkKind::kConfirm));
        octets[0] = static_cast<std::byte>(kind);
        LinkView view;
        EXPECT_EQ(parse_link(octets.data(), octets.size(), view), kind == 3) << kind;
    }
}

TEST(WireLink, a_profile_has_letters_and_then_zeros) {
    Octets octets = octets_of(body_of(LinkKind::kRequest));
    LinkView view;
    octets[sizeof(LinkBody) + 31] = std::byte{'x'};
    EXPECT_FALSE(parse_link(octets.data(), octets.size(), view));
    octets = octets_of(body_of(LinkKind::kRequest));
    octets[sizeof(LinkBody)] = std::byte{0};
    EXPECT_FALSE(parse_link(octets.data(), octets.size(), view)) << "empty";
}

// Every octet that the receiver believes is under the tag, and so is the sender's address.
// L-11
TEST(WireLink, another_octet_key_or_source_proves_nothing) {
    for (const LinkKind kind :
         {LinkKind::kRequest, LinkKind::kAccept, LinkKind::kWhere, LinkKind::kHere}) {
        const Octets whole = octets_of(body_of(kind));
        for (std::size_t at = 0; at < whole.size(); ++at) {
            Octets changed = whole;
            changed[at] ^= std::byte{1};
            LinkView view;
            if (!parse_link(changed.data(), changed.size(), view)) continue;
            if (view.tag == nullptr) continue;
            EXPECT_FALSE(proves_key(view, kSender, some_key())) << at;
        }
        LinkView view;
        ASSERT_TRUE(parse_link(whole.data(), whole.size(), view));
        LinkKey other = some_key();
        other.octets[15] ^= 1;
        EXPECT_FALSE(proves_key(view, kSender, other));
        EXPECT_FALSE(proves_key(view, Mac{{2, 0, 0, 0, 0, 9}}, some_key()));
    }
}

// L-11
TEST(WireLink, the_tag_of_the_specification) {
    const JobTag tag =
        job_tag(link_key_of(some_key()), kSender, std::as_bytes(std::span("abc", 3)));
    std::string text;
    for (const std::uint8_t octet : tag.octets) {
        constexpr char kDigits[] = "0123456789abcdef";
        text += kDigits[octet >> 4U];
        text += kDigits[octet & 15U];
    }
    EXPECT_EQ(text, "db0a6783d9e84fda5ae458f427996338");
}

// L-33, L-34, L-35
TEST(WireLink, the_key_and_the_lookup_of_the_specification) {
    LinkName name;
    constexpr std::string_view kText = "alpha";
    std::copy(kText.begin(), kText.end(), name.name.begin());
    name.secret = some_key();
    EXPECT_EQ(judge_name(name), Err::kOk);
    const LinkKey key = key_of(name);
    const LinkKey expected{{0xa1, 0xfa, 0xac, 0x02, 0x0d, 0xd4, 0xcf, 0x2e, 0x46, 0xf5, 0xf4, 0xd6,
                            0x4d, 0x14, 0x27, 0x42}};
    EXPECT_EQ(key.octets, expected.octets);
    EXPECT_EQ(lookup_of(key), 0x69cecbb550a120cbU);
    LinkName other = name;
    other.name[13] = 1;
    EXPECT_NE(key_of(other).octets, key.octets) << "the last octet counts";
    other = name;
    other.secret.octets[15] ^= 1;
    EXPECT_NE(key_of(other).octets, key.octets);
}

// L-33
TEST(WireLink, a_name_needs_a_secret_and_is_no_address) {
    LinkName good;
    good.name[3] = 1;
    good.secret = some_key();
    EXPECT_EQ(judge_name(good), Err::kOk);
    LinkAddress address;
    std::memcpy(static_cast<void*>(&address), &good, sizeof address);
    EXPECT_TRUE(is_name(address));
    EXPECT_EQ(judge_address(address), Err::kInvalid);
    LinkName bad = good;
    bad.name[3] = 0;
    EXPECT_EQ(judge_name(bad), Err::kInvalid);
    bad = good;
    bad.secret = LinkKey{};
    EXPECT_EQ(judge_name(bad), Err::kInvalid);
    bad = good;
    bad.mark = 2;
    EXPECT_EQ(judge_name(bad), Err::kInvalid);
    bad = good;
    bad.version = kProtocolVersion + 1;
    EXPECT_EQ(judge_name(bad), Err::kVersion);
    bad.version = 0;
    EXPECT_EQ(judge_name(bad), Err::kInvalid);
}

// L-2
TEST(WireLink, addresses_that_name_no_endpoint_are_refused) {
    LinkAddress good;
    good.mac = kSender;
    good.handle = 5U;
    good.incarnation = 6U;
    good.key = some_key();
    EXPECT_EQ(judge_address(good), Err::kOk);
    LinkAddress bad = good;
    bad.version = kProtocolVersion + 1;
    EXPECT_EQ(judge_address(bad), Err::kVersion);
    EXPECT_EQ(judge_address(LinkAddress{.version = 0}), Err::kInvalid);
    bad = good;
    bad.reserved = 1;
    EXPECT_EQ(judge_address(bad), Err::kInvalid);
    bad = good;
    bad.mac = kBroadcastMac;
    EXPECT_EQ(judge_address(bad), Err::kInvalid);
    bad = good;
    bad.mac = Mac{};
    EXPECT_EQ(judge_address(bad), Err::kInvalid);
    bad = good;
    bad.handle = kGroupBit | 5U;
    EXPECT_EQ(judge_address(bad), Err::kInvalid);
    bad = good;
    bad.incarnation = 0U;
    EXPECT_EQ(judge_address(bad), Err::kInvalid);
    bad = good;
    bad.key = LinkKey{};
    EXPECT_EQ(judge_address(bad), Err::kInvalid);
}

}  // namespace
}  // namespace ulc::wire
