// SPDX-License-Identifier: BSD-3-Clause
// Slots, calls and ends of links. link_frames.cc takes and makes their frames (jobs/links.h).
#include "jobs/links.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::jobs {

Links::Links(const LinksConfig& config, Liveness& liveness, Counters& counters)
    : config_(config), liveness_(liveness), counters_(counters), tokens_(config.seed) {}

// ------------------------------------------------------------------------------ lookups

Links::Ends* Links::ends_of(Handle endpoint) const noexcept {
    const auto at = endpoints_.find(endpoint);
    return at == endpoints_.end() ? nullptr : at->second.get();
}

LinkEnd* Links::end_of(const Ref& ref) const noexcept {
    Ends* ends = ends_of(ref.endpoint);
    return ends == nullptr || ref.slot >= ends->slots.size() ? nullptr : &ends->slots[ref.slot];
}

bool Links::has(Handle endpoint) const noexcept {
    const Ends* ends = ends_of(endpoint);
    return ends != nullptr && !ends->closed;
}

std::string_view Links::profile(Handle endpoint) const noexcept {
    const Ends* ends = ends_of(endpoint);
    return ends == nullptr ? std::string_view() : ends->profile;
}

wire::LinkAddress Links::address(Handle endpoint) const noexcept {
    const Ends* ends = ends_of(endpoint);
    ULC_CHECK(ends != nullptr && !ends->closed);
    wire::LinkAddress address;
    address.mac = config_.mac;
    address.handle = endpoint;
    address.incarnation = config_.incarnation;
    address.key = ends->key;
    return address;
}

const LinkEnd* Links::at(Handle endpoint, Rank slot) const noexcept {
    return end_of({endpoint, slot});
}

wire::LinkId Links::new_id() noexcept { return tokens_.next(); }

void Links::push(LinkEventKind kind, Handle endpoint, Rank slot, Err error) {
    events_.push_back({kind, endpoint, slot, error, 0});
}

bool Links::poll_event(LinkEvent& out) {
    if (events_.empty()) return false;
    out = events_.front();
    events_.pop_front();
    return true;
}

// ------------------------------------------------------------------------------ slots

/// The vacant slot that was vacant for longest, as far as they are taken in turn.
Result<Rank> Links::take_slot(Ends& ends, const Mac& mac, Handle peer, std::uint32_t incarnation) {
    const std::size_t size = ends.slots.size();
    if (ends.used == size) return Err::kLimit;
    std::size_t slot = ends.next;
    while (ends.slots[slot].state != State::kVacant)
        slot = (slot + 1) % size;
    ends.next = (slot + 1) % size;
    ++ends.used;
    LinkEnd& end = ends.slots[slot];
    end = LinkEnd{};
    end.mac = mac;
    end.peer = peer;
    end.incarnation = incarnation;
    end.ours = new_id();
    end.in = Seq{static_cast<std::uint32_t>(tokens_.next())};
    list({ends.handle, static_cast<Rank>(slot)});
    return static_cast<Rank>(slot);
}

bool Links::watch(LinkEnd& end, Nanos now) {
    if (end.mac == config_.mac) return true;
    end.watched = liveness_.watch(end.mac, end.incarnation, now);
    return end.watched;
}

void Links::unwatch(LinkEnd& end) {
    if (end.watched) liveness_.unwatch(end.mac);
    end.watched = false;
}

void Links::detach(Ends& ends, Rank slot) {
    LinkEnd& end = ends.slots[slot];
    unlist({ends.handle, slot});
    unwatch(end);
    if (end.state == State::kQueued) --ends.queued;
    if (end.state == State::kCalling) --ends.calls;
    end.at = kNever;
    end.say_nothing();
}

void Links::vacate(Ends& ends, Rank slot) {
    LinkEnd& end = ends.slots[slot];
    if (end.alive()) detach(ends, slot);
    const bool due = end.due;  // its entries in the lists are still there
    const bool waits = end.waits;
    end = LinkEnd{};
    end.due = due;
    end.waits = waits;
    --ends.used;
}

/// The link is over; its slot is the endpoint's until release().
void Links::finish(Ends& ends, Rank slot, LinkEventKind how) {
    if (ends.closed) return vacate(ends, slot);
    detach(ends, slot);
    ends.slots[slot].state = how == LinkEventKind::kUnlinked ? State::kFree : State::kGone;
    push(how, ends.handle, slot);
}

