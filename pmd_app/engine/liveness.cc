// Node liveness; the state machine is drawn in liveness.h.
#include "engine/liveness.h"

#include <algorithm>

namespace ulc::engine {
namespace {

/// Pings between node_idle and node_dead, so that heavy loss does not look like death: at 30 % loss each
/// way an exchange fails with 0.51, all of them with 2e-5.
constexpr Nanos kPingsPerDeath = 16;
/// Answers to that many pings back are still answers.
constexpr std::uint64_t kTokensBack = 64;
/// Local ends remembered for GONE.
constexpr std::size_t kEndedMax = 1024;
constexpr std::uint8_t kPingsCountMax = 255;

wire::NodeBody make_body(wire::NodeKind kind, wire::LeaveReason reason, std::uint32_t incarnation,
                         std::uint64_t token) noexcept {
    wire::NodeBody body{};
    body.kind = kind;
    body.reason = reason;
    body.incarnation = incarnation;
    body.token = token;
    return body;
}

}  // namespace

Liveness::Liveness(const LivenessConfig& config, const Mac& own, std::uint32_t incarnation,
                   std::uint64_t seed, Counters& counters)
    : config_(config),
      own_(own),
      incarnation_(incarnation),
      counters_(counters),
      prng_(seed),
      ended_(kEndedMax) {
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

Liveness::Node* Liveness::at(const Mac& mac) noexcept {
    const NodeIndex index = find(mac);
    return index == kNoNode ? nullptr : &nodes_[index & kNodeSlotMask];
}

bool Liveness::watch(const Mac& mac, std::uint32_t incarnation, Nanos now) {
    if (Node* known = at(mac); known != nullptr) {
        ++known->ranks;
        hint(mac, incarnation);
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
    node.token = prng_.next();
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

void Liveness::hint(const Mac& mac, std::uint32_t incarnation) {
    const Node* node = at(mac);
    if (node != nullptr && node->incarnation != incarnation) ask(node->index & kNodeSlotMask);
}

void Liveness::ended(Handle handle, wire::LeaveReason reason) noexcept {
    ended_[ended_next_] = Ended{handle, reason};
    ended_next_ = (ended_next_ + 1) % ended_.size();
}

void Liveness::answer(const Mac& to, const wire::NodeBody& body) noexcept {
    const auto same = [&](const Answer& waiting) {
        return waiting.to == to && waiting.body.kind == body.kind &&
               waiting.body.token == body.token;
    };
    if (std::any_of(answers_.begin(), answers_.end(), same)) return;
    // A full queue drops the answer: whoever asked asks again.
    (void)answers_.push_back(Answer{to, body});
}

bool Liveness::on_pong(const wire::NodeView& view, const Mac& source, NodeVerdict& verdict) {
    Node* node = at(source);
    if (node == nullptr || node->token - view.token >= kTokensBack) return false;
    if (node->incarnation == view.incarnation) return false;
    node->incarnation = view.incarnation;
    verdict = {NodeVerdict::Kind::kRestarted, source, view.incarnation, 0, {}};
    return true;
}

bool Liveness::on_node(const wire::NodeView& view, const Mac& source, Nanos now,
                       NodeVerdict& verdict) {
    heard(find(source), now);
    switch (view.kind) {
        case wire::NodeKind::kPing:
            answer(source, make_body(wire::NodeKind::kPong, {}, incarnation_, view.token));
            hint(source, view.incarnation);
            return false;
        case wire::NodeKind::kPong:
            return on_pong(view, source, verdict);
        case wire::NodeKind::kGone:
            verdict = {NodeVerdict::Kind::kGone, source, view.incarnation,
                       static_cast<Handle>(view.token), view.reason};
            return true;
    }
    return false;
}

void Liveness::unknown_handle(const Mac& source, Handle handle, Nanos now) noexcept {
    const bool nobody = (source.octets[0] & 1U) != 0 || source == own_;
    if (nobody || handle == 0 || is_group(handle) || config_.gones_per_second == 0) return;
    const Nanos interval = kSecond / config_.gones_per_second;
    const Nanos burst = interval * static_cast<Nanos>(kAnswersMax);
    gone_credit_at_ = std::max(gone_credit_at_, now - burst);
    if (gone_credit_at_ + interval > now) return;
    gone_credit_at_ += interval;
    // Not among the latest local ends: of an engine that ran here before, so it died.
    wire::LeaveReason reason = wire::LeaveReason::kDied;
    for (const Ended& ended : ended_) {
        if (ended.handle == handle) reason = ended.reason;
    }
    answer(source, make_body(wire::NodeKind::kGone, reason, incarnation_, handle));
}

bool Liveness::has_tx() const noexcept { return !answers_.empty() || !ping_due_.empty(); }

bool Liveness::next_tx(Mac& destination, wire::NodeBody& body, Nanos now) {
    if (!answers_.empty()) {
        const Answer& answer = answers_[answers_.size() - 1];
        destination = answer.to;
        body = answer.body;
        if (body.kind == wire::NodeKind::kGone) counters_.add(Counter::gone_sent);
        answers_.pop_back();
        return true;
    }
    if (ping_due_.empty()) return false;
    Node& node = nodes_[ping_due_.back()];
    ping_due_.pop_back();
    node.ping_due = false;
    if (node.last_heard >= node.last_ping) node.pings = 0;
    if (node.pings < kPingsCountMax) ++node.pings;
    node.last_ping = now;
    destination = node.mac;
    body = make_body(wire::NodeKind::kPing, {}, incarnation_, ++node.token);
    return true;
}

void Liveness::sweep(std::uint32_t slot, Nanos now) {
    Node& node = nodes_[slot];
    const Nanos silence = now - node.last_heard;
    if (node.dead || node.ping_due || silence < config_.node_idle) return;
    const bool asked = node.last_ping > node.last_heard;  // and not answered
    if (asked && now - node.last_ping < ping_wait()) return;
    if (asked && silence >= config_.node_dead && node.pings >= config_.pings_min) {
        node.dead = true;
        dead_.push_back(node.index);
        return;
    }
    ask(slot);
}

void Liveness::on_timer(Nanos now) {
    if (now < sweep_at_) return;
    for (const std::uint32_t slot : by_mac_)
        sweep(slot, now);
    sweep_at_ = by_mac_.empty() ? kNever : now + sweep_wait();
}

bool Liveness::next_dead(NodeVerdict& verdict) noexcept {
    while (!dead_.empty()) {
        const NodeIndex index = dead_.back();
        dead_.pop_back();
        const Node& node = nodes_[index & kNodeSlotMask];
        if (node.index != index) continue;
        verdict = {NodeVerdict::Kind::kDead, node.mac, node.incarnation, 0, {}};
        return true;
    }
    return false;
}

}  // namespace ulc::engine
