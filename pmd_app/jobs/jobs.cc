// SPDX-License-Identifier: BSD-3-Clause
// Jobs: the interface, time, and leaving. jobs.h names the other parts.
#include "jobs/jobs.h"

#include <algorithm>

#include "jobs/job_records.h"

namespace ulc::jobs {
namespace {

/// Parts that have a seed each.
enum : std::uint64_t { kJobs, kLinks, kLiveness, kAddresses, kPort };

}  // namespace

LocalRank* JobRecord::local(Rank rank) noexcept {
    const auto at = std::find_if(locals.begin(), locals.end(),
                                 [rank](const LocalRank& l) { return l.rank == rank; });
    return at == locals.end() ? nullptr : &*at;
}

LocalRank* JobRecord::local_endpoint(Handle endpoint) noexcept {
    const auto at = std::find_if(locals.begin(), locals.end(),
                                 [endpoint](const LocalRank& l) { return l.endpoint == endpoint; });
    return at == locals.end() ? nullptr : &*at;
}

bool JobRecord::heard_rank0(const Mac& mac) const noexcept {
    return std::find(rank0_heard.begin(), rank0_heard.end(), mac) != rank0_heard.end();
}

void JobRecord::note_rank0(const Mac& mac) noexcept {
    rank0 = mac;
    rank0_ended = false;
    if (heard_rank0(mac) || rank0_heard.push_back(mac)) return;
    rank0_heard[rank0_next] = mac;
    rank0_next = (rank0_next + 1) % kRank0Max;
}

bool JobRecord::may_reject(const Mac& mac) const noexcept {
    if (!publisher) return heard_rank0(mac) || (assembly && assembly->publisher == mac);
    const auto from = [&](const RemoteClaim& claim) { return claim.mac == mac; };
    return std::any_of(publisher->claims.begin(), publisher->claims.end(), from);
}

Jobs::Impl::Impl(const JobsConfig& config_in, Counters& counters_in, Liveness& liveness_in,
                 const NodeAddresses& addresses_in, Links& links_in)
    : config(config_in),
      attributes{config_in.mtu, 1},
      counters(counters_in),
      liveness(liveness_in),
      addresses(addresses_in),
      links(links_in),
      tokens(config_in.seed.of(kJobs)),
      index(config_in.seed.number(kJobs)),
      last_roster(static_cast<std::uint32_t>(tokens.next())) {
    ULC_CHECK(config.incarnation != 0 && config.jobs_max > 0 && config.mtu >= wire::kMtuMin);
    config.ranks_max = std::min<std::uint16_t>(config.ranks_max, kNoRank - 1);
    records.reserve(config.jobs_max);
}

JobRecord* Jobs::Impl::find(JobId id) noexcept {
    const auto at =
        std::find_if(records.begin(), records.end(), [id](const auto& r) { return r->id == id; });
    return at == records.end() ? nullptr : at->get();
}

bool same_key(const JobRecord& record, const wire::JobBodyView& view) {
    if (record.by_hand != view.by_hand || record.name != view.name) return false;
    return record.by_hand || record.nonce == view.nonce;
}

const wire::JobKey* Jobs::Impl::key_of(const wire::Nonce& id) const noexcept {
    for (const JobRecord* record : index.find(false, {}, id)) {
        if (!record->by_hand && record->nonce == id) return &record->key;
    }
    return index.key_of_ended(id, ended_jobs);
}

bool Jobs::Impl::authentic(const wire::JobBodyView& view, const Mac& source) {
    if (view.by_hand) return true;
    const wire::JobKey* key = key_of(view.nonce);
    if (key == nullptr) return false;  // of a job of others
    if (wire::same_tag(wire::job_tag(*key, source, view.tagged), *view.tag)) return true;
    counters.add(Counter::drop_tag);
    return false;
}

void Jobs::Impl::remember_key(const JobRecord& record) {
    if (record.by_hand) return;
    const auto place = static_cast<std::uint32_t>(ended_next);
    if (ended_jobs.size() < kEndedJobsMax) {
        ended_jobs.emplace_back();
    } else {
        index.remove_ended(ended_jobs[ended_next].id, place);
    }
    ended_jobs[ended_next] = EndedJob{record.nonce, record.key};
    index.add_ended(record.nonce, place);
    ended_next = (ended_next + 1) % kEndedJobsMax;
}

Nanos Jobs::Impl::jitter(const JobRecord& record) noexcept {
    return static_cast<Nanos>(
        tokens.below(static_cast<std::uint64_t>(record.size * config.answer_slot)));
}

void Jobs::Impl::changed() noexcept {
    tx_hint = true;
    recompute_timer();
}

void Jobs::Impl::consider_times(const JobRecord& record) noexcept {
    const auto consider = [this](Nanos at) { timer = std::min(timer, at); };
    if (record.phase == JobPhase::kForming) {
        if (!record.locals.empty()) consider(record.join_at);
        for (const LocalRank& local : record.locals)
            consider(local.deadline);
    }
    if (record.phase == JobPhase::kFailed) consider(record.failed_at + config.failed_life);
    if (record.assembly && !record.assembly->ack_due) consider(record.assembly->ack_at);
    if (record.publisher && record.publisher->due_count == 0) consider(record.publisher->round_at);
    for (const Bye& bye : record.byes)
        consider(bye.at);
}

void Jobs::Impl::recompute_timer() noexcept {
    timer = kNever;
    for (const auto& record : records)
        consider_times(*record);
    visited += records.size();
    gone_hint = with_gone() != nullptr;
}

/// The timer may be early then, for what is not due any more.
void Jobs::Impl::settle(std::span<JobRecord* const> touched, Nanos now) {
    bool over = false;
    for (const JobRecord* record : touched) {
        consider_times(*record);
        over = over || finished(*record, now);
        gone_hint = gone_hint || record->has_unreported();
        tx_hint = true;
    }
    if (!over) return;
    forget_finished(now);
    changed();
}

bool Jobs::Impl::answers(const JobRecord& record) const {
    const bool rejecting = std::ranges::any_of(
        rejects, [&](const PendingReject& reject) { return reject.job == record.id; });
    if (rejecting) return true;
    if (record.phase == JobPhase::kFailed) return false;
    if (record.assembly && (record.assembly->ack_due || record.assembly->ack_at != kNever))
        return true;
    return record.publisher && record.publisher->waiting > 0;
}

bool Jobs::Impl::only_repeats_byes(const JobRecord& record) const {
    return record.phase == JobPhase::kEnding && !answers(record) &&
           std::ranges::all_of(record.byes,
                               [this](const Bye& bye) { return bye.left < config.byes; });
}

/// Stops watching the nodes of the job; the caller removes its record.
void Jobs::Impl::forget(const JobRecord& record) {
    remember_key(record);
    if (record.assembly && record.assembly->watched) liveness.unwatch(record.assembly->publisher);
    for (std::size_t rank = 0; rank < record.roster.size(); ++rank) {
        const Mac& mac = record.roster[rank].mac;
        if (!record.gone[rank] && mac != config.mac) liveness.unwatch(mac);
    }
}

/// Nothing waits for the record any more.
bool Jobs::Impl::finished(const JobRecord& record, Nanos now) const {
    if (!record.byes.empty() || !record.locals.empty() || answers(record)) return false;
    return record.phase != JobPhase::kFailed || now >= record.failed_at + config.failed_life;
}

void Jobs::Impl::forget_finished(Nanos now) {
    const auto over = [&](const auto& record) { return finished(*record, now); };
    for (const auto& record : records)
        if (over(record)) forget(*record);
    visited += records.size();
    remove_records(over);
}

void Jobs::Impl::remove_local(JobRecord& record, std::size_t at) {
    index.release(record.locals[at].endpoint, record);
    record.locals.erase(record.locals.begin() + static_cast<std::ptrdiff_t>(at));
}

void Jobs::Impl::on_timer(Nanos now) {
    for (const auto& record : records) {
        if (record->phase == JobPhase::kForming) {
            check_deadlines(*record, now);
            if (record->join_at <= now && !record->locals.empty()) make_join_due(*record, now);
        }
        if (record->assembly && record->assembly->ack_at <= now) {
            Assembly& assembly = *record->assembly;
            const bool waits = assembly.complete && record->phase == JobPhase::kForming &&
                               waits_for_proofs(assembly.bonded, assembly.proofs_until, now);
            assembly.ack_at = waits ? now + kProofStep : kNever;
            assembly.ack_due = !waits;
        }
        if (record->publisher && record->publisher->round_at <= now) publish_round(*record, now);
    }
    forget_finished(now);
    changed();
}

void Jobs::Impl::on_job_frame(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    switch (view.kind) {
        case wire::JobKind::kJoin:
            if (view.introduces) {
                on_introduction(view, source, now);
            } else {
                on_join(view, source, now);
            }
            break;
        case wire::JobKind::kRoster:
            on_roster(view, source, now);
            break;
        case wire::JobKind::kRosterAck:
            on_roster_ack(view, source, now);
            break;
        case wire::JobKind::kReject:
            on_reject(view, source, now);
            break;
        case wire::JobKind::kBye:
            on_bye(view, source, now);
            break;
        case wire::JobKind::kCommit:
            on_commit(view, source, now);
            break;
    }
}

void Jobs::Impl::on_bye(const wire::JobBodyView& view, const Mac& source, Nanos now) {
    const Rank rank = view.bye->rank;
    const Handle handle = view.bye->handle;
    const auto kind = view.bye->reason == wire::LeaveReason::kLeft ? JobEventKind::kPeerLeft
                                                                   : JobEventKind::kPeerDied;
    for (JobRecord* record : records_of(view)) {
        if (!same_key(*record, view) || rank >= record->size) continue;
        if (record->phase == JobPhase::kFormed || record->phase == JobPhase::kEnding) {
            const urtp::Peer& peer = record->roster[rank];
            if (peer.mac == source && peer.handle == handle) peer_gone(*record, rank, kind, now);
        } else if (record->phase == JobPhase::kForming) {
            drop_claims(*record, source, handle);
            const Assembly* assembly = record->assembly.get();
            const bool held = assembly != nullptr && assembly->publisher == source &&
                              !assembly->peers.empty() && assembly->peers[0].handle == handle;
            if (held && rank == 0)
                publisher_gone(*record,
                               kind == JobEventKind::kPeerLeft ? Err::kPeerLeft : Err::kPeerDied);
        }
    }
}

/// Once per rank. A rank of this engine has no node to unwatch.
void Jobs::Impl::peer_gone(JobRecord& record, Rank rank, JobEventKind kind, Nanos now) {
    if (record.gone[rank]) return;
    record.gone[rank] = true;
    record.gone_events.emplace_back(rank, kind);
    const Mac mac = record.roster[rank].mac;
    if (mac == config.mac) return;
    liveness.unwatch(mac);
    if (!record.publisher || record.publisher->stage != PublisherStage::kCommit) return;
    for (std::size_t other = 0; other < record.roster.size(); ++other) {
        if (record.roster[other].mac == mac && !record.gone[other]) return;
    }
    acknowledged(record, mac, now);  // no rank is left there that needs the roster
}

void Jobs::Impl::leave(JobRecord& record, Handle endpoint, wire::LeaveReason reason, Nanos now) {
    const LocalRank* local = record.local_endpoint(endpoint);
    if (local == nullptr) return;
    const Rank rank = local->rank;
    remove_local(record, static_cast<std::size_t>(local - record.locals.data()));
    std::erase_if(events, [endpoint](const JobEvent& e) { return e.endpoint == endpoint; });
    liveness.ended(endpoint, reason);
    if (record.size > 1) {
        record.byes.push_back(Bye{rank, endpoint, reason, config.byes, now, config.bye_wait});
    }
    if (record.phase == JobPhase::kFormed) {
        peer_gone(
            record, rank,
            reason == wire::LeaveReason::kLeft ? JobEventKind::kPeerLeft : JobEventKind::kPeerDied,
            now);
        if (record.locals.empty()) record.phase = JobPhase::kEnding;
    } else if (rank == 0) {
        stop_publishing(record);
    }
}

// ------------------------------------------------------------------------------ the interface

namespace {

LinksConfig links_config(const JobsConfig& config) {
    LinksConfig links = config.links;
    links.mac = config.mac;
    links.incarnation = config.incarnation;
    links.seed = config.seed.of(kLinks);
    links.attributes.mtu = config.mtu;
    return links;
}

}  // namespace

Jobs::Jobs(const JobsConfig& config, Counters& counters)
    : liveness_(config.liveness, config.mac, config.incarnation, config.seed.of(kLiveness),
                counters),
      addresses_(config.mac, config.incarnation, config.seed.of(kAddresses), liveness_, counters),
      links_(links_config(config), liveness_, counters),
      impl_(std::make_unique<Impl>(config, counters, liveness_, addresses_, links_)) {}

Jobs::~Jobs() = default;

void Jobs::set_links(std::span<const NodeAddress> links, Nanos now) {
    addresses_.set_own(links, now);
    impl_->attributes.links = static_cast<std::uint8_t>(links.size());
    links_.set_attributes(impl_->attributes);
    decide_next_look();
}

void Jobs::set_mtu(std::uint16_t mtu) {
    ULC_CHECK(mtu >= wire::kMtuMin && mtu <= impl_->config.mtu);
    impl_->attributes.mtu = mtu;
    links_.set_attributes(impl_->attributes);
}

bool Jobs::forming(const JoinRequest& request) const {
    JobRecord* record = nullptr;
    return impl_->admit(request, record) == Err::kOk && record != nullptr;
}

Result<JobId> Jobs::join(const JoinRequest& request, Nanos now) {
    Result<JobId> id = impl_->join(request, now);
    impl_->changed();
    decide_next_look();
    return id;
}

void Jobs::leave(JobId job, Handle endpoint, wire::LeaveReason reason, Nanos now) {
    JobRecord* record = impl_->find(job);
    if (record == nullptr) return;
    impl_->leave(*record, endpoint, reason, now);
    impl_->forget_finished(now);
    impl_->changed();
    decide_next_look();
}

bool Jobs::job(JobId job, JobView& out) const noexcept {
    const JobRecord* record = impl_->find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed) return false;
    out = JobView{record->name,      record->nonce,     record->roster,  record->world,
                  record->first_seq, record->version,   record->profile, record->medium,
                  record->mtu,       record->has_bonds, record->user,    record->begins_at};
    return true;
}