void Links::fail(Ends& ends, Rank slot, Err error, Nanos now) {
    vacate(ends, slot);
    push(LinkEventKind::kFailed, ends.handle, slot, error);
    start_calls(ends, now);
}

/// The peer left or died, or holds no such link.
void Links::end_by(Ends& ends, Rank slot, wire::LeaveReason reason, Nanos now) {
    const bool left = reason == wire::LeaveReason::kLeft;
    switch (ends.slots[slot].state) {
        case State::kQueued:
        case State::kCalling:
            return fail(ends, slot, left ? Err::kPeerLeft : Err::kPeerDied, now);
        case State::kAnswered:
            return finish(ends, slot, LinkEventKind::kDropped);
        case State::kUp:
            return finish(ends, slot, left ? LinkEventKind::kPeerLeft : LinkEventKind::kPeerDied);
        case State::kLeaving:
            return finish(ends, slot, LinkEventKind::kUnlinked);
        case State::kVacant:
        case State::kGone:
        case State::kFree:
            return;
    }
}

void Links::confirmed(Ends& ends, Rank slot, Nanos now) {
    LinkEnd& end = ends.slots[slot];
    const bool called = end.state == State::kCalling;
    if (!called && !watch(end, now)) return finish(ends, slot, LinkEventKind::kDropped);
    if (called) {
        --ends.calls;
        push(LinkEventKind::kOpened, ends.handle, slot);
    }
    end.state = State::kUp;
    end.at = kNever;
    counters_.add(Counter::links_made);
    push(LinkEventKind::kConfirmed, ends.handle, slot);
    if (called) start_calls(ends, now);
}

void Links::leave(Ends& ends, Rank slot, wire::LeaveReason reason, std::uint8_t repeats,
                  Nanos now) {
    LinkEnd& end = ends.slots[slot];
    end.state = State::kLeaving;
    end.reason = reason;
    end.left = repeats;
    end.wait = config_.unlink_wait_min;
    end.say_nothing();
    end.says_unlink = true;
    set_time({ends.handle, slot}, end, now + end.wait);
    speak({ends.handle, slot}, end);
}

// ------------------------------------------------------------------------------ local endpoints

void Links::open(Handle endpoint, const wire::LinkKey& key, std::uint16_t slots,
                 std::string_view profile) {
    ULC_CHECK(ends_of(endpoint) == nullptr && slots > 0 && slots < kNoRank && !key.zero());
    auto ends = std::make_unique<Ends>();
    ends->handle = endpoint;
    ends->key = key;
    ends->profile = profile;
    ends->slots.resize(slots);
    endpoints_.emplace(endpoint, std::move(ends));
}

void Links::close(Handle endpoint, wire::LeaveReason reason, Nanos now) {
    Ends* ends = ends_of(endpoint);
    if (ends == nullptr || ends->closed) return;
    ends->closed = true;
    ++closing_;
    withdraw(*ends);
    liveness_.ended(endpoint, reason);
    events_.remove_if([endpoint](const LinkEvent& e) { return e.endpoint == endpoint; });
    for (std::size_t n = 0; n < ends->slots.size(); ++n) {
        const auto slot = static_cast<Rank>(n);
        LinkEnd& end = ends->slots[slot];
        const bool named = end.alive() && end.theirs != 0;
        if (named && end.state != State::kLeaving) {
            if (end.state == State::kCalling) --ends->calls;
            leave(*ends, slot, reason, config_.unlinks_of_closed, now);
        } else if (end.state == State::kLeaving) {
            end.left = std::min(end.left, config_.unlinks_of_closed);
        } else if (end.state != State::kVacant) {
            vacate(*ends, slot);
        }
    }
    settle_local(now);
    forget_if_over(endpoint);
    recompute_timer();
}

void Links::forget_if_over(Handle endpoint) {
    const Ends* ends = ends_of(endpoint);
    if (ends == nullptr || !ends->closed || ends->used > 0) return;
    --closing_;
    std::erase_if(waiting_, [endpoint](const Ref& ref) { return ref.endpoint == endpoint; });
    endpoints_.erase(endpoint);
}

