// A member's parts put together: sessions made on first contact, groups, timers, and the ends of things.
#include "urtp/member.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "urtp/impl.h"

namespace ulc::urtp {

namespace {

constexpr Departures kAllLeft;  ///< of a port of which nothing is known
constexpr std::size_t kGroupMembersMax = 4096;

void start(RxStream& rx, StreamId id, Session& session, Group* group, std::uint32_t window,
           Seq first) {
    rx.id = id;
    rx.session = &session;
    rx.group = group;
    rx.counted = group != nullptr && group->pcode != nullptr;
    rx.window = window;
    rx.next = rx.high = rx.acked = rx.asked_to = first;
    rx.limit_told = first + window;
    rx.timer.kind = TimerOwner::kReceive;
    rx.timer.owner = &rx;
}

}  // namespace

Member::Impl::Impl(const MemberConfig& config, std::span<const Peer> roster,
                   const SegmentPool& pool, Counters& counters)
    : config_(config),
      departures_(config.departures != nullptr ? config.departures : &kAllLeft),
      pool_(pool),
      counters_(counters),
      random_(config.seed),
      roster_(roster.begin(), roster.end()),
      ends_(config.rank == kNoRank ? roster.size() : 0),
      data_head_(wire::make_head(head_from_us(wire::FrameType::kData))),
      sessions_(roster.size()) {
    ULC_CHECK(resolve(config.profile, policy_, config_.params) == Err::kOk);
    config_.profile = {};
    ULC_CHECK((for_links() || config.rank < roster_.size()) && roster_.size() < kNoRank);
    ULC_CHECK(std::has_single_bit(config_.params.window));
    store_ = RxStore(config_.params.rx_pool_packets, config_.send_frames, config_.receive_frames);
    if (for_links()) {
        roster_.assign(roster_.size(), {});
        return;
    }
    std::vector<Rank> all(roster_.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<Rank>(i);
    ULC_CHECK(add_group(config.world, all) == Err::kOk);
}

Member::Impl::~Impl() {
    each_retained([this](Segment& segment) {
        pool_.drop(&segment);
        if (config_.send_frames != nullptr) config_.send_frames->give_back();
    });
    for (const auto& session : sessions_) {
        if (session == nullptr) continue;
        for (RxStream* rx = session->streams(); rx != nullptr; rx = rx->sibling)
            end_receiving(*rx);
        while (RxNode* node = session->ready_head) {
            session->ready_head = node->link;
            free_node(*session, *node);
        }
    }
}

/// Of a new stream, whose source may send what the policy keeps for it.
Seq Member::Impl::first_ack(const RxStream& rx) const noexcept {
    return policy_.next_ack(rx, static_cast<std::uint32_t>(rx.limit_told - rx.next),
                            config_.params);
}

Session* Member::Impl::make_session(Rank rank) {
    if (is_vacant(rank)) return nullptr;
    const LinkEnds ends = ends_of(rank);
    store_.open();
    auto& session = sessions_[rank];
    const bool local = roster_[rank].mac == config_.mac;
    session = std::make_unique<Session>(rank, local, config_.params.initial_rtt);
    start(session->unicast, ends.self, *session, nullptr, config_.params.window, ends.in);
    timers_.enroll();
    timers_.enroll();
    if (policy_.on_stream != nullptr) policy_.on_stream(*this, session->unicast);
    session->unicast.ack_at = first_ack(session->unicast);
    return session.get();
}

Group* Member::Impl::find_group(GroupHandle handle) noexcept {
    if (last_group_ < group_handles_.size() && group_handles_[last_group_] == handle) {
        return groups_[last_group_].get();
    }
    const auto at = std::find(group_handles_.begin(), group_handles_.end(), handle);
    if (at == group_handles_.end()) return nullptr;
    last_group_ = static_cast<std::size_t>(at - group_handles_.begin());
    return groups_[last_group_].get();
}

RxStream* Member::Impl::group_stream(Group& group, Session& session) {
    if (RxStream* rx = heard(group, session)) return rx;
    if (group.index_of[session.rank] == kNoRank) return nullptr;
    group.rx.push_back(std::make_unique<RxStream>());
    RxStream* rx = group.rx.back().get();
    start(*rx, group.handle, session, &group, group.window, config_.first_seq);
    timers_.enroll();
    if (policy_.on_stream != nullptr) policy_.on_stream(*this, *rx);
    rx->ack_at = first_ack(*rx);
    rx->sibling = session.unicast.sibling;
    session.unicast.sibling = rx;
    return rx;
}

Err Member::Impl::add_group(GroupHandle handle, std::span<const Rank> ranks) {
    if (!is_group(handle) || ranks.empty() || ranks.size() > kGroupMembersMax || for_links())
        return Err::kInvalid;
    if (find_group(handle) != nullptr) return Err::kMismatch;
    if (groups_.size() == kGroupsMax) return Err::kLimit;
    auto group = std::make_unique<Group>();
    group->handle = handle;
    group->ranks.assign(ranks.begin(), ranks.end());
    group->index_of.assign(roster_.size(), kNoRank);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i] >= roster_.size() || group->index_of[ranks[i]] != kNoRank)
            return Err::kInvalid;
        group->index_of[ranks[i]] = static_cast<std::uint16_t>(i);
    }
    group->own = group->index_of[config_.rank];
    if (group->own == kNoRank) return Err::kInvalid;
    group->ack_modulus =
        std::max(config_.params.group_ack_window, static_cast<std::uint32_t>(ranks.size()));
    const Params& p = config_.params;
    group->window = std::max(p.window, std::bit_ceil(2 * group->ack_modulus));
    if (p.group_rules != GroupRules::kUrtp) {
        group->window = std::max(group->window, std::bit_ceil(std::max(1U, p.group_window_min)));
        // Every member may be a window beyond the slowest.
        const auto range = std::bit_ceil(
            std::clamp(4 * group->ack_modulus * (group->window / 16), 1024U, 1U << 20));
        group->pcode = std::make_unique<pcode::GroupState>(static_cast<std::uint32_t>(ranks.size()),
                                                           group->own, range);
        group->pcode->timer.kind = TimerOwner::kGroup;
        group->pcode->timer.owner = group.get();
        timers_.enroll();
    }
    group_handles_.push_back(handle);
    groups_.push_back(std::move(group));
    return Err::kOk;
}

