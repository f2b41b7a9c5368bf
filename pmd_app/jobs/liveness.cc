// SPDX-License-Identifier: BSD-3-Clause
// Node liveness; the state machine is drawn in liveness.h.
#include "jobs/liveness.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::jobs {
namespace {

/// Pings between node_idle and node_dead, so that heavy loss does not look like death: at 30 % loss
/// each way an exchange fails with 0.51, all of them with 2e-5.
constexpr Nanos kPingsPerDeath = 16;
/// Answers to that many pings back are still answers.
constexpr std::uint64_t kTokensBack = 64;
/// Generation of the node that is watched before the first one. The 16 bits wrap soon after the
/// start, so that each run of an engine crosses the wrap.
constexpr std::uint32_t kFirstGeneration = 0xfff8;
constexpr std::uint8_t kPingsCountMax = 255;
/// The patience with a node, in absences of it.
constexpr Nanos kPatience = 4;
/// A dead node is reported again when its silence has grown by this part of it.
constexpr Nanos kReportsAgain = 16;
/// An engine that returns from an absence pings each node so often, that far apart.
constexpr std::uint8_t kAnnouncements = 4;
constexpr Nanos kAnnounceGap = kMillisecond;
/// Hints make this engine ask a node no more often than this.
constexpr Nanos kAskGap = kMillisecond;

wire::NodeBody make_body(wire::NodeKind kind, std::uint32_t incarnation,
                         std::uint64_t token) noexcept {
    wire::NodeBody body{};
    body.kind = kind;
    body.incarnation = incarnation;
    body.token = token;
    return body;
}

}  // namespace

bool RateLimit::take(Nanos now, std::uint32_t per_second, std::size_t most) noexcept {
    if (per_second == 0) return false;
    const Nanos interval = kSecond / per_second;
    const Nanos burst = interval * static_cast<Nanos>(most);
    empty_at_ = std::max(empty_at_, now - burst);
    if (empty_at_ + interval > now) return false;
    empty_at_ += interval;
    return true;
}

Liveness::Liveness(const LivenessConfig& config, const Mac& own, std::uint32_t incarnation,
                   const seal::Seed& seed, Counters& counters)
    : config_(config),
      own_(own),
      incarnation_(incarnation),
      counters_(counters),
      tokens_(seed),
      generation_(kFirstGeneration),
      ended_(seed.number(1)) {
    config_.nodes_max = std::min(config_.nodes_max, kNodesMax);
}

Nanos Liveness::ping_wait() const noexcept {
    return std::max((config_.node_dead - config_.node_idle) / kPingsPerDeath, kMillisecond);
}

Nanos Liveness::sweep_wait() const noexcept {
    return std::max(std::min(config_.node_idle, ping_wait()) / 2, kMillisecond / 2);
}

std::size_t Liveness::place_of(const Mac& mac) const noexcept {
    const auto place = std::lower_bound(
        by_mac_.begin(), by_mac_.end(), mac,
        [this](std::uint32_t slot, const Mac& wanted) { return nodes_[slot].mac < wanted; });
    return static_cast<std::size_t>(place - by_mac_.begin());
}

NodeIndex Liveness::find(const Mac& mac) const noexcept {
    const std::size_t place = place_of(mac);
    if (place == by_mac_.size() || nodes_[by_mac_[place]].mac != mac) return kNoNode;
    return nodes_[by_mac_[place]].index;
}

std::uint32_t Liveness::incarnation_of(const Mac& mac) const noexcept {
    const NodeIndex index = find(mac);
    return index == kNoNode ? 0 : nodes_[index & kNodeSlotMask].incarnation;
}

std::uint64_t Liveness::pings_to(const Mac& mac) const noexcept {
    const NodeIndex index = find(mac);
    return index == kNoNode ? 0 : nodes_[index & kNodeSlotMask].number;
}

Liveness::Node* Liveness::at(const Mac& mac) noexcept {
    const NodeIndex index = find(mac);
    return index == kNoNode ? nullptr : &nodes_[index & kNodeSlotMask];
}

