// SPDX-License-Identifier: BSD-3-Clause
// Jobs: the interface, time, and which frame goes next. jobs_impl.h names the parts.
#include "jobs/jobs.h"

#include <algorithm>

#include "base/check.h"
#include "jobs/jobs_impl.h"

namespace ulc::jobs {

Jobs::Impl::Impl(const JobsConfig& config, Counters& counters_in, Liveness& liveness_in,
                 const NodeAddresses& addresses, Links& links_in)
    : counters(counters_in),
      liveness(liveness_in),
      links(links_in),
      node(config),
      rejects(node),
      table(node, rejects, liveness, counters),
      ranks(node, table, liveness, counters),
      publisher(node, table, ranks, rejects, addresses),
      receiver(node, table, ranks, rejects, addresses, liveness, counters),
      claims(node, table, ranks, rejects, publisher, liveness, counters),
      verdicts(table, ranks, liveness, links, counters) {}

void Jobs::Impl::changed() noexcept {
    tx_hint = true;
    recompute_timer();
}

void Jobs::Impl::recompute_timer() noexcept {
    timer = table.next_time();
    gone_hint = table.with_unreported() != nullptr;
}

void Jobs::Impl::settle(std::span<JobRecord* const> touched, Nanos now) {
    bool over = false;
    for (const JobRecord* record : touched) {
        timer = std::min(timer, record->next_time(node.config().failed_life));
        over = over || table.is_finished(*record, now);
        gone_hint = gone_hint || record->has_unreported();
        tx_hint = true;
    }
    if (!over) return;
    table.forget_finished(now);
    changed();
}

void Jobs::Impl::on_timer(Nanos now) {
    for (const auto& record : table.all()) {
        claims.on_timer(*record, now);
        receiver.on_timer(*record, now);
        publisher.on_timer(*record, now);
    }
    table.forget_finished(now);
    changed();
}

void Jobs::Impl::on_job_frame(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    switch (view.kind) {
        case wire::JobKind::kJoin:
            claims.on_join(view, source, now);
            break;
        case wire::JobKind::kRoster:
            receiver.on_roster(view, source, now);
            break;
        case wire::JobKind::kRosterAck:
            publisher.on_roster_ack(view, source, now);
            break;
        case wire::JobKind::kReject:
            claims.on_reject(view, source, now);
            break;
        case wire::JobKind::kBye:
            ranks.on_bye(view, source);
            break;
        case wire::JobKind::kCommit:
            if (receiver.on_commit(view, source, now)) tx_hint = true;
            break;
    }
}

std::size_t Jobs::Impl::next_tx(std::byte* frame, Nanos now) {
    Mac to = kBroadcastMac;
    wire::FrameType type = wire::FrameType::kJob;
    std::byte* body = frame + wire::kHeadOctets;
    const bool looks = tx_hint || !rejects.empty();  // else no record has anything
    const auto all = looks ? table.all() : std::span<const std::unique_ptr<JobRecord>>{};
    std::size_t octets = rejects.put(body, to, table);
    if (octets == 0) octets = receiver.put_commit_answer(body, to);
    for (auto at = all.begin(); octets == 0 && at != all.end(); ++at)
        octets = receiver.put_ack(**at, body, to);
    wire::NodeBody question;
    if (octets == 0 && liveness.next_tx(to, question, now)) {
        type = wire::FrameType::kNode;
        if (question.kind == wire::NodeKind::kPing) verdicts.choose_question(to, question);
        octets = wire::put_node(body, question);
    }
    if (octets == 0) {
        octets = links.next_tx(body, to);
        if (octets > 0) type = wire::FrameType::kLink;
    }
    for (auto at = all.begin(); octets == 0 && at != all.end(); ++at) {
        octets = claims.put_join(**at, body, to, now);
        if (octets == 0) octets = publisher.put_part(**at, body, to, now);
        if (octets == 0) octets = ranks.put_bye(**at, body, now);
    }
    if (octets == 0) {
        tx_hint = false;
        if (looks) table.forget_finished(now);
    }
    if (looks) recompute_timer();
    return octets == 0 ? 0 : node.complete(frame, to, type, octets);
}

// ------------------------------------------------------------------------------ the interface

namespace {

LinksConfig links_config(const JobsConfig& config) {
    LinksConfig links = config.links;
    links.mac = config.mac;
    links.incarnation = config.incarnation;
    links.seed = config.seed.of(kLinksSeed);
    links.attributes.mtu = config.mtu;
    return links;
}

}  // namespace

Jobs::Jobs(const JobsConfig& config, Counters& counters)
    : liveness_(config.liveness, config.mac, config.incarnation, config.seed.of(kLivenessSeed),
                counters),
      addresses_(config.mac, config.incarnation, config.seed.of(kAddressesSeed), liveness_,
                 counters),
      links_(links_config(config), liveness_, counters),
      impl_(std::make_unique<Impl>(config, counters, liveness_, addresses_, links_)) {}

Jobs::~Jobs() = default;

void Jobs::set_links(std::span<const NodeAddress> links, Nanos now) {
    addresses_.set_own(links, now);
    impl_->node.set_links(links.size());
    links_.set_attributes(impl_->node.attributes());
    decide_next_look();
}

void Jobs::set_mtu(std::uint16_t mtu) {
    impl_->node.set_mtu(mtu);
    links_.set_attributes(impl_->node.attributes());
}

bool Jobs::forming(const JoinRequest& request) const {
    JobRecord* record = nullptr;
    return impl_->claims.admit(request, record) == Err::kOk && record != nullptr;
}

Result<JobId> Jobs::join(const JoinRequest& request, Nanos now) {
    Result<JobId> id = impl_->claims.join(request, now);
    impl_->changed();
    decide_next_look();
    return id;
}

void Jobs::leave(JobId job, Handle endpoint, wire::LeaveReason reason, Nanos now) {
    JobRecord* record = impl_->table.find(job);
    if (record == nullptr) return;
    impl_->ranks.leave(*record, endpoint, reason, now);
    impl_->table.forget_finished(now);
    impl_->changed();
    decide_next_look();
}

bool Jobs::job(JobId job, JobView& out) const noexcept {
    const JobRecord* record = impl_->table.find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed) return false;
    out = JobView{record->name,      record->nonce,     record->roster,  record->world,
                  record->first_seq, record->version,   record->profile, record->medium,
                  record->mtu,       record->has_bonds, record->user,    record->begins_at};
    return true;
}