Err Member::Impl::remove_group(GroupHandle handle) {
    Group* group = find_group(handle);
    if (group == nullptr || handle == config_.world) return Err::kInvalid;
    if (group->tx != nullptr && group->tx->active()) return Err::kAgain;
    for (const auto& rx : group->rx) {
        if (rx->held > 0) return Err::kAgain;
    }
    if (group->pcode != nullptr) {
        timers_.remove(group->pcode->timer);
        group_control_.remove(*group);
    }
    if (TxStream* tx = group->tx.get(); tx != nullptr) {
        timers_.remove(tx->timer);
        active_groups_.remove(*tx);
        probes_.remove(*tx);
        repairing_.remove(*tx);
    }
    for (const auto& rx : group->rx) {
        timers_.remove(rx->timer);
        end_keeping(*rx);
        RxStream* before = &rx->session->unicast;
        while (before->sibling != rx.get())
            before = before->sibling;
        before->sibling = rx->sibling;
        if (rx->session->unacked_group == rx.get()) rx->session->unacked_group = nullptr;
        if (rx->session->ask_by == rx.get()) rx->session->ask_by = nullptr;
    }
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(last_group_));
    group_handles_.erase(group_handles_.begin() + static_cast<std::ptrdiff_t>(last_group_));
    last_group_ = 0;
    return Err::kOk;
}

/// Moves the source's own packet out of its frame, since all endpoints share the frames.
[[gnu::noinline]] void Member::Impl::keep_copy(RxNode& node, Session& session) {
    if (session.reserved_octets == nullptr)
        session.reserved_octets = std::make_unique<std::byte[]>(config_.mtu);
    ULC_CHECK(node.packet.length <= config_.mtu);
    if (node.packet.length > 0)
        std::memcpy(session.reserved_octets.get(), node.packet.payload, node.packet.length);
    node.packet.payload = session.reserved_octets.get();
    node.packet.segment = nullptr;
}

