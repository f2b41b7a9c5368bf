// SPDX-License-Identifier: BSD-3-Clause
// Writes the seed inputs of frame_parse and jobs_state with the builders, so that they can be made
// again when the format changes: make_corpus FOLDER (with corpus/frame_parse and corpus/jobs_state
// in it).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "jobs_state_fuzz.h"
#include "wire/build.h"
#include "wire/forward.h"
#include "wire/job.h"
#include "wire/link.h"

namespace {

using namespace ulc;
using namespace ulc::wire;
using Octets = std::vector<std::byte>;
using fuzz::Op;

void save(const std::filesystem::path& file, const Octets& octets) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(octets.data()),
               static_cast<std::streamsize>(octets.size()));
}

FrameHead head_of(FrameType type) {
    FrameHead head;
    head.destination = fuzz::kOwnMac;
    head.source = fuzz::sender_mac(1);
    head.type = type;
    return head;
}

Octets data_frame(FrameType type, unsigned flags, std::size_t payload) {
    FrameHead head = head_of(type);
    head.flags = static_cast<std::uint8_t>(flags);
    head.handle = type == FrameType::kData ? 1U : kGroupBit | 1U;
    head.rank = 3;
    head.seq = Seq{9};
    Extensions extensions;
    extensions.after_count = 2;
    extensions.subset = 5;
    extensions.message_length = 5000;
    Octets frame(2048);
    frame.resize(build_data(frame.data(), head, extensions, payload));
    return frame;
}

JobHead job(JobKind kind, bool by_hand = true, std::uint8_t nonce = 0) {
    Nonce value;
    value.octets[0] = nonce;
    return job_head(kind, "j", value, by_hand);
}

Octets join_body(std::uint16_t rank, std::uint16_t size) {
    JoinBody join{};
    join.size = size;
    join.version_min = kProtocolVersion;
    join.version_max = kProtocolVersion;
    join.incarnation = 2000U + rank;
    join.claims = std::uint16_t{1};
    join.profile = profile_field("urtp");
    JoinClaim claim;
    claim.rank = rank;
    claim.handle = 500U + rank;
    const AttributeOctets attributes = octets_of(NodeAttributes{1500, 1});
    join.attribute_octets = static_cast<std::uint16_t>(attributes.size());
    Octets body(2000);
    body.resize(put_join(body.data(), job(JobKind::kJoin), join, std::span(&claim, 1),
                         span_of(attributes)));
    return body;
}

/// Returns a roster with rank 0 at sender 1 and this engine's rank 1.
Octets roster_body() {
    RosterBody roster{};
    roster.roster = 7U;
    roster.world = kGroupBit | 77U;
    roster.size = std::uint16_t{2};
    roster.parts = std::uint16_t{1};
    roster.entries = std::uint16_t{2};
    roster.version = kProtocolVersion;
    roster.mtu = std::uint16_t{1500};
    RosterEntry entries[2];
    entries[0].mac = fuzz::sender_mac(1);
    entries[0].handle = 500U;
    entries[0].incarnation = 2000U;
    entries[1].mac = fuzz::kOwnMac;
    entries[1].handle = fuzz::kEndpoint + 1;
    entries[1].incarnation = fuzz::kOwnIncarnation;
    const AttributeOctets attributes = octets_of(NodeAttributes{1500, 2});
    entries[0].attribute_octets = static_cast<std::uint8_t>(attributes.size());
    entries[1].attribute_octets = 0;
    Octets body(2000);
    body.resize(put_roster(body.data(), job(JobKind::kRoster, true, 1), roster, entries,
                           span_of(attributes)));
    return body;
}

Octets commit_body() {
    CommitBody commit{};
    commit.roster = 7U;
    Octets body(200);
    body.resize(put_commit(body.data(), job(JobKind::kCommit, true, 1), commit));
    return body;
}

Octets ack_body(RosterAckState state) {
    RosterAckBody ack{};
    ack.roster = 7U;
    ack.parts = std::uint16_t{1};
    ack.state = state;
    const Octets bitmap(state == RosterAckState::kPartial ? 1 : 0);
    ack.bitmap_octets = static_cast<std::uint8_t>(bitmap.size());
    Octets body(200);
    body.resize(put_roster_ack(body.data(), job(JobKind::kRosterAck, true, 1), ack, bitmap));
    return body;
}