bool Liveness::watch(const Mac& mac, std::uint32_t incarnation, Nanos now) {
    if (Node* known = at(mac); known != nullptr) {
        ++known->ranks;
        hint(mac, incarnation, now);
        return true;
    }
    if (by_mac_.size() >= config_.nodes_max) return false;
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(nodes_.size()));
        nodes_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    const std::size_t place = place_of(mac);
    Node& node = nodes_[slot];
    node = Node{};
    node.index = (++generation_ << 16U) | slot;
    node.mac = mac;
    node.incarnation = incarnation;
    node.ranks = 1;
    node.last_heard = now;
    node.last_ping = now - ping_wait();
    node.tokens = seal::TokenSeries(tokens_.next_seed());
    by_mac_.insert(by_mac_.begin() + static_cast<std::ptrdiff_t>(place), slot);
    if (sweep_at_ == kNever) sweep_at_ = now + sweep_wait();
    return true;
}

void Liveness::unwatch(const Mac& mac) noexcept {
    Node* node = at(mac);
    if (node == nullptr || --node->ranks > 0) return;
    by_mac_.erase(by_mac_.begin() + static_cast<std::ptrdiff_t>(place_of(mac)));
    const std::uint32_t slot = node->index & kNodeSlotMask;
    std::erase(ping_due_, slot);
    free_.push_back(slot);
    *node = Node{};
    if (by_mac_.empty()) sweep_at_ = kNever;
}

void Liveness::ask(std::uint32_t slot) {
    if (nodes_[slot].ping_due) return;
    nodes_[slot].ping_due = true;
    ping_due_.push_back(slot);
}

void Liveness::hint(const Mac& mac, std::uint32_t incarnation, Nanos now) {
    const Node* node = at(mac);
    if (node != nullptr && node->incarnation != incarnation) doubt(mac, 0, 0, now);
}

bool Liveness::may_doubt(const Mac& mac, Nanos now) const noexcept {
    const NodeIndex index = find(mac);
    if (index == kNoNode) return false;
    const Node& node = nodes_[index & kNodeSlotMask];
    const bool waits = node.ping_due && (node.ours != 0 || node.theirs != 0);
    return !waits && now - node.last_ping >= kAskGap;
}

void Liveness::doubt(const Mac& mac, Handle ours, Handle theirs, Nanos now) {
    Node* node = at(mac);
    if (node == nullptr || now - node->last_ping < kAskGap) return;
    if (node->ours == 0) node->ours = ours;
    if (node->theirs == 0) node->theirs = theirs;
    ask(node->index & kNodeSlotMask);
}

void Liveness::ended(Handle handle, wire::LeaveReason reason) noexcept {
    ended_.add(handle, reason);
}

// ------------------------------------------------------------------------------ answers and hints

/// Takes an answer of the rate of strangers, if the node is one.
bool Liveness::may_answer(const Mac& to, Nanos now) noexcept {
    if (find(to) != kNoNode || strangers_limit_.take(now, config_.strangers_per_second))
        return true;
    counters_.add(Counter::answers_limited);
    return false;
}

bool Liveness::may_hint(const Mac& to, Nanos now) noexcept {
    if ((to.octets[0] & 1U) != 0 || to == own_) return false;
    return hints_limit_.take(now, config_.gones_per_second) && may_answer(to, now);
}

void Liveness::answer(const Mac& to, const wire::NodeBody& body) noexcept {
    auto& queue = find(to) != kNoNode ? answers_ : strangers_;
    const auto same = [&](const Answer& waiting) {
        return waiting.to == to && waiting.body.kind == body.kind &&
               waiting.body.token == body.token && waiting.body.ours == body.ours &&
               waiting.body.theirs == body.theirs;
    };
    if (std::any_of(queue.begin(), queue.end(), same)) return;
    // A full queue drops the answer: its asker asks again.
    if (!queue.push_back(Answer{to, body})) counters_.add(Counter::answers_limited);
}

void Liveness::unknown_handle(const Mac& source, Handle handle, Nanos now) noexcept {
    if (handle == 0 || is_group(handle) || !may_hint(source, now)) return;
    wire::NodeBody body = make_body(wire::NodeKind::kGone, incarnation_, wire::kNoToken);
    body.reason = ended_.reason_of(handle);
    body.ours = handle;
    answer(source, body);
}

void Liveness::held_for_dead(const Mac& source, Handle theirs, wire::LeaveReason reason,
                             Nanos now) noexcept {
    if (!may_hint(source, now)) return;
    wire::NodeBody body = make_body(wire::NodeKind::kExpelled, incarnation_, wire::kNoToken);
    body.theirs = theirs;
    body.reason = reason;
    answer(source, body);
}