/// Lets go of what is held out of order; packets in order stay deliverable.
void Member::Impl::end_receiving(RxStream& rx) noexcept {
    for (Seq seq = rx.next; rx.held > 0 && seq != rx.high; ++seq) {
        RxNode* node = store_.find(&rx, seq);
        if (node == nullptr) continue;
        store_.erase(*node);
        free_node(*rx.session, *node);
        --rx.held;
    }
    rx.blocked = false;
    stop_asking(rx);
    rx.ack_due = false;
    end_keeping(rx);
    timers_.remove(rx.timer);
}

/// Nobody is left to receive this stream: drops what it retains, sent or not.
void Member::Impl::end_sending(TxStream& tx, Nanos now) noexcept {
    TxSlot** at = &new_head_;
    new_tail_ = nullptr;
    while (*at != nullptr) {
        if ((*at)->stream == &tx) {
            *at = (*at)->link;
        } else {
            new_tail_ = *at;
            at = &(*at)->link;
        }
    }
    tx.base = tx.sent = tx.tail;
    tx.wants_credit = false;
    tx.want = 0;
    release_acknowledged(tx, now);
    timers_.remove(tx.timer);
}

void Member::Impl::peer_gone(Rank rank, EventKind kind, Nanos now) {
    if (rank >= roster_.size() || rank == config_.rank) return;
    if (session_of(rank) == nullptr) return;  // known already
    Session& session = *sessions_[rank];
    session.gone = true;
    session.gone_as = kind;
    session.gone_untold = true;
    news_.push_back(session);
    if (session.tx != nullptr) end_sending(*session.tx, now);
    for (const auto& group : groups_) {
        TxStream* tx = group->tx.get();
        const std::uint16_t index = group->index_of[rank];
        if (group->pcode != nullptr && index != kNoRank) group->pcode->global.remove(index);
        if (tx == nullptr || index == kNoRank || !tx->is_destination(index)) continue;
        const bool base_moved = tx->remove_destination(index);
        if (tx->destinations == 0) {
            end_sending(*tx, now);
        } else if (base_moved) {
            release_acknowledged(*tx, now);
        }
    }
    for (RxStream* rx = session.streams(); rx != nullptr; rx = rx->sibling)
        end_receiving(*rx);
    session.blocked = 0;
    if (session.expecting) expect_ends(session, now);
    timers_.remove(session.expect_timer);
    control_.remove(session);
    starved_.remove(session);
}

void Member::Impl::on_timer(Nanos now) {
    while (Timer* timer = timers_.pop_due(now)) {
        switch (timer->kind) {
            case TimerOwner::kReceive:
                receive_timer(*static_cast<RxStream*>(timer->owner), now);
                break;
            case TimerOwner::kSend:
                send_timer(*static_cast<TxStream*>(timer->owner), now);
                break;
            case TimerOwner::kSession:
                expect_timer(*static_cast<Session*>(timer->owner), now);
                break;
            case TimerOwner::kGroup:
                group_timer(*static_cast<Group*>(timer->owner), now);
                break;
        }
    }
}

bool Member::Impl::poll_event(Event& out) noexcept {
    if (sends_failed_ > 0) {
        out = {EventKind::kSendFailed, config_.rank, sends_failed_};
        sends_failed_ = 0;
        return true;
    }
    Session* session = news_.front();
    if (session == nullptr) return false;
    if (session->lost > 0) {
        out = {EventKind::kLost, session->rank, session->lost};
        session->lost = 0;
    } else {
        out = {session->gone_as, session->rank, 0};
        session->gone_untold = false;
    }
    if (!session->gone_untold) news_.remove(*session);
    return true;
}

bool Member::Impl::drained() const noexcept {
    return active_unicast_.empty() && active_groups_.empty() && !has_tx();
}

// --- the public face

