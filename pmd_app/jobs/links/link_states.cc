// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/links/link_states.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ulc::jobs {

using State = LinkEnd::State;

LinkStates::LinkStates(const LinksConfig& config, LinkTable& table, const Liveness& liveness,
                       Counters& counters)
    : config_(config), table_(table), liveness_(liveness), counters_(counters) {}

void LinkStates::push(LinkEventKind kind, Handle endpoint, Rank slot, Err error) {
    events_.push_back({kind, endpoint, slot, error, 0});
}

bool LinkStates::poll_event(LinkEvent& out) {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
}

// ------------------------------------------------------------------------------ calls

Result<Rank> LinkStates::queue_call(LinkEndpoint& endpoint, const wire::LinkAddress& address,
                                    Nanos deadline) {
    if (const Err error = wire::judge_address(address); error != Err::kOk) return error;
    if (address.mac == config_.mac && address.handle == endpoint.handle) return Err::kInvalid;
    const LinkRef known = table_.index().find(endpoint.handle, address.mac, address.handle);
    if (known.slot != kNoRank) {
        const LinkEnd& end = endpoint.slots[known.slot];
        if (end.state == State::kLeaving) return Err::kAgain;
        if (end.incarnation == address.incarnation) return known.slot;
    }
    const Result<Rank> slot =
        table_.take_slot(endpoint, address.mac, address.handle, address.incarnation);
    if (!slot.ok()) return slot.error();
    table_.set_state(endpoint, slot.value(), State::kQueued);
    LinkEnd& end = endpoint.slots[slot.value()];
    end.key = address.key;
    end.deadline = deadline;
    return slot.value();
}

void LinkStates::start_calls(LinkEndpoint& endpoint, Nanos now) {
    for (std::size_t n = 0;
         n < endpoint.slots.size() && endpoint.queued > 0 && endpoint.calls < kCallsMax; ++n) {
        LinkEnd& end = endpoint.slots[n];
        if (end.state != State::kQueued) continue;
        const auto slot = static_cast<Rank>(n);
        table_.set_state(endpoint, slot, State::kCalling);
        if (!liveness_.has_room_for_calls() || !table_.watch(end, now)) {
            table_.vacate(endpoint, slot);
            push(LinkEventKind::kFailed, endpoint.handle, slot, Err::kLimit);
            continue;
        }
        end.wait = config_.request_wait_min;
        end.says_request = true;
        set_time({endpoint.handle, slot}, end, now + end.wait);
        speak({endpoint.handle, slot}, end);
    }
}

void LinkStates::call_found(const FoundEndpoint& found, Nanos now) {
    LinkEndpoint& caller = *table_.find(found.caller);
    const Result<Rank> slot = found.address.ok()
                                  ? queue_call(caller, found.address.value(), found.deadline)
                                  : found.address.error();
    events_.push_back({LinkEventKind::kCalled, found.caller, slot.ok() ? slot.value() : kNoRank,
                       slot.error(), found.cookie});
    if (slot.ok()) start_calls(caller, now);
}

// ------------------------------------------------------------------------------ ends

void LinkStates::answer_call(LinkEndpoint& endpoint, Rank slot, Nanos now) {
    LinkEnd& end = endpoint.slots[slot];
    table_.set_state(endpoint, slot, State::kAnswered);
    end.left = config_.accept_repeats;
    end.deadline = now + config_.unconfirmed_life;
    set_time({endpoint.handle, slot}, end, now + config_.accept_wait);
}

void LinkStates::take_peer(LinkEndpoint& endpoint, Rank slot, const wire::LinkView& view) {
    LinkEnd& end = endpoint.slots[slot];
    end.theirs = view.ours;
    end.self = view.slot;
    end.mtu = view.attributes.mtu;
    end.out = view.first_seq;
    if (end.state == State::kAnswered) push(LinkEventKind::kOpened, endpoint.handle, slot);
}

void LinkStates::confirmed(LinkEndpoint& endpoint, Rank slot, Nanos now) {
    LinkEnd& end = endpoint.slots[slot];
    const bool called = end.state == State::kCalling;
    if (!called && !table_.watch(end, now)) return finish(endpoint, slot, LinkEventKind::kDropped);
    if (called) push(LinkEventKind::kOpened, endpoint.handle, slot);
    table_.set_state(endpoint, slot, State::kUp);
    end.at = kNever;
    counters_.add(Counter::links_made);
    push(LinkEventKind::kConfirmed, endpoint.handle, slot);
    if (called) start_calls(endpoint, now);
}

