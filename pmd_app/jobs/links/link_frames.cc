// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/links/link_frames.h"

#include "base/check.h"

namespace ulc::jobs {

using State = LinkEnd::State;

LinkFrames::LinkFrames(const LinksConfig& config, LinkTable& table, LinkStates& ends,
                       LinkNames& names, Liveness& liveness, Counters& counters)
    : config_(config),
      table_(table),
      ends_(ends),
      names_(names),
      liveness_(liveness),
      counters_(counters) {}

// ------------------------------------------------------------------------------ in

void LinkFrames::on_frame(const wire::LinkView& view, const Mac& source, Nanos now) {
    take(view, source, now);
    settle_local(now);  // the timer may be early then, for an end that has no time any more
}

void LinkFrames::take(const wire::LinkView& view, const Mac& source, Nanos now) {
    if (view.kind == wire::LinkKind::kRequest) return on_request(view, source, now);
    if (view.kind == wire::LinkKind::kWhere) return on_where(view, source, now);
    if (view.kind == wire::LinkKind::kHere) {
        if (const auto found = names_.on_here(view, source)) ends_.call_found(*found, now);
        return;
    }
    if (view.to == 0) return on_hint(view, source, now);
    LinkEndpoint* endpoint = table_.find(view.to);
    const LinkRef ref =
        endpoint == nullptr ? LinkRef{} : table_.index().find(endpoint->handle, source, view.from);
    if (ref.slot == kNoRank) {
        // Nothing here is linked to that endpoint. How one that is not here ended, GONE will say.
        if (view.ours == 0) return;
        if (endpoint != nullptr || source == config_.mac || view.kind == wire::LinkKind::kUnlink)
            return answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
        return liveness_.unknown_handle(source, view.to, now);
    }
    const LinkEnd& end = endpoint->slots[ref.slot];
    switch (view.kind) {
        case wire::LinkKind::kAccept:
            on_accept(view, source, *endpoint, ref, now);
            break;
        case wire::LinkKind::kConfirm:
            on_confirm(view, source, *endpoint, ref, now);
            break;
        case wire::LinkKind::kRefuse:
            if (end.state == State::kCalling && end.ours == view.theirs)
                ends_.fail(*endpoint, ref.slot, view.refused, now);
            break;
        case wire::LinkKind::kUnlink:
            // Not to one that has the peer's id and not ours: that link is here.
            if (end.theirs == view.ours && end.ours != view.theirs) break;
            answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
            on_unlink(view, *endpoint, ref, now);
            break;
        case wire::LinkKind::kUnlinked:
            on_unlinked(view, *endpoint, ref, now);
            break;
        case wire::LinkKind::kRequest:
        case wire::LinkKind::kWhere:
        case wire::LinkKind::kHere:
            break;
    }
    ends_.forget_if_over(view.to);
}

/// The node of a link that is not confirmed is not watched: pings would be more than the REQUEST.
/// A peer that has a link here already is answered with that link. If it does not know that one any
/// more it says so, and its next REQUEST makes another.
void LinkFrames::on_request(const wire::LinkView& view, const Mac& source, Nanos now) {
    LinkEndpoint* endpoint = table_.find(view.to);
    if (endpoint == nullptr || endpoint->closed) {
        if (source != config_.mac) liveness_.unknown_handle(source, view.to, now);
        if (source == config_.mac) answer(view, source, wire::LinkKind::kRefuse, Err::kClosed, now);
        return;
    }
    const bool proven = wire::proves_key(view, source, endpoint->key);
    if (!proven) return counters_.add(Counter::drop_link_key);
    const auto refuse = [&](Err why) {
        counters_.add(Counter::refused_links);
        answer(view, source, wire::LinkKind::kRefuse, why, now);
    };
    if (view.version != wire::kProtocolVersion) return refuse(Err::kVersion);
    if (view.profile != endpoint->profile) return refuse(Err::kProfile);
    LinkRef ref = table_.index().find(endpoint->handle, source, view.from);
    const bool is_new = ref.slot == kNoRank;
    if (is_new) {
        const Result<Rank> slot = table_.take_slot(*endpoint, source, view.from, view.incarnation);
        if (!slot.ok()) return refuse(Err::kLimit);
        ref = {endpoint->handle, slot.value()};
    }
    LinkEnd& end = endpoint->slots[ref.slot];
    if (end.state == State::kLeaving) return;
    // A call that has not begun is answered as well.
    if (is_new || end.state == State::kQueued) ends_.answer_call(*endpoint, ref.slot, now);
    const bool opens = end.state == State::kAnswered && end.theirs == 0;
    if (opens || end.state == State::kCalling) ends_.take_peer(*endpoint, ref.slot, view);
    end.says_accept = true;
    ends_.speak(ref, end);
}

void LinkFrames::on_accept(const wire::LinkView& view, const Mac& source, LinkEndpoint& endpoint,
                           const LinkRef& ref, Nanos now) {
    LinkEnd& end = endpoint.slots[ref.slot];
    const bool ours = view.theirs == end.ours;
    if (end.state == State::kCalling) {
        if (!wire::proves_key(view, source, end.key)) return counters_.add(Counter::drop_link_key);
        if (ours) {
            ends_.take_peer(endpoint, ref.slot, view);
            ends_.confirmed(endpoint, ref.slot, now);
        } else {  // an earlier link of ours is there still
            answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
            ends_.set_time(ref, end, now + config_.request_wait_min);
            return;
        }
    }
    if (ours && end.theirs == view.ours) {
        if (end.state != State::kUp) return;
        end.says_confirm = true;
        ends_.speak(ref, end);
    } else if (end.theirs != view.ours) {
        answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
    }
}

void LinkFrames::on_confirm(const wire::LinkView& view, const Mac& source, LinkEndpoint& endpoint,
                            const LinkRef& ref, Nanos now) {
    const LinkEnd& end = endpoint.slots[ref.slot];
    if (view.theirs != end.ours || view.ours != end.theirs) {
        if (view.ours != end.theirs) answer(view, source, wire::LinkKind::kUnlinked, Err::kOk, now);
        return;
    }
    if (end.state == State::kAnswered || end.state == State::kCalling)
        ends_.confirmed(endpoint, ref.slot, now);
}

void LinkFrames::on_unlink(const wire::LinkView& view, LinkEndpoint& endpoint, const LinkRef& ref,
                           Nanos now) {
    LinkEnd& end = endpoint.slots[ref.slot];
    if (view.theirs != end.ours || view.ours != end.theirs) return;
    if (end.state == State::kQueued || end.state == State::kCalling) {
        end.theirs = 0;  // the call goes on
        end.says_accept = false;
        return;
    }
    ends_.end_by(endpoint, ref.slot, view.left, now);
}

void LinkFrames::on_unlinked(const wire::LinkView& view, LinkEndpoint& endpoint, const LinkRef& ref,
                             Nanos now) {
    const LinkEnd& end = endpoint.slots[ref.slot];
    if (view.theirs != end.ours) return;
    if (end.state == State::kQueued || end.state == State::kCalling) return;
    ends_.end_by(endpoint, ref.slot, wire::LeaveReason::kDied, now);
}

void LinkFrames::on_hint(const wire::LinkView& view, const Mac& source, Nanos now) {
    if (!table_.index().has_peer(source, view.from) || !may_answer(now)) return;
    for (const NodeLink& link : table_.index().of_peer(source, view.from)) {
        LinkEnd& end = *table_.end_of(link.ref);
        if (end.state != State::kUp || end.self != view.slot) continue;
        end.says_confirm = true;
        ends_.speak(link.ref, end);
    }
}

void LinkFrames::on_where(const wire::LinkView& view, const Mac& source, Nanos now) {
    const LinkNames::Published* here = names_.published_as(view.theirs);
    if (here == nullptr) return;
    if (!wire::proves_key(view, source, here->key)) return counters_.add(Counter::drop_link_key);
    if (!may_answer(now)) return;
    wire::LinkBody body = body_of(wire::LinkKind::kHere);
    body.theirs = view.ours;
    body.from = here->endpoint;
    body.to = view.from;
    queue_answer({source, body});
}

void LinkFrames::unknown_slot(Handle endpoint, Rank slot, const Mac& source, Nanos now) {
    if ((source.octets[0] & 1U) != 0 || source == config_.mac || slot == kNoRank) return;
    if (!answers_limit_.take(now, config_.answers_per_second)) return;
    wire::LinkBody body = body_of(wire::LinkKind::kUnlinked);
    body.from = endpoint;
    body.slot = slot;
    queue_answer({source, body});
}

// ------------------------------------------------------------------------------ out

wire::LinkBody LinkFrames::body_of(wire::LinkKind kind) const noexcept {
    wire::LinkBody body{};
    body.kind = kind;
    body.version = wire::kProtocolVersion;
    body.incarnation = config_.incarnation;
    return body;
}

wire::LinkBody LinkFrames::body_of(const LinkEnd& end, const LinkRef& ref,
                                   wire::LinkKind kind) const noexcept {
    wire::LinkBody body = body_of(kind);
    body.ours = end.ours;
    body.theirs = kind == wire::LinkKind::kRequest ? wire::LinkId{0} : end.theirs;
    body.from = ref.endpoint;
    body.to = end.peer;
    if (kind == wire::LinkKind::kUnlink) body.reason = static_cast<std::uint8_t>(end.reason);
    if (kind == wire::LinkKind::kRequest || kind == wire::LinkKind::kAccept) {
        body.slot = ref.slot;
        body.first_seq = end.in.value;
    }
    return body;
}

bool LinkFrames::may_answer(Nanos now) noexcept {
    if (answers_limit_.take(now, config_.answers_per_second)) return true;
    counters_.add(Counter::answers_limited);
    return false;
}

void LinkFrames::answer(const wire::LinkView& view, const Mac& to, wire::LinkKind kind, Err reason,
                        Nanos now) {
    const bool local = to == config_.mac;
    if (!local && !may_answer(now)) return;
    wire::LinkBody body = body_of(kind);
    body.reason = static_cast<std::uint8_t>(reason);
    body.theirs = view.ours;
    body.from = view.to;
    body.to = view.from;
    if (local) return local_answers_.push_back(body);
    queue_answer({to, body});
}

void LinkFrames::queue_answer(const Answer& answer) {
    if (answers_.size() == kLinkAnswersMax)  // the sender repeats its frame
        return counters_.add(Counter::answers_limited);
    answers_.push_back(answer);
}

std::size_t LinkFrames::next_tx(std::byte* body, Mac& to) {
    if (!answers_.empty()) {
        const Answer sent = answers_.back();
        answers_.pop_back();
        to = sent.to;
        // HERE alone has a tag. One of an endpoint that was forgotten since proves nothing.
        const LinkEndpoint* endpoint = table_.find(sent.body.from);
        return wire::put_link(body, sent.body, {},
                              endpoint == nullptr ? wire::LinkKey{} : endpoint->key, config_.mac);
    }
    if (names_.has_tx()) return names_.put_where(body, to);
    return put_due(false, body, to);
}

std::size_t LinkFrames::put_due(bool local, std::byte* body, Mac& to) {
    LinkRef ref;
    wire::LinkKind kind{};
    const LinkEnd* end = ends_.take_due(local, ref, kind);
    if (end == nullptr) return 0;
    to = end->mac;
    const LinkEndpoint& endpoint = *table_.find(ref.endpoint);
    const bool requests = kind == wire::LinkKind::kRequest;
    const bool makes = requests || kind == wire::LinkKind::kAccept;
    const wire::AttributeOctets own =
        makes ? wire::octets_of(config_.attributes) : wire::AttributeOctets{};
    return wire::put_link(body, body_of(*end, ref, kind), endpoint.profile,
                          requests ? end->key : endpoint.key, config_.mac, wire::span_of(own));
}

/// Ends, because each frame makes at most one answer, and answers make none.
void LinkFrames::settle_local(Nanos now) {
    std::byte body[wire::kLinkOctetsMax];
    Mac to;
    while (ends_.has_due(true) || !local_answers_.empty()) {
        std::size_t octets = 0;
        if (!local_answers_.empty()) {
            octets = wire::put_link(body, local_answers_.front(), {}, {}, config_.mac);
            local_answers_.pop_front();
        } else {
            octets = put_due(true, body, to);
        }
        wire::LinkView view;
        if (octets == 0) continue;
        ULC_CHECK(wire::parse_link(body, octets, view));
        take(view, config_.mac, now);
    }
}

// ------------------------------------------------------------------------------ invariants

void LinkFrames::check_invariants() const {
    ULC_CHECK(answers_.size() <= kLinkAnswersMax && local_answers_.empty());
}

}  // namespace ulc::jobs