void Liveness::answer_pong(const NodeVerdict& asked) noexcept {
    answer(asked.mac, make_body(wire::NodeKind::kPong, incarnation_, asked.token));
}

void Liveness::answer_gone(const NodeVerdict& asked) noexcept {
    wire::NodeBody body = make_body(wire::NodeKind::kGone, incarnation_, asked.token);
    body.reason = ended_.reason_of(asked.ours);
    body.ours = asked.ours;
    answer(asked.mac, body);
}

void Liveness::answer_expelled(const NodeVerdict& asked, wire::LeaveReason reason) noexcept {
    wire::NodeBody body = make_body(wire::NodeKind::kExpelled, incarnation_, asked.token);
    body.theirs = asked.theirs;
    body.reason = reason;
    answer(asked.mac, body);
}

// ------------------------------------------------------------------------------ what comes

bool Liveness::fresh(const wire::NodeView& view, const Mac& source) const noexcept {
    const NodeIndex index = find(source);
    if (index == kNoNode || view.token == wire::kNoToken) return false;
    const Node& node = nodes_[index & kNodeSlotMask];
    return node.tokens.is_recent(view.token, node.number, kTokensBack);
}

bool Liveness::on_node(const wire::NodeView& view, const Mac& source, Nanos now,
                       NodeVerdict& verdict) {
    using Kind = NodeVerdict::Kind;
    heard(find(source), now);
    const bool gone = view.kind == wire::NodeKind::kGone;
    // The sender's own endpoint is theirs to us.
    verdict = {Kind::kAsks, source,      view.incarnation, view.ours,
               view.theirs, view.reason, view.token};
    if (view.kind == wire::NodeKind::kPing) {
        hint(source, view.incarnation, now);
        return may_answer(source, now);
    }
    if (!fresh(view, source)) {
        verdict.kind = gone ? Kind::kSaysGone : Kind::kSaysExpelled;
        return view.kind != wire::NodeKind::kPong && view.token == wire::kNoToken &&
               may_answer(source, now);
    }
    Node& node = *at(source);
    node.asked = 0;
    if (node.incarnation != view.incarnation) {
        node.incarnation = view.incarnation;
        verdict.kind = Kind::kRestarted;
        return true;
    }
    verdict.kind = gone ? Kind::kGone : Kind::kExpelled;
    return view.kind != wire::NodeKind::kPong;
}

bool Liveness::has_tx() const noexcept {
    return !answers_.empty() || !strangers_.empty() || !ping_due_.empty();
}

bool Liveness::next_tx(Mac& destination, wire::NodeBody& body, Nanos now) {
    auto& queue = answers_.empty() && ping_due_.empty() ? strangers_ : answers_;
    if (!queue.empty()) {
        const Answer& answer = queue[queue.size() - 1];
        destination = answer.to;
        body = answer.body;
        if (body.kind == wire::NodeKind::kGone) counters_.add(Counter::gone_sent);
        if (body.kind == wire::NodeKind::kExpelled) counters_.add(Counter::expelled_sent);
        queue.pop_back();
        return true;
    }
    if (ping_due_.empty()) return false;
    Node& node = nodes_[ping_due_.back()];
    ping_due_.pop_back();
    node.ping_due = false;
    note_answer(node, now);
    if (node.waits_since == 0) node.waits_since = now;
    if (node.last_heard >= node.last_ping) node.pings = 0;
    if (node.pings < kPingsCountMax) ++node.pings;
    if (node.asked == 0) node.asked_since = now;
    if (node.asked < kPingsCountMax) ++node.asked;
    node.last_ping = now;
    destination = node.mac;
    body = make_body(wire::NodeKind::kPing, incarnation_, node.tokens.at(++node.number));
    body.ours = node.ours;
    body.theirs = node.theirs;
    node.ours = node.theirs = 0;
    return true;
}

/// Returns the longest absence of the node as it counts now.
Nanos Liveness::absence_of(const Node& node, Nanos now) const noexcept {
    const Nanos halved = (now - node.absence_at) / config_.forget_wait;
    return halved < 63 ? node.absence >> halved : 0;
}

Nanos Liveness::patience_with(const Node& node, Nanos now) const noexcept {
    const Nanos least = config_.node_dead;
    const Nanos most = std::max(least, config_.patience_max);
    return std::clamp(kPatience * absence_of(node, now), least, most);
}

