// SPDX-License-Identifier: BSD-3-Clause
#include "engine/tx.h"

#include <algorithm>
#include <bit>
#include <climits>

#include "engine/core.h"
#include "wire/header.h"

namespace ulc::engine {
namespace {

constexpr unsigned kTurnFrames = 4;  ///< frames of one endpoint before the next one's turn
constexpr unsigned kJobFrames = 8;   ///< maximum of job frames in a round of others' frames

/// Longer than any frame waits for the wire: twice the longest back-offs of 16 collisions (8,184
/// slots of 64 bytes, IEEE 802.3 4.2.3.2.5). On a full-duplex wire it is many times the content of
/// the ring. It also covers the time for which a busy host does not poll.
constexpr std::uint64_t kBackOffOctets = 2 * 8184 * 64;
constexpr std::uint64_t kRingTurns = 20;
constexpr std::uint32_t kFrameByFrame = 2;  ///< frames in one report: no batch that could stall us
constexpr Nanos kLookAway = 2 * kMillisecond;

}  // namespace

Transmitter::Transmitter(const Port& port, urtp::Departures& departures,
                         Counters& counters) noexcept
    : port_(port),
      departures_(departures),
      counters_(counters),
      flush_mask_(port.info.flush_frames - 1U),
      sent_next_(departures.next),
      rate_known_(port.info.link_bits_per_second != 0),
      reported_(departures.next) {
    ULC_CHECK(std::has_single_bit(port.info.flush_frames) && flush_mask_ < kBurst);
    frame_octets_max_ =
        port.info.mtu + std::uint32_t{sizeof(wire::EthernetHeader)} + kFrameOverhead;
    budget_octets_ = 2ULL * frame_octets_max_ * port.info.links;
    const std::uint64_t in_ring_time = port.info.link_bits_per_second / 8 *
                                       static_cast<std::uint64_t>(port.info.tx_pending_time) /
                                       kSecond;
    if (rate_known_) {
        budget_octets_ = std::max(budget_octets_, in_ring_time);
    } else {
        budget_octets_ = UINT64_MAX / 2;
    }
    if (rate_known_) shared_time_ = wire_time((budget_octets_ - frame_octets_max_) / 2);
    frames_max_ = rate_known_ ? kSentMax : kBurst;
    if (port.info.tx_ring_frames != 0)
        frames_max_ = std::min<std::uint32_t>(frames_max_, port.info.tx_ring_frames);
    stall_after_ = kLookAway;
    if (rate_known_)
        stall_after_ +=
            wire_time(port.info.half_duplex ? kBackOffOctets : kRingTurns * budget_octets_);
}

Nanos Transmitter::wire_time(std::uint64_t octets) const noexcept {
    const std::uint64_t rate = port_.info.link_bits_per_second / 8;
    return static_cast<Nanos>(octets * static_cast<std::uint64_t>(kSecond) /
                              std::max<std::uint64_t>(rate, 1));
}

/// Returns whether all pending frames leave within shared_time_. The port began with the first
/// frame when it reported the previous one.
bool Transmitter::leaves_soon() const noexcept {
    const Nanos left =
        by_clock_ ? wire_free_at_ - now_ : wire_time(in_flight_octets_) - (now_ - reported_at_);
    return left <= shared_time_;
}

/// Returns how many of the frames passed to the port are not yet on the wire if it never waits.
std::uint32_t Transmitter::frames_on_wire(Nanos now) const noexcept {
    if (!rate_known_) return 0;
    Nanos left = wire_free_at_ - now;
    std::uint32_t frames = 0;
    while (left > 0 && frames < kSentMax)
        left -= wire_time(sent_[(sent_next_ - ++frames) & (kSentMax - 1)]);
    return frames;
}

std::uint32_t Transmitter::pending_frames(Nanos now) noexcept {
    const std::uint32_t pending =
        leave_at_once() ? 0 : std::min(port_.tx_pending(port_.context), kSentMax);
    const std::uint32_t reported = sent_next_ - pending;
    const std::uint32_t news = reported - reported_;
    if (news != 0) reported_at_ = now;
    if (news != 0 && news <= kFrameByFrame) by_clock_ = false;
    reported_ = reported;
    if (!by_clock_ && pending > 0 && now - reported_at_ > stall_after_) {
        by_clock_ = true;
        counters_.add(Counter::tx_reports_missing);
    }
    return by_clock_ ? std::min(pending, frames_on_wire(now)) : pending;
}

void Transmitter::look_at_port(Nanos now) noexcept {
    flush();
    const std::uint32_t pending = pending_frames(now);
    in_flight_frames_ = pending + burst_count_;
    departures_.leave_until(sent_next_ - pending, now);
    in_flight_octets_ = 0;
    if (!rate_known_) return;
    for (std::uint32_t n = 1; n <= pending; ++n)
        in_flight_octets_ += sent_[(sent_next_ - n) & (kSentMax - 1)];
    for (std::uint32_t n = 0; n < burst_count_; ++n)
        in_flight_octets_ += burst_[n]->length + kFrameOverhead;
}

void Transmitter::send_burst() noexcept {
    // Lengths are read before the port owns the frames: it may have freed them when tx returns.
    std::uint64_t octets = 0;
    for (std::uint32_t n = 0; n < burst_count_; ++n) {
        const std::uint32_t length = burst_[n]->length;
        octets += length;
        sent_[(sent_next_ + n) & (kSentMax - 1)] =
            static_cast<std::uint16_t>(length + kFrameOverhead);
    }
    const std::uint32_t taken = give(static_cast<std::uint16_t>(burst_count_));
    if (taken != burst_count_) [[unlikely]]
        octets -= keep_from(taken);
    counters_.add(Counter::tx_frames, taken);
    counters_.add(Counter::tx_bytes, octets);
    if (reported_ == sent_next_) reported_at_ = now_;  // nothing was pending: the wait begins
    if (by_clock_ && rate_known_) [[unlikely]] {
        wire_free_at_ = std::max(wire_free_at_, now_);
        for (std::uint32_t n = 0; n < taken; ++n)
            wire_free_at_ += wire_time(sent_[(sent_next_ + n) & (kSentMax - 1)]);
    }
    sent_next_ += taken;
    burst_count_ -= taken;
    if (leave_at_once()) note_left();
}

/// Keeps the frames that the port did not take: it took only the first of the burst. Returns their
/// bytes.
std::uint64_t Transmitter::keep_from(std::uint32_t taken) noexcept {
    ULC_CHECK(taken <= burst_count_);
    std::uint64_t octets = 0;
    for (std::uint32_t n = taken; n < burst_count_; ++n) {
        octets += burst_[n]->length;
        burst_[n - taken] = burst_[n];
    }
    counters_.add(Counter::tx_ring_full);
    return octets;
}

void Transmitter::drop_all() noexcept {
    counters_.add(Counter::drop_link_down, burst_count_);
    for (std::uint32_t n = 0; n < burst_count_; ++n)
        port_.pool.drop(burst_[n]);
    departures_.next -= burst_count_;
    burst_count_ = 0;  // in_flight_frames_ stays too high until the next look
}

void Transmitter::check_invariants() const {
    ULC_CHECK(burst_count_ < kBurst);
    ULC_CHECK(std::ranges::count(burst_, burst_ + burst_count_, nullptr) == 0);
    ULC_CHECK(in_flight_frames_ >= burst_count_);
    // Each frame that has a ticket was given to the port, or is kept.
    ULC_CHECK(departures_.next == sent_next_ + burst_count_);
    ULC_CHECK(static_cast<std::int32_t>(sent_next_ - reported_) >= 0);
    ULC_CHECK(static_cast<std::int32_t>(sent_next_ - departures_.left) >= 0);
}

// ---------------------------------------------------------------- the round's transmit step

namespace {

const wire::EthernetHeader& ethernet_of(const Segment& segment) {
    return *reinterpret_cast<const wire::EthernetHeader*>(segment.frame);
}
const wire::Header& header_of(const Segment& segment) {
    return *reinterpret_cast<const wire::Header*>(segment.frame + sizeof(wire::EthernetHeader));
}

// Passes a frame to endpoints of this node; takes over one reference.
void loop_back(Core& core, const Endpoint& from, Segment* segment, Nanos now) {
    core.end_verdicts();
    pull_tail(*segment);
    wire::FrameView view;
    const Counter reason =
        wire::parse(segment->frame, segment->length, core.config().ether_type, view);
    core.counters().add(Counter::loopback_frames);
    if (reason != Counter::kCount) {  // our own frames parse
        core.counters().add(reason);
        from.net().port().pool.drop(segment);
        return;
    }
    (void)to_members(core, from.net(), view, segment, &from, now);
}

// Sends a frame to the wire, to endpoints of this node, or to both.
void route(Core& core, const Endpoint& from, Segment* segment, Nanos now) {
    Net& net = from.net();
    const Mac destination = ethernet_of(*segment).destination;
    if (destination == net.port().info.mac) {
        loop_back(core, from, segment, now);
        return;
    }
    if ((destination.octets[0] & 1U) == 0) {
        net.transmitter().push(segment);
        return;
    }
    const LocalGroup* group = net.groups().find(header_of(*segment).handle);
    const bool locals = group != nullptr && group->members.size() > 1;
    const bool remote = group == nullptr || group->any_remote;
    if (locals) {
        if (remote) net.port().pool.hold(segment);
        loop_back(core, from, segment, now);
    }
    if (remote) {
        net.transmitter().push(segment);
    } else if (!locals) {
        net.port().pool.drop(segment);
    }
}

// `members`: these wait as well, so jobs get a share of the round: foreign nodes may ask for much.
bool transmit_jobs(Core& core, Net& net, bool members, Nanos now) {
    bool moved = false;
    unsigned budget = members ? kJobFrames : UINT_MAX;
    while (budget-- > 0 && net.jobs().has_tx() && net.transmitter().may_push()) {
        Segment* segment = net.port().pool.get();
        if (segment == nullptr) {
            core.counters().add(Counter::no_segment);
            break;
        }
        const std::size_t octets = net.jobs().next_tx(segment->frame, segment->capacity, now);
        if (octets == 0) {
            net.port().pool.drop(segment);
            break;
        }
        segment->length = static_cast<std::uint32_t>(octets);
        net.transmitter().push(segment);
        moved = true;
    }
    return moved;
}

// Takes the frames that the port dropped, which their member must send again or report. Control
// frames are not missed: timers send them again. Returns true if there was some.
bool take_given_up(Core& core, Net& net, Nanos now) {
    bool any = false;
    while (Segment* segment = net.port().tx_failed(net.port().context)) {
        any = true;
        core.end_verdicts();
        if (net.port().tap != nullptr) net.port().tap->on_failed(net.port().tap->context, *segment);
        core.counters().add(Counter::tx_given_up);
        wire::FrameView view;
        if (wire::parse(segment->frame, segment->length, core.config().ether_type, view) ==
            Counter::kCount) {
            for (Endpoint* endpoint : core.table().active()) {
                if (!endpoint->is_on(net) || endpoint->member() == nullptr ||
                    !endpoint->member()->send_failed(view, now))
                    continue;
                endpoint->mark(Work::kTransmit | Work::kSettle);
                break;
            }
        }
        net.port().pool.drop(segment);
    }
    return any;
}

// Sends up to kTurnFrames of one endpoint. Returns false if it had none, or may not.
bool transmit_turn(Core& core, Endpoint& endpoint, unsigned& budget, Nanos now) {
    const bool shared = core.accounts().users().size() > 1;
    const Transmitter& wire = endpoint.net().transmitter();
    bool moved = false;
    for (unsigned n = 0; n < kTurnFrames && budget > 0; ++n) {
        if (!endpoint.membership().is_local() &&
            !(shared ? wire.may_push_shared() : wire.may_push()))
            return moved;
        endpoint.mark(Work::kSettle);  // frames that may not go yet have a timer now
        Segment* segment = endpoint.member()->next_tx(now);
        if (segment == nullptr) {
            // The port reports when it may go
            if (endpoint.member()->control_waits(now)) return moved;
            endpoint.unmark(Work::kTransmit);
            return moved;
        }
        if (endpoint.forgets()) endpoint.mark(Work::kSend);
        if (!endpoint.net().watch().link_is_up() && !endpoint.membership().is_local())
            endpoint.member()->send_failed();
        route(core, endpoint, segment, now);
        --budget;
        moved = true;
        if (!endpoint.member()->has_tx()) {
            endpoint.unmark(Work::kTransmit);
            return moved;
        }
    }
    return moved;
}

// Gives one turn to the next endpoint of the user that has frames. Returns false if none has.
bool transmit_user(Core& core, User& user, unsigned& budget, Nanos now) {
    const auto count = static_cast<std::uint32_t>(user.active.size());
    std::uint32_t at = user.turn < count ? user.turn : 0;
    for (std::uint32_t left = count; left > 0; --left) {
        Endpoint& endpoint = *user.active[at];
        if (++at == count) at = 0;
        if (!endpoint.has(Work::kTransmit) || endpoint.member() == nullptr) continue;
        if (!transmit_turn(core, endpoint, budget, now)) continue;
        user.turn = at;
        return true;
    }
    return false;
}

// Gives one turn to each user, so that a user with many endpoints gets no more of the wire. Returns
// true if there was some. If the wire takes one frame a round, the user that begins gets it: each
// begins equally often.
[[gnu::noinline]] bool transmit_users(Core& core, unsigned& budget, bool& moved, Nanos now) {
    const auto& users = core.accounts().users();
    bool any = false;
    std::size_t at = core.rounds().next_of(users.size());
    for (std::size_t left = users.size(); left > 0; --left) {
        any |= transmit_user(core, *users[at], budget, now);
        if (++at == users.size()) at = 0;
    }
    moved |= any;
    return any;
}

// Gives one turn to each endpoint that may have frames, from Rounds::first_of() on. `moved`: there
// were some. Returns true if some may have more.
bool transmit_members(Core& core, unsigned& budget, bool& moved, Nanos now) {
    if (core.accounts().users().size() > 1) return transmit_users(core, budget, moved, now);
    bool more = false;
    std::size_t at = core.rounds().first_of(core.table().active().size());
    for (std::size_t left = core.table().active().size(); left > 0; --left) {
        Endpoint& endpoint = *core.table().active()[at];
        if (++at == core.table().active().size()) at = 0;
        if (!endpoint.has(Work::kTransmit) || endpoint.member() == nullptr) continue;
        if (!transmit_turn(core, endpoint, budget, now)) continue;
        moved = true;
        more |= endpoint.has(Work::kTransmit);
    }
    return more;
}

}  // namespace

bool transmit(Core& core, bool members, Nanos now) {
    bool moved = false;
    bool kept = false;
    for (const auto& net : core.nets()) {
        net->transmitter().begin_round(now);
        if (net->port().tx_failed != nullptr) members |= take_given_up(core, *net, now);
        if (net->jobs().next_look() == 0) moved |= transmit_jobs(core, *net, members, now);
        kept |= net->transmitter().kept();
    }
    if (!members && !kept) return moved;
    unsigned budget = members ? core.config().frames_per_round : 0;
    while (budget > 0 && transmit_members(core, budget, moved, now)) {
    }
    for (const auto& net : core.nets()) {
        net->transmitter().flush();
        // A frame that waits for a link would wait without end when the other end is gone; a cable
        // would have lost it too.
        if (!net->watch().link_is_up() && net->transmitter().kept()) net->transmitter().drop_all();
    }
    return moved;
}

}  // namespace ulc::engine
