// SPDX-License-Identifier: BSD-3-Clause
// The slow side of an endpoint: joining and leaving its job, peers that are gone; groups are in
// groups.cc. Reports to the client wait in endpoint/reports.h for a free slot of its ring.
#include <algorithm>
#include <cstring>
#include <span>

#include "abi/put_text.h"
#include "base/check.h"
#include "engine/core.h"
#include "urtp/policy.h"

namespace ulc::engine {
namespace {

using abi::CompletionKind;
using abi::CompletionRecord;
using abi::SubmissionRecord;
using abi::SubmitKind;

// ---------------------------------------------------------------- jobs

bool on_join(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    const abi::Block& block = record.body.block;
    const std::byte* shared = endpoint.region().tx(block.offset, block.length);
    if (shared == nullptr || block.length != sizeof(abi::JoinRequest)) return false;
    abi::JoinRequest request;
    std::memcpy(&request, shared, sizeof request);
    asm volatile("" ::: "memory");  // judge the copy, not the arena
    if (request.name_length > abi::kJobNameOctetsMax) return false;
    if (endpoint.in_use() || !endpoint.life().is_open() || core.rounds().is_stopping()) {
        bad_record(core, endpoint);
        if (!endpoint.in_use()) fail_job(endpoint, Err::kClosed, text_of(Err::kClosed));
        return true;
    }
    JoinRequest join;
    join.name = std::string_view(request.name, request.name_length);
    std::memcpy(join.nonce.octets.data(), request.nonce, sizeof request.nonce);
    join.rank = request.rank;
    join.size = request.size;
    join.endpoint = endpoint.handle();
    join.user = endpoint.user().uid;
    join.profile =
        std::string_view(request.profile, strnlen(request.profile, sizeof request.profile));
    if (join.profile.empty()) join.profile = core.config().profile;
    urtp::Policy policy;
    urtp::Params params;
    if (urtp::resolve(join.profile, policy, params) != Err::kOk) {
        fail_job(endpoint, Err::kProfile, "known: " + urtp::policy_words());
        return true;
    }
    const auto wait = static_cast<Nanos>(
        std::min<std::uint64_t>(request.timeout_ns, static_cast<std::uint64_t>(kNever / 4)));
    join.deadline = now + (wait == 0 ? core.config().join_timeout : wait);
    join.patience = static_cast<Nanos>(request.patience_ns);
    join.medium = endpoint.net().port().info.half_duplex ? Medium::kHub : Medium::kSwitch;
    if (request.medium > 0 && request.medium <= kMediaSaid)
        join.medium = static_cast<Medium>(request.medium - 1);
    if (!endpoint.net().jobs().forming(join))
        join.begins_at = core.accounts().take_job(endpoint.user(), now, join.deadline);
    if (join.begins_at == kNever) {
        core.counters().add(Counter::refused_jobs);
        fail_job(endpoint, Err::kLimit,
                 "this user began too many jobs lately; wait, or raise --jobs-per-second");
        return true;
    }
    const Result<JobId> result = endpoint.net().jobs().join(join, now);
    if (result.ok()) {
        endpoint.membership().enter(result.value());
        return true;
    }
    const bool too_large = join.size > core.config().jobs.ranks_max;
    if (result.error() != Err::kLimit || too_large) {
        fail_job(endpoint, result.error(), text_of(result.error()));
        return true;
    }
    core.counters().add(Counter::refused_jobs);
    fail_job(endpoint, Err::kLimit,
             "this user holds its share of the node's " +
                 std::to_string(core.config().jobs.jobs_max) +
                 " jobs, or all are taken; end some, or raise --jobs or --user-share");
    return true;
}

void on_formed(Core& core, Endpoint& endpoint, const JobEvent& event) {
    JobView job;
    if (!endpoint.net().jobs().job(event.job, job)) return;
    LocalGroup* world = endpoint.net().groups().join(job.world, job.world, &endpoint);
    if (world == nullptr) {  // two jobs under one world handle, or groups_max is reached
        endpoint.net().jobs().leave(event.job, endpoint.handle(), wire::LeaveReason::kDied,
                                    core.rounds().now());
        fail_job(endpoint, Err::kLimit, text_of(Err::kLimit));
        return;
    }
    urtp::TransportConfig config;
    config.rank = event.rank;
    config.first_seq = job.first_seq;
    config.world = job.world;
    config.profile = job.profile;
    config.mtu = job.mtu;
    endpoint.membership().enter(event.job);
    const bool is_local = std::ranges::all_of(
        job.roster, [&](const auto& peer) { return peer.mac == endpoint.net().port().info.mac; });
    endpoint.membership().form(job, is_local);
    if (job.has_bonds) expect_bonds(core, endpoint.net());
    endpoint.membership().set_reorder_wait(endpoint.net().reorder_wait(job.roster, job.has_bonds));
    begin_transport(core, endpoint, config, job.roster);
    for (Rank rank = 0; const urtp::Peer& peer : job.roster)
        endpoint.membership().set_node(rank++, endpoint.net().jobs().node_of(peer.mac));
    world->any_remote = !is_local;
    // Nothing of a local job is sent, so one that formed before its turn leaves that to the next.
    if (is_local && event.rank == 0 && job.begins_at > core.rounds().now())
        core.accounts().give_job(job.user);
    place_world(core, endpoint, *world);
    endpoint.report({.kind = CompletionKind::kJobFormed});
    endpoint.mark(Work::kSettle);
}

/// Ends the endpoint's relation with all ranks of a node: it held up a group of one of them.
void on_excluded(Core& core, Endpoint& endpoint, const JobEvent& event, Nanos now) {
    if (endpoint.member() == nullptr || endpoint.membership().job() != event.job) return;
    for (Rank rank = 0; rank < endpoint.member()->size(); ++rank) {
        const bool there = endpoint.member()->peer(rank).mac == event.first;
        if (!there || rank == endpoint.member()->rank() || !endpoint.membership().is_here(rank))
            continue;
        fault(endpoint, Err::kExcluded, rank, 1);
        peer_gone(core, endpoint, rank, kGoneDied, now);
    }
}

/// Returns what the port knows of nodes that did not come.
std::string silence_of(const Net& net, Err error) {
    if (error != Err::kTimeout || net.port().unanswered == nullptr) return {};
    const std::string why = net.port().unanswered(net.port().context);
    return why.empty() ? why : "; " + why;
}

void on_event(Core& core, Net& net, const JobEvent& event, Nanos now) {
    switch (event.kind) {
        case JobEventKind::kFormed:
            if (Endpoint* endpoint = core.find(event.endpoint); endpoint != nullptr)
                on_formed(core, *endpoint, event);
            return;
        case JobEventKind::kFailed:
            if (Endpoint* endpoint = core.find(event.endpoint); endpoint != nullptr)
                fail_job(*endpoint, event.error, event.text + silence_of(net, event.error));
            return;
        case JobEventKind::kShortened:
            if (core.config().report != nullptr)
                core.config().report(core.config().report_context, event.text.data());
            return;
        case JobEventKind::kExcluded:
            if (Endpoint* endpoint = core.find(event.endpoint); endpoint != nullptr)
                on_excluded(core, *endpoint, event, now);
            return;
        case JobEventKind::kPeerLeft:
        case JobEventKind::kPeerDied:
        case JobEventKind::kPeerExcluded:
            for (Endpoint* endpoint : core.table().active()) {
                if (!endpoint->is_on(net) || endpoint->membership().job() != event.job) continue;
                if (endpoint->member() == nullptr) continue;
                if (endpoint->member()->rank() == event.rank) continue;
                if (event.kind == JobEventKind::kPeerExcluded &&
                    endpoint->membership().is_here(event.rank))
                    fault(*endpoint, Err::kExcluded, event.rank, 1);
                peer_gone(core, *endpoint, event.rank,
                          event.kind == JobEventKind::kPeerLeft ? kGoneLeft : kGoneDied, now);
            }
            return;
    }
}

// ---------------------------------------------------------------- reports

void describe_job(const Endpoint& endpoint, CompletionRecord& out) {
    out.source = endpoint.member()->rank();
    out.stream = endpoint.membership().world();
    out.body.block = {};
    out.body.block.length = endpoint.member()->size();
    out.body.block.message_length = endpoint.membership().per_node();
    out.body.block.message_offset = static_cast<std::uint8_t>(endpoint.membership().medium());
}

/// Ends what the endpoint keeps of a peer whose messages were all delivered.
void describe_end(Core& core, Endpoint& endpoint, Rank rank, CompletionRecord& out) {
    endpoint.outlet()->forget(rank);
    if (endpoint.offloads() != nullptr)
        endpoint.offloads()->peer_gone(rank, endpoint.membership().has_died(rank));
    endpoint.mark(Work::kSend);
    const bool here = endpoint.member() != nullptr &&
                      endpoint.member()->peer(rank).mac == endpoint.net().port().info.mac;
    if (!here)
        out.tag = static_cast<std::uint64_t>(
            endpoint.net().jobs().own_absence(endpoint.membership().job(), core.rounds().now()) /
            kMillisecond);
}

Reports::Written write_report(Core& core, Endpoint& endpoint, const Report& report) {
    const bool is_end =
        report.kind == CompletionKind::kPeerLeft || report.kind == CompletionKind::kPeerDied;
    urtp::ReadyPacket packet;
    if (is_end && endpoint.member() != nullptr && endpoint.member()->front(report.rank, packet))
        return Reports::Written::kWaits;  // until what it sent is delivered
    CompletionRecord* out = endpoint.outlet()->claim_report(report.kind);
    if (out == nullptr) return Reports::Written::kFull;
    out->source = report.rank;
    out->status = static_cast<std::int16_t>(report.status);
    out->stream = report.stream;
    out->tag = report.tag;
    if (is_end) {
        describe_end(core, endpoint, report.rank, *out);
    } else if (report.kind == CompletionKind::kJobFormed) {
        describe_job(endpoint, *out);
    } else if (report.kind == CompletionKind::kJobFailed) {
        put_text(endpoint.region().control().failure, endpoint.reports().failure());
    } else if (report.kind == CompletionKind::kLinksOpen) {
        describe_links(endpoint, *out);
    }
    endpoint.outlet()->publish_report();
    return Reports::Written::kDone;
}

/// Limit for the delay of the news that a client died in the middle of a message: its receivers
/// wait for the rest.
constexpr Nanos kLingerCut = 20 * kMillisecond;

/// Returns what a member leaves behind that its peers have not acknowledged.
Report loss_of(const Endpoint& endpoint) {
    Report report{.kind = CompletionKind::kLeft, .status = Err::kTimeout};
    report.tag = endpoint.sends().waiting_bytes();
    if (endpoint.member() == nullptr) return report;
    report.tag += endpoint.member()->unacked_bytes();
    std::vector<std::uint32_t> packets(endpoint.member()->size());
    endpoint.member()->add_unacked(packets);
    const auto most = std::ranges::max_element(packets);
    if (most != packets.end() && *most > 0) report.rank = static_cast<Rank>(most - packets.begin());
    return report;
}

// Leaving and lingering end when all is acknowledged, or at their time limit.
bool end_when_drained(Core& core, Endpoint& endpoint, Nanos now) {
    if (!endpoint.life().ends()) return false;
    const bool leaving = endpoint.life().is_leaving();
    const bool records = endpoint.life().has_memory() && !endpoint.inlet().empty();
    if (!leaving && !records && endpoint.sends().end_unfinished() &&
        endpoint.life().reason() == wire::LeaveReason::kDied)
        endpoint.life().hurry(now + kLingerCut);
    const bool quiet = !records && endpoint.sends().empty() &&
                       (endpoint.offloads() == nullptr || endpoint.offloads()->empty()) &&
                       (endpoint.member() == nullptr || endpoint.member()->drained());
    if (!quiet && now < endpoint.life().until()) return false;
    const bool loses = leaving && !quiet;
    const Report left = loses ? loss_of(endpoint) : Report{.kind = CompletionKind::kLeft};
    leave_job(core, endpoint, endpoint.life().reason(), now);
    if (leaving) endpoint.report(left);
    endpoint.life().end();
    return true;
}

}  // namespace

void fail_job(Endpoint& endpoint, Err error, std::string_view text) {
    endpoint.membership().leave();
    endpoint.report_failure(error, text);
}

bool write_reports(Core& core, Endpoint& endpoint, Reports::Stage last) {
    bool links = false;
    const bool moved = endpoint.reports().write(last, [&](const Report& report) {
        const Reports::Written written = write_report(core, endpoint, report);
        links |= written == Reports::Written::kDone &&
                 Reports::stage_of(report.kind) == Reports::Stage::kLinks;
        return written;
    });
    if (links) endpoint.mark(Work::kDeliver);  // messages may have waited for these
    return moved;
}

void begin_transport(Core& core, Endpoint& endpoint, urtp::TransportConfig config,
                     std::span<const urtp::Peer> roster) {
    config.mac = endpoint.net().port().info.mac;
    config.mtu = std::min(config.mtu, endpoint.net().port().info.mtu);
    config.mtu_taken = endpoint.net().port().info.mtu;
    // A link outlives a path that narrows, and UDP follows it.
    const bool ends = config.rank != kNoRank && !endpoint.net().port().info.follows_paths;
    config.mtu_sure = ends ? wire::kMtuMin : config.mtu;
    config.ether_type = core.config().ether_type;
    config.crc = core.config().crc;
    config.seed = core.tokens().next();
    config.node_context = &endpoint;
    config.node_silent = [](const void* context, Rank rank, Nanos now) {
        const auto& own = *static_cast<const Endpoint*>(context);
        const bool here =
            own.member()->peer(rank).mac == own.net().port().info.mac;  // we would know
        return !here && own.net().jobs().is_silent(own.membership().job(),
                                                   own.membership().node_of(rank), now);
    };
    config.params = core.config().params;
    config.params.reorder_wait =
        std::max(config.params.reorder_wait, endpoint.membership().reorder_wait());
    config.params.fit_wire(endpoint.net().port().info.link_bits_per_second,
                           endpoint.net().port().info.half_duplex);
    config.departures = &endpoint.net().departures();
    config.arrivals = &endpoint.net().arrivals();
    endpoint.begin_member(config, roster, core.counters());
}

namespace {

/// kHold: how long a member may hold up the client's multicasts. False: corrupt.
bool on_hold(Core& core, Endpoint& endpoint, const SubmissionRecord& record) {
    const std::size_t octets = record.inline_length;
    if (record.flags != abi::kSubmitInline || octets > abi::kInlineOctetsMax || octets % 2 != 0 ||
        record.stream > abi::kHoldExcludes || record.tag == 0)
        return false;
    if (endpoint.member() == nullptr) {
        bad_record(core, endpoint);
        return true;
    }
    urtp::HoldRules rules;
    rules.limit =
        static_cast<Nanos>(std::min<std::uint64_t>(record.tag, static_cast<std::uint64_t>(kNever)));
    rules.excludes = record.stream == abi::kHoldExcludes;
    rules.keeps.resize(endpoint.member()->size());
    for (std::size_t at = 0; at < octets; at += sizeof(Rank)) {
        Rank rank = kNoRank;
        std::memcpy(&rank, record.body.inline_octets + at, sizeof rank);
        if (rank >= rules.keeps.size()) return false;
        rules.keeps[rank] = true;
    }
    endpoint.member()->set_hold(std::move(rules));
    return true;
}

}  // namespace

bool control_record(Core& core, Endpoint& endpoint, const SubmissionRecord& record, Nanos now) {
    switch (record.kind) {
        case SubmitKind::kJoinJob:
            return on_join(core, endpoint, record, now);
        case SubmitKind::kAddGroup:
        case SubmitKind::kRemoveGroup:
        case SubmitKind::kListenGroup:
        case SubmitKind::kUseAddress:
            return group_record(core, endpoint, record, now);
        case SubmitKind::kOpenLinks:
        case SubmitKind::kLink:
        case SubmitKind::kUnlink:
            return link_record(core, endpoint, record, now);
        case SubmitKind::kHold:
            return on_hold(core, endpoint, record);
        case SubmitKind::kLeave:
            if (!endpoint.life().is_open()) {
                bad_record(core, endpoint);
                return true;
            }
            endpoint.life().leave(now + core.config().linger_max);
            if (endpoint.offloads() != nullptr) endpoint.offloads()->cancel_all();
            endpoint.mark(Work::kControl);
            return true;
        case SubmitKind::kSend:
        case SubmitKind::kExpect:
        case SubmitKind::kOffload:
        case SubmitKind::kCancelOffload:
        case SubmitKind::kNear:
            break;
    }
    return false;
}

void peer_gone(Core& core, Endpoint& endpoint, Rank rank, GoneState how, Nanos now) {
    (void)core;
    if (!endpoint.membership().is_here(rank)) return;
    endpoint.membership().set_gone(rank, how);
    endpoint.report(
        {.kind = how == kGoneLeft ? CompletionKind::kPeerLeft : CompletionKind::kPeerDied,
         .rank = rank});
    endpoint.sends().peer_gone(rank, endpoint.net().port().pool);
    endpoint.outlet()->set_intake(rank, abi::Intake::kAll);
    endpoint.member()->peer_gone(
        rank, how == kGoneLeft ? urtp::EventKind::kPeerLeft : urtp::EventKind::kPeerDied, now);
    endpoint.mark(Work::kDeliver | Work::kSend | Work::kTransmit | Work::kSettle);
}

void fault(Endpoint& endpoint, Err error, Rank rank, std::uint32_t packets, GroupHandle group) {
    endpoint.report({.kind = CompletionKind::kFault,
                     .status = error,
                     .rank = rank,
                     .stream = group,
                     .tag = packets});
}

void leave_job(Core& core, Endpoint& endpoint, wire::LeaveReason reason, Nanos now) {
    endpoint.drop_offloads();
    endpoint.net().transmitter().pull_tails();
    endpoint.sends().abort(endpoint.net().port().pool);
    leave_groups(core, endpoint);
    endpoint.reports().drop_for_leave();
    endpoint.end_member();
    endpoint.set_timer(kNever);
    if (endpoint.links() != nullptr)
        endpoint.net().jobs().links().close(endpoint.handle(), reason, now);
    endpoint.end_links();
    if (!endpoint.membership().has_job()) return;
    endpoint.net().jobs().leave(endpoint.membership().job(), endpoint.handle(), reason, now);
    endpoint.membership().leave();
}

bool control(Core& core, Endpoint& endpoint, Nanos now) {
    core.end_verdicts();
    bool moved = remove_groups(core, endpoint);
    if (endpoint.links() != nullptr && endpoint.member() != nullptr)
        moved |= control_links(core, endpoint, now);
    moved |= end_when_drained(core, endpoint, now);
    if (endpoint.life().has_memory() && endpoint.life().has_client()) {
        moved |= write_reports(core, endpoint, Reports::Stage::kLeft);
    }
    const bool more = !endpoint.reports().empty() || endpoint.membership().removes_groups() ||
                      endpoint.life().ends() ||
                      (endpoint.links() != nullptr && links_wait(endpoint));
    if (!more) endpoint.unmark(Work::kControl);
    return moved;
}

bool run_jobs(Core& core, Net& net, Nanos now) {
    bool moved = false;
    core.end_verdicts();
    core.rounds().begin(now);
    if (net.jobs().next_timer() <= now) {
        net.jobs().on_timer(now);
        moved = true;
    }
    for (; net.jobs().poll_event(core.job_event()); moved = true)
        on_event(core, net, core.job_event(), now);
    moved |= take_link_events(core, net, now);
    moved |= take_addresses(core, net);
    net.jobs().looked();
    return moved;
}

}  // namespace ulc::engine