void LinkStates::finish(LinkEndpoint& endpoint, Rank slot, LinkEventKind how) {
    if (endpoint.closed) return table_.vacate(endpoint, slot);
    table_.detach(endpoint, slot, how == LinkEventKind::kUnlinked ? State::kFree : State::kGone);
    push(how, endpoint.handle, slot);
}

void LinkStates::fail(LinkEndpoint& endpoint, Rank slot, Err error, Nanos now) {
    table_.vacate(endpoint, slot);
    push(LinkEventKind::kFailed, endpoint.handle, slot, error);
    start_calls(endpoint, now);
}

void LinkStates::end_by(LinkEndpoint& endpoint, Rank slot, wire::LeaveReason reason, Nanos now) {
    const bool left = reason == wire::LeaveReason::kLeft;
    switch (endpoint.slots[slot].state) {
        case State::kQueued:
        case State::kCalling:
            return fail(endpoint, slot, left ? Err::kPeerLeft : Err::kPeerDied, now);
        case State::kAnswered:
            return finish(endpoint, slot, LinkEventKind::kDropped);
        case State::kUp:
            return finish(endpoint, slot,
                          left ? LinkEventKind::kPeerLeft : LinkEventKind::kPeerDied);
        case State::kLeaving:
            return finish(endpoint, slot, LinkEventKind::kUnlinked);
        case State::kVacant:
        case State::kGone:
        case State::kFree:
            return;
    }
}

void LinkStates::leave(LinkEndpoint& endpoint, Rank slot, wire::LeaveReason reason,
                       std::uint8_t repeats, Nanos now) {
    LinkEnd& end = endpoint.slots[slot];
    table_.set_state(endpoint, slot, State::kLeaving);
    end.reason = reason;
    end.left = repeats;
    end.wait = config_.unlink_wait_min;
    end.say_nothing();
    end.says_unlink = true;
    set_time({endpoint.handle, slot}, end, now + end.wait);
    speak({endpoint.handle, slot}, end);
}

void LinkStates::close(LinkEndpoint& endpoint, wire::LeaveReason reason, Nanos now) {
    events_.remove_if([&](const LinkEvent& e) { return e.endpoint == endpoint.handle; });
    for (std::size_t n = 0; n < endpoint.slots.size(); ++n) {
        const auto slot = static_cast<Rank>(n);
        LinkEnd& end = endpoint.slots[slot];
        const bool named = end.alive() && end.theirs != 0;
        if (named && end.state != State::kLeaving) {
            leave(endpoint, slot, reason, config_.unlinks_of_closed, now);
        } else if (end.state == State::kLeaving) {
            end.left = std::min(end.left, config_.unlinks_of_closed);
        } else if (end.state != State::kVacant) {
            table_.vacate(endpoint, slot);
        }
    }
}

void LinkStates::forget_if_over(Handle endpoint) {
    if (!table_.forget_if_over(endpoint)) return;
    std::erase_if(waiting_, [endpoint](const LinkRef& ref) { return ref.endpoint == endpoint; });
}

bool LinkStates::on_verdict(const NodeVerdict& verdict, Nanos now) {
    const auto at_node = table_.index().at_node(verdict.mac);
    const std::vector<NodeLink> there(at_node.begin(), at_node.end());  // ends leave it as they end
    for (const auto& [peer, ref] : there) {
        LinkEndpoint* endpoint = table_.find(ref.endpoint);
        if (endpoint == nullptr) continue;
        const LinkEnd& end = endpoint->slots[ref.slot];
        if (!end.alive() || end.mac != verdict.mac) continue;
        auto reason = wire::LeaveReason::kDied;
        switch (verdict.kind) {
            case NodeVerdict::Kind::kDead:
                break;
            case NodeVerdict::Kind::kRestarted:
                if (end.incarnation == verdict.incarnation) continue;
                break;
            case NodeVerdict::Kind::kGone:
                if (end.peer != verdict.theirs) continue;
                if (end.incarnation == verdict.incarnation) reason = verdict.reason;
                break;
            case NodeVerdict::Kind::kExpelled:
            case NodeVerdict::Kind::kSaysGone:
            case NodeVerdict::Kind::kSaysExpelled:
            case NodeVerdict::Kind::kAsks:
                return false;
        }
        if (end.state == State::kUp && reason == wire::LeaveReason::kDied)
            counters_.add(Counter::peers_dead);
        end_by(*endpoint, ref.slot, reason, now);
        forget_if_over(ref.endpoint);
    }
    return true;
}