Octets reject_body(RejectScope scope) {
    RejectBody reject{};
    reject.error = static_cast<std::uint32_t>(Err::kRankTaken);
    reject.scope = scope;
    reject.rank = std::uint16_t{1};
    reject.handle = fuzz::kEndpoint + 1;
    Octets body(200);
    body.resize(put_reject(body.data(), job(JobKind::kReject), reject));
    return body;
}

Octets bye_body() {
    ByeBody bye{};
    bye.reason = LeaveReason::kLeft;
    bye.handle = 500U;
    Octets body(200);
    body.resize(put_bye(body.data(), job(JobKind::kBye, true, 1), bye));
    return body;
}

Octets node_body(NodeKind kind, LeaveReason reason = {}) {
    NodeBody node{};
    node.kind = kind;
    node.reason = kind == NodeKind::kGone ? LeaveReason::kDied : reason;
    node.incarnation = 2000U;
    node.token = 500U;
    if (kind == NodeKind::kGone) node.ours = 500U;
    if (kind == NodeKind::kExpelled) node.theirs = 101U;
    Octets body(sizeof node);
    (void)put_node(body.data(), node);
    return body;
}

Octets links_body() {
    NodeBody node{};
    node.kind = NodeKind::kLinks;
    node.incarnation = 2000U;
    node.token = 3U;
    const NodeAddress links[] = {{{{2, 0, 0, 0, 0, 2}}, 100}, {{{2, 0, 0, 0, 1, 2}}, 1000}};
    Octets body(sizeof node + sizeof(LinkEntry) * std::size(links));
    (void)put_links(body.data(), node, links);
    return body;
}

Octets links_reply_body() {
    NodeBody node{};
    node.kind = NodeKind::kLinksReply;
    node.incarnation = 2000U;
    node.token = 0x1234567812345678U;
    const NodeAddress links[] = {{{{2, 0, 0, 0, 0, 2}}, 100}, {{{2, 0, 0, 0, 1, 2}}, 1000}};
    Octets body(sizeof node + sizeof(Be64) + sizeof(LinkEntry) * std::size(links));
    (void)put_links_reply(body.data(), node, 3, links);
    return body;
}

Octets link_body(LinkKind kind) {
    const bool makes = kind == LinkKind::kRequest || kind == LinkKind::kAccept;
    const bool answers =
        kind == LinkKind::kRefuse || kind == LinkKind::kUnlinked || kind == LinkKind::kHere;
    const bool asks = kind == LinkKind::kWhere;
    LinkBody link{};
    link.kind = kind;
    if (kind == LinkKind::kRefuse) link.reason = static_cast<std::uint8_t>(Err::kLimit);
    if (kind == LinkKind::kUnlink) link.reason = static_cast<std::uint8_t>(LeaveReason::kLeft);
    link.version = kProtocolVersion;
    link.incarnation = 2000U;
    link.ours = answers ? 0U : 600U;
    link.theirs = kind == LinkKind::kRequest ? 0U : 700U;
    if (asks) link.theirs = lookup_of(fuzz::kLinkKey);
    if (kind == LinkKind::kHere) link.theirs = 1U;
    link.from = 500U;
    link.to = asks ? 0U : fuzz::kLinkEndpoint;
    if (makes) link.first_seq = 9U;
    Octets body(kLinkOctetsMax);
    body.resize(put_link(body.data(), link, "urtp", fuzz::kLinkKey, fuzz::sender_mac(1)));
    return body;
}

Octets control_frame(FrameType type, const Octets& body) {
    Octets frame(2048);
    std::copy(body.begin(), body.end(), frame.begin() + kHeadOctets);
    frame.resize(build_control(frame.data(), head_of(type), body.size()));
    return frame;
}

