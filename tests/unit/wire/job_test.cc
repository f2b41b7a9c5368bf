// SPDX-License-Identifier: BSD-3-Clause
// Bodies of JOB and NODE frames: wire/job.h.
#include "wire/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "wire/job_key.h"

namespace ulc::wire {
namespace {

using Octets = std::vector<std::byte>;

bool ok(const Octets& body) {
    Octets copy(body.begin(), body.end());
    copy.shrink_to_fit();
    JobBodyView view;
    return parse_job(copy.data(), copy.size(), view);
}

Nonce some_nonce() {
    Nonce nonce;
    nonce.octets[5] = 1;
    return nonce;
}

/// Returns attributes as an engine says them, and `more` behind.
Octets attributes_with(std::initializer_list<unsigned> more) {
    const AttributeOctets known = octets_of(NodeAttributes{9000, 2});
    Octets octets(known.begin(), known.end());
    for (const unsigned octet : more)
        octets.push_back(std::byte(octet));
    return octets;
}

Octets join_frame(std::uint16_t claims = 3, const Octets& attributes = attributes_with({})) {
    Octets body(2000);
    JoinBody join{};
    join.size = std::uint16_t{200};
    join.version_min = 1;
    join.version_max = 3;
    join.incarnation = 9U;
    join.claims = claims;
    join.attribute_octets = static_cast<std::uint16_t>(attributes.size());
    join.profile = profile_field("urtp");
    std::vector<JoinClaim> list(claims);
    for (std::uint16_t i = 0; i < claims; ++i) {
        list[i].rank = i;
        list[i].handle = 50U + i;
    }
    body.resize(put_join(body.data(), job_head(JobKind::kJoin, "name", Nonce{}, true), join, list,
                         attributes));
    return body;
}

Octets roster_frame(std::uint16_t first, std::uint16_t entries, std::uint16_t size) {
    Octets body(2000);
    RosterBody roster{};
    roster.roster = 4U;
    roster.world = kGroupBit | 7U;
    roster.first_seq = 1000U;
    roster.size = size;
    roster.part = std::uint16_t{1};
    roster.parts = std::uint16_t{2};
    roster.first_rank = first;
    roster.entries = entries;
    roster.version = kProtocolVersion;
    roster.mtu = kMtuMin;
    std::vector<RosterEntry> list(entries);
    for (RosterEntry& entry : list) {
        entry.mac = Mac{{2, 0, 0, 0, 0, 1}};
        entry.handle = 3U;
        entry.incarnation = 4U;
    }
    const Octets attributes = attributes_with({});
    list.back().attribute_octets = static_cast<std::uint8_t>(attributes.size());
    body.resize(put_roster(body.data(), job_head(JobKind::kRoster, "n", some_nonce(), false),
                           roster, list, attributes) +
                sizeof(JobTag));
    return body;
}

Octets ack_frame(RosterAckState state, std::uint16_t parts, std::size_t bitmap) {
    Octets body(2000);
    RosterAckBody ack{};
    ack.roster = 4U;
    ack.parts = parts;
    ack.state = state;
    ack.bitmap_octets = static_cast<std::uint8_t>(bitmap);
    body.resize(put_roster_ack(body.data(), job_head(JobKind::kRosterAck, "n", some_nonce(), false),
                               ack, Octets(bitmap, std::byte{1})) +
                sizeof(JobTag));
    return body;
}

Octets reject_frame(std::uint32_t error, RejectScope scope, Handle handle) {
    Octets body(2000);
    RejectBody reject{};
    reject.error = error;
    reject.scope = scope;
    reject.handle = handle;
    body.resize(
        put_reject(body.data(), job_head(JobKind::kReject, "n", some_nonce(), false), reject) +
        sizeof(JobTag));
    return body;
}

Octets bye_frame(Rank rank, LeaveReason reason, Handle handle) {
    Octets body(2000);
    ByeBody bye{};
    bye.rank = rank;
    bye.reason = reason;
    bye.handle = handle;
    body.resize(put_bye(body.data(), job_head(JobKind::kBye, "n", some_nonce(), false), bye) +
                sizeof(JobTag));
    return body;
}

Octets commit_frame() {
    Octets body(2000);
    CommitBody commit{};
    commit.roster = 5U;
    body.resize(
        put_commit(body.data(), job_head(JobKind::kCommit, "n", some_nonce(), false), commit) +
        sizeof(JobTag));
    return body;
}

// J-25
TEST(WireJob, every_kind_round_trips) {
    JobBodyView view;
    const Octets join = join_frame();
    ASSERT_TRUE(parse_job(join.data(), join.size(), view));
    EXPECT_EQ(view.kind, JobKind::kJoin);
    EXPECT_EQ(view.name, "name");
    EXPECT_TRUE(view.by_hand);
    ASSERT_EQ(view.claims.size(), 3U);
    EXPECT_EQ(view.claims[2].handle, 52U);
    EXPECT_EQ(view.join->version_max, 3);
    EXPECT_EQ(view.attributes.mtu, 9000);
    EXPECT_EQ(view.attributes.links, 2);
    EXPECT_EQ(view.profile, "urtp");
    const Octets roster = roster_frame(3, 5, 8);
    ASSERT_TRUE(parse_job(roster.data(), roster.size(), view));
    EXPECT_EQ(view.join, nullptr);
    EXPECT_EQ(view.entries.size(), 5U);
    EXPECT_EQ(view.attribute_octets.size(), 7U);
    EXPECT_EQ(view.roster->mtu, kMtuMin);
    EXPECT_EQ(view.nonce, some_nonce());
    const Octets ack = ack_frame(RosterAckState::kPartial, 9, 2);
    ASSERT_TRUE(parse_job(ack.data(), ack.size(), view));
    EXPECT_EQ(view.ack_bitmap.size(), 2U);
    EXPECT_TRUE(
        ok(reject_frame(static_cast<std::uint32_t>(Err::kRankTaken), RejectScope::kJob, 0)));
    EXPECT_TRUE(ok(bye_frame(3, LeaveReason::kDied, 4)));
    EXPECT_TRUE(ok(commit_frame()));
}

// J-27
TEST(WireJob, a_profile_is_a_word_and_then_zeros) {
    constexpr std::size_t at = sizeof(JobHead) + offsetof(JoinBody, profile);
    const auto with = [](std::string_view text) {
        Octets body = join_frame();
        std::fill_n(body.begin() + static_cast<std::ptrdiff_t>(at), kProfileOctets, std::byte{0});
        for (std::size_t i = 0; i < text.size(); ++i)
            body[at + i] = static_cast<std::byte>(text[i]);
        return body;
    };
    EXPECT_TRUE(ok(with("gbn+eager")));
    EXPECT_TRUE(ok(with("urtp-1997")));
    EXPECT_TRUE(ok(with(std::string(kProfileOctets, 'a'))));
    EXPECT_FALSE(ok(with("")));
    EXPECT_FALSE(ok(with("GBN")));
    EXPECT_FALSE(ok(with("gbn eager")));
    EXPECT_FALSE(ok(with("gbn\xff")));
    EXPECT_FALSE(ok(with(std::string_view("gbn\0eager", 9))));
}

// J-25
TEST(WireJob, every_kind_cut_or_lengthened_is_malformed) {
    const Octets all[] = {
        join_frame(),
        roster_frame(3, 5, 8),
        ack_frame(RosterAckState::kPartial, 9, 2),
        reject_frame(static_cast<std::uint32_t>(Err::kVersion), RejectScope::kClaim, 7),
        bye_frame(3, LeaveReason::kLeft, 4),
        commit_frame()};
    for (const Octets& body : all) {
        ASSERT_TRUE(ok(body));
        for (std::size_t n = 0; n < body.size(); ++n) {
            EXPECT_FALSE(ok(Octets(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(n))));
        }
        Octets longer = body;
        longer.push_back(std::byte{0});
        EXPECT_FALSE(ok(longer));
    }
}

/// Overwrites octets of a body at an offset from the end of JobHead.
Octets with(Octets body, std::size_t offset, std::initializer_list<unsigned> octets) {
    for (const unsigned octet : octets)
        body[sizeof(JobHead) + offset++] = std::byte(octet);
    return body;
}
/// The same within JobHead.
Octets with_head(Octets body, std::size_t offset, unsigned octet) {
    body[offset] = static_cast<std::byte>(octet);
    return body;
}

// J-26, J-27
TEST(WireJob, heads_out_of_range_are_malformed) {
    const Octets good = join_frame();
    for (const unsigned kind : {0U, 7U, 255U})
        EXPECT_FALSE(ok(with_head(good, 0, kind)));
    EXPECT_FALSE(ok(with_head(good, 1, 4))) << "unknown flag";
    EXPECT_TRUE(ok(with_head(good, 1, kJobByHand | kJobIntroduces)));
    Octets bye = bye_frame(3, LeaveReason::kDied, 4);
    EXPECT_FALSE(ok(with_head(bye, 1, kJobIntroduces))) << "only a JOIN introduces";
    EXPECT_FALSE(ok(with_head(good, 1, 0))) << "a launcher's job without a nonce";
    EXPECT_FALSE(ok(with_head(good, 2, 0))) << "no name";
    EXPECT_FALSE(ok(with_head(good, 2, 65)));
    EXPECT_FALSE(ok(with_head(good, 2, 3))) << "name longer than it says";
    EXPECT_FALSE(ok(with_head(good, 2, 5))) << "zero inside the name";
    EXPECT_FALSE(ok(with_head(good, 3, 1))) << "reserved";
    EXPECT_FALSE(ok(with_head(good, 4, 27))) << "a control character would reach terminals";
}

// J-26
TEST(WireJob, joins_out_of_range_are_malformed) {
    const Octets good = join_frame();
    EXPECT_FALSE(ok(with(good, 0, {0, 0}))) << "size 0";
    EXPECT_FALSE(ok(with(good, 0, {0xff, 0xff})));
    EXPECT_FALSE(ok(with(good, 0, {0, 2}))) << "rank beyond size";
    EXPECT_FALSE(ok(with(good, 2, {3, 2}))) << "version_min above version_max";
    EXPECT_FALSE(ok(with(good, 4, {0, 0, 0, 0}))) << "incarnation 0";
    EXPECT_FALSE(ok(with(good, 8, {0, 0}))) << "no claims";
    EXPECT_FALSE(ok(with(good, 8, {0, 4}))) << "more claims than octets";
    EXPECT_FALSE(ok(with(good, 10, {0, 8}))) << "more attributes than octets";
    EXPECT_FALSE(ok(with(good, 10, {1, 0}))) << "more than may be";
    EXPECT_FALSE(ok(with(good, 46, {0, 0, 0, 0}))) << "handle 0";
    EXPECT_FALSE(ok(with(good, 46, {0x80, 0, 0, 1}))) << "a group's handle";
    EXPECT_TRUE(ok(join_frame(kJoinClaimsMax)));
}

// J-29, J-35
TEST(WireJob, a_join_of_a_launcher_has_a_tag_from_version_2_on) {
    const auto join = [](std::uint8_t version, std::size_t behind) {
        Octets body = with_head(with(join_frame(3, {}), 2, {1, version}), 1, 0);
        body[sizeof(JobHead) - 1] = std::byte{9};  // of the nonce
        body.resize(body.size() + behind);
        return body;
    };
    EXPECT_TRUE(ok(join(2, sizeof(JobTag))));
    EXPECT_FALSE(ok(join(2, 0)));
    EXPECT_TRUE(ok(join(1, 0)));
    EXPECT_FALSE(ok(join(1, sizeof(JobTag))));
    JobBodyView view;
    const Octets old = join(1, 0);
    ASSERT_TRUE(parse_job(old.data(), old.size(), view));
    EXPECT_TRUE(view.old);
    EXPECT_EQ(view.tag, nullptr);
    const Octets tagged = join(2, sizeof(JobTag));
    ASSERT_TRUE(parse_job(tagged.data(), tagged.size(), view));
    EXPECT_FALSE(view.old);
    EXPECT_EQ(view.tagged.size(), tagged.size() - sizeof(JobTag));
}

// As any BLAKE2b has them, from docs/PROTOCOL.md §7.2.
// J-30, J-31, J-32
TEST(WireJobKey, is_made_of_the_nonce_and_makes_tags) {
    Nonce nonce;
    for (std::size_t i = 0; i < nonce.octets.size(); ++i)
        nonce.octets[i] = static_cast<std::uint8_t>(i);
    const auto hex = [](const auto& octets) {
        std::string text;
        for (const std::uint8_t octet : octets) {
            text += "0123456789abcdef"[octet >> 4];
            text += "0123456789abcdef"[octet & 15];
        }
        return text;
    };
    EXPECT_EQ(hex(job_id_of(nonce).octets), "71678a6328a507a77715feaa0fee0c05");
    const JobKey key = job_key_of(nonce);
    EXPECT_EQ(hex(key.octets), "a5c8982b177b2060ed0c8f123ea990234a0ec266906a8015234793c5c81471e1");
    const std::byte body[] = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
    const Mac mac{{2, 0, 0, 0, 0, 1}};
    const JobTag tag = job_tag(key, mac, body);
    EXPECT_EQ(hex(tag.octets), "e88757b7b1484bc8b4e32954f5cd8a76");
    EXPECT_TRUE(same_tag(tag, job_tag(key, mac, body)));
    EXPECT_FALSE(same_tag(tag, job_tag(key, Mac{{2, 0, 0, 0, 0, 2}}, body)));
    EXPECT_FALSE(same_tag(tag, job_tag(key, mac, std::span(body, 2))));
    JobKey other = key;
    other.octets[31] ^= 1U;
    EXPECT_FALSE(same_tag(tag, job_tag(other, mac, body)));
}

// J-26
TEST(WireJob, rosters_out_of_range_are_malformed) {
    EXPECT_TRUE(ok(roster_frame(3, 5, 8)));
    EXPECT_FALSE(ok(roster_frame(4, 5, 8))) << "ranks beyond size";
    EXPECT_FALSE(ok(roster_frame(0xffff, 5, 8)));
    const Octets good = roster_frame(3, 5, 8);
    EXPECT_FALSE(ok(with(good, 4, {0}))) << "world is no group";
    EXPECT_FALSE(ok(with(good, 12, {0, 0}))) << "size 0";
    EXPECT_FALSE(ok(with(good, 14, {0, 2}))) << "part beyond parts";
    EXPECT_FALSE(ok(with(good, 16, {0, 0}))) << "no parts";
    EXPECT_FALSE(ok(with(good, 16, {4, 1}))) << "more parts than the bitmap holds";
    EXPECT_FALSE(ok(with(good, 20, {0, 0}))) << "no entries";
    EXPECT_FALSE(ok(with(good, 22, {2}))) << "of an older version";
    EXPECT_TRUE(ok(with(good, 23, {4}))) << "nodes of one machine";
    EXPECT_TRUE(ok(with(good, 23, {77}))) << "a medium of a later page";
    EXPECT_FALSE(ok(with(good, 24, {2, 0x3f}))) << "an MTU below the least";
    EXPECT_FALSE(ok(with(good, 26, {1}))) << "attributes of the job that are not there";
    EXPECT_FALSE(ok(with(good, 27, {1}))) << "reserved";
    EXPECT_FALSE(ok(with(good, 28, {0, 1}))) << "padding that is not there";
    EXPECT_FALSE(ok(with(good, 30, {1}))) << "a multicast MAC";
    EXPECT_FALSE(ok(with(good, 36, {0x80}))) << "a group's handle";
    EXPECT_FALSE(ok(with(good, 40, {0, 0, 0, 0}))) << "incarnation 0";
    EXPECT_FALSE(ok(with(good, 44, {1}))) << "attributes that are another entry's";
}

// J-43
TEST(WireJob, padding_is_zeros_of_the_length_that_is_said) {
    Octets roster = with(roster_frame(3, 5, 8), 28, {0, 9});
    roster.resize(roster.size() + 9);
    EXPECT_TRUE(ok(roster));
    roster[roster.size() - sizeof(JobTag) - 1] = std::byte{1};
    EXPECT_FALSE(ok(roster));
    Octets ack = with(ack_frame(RosterAckState::kHolds, 9, 0), 8, {0, 9});
    ack.resize(ack.size() + 9);
    EXPECT_TRUE(ok(ack));
    EXPECT_FALSE(ok(with(ack, 6, {3}))) << "only who holds all pads";
}

// J-36, J-37
TEST(WireJob, attributes_that_are_no_items_are_malformed) {
    const auto takes = [](std::initializer_list<unsigned> more) {
        const Octets octets = attributes_with(more);
        NodeAttributes out;
        const bool parsed = parse_attributes(octets, out);
        EXPECT_EQ(ok(join_frame(3, octets)), parsed);
        EXPECT_EQ(are_items(octets), parsed);
        return parsed && out.mtu == 9000 && out.links == 2;
    };
    EXPECT_TRUE(takes({}));
    EXPECT_TRUE(takes({5, 0})) << "an unknown type without a value";
    EXPECT_TRUE(takes({7, 2, 1, 2, 200, 1, 9})) << "two unknown types";
    EXPECT_FALSE(takes({3})) << "no length";
    EXPECT_FALSE(takes({3, 2, 1})) << "a value beyond the end";
    EXPECT_FALSE(takes({3, 255, 1}));
    EXPECT_FALSE(takes({2, 1, 2})) << "twice";
    EXPECT_FALSE(takes({7, 0, 7, 0}));
    EXPECT_FALSE(takes({7, 0, 5, 0})) << "types that descend";
    EXPECT_FALSE(takes({0, 0})) << "type 0";
}

// J-37
TEST(WireJob, values_of_attributes_out_of_range_are_malformed) {
    const auto takes = [](std::initializer_list<unsigned> octets) {
        Octets list;
        for (const unsigned octet : octets)
            list.push_back(std::byte(octet));
        NodeAttributes out;
        return parse_attributes(list, out);
    };
    EXPECT_TRUE(takes({1, 2, 2, 0x40}));
    EXPECT_FALSE(takes({1, 2, 2, 0x3f})) << "an MTU below the least";
    EXPECT_FALSE(takes({1, 1, 9}));
    EXPECT_FALSE(takes({1, 3, 9, 9, 9}));
    EXPECT_FALSE(takes({1, 0}));
    EXPECT_TRUE(takes({2, 1, 4}));
    EXPECT_FALSE(takes({2, 1, 0}));
    EXPECT_FALSE(takes({2, 1, 5}));
    EXPECT_FALSE(takes({2, 2, 1, 1}));
    EXPECT_TRUE(takes({3, 4, 0, 0, 0, 1}));
    EXPECT_TRUE(takes({3, 4, 0, 9, 0x27, 0xc0})) << "ten minutes";
    EXPECT_FALSE(takes({3, 4, 0, 9, 0x27, 0xc1}));
    EXPECT_FALSE(takes({3, 4, 0, 0, 0, 0}));
    EXPECT_FALSE(takes({3, 3, 0, 0, 1}));
    NodeAttributes none;
    EXPECT_TRUE(parse_attributes({}, none));
    EXPECT_EQ(none.mtu, kMtuMin) << "who says nothing takes the least";
    EXPECT_EQ(none.links, 1);
    EXPECT_EQ(none.patience_ms, 0U);
}

// J-37
TEST(WireJob, attributes_are_read_as_they_were_written) {
    const NodeAttributes said{9000, 3, 0x81234};
    NodeAttributes read;
    ASSERT_TRUE(parse_attributes(span_of(octets_of(said)), read));
    EXPECT_EQ(read.mtu, said.mtu);
    EXPECT_EQ(read.links, said.links);
    EXPECT_EQ(read.patience_ms, said.patience_ms);
}

// J-25, J-26
TEST(WireJob, other_bodies_out_of_range_are_malformed) {
    EXPECT_FALSE(ok(ack_frame(RosterAckState::kPartial, 9, 1)));
    EXPECT_FALSE(ok(ack_frame(RosterAckState::kPartial, 0, 0)));
    EXPECT_FALSE(ok(ack_frame(RosterAckState::kHolds, 9, 2)));
    EXPECT_TRUE(ok(ack_frame(RosterAckState::kHolds, 9, 0)));
    EXPECT_TRUE(ok(ack_frame(RosterAckState::kRefused, 9, 0)));
    EXPECT_FALSE(ok(ack_frame(static_cast<RosterAckState>(5), 9, 0)));
    EXPECT_FALSE(ok(reject_frame(static_cast<std::uint32_t>(Err::kOk), RejectScope::kJob, 0)));
    EXPECT_FALSE(ok(reject_frame(static_cast<std::uint32_t>(Err::kTimeout), RejectScope::kJob, 0)));
    EXPECT_FALSE(ok(reject_frame(12, RejectScope::kClaim, 0)));
    EXPECT_FALSE(ok(reject_frame(12, static_cast<RejectScope>(3), 1)));
    EXPECT_FALSE(ok(bye_frame(kNoRank, LeaveReason::kLeft, 4)));
    EXPECT_FALSE(ok(bye_frame(1, LeaveReason{}, 4)));
    EXPECT_FALSE(ok(bye_frame(1, LeaveReason::kExcluded, 4)));
    EXPECT_FALSE(ok(bye_frame(1, LeaveReason::kLeft, 0)));
}

// N-1
TEST(WireNode, round_trips_and_refuses_what_is_out_of_range) {
    const auto parses = [](NodeKind kind, LeaveReason reason, std::uint32_t incarnation,
                           std::uint64_t token, Handle ours, Handle theirs) {
        NodeBody body{};
        body.kind = kind;
        body.reason = reason;
        body.incarnation = incarnation;
        body.token = token;
        body.ours = ours;
        body.theirs = theirs;
        std::byte octets[sizeof body + 1];
        const std::size_t n = put_node(octets, body);
        NodeView view;
        EXPECT_FALSE(parse_node(octets, n - 1, view));
        EXPECT_FALSE(parse_node(octets, n + 1, view));
        return parse_node(octets, n, view) && view.token == token &&
               view.incarnation == incarnation && view.ours == ours && view.theirs == theirs;
    };
    EXPECT_TRUE(parses(NodeKind::kPing, {}, 1, 1, 0, 0));
    EXPECT_TRUE(parses(NodeKind::kPing, {}, 1, 1, 7, 8));
    EXPECT_TRUE(parses(NodeKind::kPong, {}, 1, UINT64_MAX, 0, 0));
    EXPECT_TRUE(parses(NodeKind::kGone, LeaveReason::kLeft, 1, 5, 6, 0));
    EXPECT_TRUE(parses(NodeKind::kGone, LeaveReason::kLeft, 1, kNoToken, 6, 0));
    EXPECT_TRUE(parses(NodeKind::kExpelled, {}, 1, 5, 0, 6));
    EXPECT_TRUE(parses(NodeKind::kExpelled, {}, 1, kNoToken, 0, 6));
    EXPECT_TRUE(parses(NodeKind::kExpelled, LeaveReason::kExcluded, 1, 5, 0, 6));
    EXPECT_FALSE(parses(NodeKind::kPing, {}, 0, 1, 0, 0));
    EXPECT_FALSE(parses(NodeKind::kPing, {}, 1, kNoToken, 0, 0));
    EXPECT_FALSE(parses(NodeKind::kPing, LeaveReason::kLeft, 1, 1, 0, 0));
    EXPECT_FALSE(parses(NodeKind::kPing, {}, 1, 1, kGroupBit, 0));
    EXPECT_FALSE(parses(NodeKind::kPong, {}, 1, kNoToken, 0, 0));
    EXPECT_FALSE(parses(NodeKind::kPong, {}, 1, 1, 1, 0));
    EXPECT_FALSE(parses(NodeKind::kPong, {}, 1, 1, 0, 1));
    EXPECT_FALSE(parses(NodeKind::kGone, {}, 1, 5, 6, 0));
    EXPECT_FALSE(parses(NodeKind::kGone, LeaveReason::kLeft, 1, 5, 0, 0));
    EXPECT_FALSE(parses(NodeKind::kGone, LeaveReason::kLeft, 1, 5, 6, 6));
    EXPECT_FALSE(parses(NodeKind::kGone, LeaveReason::kLeft, 1, 5, kGroupBit, 0));
    EXPECT_FALSE(parses(NodeKind::kExpelled, LeaveReason::kDied, 1, 5, 0, 6));
    EXPECT_FALSE(parses(NodeKind::kGone, LeaveReason::kExcluded, 1, 5, 6, 0));
    EXPECT_FALSE(parses(NodeKind::kExpelled, {}, 1, 5, 6, 6));
    EXPECT_FALSE(parses(NodeKind::kExpelled, {}, 1, 5, 0, 0));
    for (const NodeKind echo : {NodeKind::kEchoRequest, NodeKind::kEchoReply}) {  // N-35
        EXPECT_TRUE(parses(echo, {}, 1, 1, 0, 0));
        EXPECT_FALSE(parses(echo, {}, 0, 1, 0, 0));
        EXPECT_FALSE(parses(echo, {}, 1, kNoToken, 0, 0));
        EXPECT_FALSE(parses(echo, LeaveReason::kLeft, 1, 1, 0, 0));
        EXPECT_FALSE(parses(echo, {}, 1, 1, 1, 0));
        EXPECT_FALSE(parses(echo, {}, 1, 1, 0, 1));
    }
    EXPECT_TRUE(parses(NodeKind::kLinksRequest, {}, 1, 1, 0, 0));
    EXPECT_FALSE(parses(NodeKind::kLinksRequest, {}, 1, kNoToken, 0, 0));
    EXPECT_TRUE(parses(NodeKind::kLinksRequest, {}, 1, 1, 1, 0)) << "it takes frames from there";
    EXPECT_FALSE(parses(NodeKind::kLinksRequest, {}, 1, 1, 2, 0));
    EXPECT_FALSE(parses(NodeKind::kLinksRequest, {}, 1, 1, 0, 1));
    EXPECT_FALSE(parses(NodeKind::kLinksReply, {}, 1, 1, 0, 0)) << "without number and entries";
    EXPECT_FALSE(parses(static_cast<NodeKind>(10), {}, 1, 1, 0, 0));
}

// N-28
TEST(WireNode, links_round_trip_and_are_refused_out_of_range) {
    const Mac a{{2, 0, 0, 0, 0, 1}};
    const Mac b{{2, 0, 0, 0, 0, 2}};
    NodeBody head{};
    head.kind = NodeKind::kLinks;
    head.incarnation = 7U;
    head.token = 3U;
    std::byte octets[sizeof(NodeBody) + (kNodeLinksMax + 1) * sizeof(LinkEntry)]{};
    const auto parses = [&](std::size_t n) {
        NodeView view;
        return parse_node(octets, n, view) && view.links.size() == (n - sizeof(NodeBody)) / 12;
    };
    const NodeAddress two[] = {{a, 100}, {b, 0}};
    const std::size_t n = put_links(octets, head, two);
    EXPECT_EQ(n, 48U);
    NodeView view;
    ASSERT_TRUE(parse_node(octets, n, view));
    EXPECT_EQ(view.token, 3U);
    ASSERT_EQ(view.links.size(), 2U);
    EXPECT_EQ(view.links[0].mac, a);
    EXPECT_EQ(view.links[0].megabits, 100U);
    EXPECT_EQ(view.links[1].mac, b);
    EXPECT_FALSE(parses(n - 1));
    EXPECT_FALSE(parses(n + 1));
    EXPECT_FALSE(parses(sizeof(NodeBody))) << "no link";
    EXPECT_TRUE(parses(sizeof(NodeBody) + sizeof(LinkEntry)));

    const auto refused = [&](const NodeAddress& other) {
        const NodeAddress links[] = {{a, 100}, other};
        return !parses(put_links(octets, head, links));
    };
    EXPECT_TRUE(refused({a, 100})) << "twice";
    EXPECT_TRUE(refused({Mac{}, 100}));
    EXPECT_TRUE(refused({kBroadcastMac, 100}));
    EXPECT_FALSE(refused({b, 100}));
    EXPECT_TRUE(refused({b, 100, 1})) << "a number in a mesh, but none of the other link";

    for (std::uint8_t i = 0; i <= kNodeLinksMax; ++i) {
        LinkEntry entry{{{2, 0, 0, 0, 1, i}}, 0, 1U};
        std::memcpy(octets + sizeof(NodeBody) + i * sizeof entry, &entry, sizeof entry);
    }
    EXPECT_TRUE(parses(sizeof(NodeBody) + kNodeLinksMax * sizeof(LinkEntry)));
    EXPECT_FALSE(parses(sizeof(NodeBody) + (kNodeLinksMax + 1) * sizeof(LinkEntry)));

    const auto head_refused = [&](auto change) {
        NodeBody bad = head;
        change(bad);
        return !parses(put_links(octets, bad, two));
    };
    EXPECT_TRUE(head_refused([](NodeBody& node) { node.token = kNoToken; }));
    EXPECT_TRUE(head_refused([](NodeBody& node) { node.incarnation = 0U; }));
    EXPECT_TRUE(head_refused([](NodeBody& node) { node.ours = 1U; }));
    EXPECT_TRUE(head_refused([](NodeBody& node) { node.theirs = 1U; }));
    EXPECT_TRUE(head_refused([](NodeBody& node) { node.reason = LeaveReason::kLeft; }));
    EXPECT_TRUE(head_refused([](NodeBody& node) { node.reserved = 1U; }));
}

// N-51
TEST(WireNode, replies_about_links_round_trip) {
    NodeBody head{};
    head.kind = NodeKind::kLinksReply;
    head.incarnation = 7U;
    head.token = 3U;
    std::byte octets[sizeof(NodeBody) + sizeof(Be64) + 2 * sizeof(LinkEntry)]{};
    const NodeAddress two[] = {{{{2, 0, 0, 0, 0, 1}}, 100}, {{{2, 0, 0, 0, 0, 2}}, 0}};
    const std::size_t n = put_links_reply(octets, head, 9, two);
    EXPECT_EQ(n, sizeof octets);
    NodeView view;
    ASSERT_TRUE(parse_node(octets, n, view));
    EXPECT_EQ(view.token, 3U);
    EXPECT_EQ(view.number, 9U);
    ASSERT_EQ(view.links.size(), 2U);
    EXPECT_EQ(view.links[1].mac, two[1].mac);
    for (std::size_t less = 0; less < n; ++less)
        EXPECT_EQ(parse_node(octets, less, view), less == n - sizeof(LinkEntry)) << less;
}

// N-40
TEST(WireNode, links_of_a_mesh_are_two_with_numbers) {
    NodeBody head{};
    head.kind = NodeKind::kLinks;
    head.incarnation = 7U;
    head.token = 3U;
    std::byte octets[sizeof(NodeBody) + kNodeLinksMax * sizeof(LinkEntry)]{};
    NodeView view;
    const auto parses = [&](const std::vector<std::uint16_t>& segments) {
        std::vector<NodeAddress> links;
        for (const std::uint16_t segment : segments) {
            const auto last = static_cast<std::uint8_t>(links.size());
            links.push_back({Mac{{2, 0, 0, 0, 0, last}}, 100, segment});
        }
        return parse_node(octets, put_links(octets, head, links), view);
    };
    ASSERT_TRUE(parses({3, kMeshLinesMax}));
    EXPECT_EQ(view.links[0].segment, 3U);
    EXPECT_EQ(view.links[1].segment, kMeshLinesMax);
    EXPECT_FALSE(parses({3, kMeshLinesMax + 1}));
    EXPECT_FALSE(parses({kMeshLinesMax + 1, 3}));
    EXPECT_FALSE(parses({3, 0}));
    EXPECT_FALSE(parses({0, 3}));
    EXPECT_FALSE(parses({3}));
    EXPECT_FALSE(parses({3, 3, 3}));
    EXPECT_TRUE(parses({0, 0, 0}));
}

}  // namespace
}  // namespace ulc::wire