bool LinkStates::question(const Mac& node, wire::NodeBody& ping) {
    const LinkRef ref = table_.in_turn(node);
    if (ref.slot == kNoRank) return false;
    LinkEnd& end = *table_.end_of(ref);
    ping.theirs = end.peer;
    if (end.state == State::kUp) {
        end.says_confirm = true;
        speak(ref, end);
    }
    return true;
}

// ------------------------------------------------------------------------------ time

void LinkStates::set_time(const LinkRef& ref, LinkEnd& end, Nanos at) {
    end.at = at;
    timer_ = std::min(timer_, at);
    if (end.waits) return;
    end.waits = true;
    waiting_.push_back(ref);
}

void LinkStates::recompute_timer(Nanos other) noexcept {
    timer_ = other;
    for (const LinkRef& ref : waiting_)
        if (const LinkEnd* end = table_.end_of(ref); end != nullptr)
            timer_ = std::min(timer_, end->at);
}

void LinkStates::tick(LinkEndpoint& endpoint, Rank slot, Nanos now) {
    LinkEnd& end = endpoint.slots[slot];
    const LinkRef ref{endpoint.handle, slot};
    switch (end.state) {
        case State::kCalling:
            if (now >= end.deadline) return fail(endpoint, slot, Err::kTimeout, now);
            end.wait = std::min(end.wait * 2, config_.request_wait_max);
            set_time(ref, end, std::min(now + end.wait, end.deadline));
            end.says_request = true;
            return speak(ref, end);
        case State::kAnswered:
            if (now >= end.deadline) return finish(endpoint, slot, LinkEventKind::kDropped);
            set_time(ref, end, end.deadline);
            if (end.left == 0) return;
            if (--end.left > 0) set_time(ref, end, now + config_.accept_wait);
            end.says_accept = true;
            return speak(ref, end);
        case State::kLeaving:
            if (end.left == 0) return finish(endpoint, slot, LinkEventKind::kUnlinked);
            --end.left;
            end.wait = std::min(end.wait * 2, config_.unlink_wait_max);
            set_time(ref, end, now + end.wait);
            end.says_unlink = true;
            return speak(ref, end);
        case State::kVacant:
        case State::kQueued:
        case State::kUp:
        case State::kGone:
        case State::kFree:
            return;
    }
}

void LinkStates::on_timer(Nanos now) {
    const std::vector<LinkRef> waiting = std::move(waiting_);
    waiting_.clear();
    for (const LinkRef& ref : waiting)
        if (LinkEnd* end = table_.end_of(ref); end != nullptr) end->waits = false;
    for (const LinkRef& ref : waiting) {
        LinkEnd* end = table_.end_of(ref);
        if (end == nullptr || end->waits || end->at == kNever) continue;
        if (end->at > now) {
            set_time(ref, *end, end->at);
        } else {
            end->at = kNever;
            tick(*table_.find(ref.endpoint), ref.slot, now);
        }
    }
    for (const LinkRef& ref : waiting)
        forget_if_over(ref.endpoint);
}

// ------------------------------------------------------------------------------ frames out

void LinkStates::speak(const LinkRef& ref, LinkEnd& end) {
    if (end.due) return;
    end.due = true;
    (end.mac == config_.mac ? local_due_ : due_).push_back(ref);
}

const LinkEnd* LinkStates::take_due(bool local, LinkRef& ref, wire::LinkKind& kind) {
    GrowingRing<LinkRef>& due = local ? local_due_ : due_;
    while (!due.empty()) {
        ref = due.front();
        due.pop_front();
        LinkEnd* end = table_.end_of(ref);
        if (end == nullptr) continue;
        end->due = false;
        if (!end->speaks()) continue;  // over, or said already
        if (end->says_accept) {
            kind = wire::LinkKind::kAccept;
            end->says_accept = false;
        } else if (end->says_request) {
            kind = wire::LinkKind::kRequest;
            end->says_request = false;
        } else if (end->says_confirm) {
            kind = wire::LinkKind::kConfirm;
            end->says_confirm = false;
        } else {
            kind = wire::LinkKind::kUnlink;
            end->says_unlink = false;
        }
        if (end->speaks()) speak(ref, *end);
        return end;
    }
    return nullptr;
}

// ------------------------------------------------------------------------------ invariants

bool LinkStates::all_wait() const {
    bool holds = true;
    table_.for_each([&](const LinkEndpoint& endpoint) {
        for (const LinkEnd& end : endpoint.slots)
            holds = holds && (end.at == kNever || end.waits);
    });
    return holds;
}

void LinkStates::check_invariants() const { ULC_CHECK(all_wait()); }

}  // namespace ulc::jobs