/// Remembers how long the node let the first ping wait, if it was heard since.
void Liveness::note_answer(Node& node, Nanos now) noexcept {
    if (node.waits_since == 0 || node.last_heard < node.waits_since) return;
    const Nanos absence = node.last_heard - node.waits_since;
    node.waits_since = 0;
    if (absence <= absence_of(node, now)) return;
    node.absence = absence;
    node.absence_at = now;
}

/// Returns for how long the node has answered nothing, if it was asked often enough; else 0.
Nanos Liveness::silence_of(const Node& node, Nanos now) const noexcept {
    const bool deaf = node.asked >= std::max(config_.deaf_pings, config_.pings_min);
    const bool mute = node.last_ping > node.last_heard && node.pings >= config_.pings_min;
    return std::max(deaf ? now - node.asked_since : 0, mute ? node.unheard(now) : 0);
}

/// Excuses the node for the time for which this engine was away itself.
void Liveness::excuse(Node& node, Nanos away, Nanos now) const noexcept {
    if (node.waits_since != 0) node.waits_since = std::min(now, node.waits_since + away);
    if (node.asked > 0) node.asked_since = std::min(now, node.asked_since + away);
    if (node.last_heard >= node.excused_at) node.excused = 0;
    if (node.last_heard <= sweep_at_) node.excused += std::min(away, now - node.last_heard);
    node.excused_at = now;
}

void Liveness::sweep(std::uint32_t slot, Nanos now) {
    Node& node = nodes_[slot];
    note_answer(node, now);
    if (node.ping_due) return;
    const Nanos silence = now - node.last_heard;
    const bool silent = silence >= config_.node_idle;
    const bool asked = node.last_ping > node.last_heard;  // and not answered
    const Nanos wait = silent || node.asked > 0 ? ping_wait() : config_.node_dead / 2;
    const bool announces =
        announcements_ == kAnnouncements || (announcements_ > 0 && node.asked > 0);
    if (!announces && (asked || !silent) && now - node.last_ping < wait) return;
    const Nanos unanswered = silence_of(node, now);
    if (unanswered < node.reported) node.reported = 0;  // it came back
    if (unanswered >= patience_with(node, now) &&
        unanswered >= node.reported + node.reported / kReportsAgain) {
        node.reported = unanswered;
        dead_.push_back(node.index);
    }
    ask(slot);
}

void Liveness::note_own_absence(Nanos away, Nanos now) noexcept {
    if (away < own_absence_ && now - own_absence_at_ <= config_.forget_wait) return;
    own_absence_ = away;
    own_absence_at_ = now;
}

Nanos Liveness::own_absence(Nanos patience, Nanos now) const noexcept {
    if (now - own_absence_at_ > config_.forget_wait) return 0;
    // Others count from the last frame, which may be older than the absence.
    const Nanos least = std::max(config_.node_dead, patience) / 4 * 3;
    if (own_absence_ < least) return 0;
    return own_absence_ + sweep_wait() / 2;  // it began while this engine waited for the sweep
}

void Liveness::on_timer(Nanos now) {
    if (now < sweep_at_) return;
    const Nanos away = now - sweep_at_;  // this engine
    note_own_absence(away, now);
    if (away >= config_.node_idle) announcements_ = kAnnouncements;
    for (const std::uint32_t slot : by_mac_) {
        excuse(nodes_[slot], away, now);
        sweep(slot, now);
    }
    if (announcements_ > 0) --announcements_;
    const Nanos wait = announcements_ > 0 ? kAnnounceGap : sweep_wait();
    sweep_at_ = by_mac_.empty() ? kNever : now + wait;
}

bool Liveness::next_dead(NodeVerdict& verdict) noexcept {
    while (!dead_.empty()) {
        const NodeIndex index = dead_.back();
        dead_.pop_back();
        const Node& node = nodes_[index & kNodeSlotMask];
        if (node.index != index) continue;
        verdict = {};
        verdict.kind = NodeVerdict::Kind::kDead;
        verdict.mac = node.mac;
        verdict.incarnation = node.incarnation;
        verdict.silence = node.reported;
        return true;
    }
    return false;
}

void Liveness::check_invariants() const {
    ULC_CHECK(by_mac_.size() <= config_.nodes_max);
    ULC_CHECK(std::ranges::all_of(by_mac_, [this](std::uint32_t slot) {
        return (nodes_[slot].index & kNodeSlotMask) == slot && nodes_[slot].ranks > 0;
    }));
    ended_.check_invariants();
}

}  // namespace ulc::jobs
