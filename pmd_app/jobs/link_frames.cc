// SPDX-License-Identifier: BSD-3-Clause
// LINK frames in and out (jobs/links.h): what each kind does in each state.
#include <algorithm>

#include "base/check.h"
#include "jobs/links.h"

namespace ulc::jobs {

// ------------------------------------------------------------------------------ in

void Links::on_frame(const wire::LinkView& view, const Mac& source, Nanos now) {
    take(view, source, now);
    settle_local(now);  // the timer may be early then, for an end that has no time any more
}

void Links::take(const wire::LinkView& view, const Mac& source, Nanos now) {
    if (view.kind == wire::LinkKind::kRequest) return on_request(view, source, now);
    if (view.kind == wire::LinkKind::kWhere) return on_where(view, source, now);
    if (view.kind == wire::LinkKind::kHere) return on_here(view, source, now);
    if (view.to == 0) return on_hint(view, source, now);
    Ends* ends = ends_of(view.to);
    const Ref ref = ends == nullptr ? Ref{0, kNoRank} : find(*ends, source, view.from);
    if (ref.slot == kNoRank) {
        // Nothing here is linked to that endpoint. How one that is not here ended, GONE will say.
        if (view.ours == 0) return;
        if (ends != nullptr || source == config_.mac || view.kind == wire::LinkKind::kUnlink)
            return answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
        return liveness_.unknown_handle(source, view.to, now);
    }
    switch (view.kind) {
        case wire::LinkKind::kAccept:
            on_accept(view, source, *ends, ref, now);
            break;
        case wire::LinkKind::kConfirm:
            on_confirm(view, source, *ends, ref, now);
            break;
        case wire::LinkKind::kRefuse:
            if (ends->slots[ref.slot].state == State::kCalling &&
                ends->slots[ref.slot].ours == view.theirs)
                fail(*ends, ref.slot, view.refused, now);
            break;
        case wire::LinkKind::kUnlink:
            // Not to one that has the peer's id and not ours: that link is here.
            if (ends->slots[ref.slot].theirs == view.ours &&
                ends->slots[ref.slot].ours != view.theirs)
                break;
            answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
            on_unlink(view, *ends, ref, now);
            break;
        case wire::LinkKind::kUnlinked:
            on_unlinked(view, *ends, ref, now);
            break;
        case wire::LinkKind::kRequest:
        case wire::LinkKind::kWhere:
        case wire::LinkKind::kHere:
            break;
    }
    forget_if_over(view.to);
}

/// The node of a link that is not confirmed is not watched: pings would be more than the REQUEST.
/// A peer that has a link here already is answered with that link. If it does not know that one any
/// more it says so, and its next REQUEST makes another.
void Links::on_request(const wire::LinkView& view, const Mac& source, Nanos now) {
    Ends* ends = ends_of(view.to);
    if (ends == nullptr || ends->closed) {
        if (source != config_.mac) liveness_.unknown_handle(source, view.to, now);
        if (source == config_.mac) answer(view, source, wire::LinkKind::kRefuse, Err::kClosed, now);
        return;
    }
    const bool proven = wire::proves_key(view, source, ends->key);
    if (!proven) return counters_.add(Counter::drop_link_key);
    const auto refuse = [&](Err why) {
        counters_.add(Counter::refused_links);
        answer(view, source, wire::LinkKind::kRefuse, why, now);
    };
    if (view.version != wire::kProtocolVersion) return refuse(Err::kVersion);
    if (view.profile != ends->profile) return refuse(Err::kProfile);
    Ref ref = find(*ends, source, view.from);
    if (ref.slot == kNoRank) {
        const Result<Rank> slot = take_slot(*ends, source, view.from, view.incarnation);
        if (!slot.ok()) return refuse(Err::kLimit);
        ref = {ends->handle, slot.value()};
        ends->slots[ref.slot].state = State::kQueued;
        ++ends->queued;
    }
    LinkEnd& end = ends->slots[ref.slot];
    if (end.state == State::kLeaving) return;
    if (end.state == State::kQueued) {  // new, or a call that has not begun
        --ends->queued;
        end.state = State::kAnswered;
        end.left = config_.accept_repeats;
        end.deadline = now + config_.unconfirmed_life;
        set_time(ref, end, now + config_.accept_wait);
    }
    const bool opens = end.state == State::kAnswered && end.theirs == 0;
    if (opens || end.state == State::kCalling) {
        end.theirs = view.ours;
        end.self = view.slot;
        end.mtu = view.attributes.mtu;
        end.out = view.first_seq;
    }
    if (opens) push(LinkEventKind::kOpened, ends->handle, ref.slot);
    end.says_accept = true;
    speak(ref, end);
}

void Links::on_accept(const wire::LinkView& view, const Mac& source, Ends& ends, const Ref& ref,
                      Nanos now) {
    LinkEnd& end = ends.slots[ref.slot];
    const bool ours = view.theirs == end.ours;
    if (end.state == State::kCalling) {
        if (!wire::proves_key(view, source, end.key)) return counters_.add(Counter::drop_link_key);
        if (ours) {
            end.theirs = view.ours;
            end.self = view.slot;
            end.mtu = view.attributes.mtu;
            end.out = view.first_seq;
            confirmed(ends, ref.slot, now);
        } else {  // an earlier link of ours is there still
            answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
            set_time(ref, end, now + config_.request_wait_min);
            return;
        }
    }
    if (ours && end.theirs == view.ours) {
        if (end.state != State::kUp) return;
        end.says_confirm = true;
        speak(ref, end);
    } else if (end.theirs != view.ours) {
        answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
    }
}

void Links::on_confirm(const wire::LinkView& view, const Mac& source, Ends& ends, const Ref& ref,
                       Nanos now) {
    LinkEnd& end = ends.slots[ref.slot];
    if (view.theirs != end.ours || view.ours != end.theirs) {
        if (view.ours != end.theirs) answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
        return;
    }
    if (end.state == State::kAnswered || end.state == State::kCalling)
        confirmed(ends, ref.slot, now);
}

void Links::on_unlink(const wire::LinkView& view, Ends& ends, const Ref& ref, Nanos now) {
    LinkEnd& end = ends.slots[ref.slot];
    if (view.theirs != end.ours || view.ours != end.theirs) return;
    if (end.state == State::kQueued || end.state == State::kCalling) {
        end.theirs = 0;  // the call goes on
        end.says_accept = false;
        return;
    }
    end_by(ends, ref.slot, view.left, now);
}

void Links::on_unlinked(const wire::LinkView& view, Ends& ends, const Ref& ref, Nanos now) {
    LinkEnd& end = ends.slots[ref.slot];
    if (view.theirs != end.ours) return;
    if (end.state == State::kQueued || end.state == State::kCalling) return;
    end_by(ends, ref.slot, wire::LeaveReason::kDied, now);
}

void Links::on_hint(const wire::LinkView& view, const Mac& source, Nanos now) {
    if (!has_peer(source, view.from)) return;
    if (!answers_limit_.take(now, config_.answers_per_second))
        return counters_.add(Counter::answers_limited);
    const NodeLinks& links = nodes_.find(source)->second;
    for (auto at = first_of(links, view.from, 0); at != links.end() && at->peer == view.from;
         ++at) {
        const Ref ref = at->ref;
        LinkEnd& end = *end_of(ref);
        if (end.state != State::kUp || end.self != view.slot) continue;
        end.says_confirm = true;
        speak(ref, end);
    }
}

void Links::unknown_slot(Handle endpoint, Rank slot, const Mac& source, Nanos now) {
    if ((source.octets[0] & 1U) != 0 || source == config_.mac || slot == kNoRank) return;
    if (!answers_limit_.take(now, config_.answers_per_second)) return;
    wire::LinkBody body{};
    body.kind = wire::LinkKind::kUnlinked;
    body.version = wire::kProtocolVersion;
    body.incarnation = config_.incarnation;
    body.from = endpoint;
    body.slot = slot;
    queue_answer({source, body});
}

// ------------------------------------------------------------------------------ out

void Links::speak(const Ref& ref, LinkEnd& end) {
    if (end.due) return;
    end.due = true;
    (end.mac == config_.mac ? local_due_ : due_).push_back(ref);
}

void Links::answer(const wire::LinkView& view, const Mac& to, wire::LinkKind kind, Err reason,
                   Nanos now) {
    const bool local = to == config_.mac;
    if (!local && !answers_limit_.take(now, config_.answers_per_second))
        return counters_.add(Counter::answers_limited);
    wire::LinkBody body{};
    body.kind = kind;
    body.reason = static_cast<std::uint8_t>(reason);
    body.version = wire::kProtocolVersion;
    body.incarnation = config_.incarnation;
    body.theirs = view.ours;
    body.from = view.to;
    body.to = view.from;
    if (local) return local_answers_.push_back(body);
    queue_answer({to, body});
}

void Links::queue_answer(const Answer& answer) {
    if (answers_.size() == kLinkAnswersMax)  // the sender repeats its frame
        return counters_.add(Counter::answers_limited);
    answers_.push_back(answer);
}

wire::LinkBody Links::body_of(const Ends& ends, Rank slot, wire::LinkKind kind) const {
    const LinkEnd& end = ends.slots[slot];
    wire::LinkBody body{};
    body.kind = kind;
    body.version = wire::kProtocolVersion;
    body.incarnation = config_.incarnation;
    body.ours = end.ours;
    body.theirs = kind == wire::LinkKind::kRequest ? wire::LinkId{0} : end.theirs;
    body.from = ends.handle;
    body.to = end.peer;
    if (kind == wire::LinkKind::kUnlink) body.reason = static_cast<std::uint8_t>(end.reason);
    if (kind == wire::LinkKind::kRequest || kind == wire::LinkKind::kAccept) {
        body.slot = slot;
        body.first_seq = end.in.value;
    }
    return body;
}

std::size_t Links::next_tx(std::byte* body, Mac& to) {
    if (!answers_.empty()) {
        const Answer sent = answers_.back();
        answers_.pop_back();
        to = sent.to;
        // HERE alone has a tag. One of an endpoint that was forgotten since proves nothing.
        const Ends* ends = ends_of(sent.body.from);
        return wire::put_link(body, sent.body, {}, ends == nullptr ? wire::LinkKey{} : ends->key,
                              config_.mac);
    }
    if (lookups_due_ > 0) return put_where(body, to);
    return compose(due_, body, to);
}

std::size_t Links::compose(GrowingRing<Ref>& due, std::byte* body, Mac& to) {
    while (!due.empty()) {
        const Ref ref = due.front();
        due.pop_front();
        LinkEnd* end = end_of(ref);
        if (end == nullptr) continue;
        end->due = false;
        if (!end->speaks()) continue;  // over, or said already
        wire::LinkKind kind{};
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
        to = end->mac;
        const Ends& ends = *ends_of(ref.endpoint);
        const bool requests = kind == wire::LinkKind::kRequest;
        const bool makes = requests || kind == wire::LinkKind::kAccept;
        const wire::AttributeOctets own =
            makes ? wire::octets_of(config_.attributes) : wire::AttributeOctets{};
        return wire::put_link(body, body_of(ends, ref.slot, kind), ends.profile,
                              requests ? end->key : ends.key, config_.mac, wire::span_of(own));
    }
    return 0;
}

/// Ends, because each frame makes at most one answer, and answers make none.
void Links::settle_local(Nanos now) {
    std::byte body[wire::kLinkOctetsMax];
    Mac to;
    while (!local_due_.empty() || !local_answers_.empty()) {
        std::size_t octets = 0;
        if (!local_answers_.empty()) {
            octets = wire::put_link(body, local_answers_.front(), {}, {}, config_.mac);
            local_answers_.pop_front();
        } else {
            octets = compose(local_due_, body, to);
        }
        wire::LinkView view;
        if (octets == 0) continue;
        ULC_CHECK(wire::parse_link(body, octets, view));
        take(view, config_.mac, now);
    }
}

}  // namespace ulc::jobs