bool Jobs::is_silent(JobId job, NodeIndex node, Nanos now) const noexcept {
    const JobRecord* record = impl_->find(job);
    return liveness_.is_silent(node, record == nullptr ? 0 : record->patience, now);
}

Nanos Jobs::own_absence(JobId job, Nanos now) const noexcept {
    const JobRecord* record = impl_->find(job);
    return record == nullptr ? 0 : liveness_.own_absence(record->patience, now);
}

void Jobs::peer_died(JobId job, Rank rank, Nanos now) {
    JobRecord* record = impl_->find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed || rank >= record->size) return;
    impl_->node_died(*record, Mac{record->roster[rank].mac}, rank, now);
    impl_->changed();
    decide_next_look();
}

void Jobs::exclude(JobId job, Rank rank, Nanos now) {
    JobRecord* record = impl_->find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed || rank >= record->size) return;
    impl_->exclude(*record, rank, now);
    impl_->changed();
    decide_next_look();
}

void Jobs::held_for_gone(JobId job, Rank rank, Nanos now) {
    const JobRecord* record = impl_->find(job);
    if (record == nullptr || record->phase != JobPhase::kFormed || rank >= record->size) return;
    if (!record->gone[rank]) return;
    liveness_.held_for_dead(record->roster[rank].mac, record->roster[rank].handle,
                            record->expelled_as(rank), now);
    decide_next_look();
}