Member::Member(const MemberConfig& config, std::span<const Peer> roster, const SegmentPool& pool,
               Counters& counters)
    : impl_(std::make_unique<Impl>(config, roster, pool, counters)) {}
Member::~Member() = default;

Rank Member::rank() const noexcept { return impl_->config_.rank; }
std::uint16_t Member::size() const noexcept {
    return static_cast<std::uint16_t>(impl_->roster_.size());
}
const Peer& Member::peer(Rank rank) const noexcept {
    ULC_CHECK(rank < impl_->roster_.size());
    return impl_->roster_[rank];
}
Err Member::link(Rank slot, const Peer& peer, const LinkEnds& ends) {
    return impl_->link(slot, peer, ends);
}
Err Member::unlink(Rank slot) noexcept { return impl_->unlink(slot); }
Err Member::add_group(GroupHandle handle, std::span<const Rank> ranks) {
    return impl_->add_group(handle, ranks);
}
Err Member::remove_group(GroupHandle handle) { return impl_->remove_group(handle); }
void Member::set_group_address(GroupHandle handle, const Mac& address) noexcept {
    if (Group* group = impl_->find_group(handle); group != nullptr) group->address = address;
}
std::span<const Rank> Member::members(GroupHandle handle) const noexcept {
    const Group* group = impl_->find_group(handle);
    return group != nullptr ? std::span<const Rank>(group->ranks) : std::span<const Rank>();
}
Admission Member::may_send(StreamId stream, std::uint64_t subset, bool has_subset, Nanos now,
                           const MessageSize& size) {
    return impl_->may_send(stream, subset, has_subset, now, size);
}
PacketPlan Member::plan(const PacketMeta& meta, Nanos now) { return impl_->plan(meta, now); }
void Member::commit(const PacketMeta& meta, const PacketPlan& plan, Segment* segment,
                    std::uint32_t length, Nanos now) {
    impl_->commit(meta, plan, segment, length, now);
}
Segment* Member::next_tx(Nanos now) { return impl_->next_tx(now); }
bool Member::has_tx() const noexcept { return impl_->has_tx(); }

bool Member::control_waits(Nanos now) const noexcept {
    return impl_->has_control() && impl_->control_waits(now);
}
void Member::on_frame(const wire::FrameView& frame, Segment* segment, Nanos now) {
    impl_->on_frame(frame, segment, now);
}
bool Member::is_next(const wire::FrameView& frame) const noexcept { return impl_->is_next(frame); }
Rank Member::next_source() noexcept { return impl_->next_source(); }
bool Member::front(Rank source, ReadyPacket& out) noexcept { return impl_->front(source, out); }
void Member::pull_front(Rank source) noexcept { impl_->pull_front(source); }
bool Member::pop(Rank source, Nanos now) { return impl_->pop(source, now); }
void Member::expect(Rank source, Nanos now) {
    if (source < impl_->roster_.size()) impl_->expect(source, now);
}
Nanos Member::next_timer() const noexcept { return impl_->timers_.next(); }
void Member::on_timer(Nanos now) { impl_->on_timer(now); }
void Member::peer_gone(Rank rank, EventKind kind, Nanos now) { impl_->peer_gone(rank, kind, now); }
Member::Outlook Member::outlook() const noexcept {
    return {impl_->timers_.next(), impl_->sends_failed_ > 0 || !impl_->news_.empty(),
            impl_->has_tx()};
}
bool Member::poll_event(Event& out) noexcept { return impl_->poll_event(out); }
bool Member::forgets() const noexcept { return impl_->config_.params.detect_only; }
void Member::want_segments(Nanos now) noexcept { impl_->want_segments(now); }
void Member::pull_tails() noexcept {
    impl_->each_retained([](Segment& segment) { pull_tail(segment); });
}
void Member::send_failed() noexcept {
    if (impl_->config_.params.detect_only) ++impl_->sends_failed_;
}
bool Member::send_failed(const wire::FrameView& frame, Nanos now) noexcept {
    return impl_->send_failed(frame, now);
}
bool Member::drained() const noexcept { return impl_->drained(); }

}  // namespace ulc::urtp