void make_frames(const std::filesystem::path& folder) {
    const unsigned one = kFlagFirst | kFlagLast;
    save(folder / "data", data_frame(FrameType::kData, one, 20));
    save(folder / "data_ack_after_tag",
         data_frame(FrameType::kData, kFlagFirst | kFlagAck | kFlagAfter | kFlagTag, 60));
    save(folder / "data_crc", data_frame(FrameType::kData, one | kFlagCrc, 20));
    save(folder / "mcast_subset",
         data_frame(FrameType::kMcast, one | kFlagSubset | kFlagAckNow, 80));
    const AckEntry entries[2]{};
    FrameHead head = head_of(FrameType::kAck);
    head.handle = 1;
    Octets frame(512);
    frame.resize(build_ack(frame.data(), head, entries));
    save(folder / "ack", frame);
    head.type = FrameType::kReq;
    frame.resize(512);
    frame.resize(build_req(frame.data(), head, entries[0], Octets(9, std::byte{1})));
    save(folder / "req", frame);
    head.type = FrameType::kProbe;
    frame.resize(512);
    frame.resize(build_probe(frame.data(), head, 1));
    save(folder / "probe", frame);
    FlowBody flow{};
    flow.stream = 3U;
    flow.count = std::uint16_t{4};
    flow.kind = FlowKind::kReserve;
    head = head_of(FrameType::kFlow);
    head.handle = 1;
    frame.resize(512);
    frame.resize(build_flow(frame.data(), head, flow));
    save(folder / "flow", frame);
    save(folder / "counted", data_frame(FrameType::kCounted, one | kFlagSubset, 20));
    StatusBody status{};
    status.count = std::uint16_t{3};
    const Be32 next[3]{};
    head = head_of(FrameType::kStatus);
    head.handle = kGroupBit | 1U;
    frame.resize(512);
    frame.resize(build_status(frame.data(), head, status, next));
    save(folder / "status", frame);
    NackBody nack{};
    nack.group = kGroupBit | 1U;
    nack.to = 5U;
    nack.kind = NackKind::kGlobal;
    head.type = FrameType::kNack;
    frame.resize(512);
    frame.resize(build_nack(frame.data(), head, nack));
    save(folder / "nack", frame);
    save(folder / "job_join", control_frame(FrameType::kJob, join_body(1, 2)));
    save(folder / "job_roster", control_frame(FrameType::kJob, roster_body()));
    save(folder / "job_ack", control_frame(FrameType::kJob, ack_body(RosterAckState::kPartial)));
    save(folder / "job_commit", control_frame(FrameType::kJob, commit_body()));
    save(folder / "job_reject", control_frame(FrameType::kJob, reject_body(RejectScope::kClaim)));
    save(folder / "job_bye", control_frame(FrameType::kJob, bye_body()));
    for (const LinkKind kind :
         {LinkKind::kRequest, LinkKind::kAccept, LinkKind::kConfirm, LinkKind::kRefuse,
          LinkKind::kUnlink, LinkKind::kUnlinked, LinkKind::kWhere, LinkKind::kHere})
        save(folder / ("link_" + std::to_string(static_cast<int>(kind))),
             control_frame(FrameType::kLink, link_body(kind)));
    save(folder / "node_gone", control_frame(FrameType::kNode, node_body(NodeKind::kGone)));
    save(folder / "node_links", control_frame(FrameType::kNode, links_body()));
    save(folder / "node_links_reply", control_frame(FrameType::kNode, links_reply_body()));
    const Octets inner = control_frame(FrameType::kNode, links_body());
    Octets outer(inner.size() + sizeof(ForwardHeader));
    (void)build_forward(
        outer.data(),
        {kBroadcastMac, {{2, 0, 0, 0, 0, 2}}, 1, {{2, 0, 0, 0, 0, 2}}, kBroadcastMac, 0},
        kEtherTypeDefault, inner.data(), inner.size());
    save(folder / "forward", outer);
    save(folder / "node_expelled", control_frame(FrameType::kNode, node_body(NodeKind::kExpelled)));
    save(folder / "node_excluded",
         control_frame(FrameType::kNode, node_body(NodeKind::kExpelled, LeaveReason::kExcluded)));
}

/// Appends operations to a script. Returns the same body for a launcher's job.
Octets launched(Octets body) {
    body[offsetof(JobHead, flags)] = std::byte{0};
    body[offsetof(JobHead, nonce)] = std::byte{1};
    return body;
}

struct Script {
    Octets octets;
    Script& put(std::initializer_list<unsigned> values) {
        for (const unsigned value : values)
            octets.push_back(static_cast<std::byte>(value));
        return *this;
    }
    Script& frame(Op op, std::uint8_t sender, const Octets& body) {
        put({static_cast<unsigned>(op), sender, static_cast<unsigned>(body.size() & 0xff),
             static_cast<unsigned>(body.size() >> 8)});
        octets.insert(octets.end(), body.begin(), body.end());
        return *this;
    }
    Script& join(unsigned rank, unsigned size) {
        return put({static_cast<unsigned>(Op::kJoin), rank, size, 0});
    }
    Script& leave(unsigned rank) { return put({static_cast<unsigned>(Op::kLeave), rank, 0}); }
    Script& advance(unsigned log2) { return put({static_cast<unsigned>(Op::kAdvance), log2}); }
};