bool Jobs::is_silent(JobId job, NodeIndex node, Nanos now) const noexcept {
    const JobRecord* record = impl_->table.find(job);
    return liveness_.is_silent(node, record == nullptr ? 0 : record->patience, now);
}

Nanos Jobs::own_absence(JobId job, Nanos now) const noexcept {
    const JobRecord* record = impl_->table.find(job);
    return record == nullptr ? 0 : liveness_.own_absence(record->patience, now);
}

void Jobs::peer_died(JobId job, Rank rank, Nanos) {
    JobRecord* record = impl_->table.find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed || rank >= record->size) return;
    impl_->ranks.node_died(*record, Mac{record->roster[rank].mac}, rank);
    impl_->changed();
    decide_next_look();
}

void Jobs::exclude(JobId job, Rank rank, Nanos now) {
    JobRecord* record = impl_->table.find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed || rank >= record->size) return;
    impl_->ranks.exclude(*record, rank, now);
    impl_->changed();
    decide_next_look();
}

void Jobs::held_for_gone(JobId job, Rank rank, Nanos now) {
    const JobRecord* record = impl_->table.find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed || rank >= record->size) return;
    if (!record->gone[rank]) return;
    liveness_.held_for_dead(record->roster[rank].mac, record->roster[rank].handle,
                            record->expelled_as(rank), now);
    decide_next_look();
}

std::size_t Jobs::next_tx(std::byte* frame, std::size_t capacity, Nanos now) {
    if (!has_tx() || capacity < sizeof(wire::EthernetHeader) + impl_->node.config().mtu) return 0;
    // Addresses go first, so that a node knows from whom the next frames are.
    Mac to;
    std::size_t octets = addresses_.next_tx(to, frame + wire::kHeadOctets, now);
    octets = octets != 0 ? impl_->node.complete(frame, to, wire::FrameType::kNode, octets)
                         : impl_->next_tx(frame, now);
    decide_next_look();
    return octets;
}

bool Jobs::has_tx() const noexcept {
    return impl_->tx_hint || liveness_.has_tx() || links_.has_tx() || addresses_.has_tx();
}

bool Jobs::poll_event(JobEvent& out) {
    if (impl_->ranks.has_event()) {
        out = impl_->ranks.take_event();
    } else if (JobRecord* record = impl_->table.with_unreported()) {
        const auto& [rank, kind] = record->gone_events[record->gone_reported++];
        out = JobEvent{};
        out.kind = kind;
        out.job = record->id;
        out.rank = rank;
        out.error = kind == JobEventKind::kPeerLeft ? Err::kPeerLeft : Err::kPeerDied;
        impl_->gone_hint = impl_->table.with_unreported() != nullptr;
    } else {
        return false;
    }
    decide_next_look();
    return true;
}

void Jobs::decide_next_look() noexcept {
    const bool at_once = has_tx() || impl_->ranks.has_event() || links_.has_event() ||
                         addresses_.has_change() || impl_->gone_hint;
    next_look_ = at_once ? 0 : next_timer();
}

Nanos Jobs::next_timer() const noexcept {
    return std::min(
        {impl_->timer, liveness_.next_timer(), links_.next_timer(), addresses_.next_timer()});
}

void Jobs::on_timer(Nanos now) {
    liveness_.on_timer(now);
    NodeVerdict verdict;
    while (liveness_.next_dead(verdict))
        impl_->on_verdict(verdict, now);
    if (links_.next_timer() <= now) links_.on_timer(now);
    addresses_.on_timer(now);
    if (impl_->timer <= now || verdict.mac != Mac{}) impl_->on_timer(now);
    decide_next_look();
}

std::uint64_t Jobs::steps() const noexcept {
    return impl_->table.steps() + impl_->verdicts.steps() + links_.steps();
}

seal::Seed Jobs::secret() const noexcept { return impl_->node.config().seed.of(kPortSeed); }

bool Jobs::drained() const noexcept {
    return !liveness_.has_tx() && links_.drained() && impl_->rejects.empty() &&
           impl_->table.is_drained();
}

}  // namespace ulc::jobs