Result<Rank> Links::call(Handle endpoint, const wire::LinkAddress& address, Nanos deadline,
                         Nanos now) {
    Ends* ends = ends_of(endpoint);
    ULC_CHECK(ends != nullptr && !ends->closed);
    const Result<Rank> slot = queue_call(*ends, address, deadline);
    if (!slot.ok()) return slot.error();
    start_calls(*ends, now);
    settle_local(now);
    recompute_timer();
    return slot.value();
}

Result<Rank> Links::queue_call(Ends& ends, const wire::LinkAddress& address, Nanos deadline) {
    if (const Err error = wire::judge_address(address); error != Err::kOk) return error;
    if (address.mac == config_.mac && address.handle == ends.handle) return Err::kInvalid;
    if (const Ref known = find(ends, address.mac, address.handle); known.slot != kNoRank) {
        const LinkEnd& end = ends.slots[known.slot];
        if (end.state == State::kLeaving) return Err::kAgain;
        if (end.incarnation == address.incarnation) return known.slot;
    }
    const Result<Rank> slot = take_slot(ends, address.mac, address.handle, address.incarnation);
    if (!slot.ok()) return slot.error();
    LinkEnd& end = ends.slots[slot.value()];
    end.state = State::kQueued;
    end.key = address.key;
    end.deadline = deadline;
    ++ends.queued;
    return slot.value();
}

void Links::start_calls(Ends& ends, Nanos now) {
    for (std::size_t n = 0; n < ends.slots.size() && ends.queued > 0 && ends.calls < kCallsMax;
         ++n) {
        LinkEnd& end = ends.slots[n];
        if (end.state != State::kQueued) continue;
        const auto slot = static_cast<Rank>(n);
        --ends.queued;
        ++ends.calls;
        end.state = State::kCalling;
        if (!liveness_.has_room_for_calls() || !watch(end, now)) {
            vacate(ends, slot);
            push(LinkEventKind::kFailed, ends.handle, slot, Err::kLimit);
            continue;
        }
        end.wait = config_.request_wait_min;
        end.says_request = true;
        set_time({ends.handle, slot}, end, now + end.wait);
        speak({ends.handle, slot}, end);
    }
}

void Links::unlink(Handle endpoint, Rank slot, Nanos now) {
    Ends* ends = ends_of(endpoint);
    ULC_CHECK(ends != nullptr && !ends->closed && slot < ends->slots.size());
    if (ends->slots[slot].state != State::kUp) return;
    leave(*ends, slot, wire::LeaveReason::kLeft, config_.unlinks_max, now);
    settle_local(now);
    recompute_timer();
}

void Links::release(Handle endpoint, Rank slot) {
    Ends* ends = ends_of(endpoint);
    if (ends == nullptr || ends->closed) return;
    const State state = ends->slots[slot].state;
    ULC_CHECK(state == State::kGone || state == State::kFree);
    vacate(*ends, slot);
}

void Links::confirm(Handle endpoint, Rank slot, Nanos now) {
    Ends* ends = ends_of(endpoint);
    if (ends == nullptr || ends->slots[slot].state != State::kAnswered) return;
    confirmed(*ends, slot, now);
    recompute_timer();
}

void Links::peer_died(Handle endpoint, Rank slot, Nanos now) {
    Ends* ends = ends_of(endpoint);
    if (ends == nullptr || ends->closed || slot >= ends->slots.size()) return;
    end_by(*ends, slot, wire::LeaveReason::kDied, now);
    recompute_timer();
}

// ------------------------------------------------------------------------------ nodes

void Links::on_verdict(const NodeVerdict& verdict, Nanos now) {
    const auto node = nodes_.find(verdict.mac);
    if (node == nodes_.end()) return;
    const NodeLinks there = node->second;  // ends leave the list as they end
    for (const auto& [peer, ref] : there) {
        Ends* ends = ends_of(ref.endpoint);
        if (ends == nullptr) continue;
        const LinkEnd& end = ends->slots[ref.slot];
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
                return;
        }
        if (end.state == State::kUp && reason == wire::LeaveReason::kDied)
            counters_.add(Counter::peers_dead);
        end_by(*ends, ref.slot, reason, now);
        forget_if_over(ref.endpoint);
    }
    recompute_timer();
}

bool Links::question(const Mac& mac, wire::NodeBody& ping) {
    const auto node = nodes_.find(mac);
    if (node == nodes_.end()) return false;
    const Ref ref = node->second[turn_++ % node->second.size()].ref;
    LinkEnd& end = *end_of(ref);
    ping.theirs = end.peer;
    if (end.state == State::kUp) {
        end.says_confirm = true;
        speak(ref, end);
    }
    return true;
}