void make_scripts(const std::filesystem::path& folder) {
    Script follower;
    follower.join(1, 2).advance(20).frame(Op::kJob, 1, join_body(0, 2));
    follower.frame(Op::kJob, 1, roster_body()).advance(24);
    follower.frame(Op::kJob, 1, commit_body())
        .advance(24)
        .frame(Op::kNode, 1, node_body(NodeKind::kPing));
    follower.advance(30).advance(31).frame(Op::kJob, 1, bye_body()).leave(1).advance(28);
    save(folder / "follower", follower.octets);
    Script roster;
    roster.join(1, 2).frame(Op::kJob, 1, join_body(0, 2)).frame(Op::kJob, 1, roster_body());
    save(folder / "roster", roster.octets);
    Script publisher;
    publisher.join(0, 3).frame(Op::kJob, 1, join_body(1, 3)).frame(Op::kJob, 2, join_body(2, 3));
    publisher.advance(24).frame(Op::kJob, 2, ack_body(RosterAckState::kHolds)).advance(27);
    publisher.frame(Op::kJob, 3, join_body(2, 3)).advance(30).advance(31).leave(0);
    save(folder / "publisher", publisher.octets);
    Script rejected;
    rejected.join(1, 2)
        .frame(Op::kJob, 1, join_body(0, 2))
        .frame(Op::kJob, 1, reject_body(RejectScope::kClaim))
        .join(1, 2);
    rejected.frame(Op::kJob, 1, reject_body(RejectScope::kJob)).join(0, 1).leave(0);
    save(folder / "rejected", rejected.octets);
    Script ended;
    ended.join(1, 2)
        .frame(Op::kJob, 1, join_body(0, 2))
        .frame(Op::kJob, 1, roster_body())
        .frame(Op::kJob, 1, commit_body());
    ended.frame(Op::kNode, 1, node_body(NodeKind::kGone))
        .put({static_cast<unsigned>(Op::kUnknown), 1, 9});
    ended.frame(Op::kNode, 1, node_body(NodeKind::kExpelled));
    ended.frame(Op::kNode, 1, links_body());
    ended.frame(Op::kNode, 1, node_body(NodeKind::kExpelled, LeaveReason::kExcluded));
    ended.put({static_cast<unsigned>(Op::kExclude), 1, 0});
    ended.advance(35).leave(1).frame(Op::kNode, 1, node_body(NodeKind::kPong));
    save(folder / "ended", ended.octets);
    Script keyed;
    keyed.put({static_cast<unsigned>(Op::kJoin), 1, 2, 7});
    for (const Octets& body :
         {launched(join_body(0, 2)), launched(roster_body()), launched(commit_body())}) {
        keyed.put({static_cast<unsigned>(Op::kTagged), 7, 1,
                   static_cast<unsigned>(body.size() & 0xff),
                   static_cast<unsigned>(body.size() >> 8)});
        keyed.octets.insert(keyed.octets.end(), body.begin(), body.end());
        keyed.advance(24);
    }
    save(folder / "keyed", keyed.octets);
    Script links;
    links.frame(Op::kLink, 1, link_body(LinkKind::kRequest)).advance(24);
    links.frame(Op::kLink, 1, link_body(LinkKind::kConfirm)).advance(30);
    links.frame(Op::kLink, 1, link_body(LinkKind::kUnlink)).advance(33);
    links.put({static_cast<unsigned>(Op::kCall), 2, 50}).advance(24);
    links.frame(Op::kLink, 2, link_body(LinkKind::kAccept)).advance(28);
    links.frame(Op::kLink, 2, link_body(LinkKind::kRefuse)).advance(33);
    links.put({static_cast<unsigned>(Op::kCall), 1, 244});
    links.frame(Op::kLink, 1, link_body(LinkKind::kRequest)).advance(20);
    links.frame(Op::kLink, 1, link_body(LinkKind::kUnlinked)).advance(33);
    links.put({static_cast<unsigned>(Op::kUnlink), 0}).advance(35);
    save(folder / "links", links.octets);
    Script names;
    names.frame(Op::kLink, 1, link_body(LinkKind::kWhere)).advance(20);
    names.put({static_cast<unsigned>(Op::kFind), 30}).advance(21);
    names.frame(Op::kLink, 2, link_body(LinkKind::kHere)).advance(24);
    names.put({static_cast<unsigned>(Op::kFind), 20}).advance(28);
    save(folder / "names", names.octets);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 2;
    }
    make_frames(std::filesystem::path(argv[1]) / "frame_parse");
    make_scripts(std::filesystem::path(argv[1]) / "jobs_state");
    return 0;
}