std::size_t Jobs::next_tx(std::byte* frame, std::size_t capacity, Nanos now) {
    if (!has_tx() || capacity < sizeof(wire::EthernetHeader) + impl_->config.mtu) return 0;
    // Addresses go first, so that a node knows from whom the next frames are.
    Mac to;
    std::size_t octets = addresses_.next_tx(to, frame + wire::kHeadOctets, now);
    octets = octets != 0 ? impl_->complete_node(frame, to, octets) : impl_->next_tx(frame, now);
    decide_next_look();
    return octets;
}

bool Jobs::has_tx() const noexcept {
    return impl_->tx_hint || liveness_.has_tx() || links_.has_tx() || addresses_.has_tx();
}

/// A record with a gone rank that its local members have not heard of; nullptr: none.
JobRecord* Jobs::Impl::with_gone() const noexcept {
    for (const auto& record : records)
        if (record->has_unreported()) return record.get();
    return nullptr;
}

bool Jobs::poll_event(JobEvent& out) {
    if (!impl_->events.empty()) {
        out = impl_->events.front();
        impl_->events.pop_front();
    } else if (JobRecord* record = impl_->with_gone()) {
        const auto& [rank, kind] = record->gone_events[record->gone_reported++];
        out = JobEvent{};
        out.kind = kind;
        out.job = record->id;
        out.rank = rank;
        out.error = kind == JobEventKind::kPeerLeft ? Err::kPeerLeft : Err::kPeerDied;
        impl_->gone_hint = impl_->with_gone() != nullptr;
    } else {
        return false;
    }
    decide_next_look();
    return true;
}

void Jobs::decide_next_look() noexcept {
    const bool at_once = has_tx() || !impl_->events.empty() || links_.has_event() ||
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
    return impl_->index.steps() + impl_->visited + links_.steps();
}

seal::Seed Jobs::secret() const noexcept { return impl_->config.seed.of(kPort); }

bool Jobs::drained() const noexcept {
    const auto& records = impl_->records;
    return !liveness_.has_tx() && links_.drained() && impl_->rejects.empty() &&
           std::none_of(records.begin(), records.end(), [](const auto& record) {
               return !record->byes.empty() || record->phase == JobPhase::kEnding;
           });
}

}  // namespace ulc::jobs