// ------------------------------------------------------------------------------ time

void Links::set_time(const Ref& ref, LinkEnd& end, Nanos at) {
    end.at = at;
    timer_ = std::min(timer_, at);
    if (end.waits) return;
    end.waits = true;
    waiting_.push_back(ref);
}

void Links::recompute_timer() noexcept {
    timer_ = kNever;
    for (const Lookup& lookup : lookups_)
        timer_ = std::min(timer_, lookup.at);
    for (const Ref& ref : waiting_)
        if (const LinkEnd* end = end_of(ref); end != nullptr) timer_ = std::min(timer_, end->at);
}

/// The end's time has come.
void Links::tick(Ends& ends, Rank slot, Nanos now) {
    LinkEnd& end = ends.slots[slot];
    const Ref ref{ends.handle, slot};
    switch (end.state) {
        case State::kCalling:
            if (now >= end.deadline) return fail(ends, slot, Err::kTimeout, now);
            end.wait = std::min(end.wait * 2, config_.request_wait_max);
            set_time(ref, end, std::min(now + end.wait, end.deadline));
            end.says_request = true;
            return speak(ref, end);
        case State::kAnswered:
            if (now >= end.deadline) return finish(ends, slot, LinkEventKind::kDropped);
            set_time(ref, end, end.deadline);
            if (end.left == 0) return;
            if (--end.left > 0) set_time(ref, end, now + config_.accept_wait);
            end.says_accept = true;
            return speak(ref, end);
        case State::kLeaving:
            if (end.left == 0) return finish(ends, slot, LinkEventKind::kUnlinked);
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

void Links::on_timer(Nanos now) {
    const std::vector<Ref> waiting = std::move(waiting_);
    waiting_.clear();
    for (const Ref& ref : waiting)
        if (LinkEnd* end = end_of(ref); end != nullptr) end->waits = false;
    for (const Ref& ref : waiting) {
        LinkEnd* end = end_of(ref);
        if (end == nullptr || end->waits || end->at == kNever) continue;
        Ends& ends = *ends_of(ref.endpoint);
        if (end->at > now) {
            set_time(ref, *end, end->at);
        } else {
            end->at = kNever;
            tick(ends, ref.slot, now);
        }
    }
    for (const Ref& ref : waiting)
        forget_if_over(ref.endpoint);
    look_again(now);
    settle_local(now);
    recompute_timer();
}

void Links::check_invariants() const {
    std::size_t alive = 0;
    std::size_t published = 0;
    for (const auto& [handle, ends] : endpoints_) {
        std::size_t calls = 0;
        std::size_t queued = 0;
        std::size_t used = 0;
        for (const LinkEnd& end : ends->slots) {
            used += end.state != State::kVacant ? 1 : 0;
            calls += end.state == State::kCalling ? 1 : 0;
            queued += end.state == State::kQueued ? 1 : 0;
            alive += end.alive() ? 1 : 0;
            ULC_CHECK(!end.alive() || end.ours != 0);
            ULC_CHECK(end.alive() || !end.watched);
            ULC_CHECK(end.at == kNever || end.waits);
        }
        ULC_CHECK(handle == ends->handle && calls == ends->calls && used == ends->used);
        ULC_CHECK(queued == ends->queued && calls <= kCallsMax);
        published += ends->published ? 1 : 0;
        ULC_CHECK(!ends->published || published_as(wire::lookup_of(ends->key)) == ends.get());
    }
    ULC_CHECK(published == published_.size());
    const auto due = static_cast<std::size_t>(std::ranges::count_if(lookups_, &Lookup::due));
    ULC_CHECK(due == lookups_due_);
    ULC_CHECK(std::ranges::all_of(lookups_, [this](const Lookup& l) { return has(l.endpoint); }));
    for (const auto& [mac, there] : nodes_) {
        ULC_CHECK(!there.empty());
        alive -= there.size();
        for (const auto& [peer, ref] : there) {
            const LinkEnd& end = *end_of(ref);
            ULC_CHECK(end.alive() && end.mac == mac && end.peer == peer);
        }
        ULC_CHECK(std::ranges::is_sorted(there, {}, place_of));
    }
    ULC_CHECK(alive == 0);
}

}  // namespace ulc::jobs
