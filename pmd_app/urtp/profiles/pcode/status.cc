// STATUS: how far a member has come in the group, by source and by the global counter (PCODE §4, §5.2, §5.5). It frees the buffers
// of sent messages, opens flow windows (PROGRESS), and shows a receiver the tail that it lacks. Sent to all by broadcast:
//   p0, p1   only when a source asks, because its buffer is full or its tail is without news
//   pcode    also whenever the global counter has grown by STATUS_WINDOW
#include <algorithm>
#include <array>

#include "urtp/impl.h"

namespace ulc::urtp {

void Member::Impl::make_status_due(Group& group, bool wanted) noexcept {
    group.pcode->status_due = true;
    group.pcode->status_wanted |= wanted;
    group_control_.push_back(group);
}

/// One part of it: at most kStatusEntriesMax sources. The last part ends it.
Segment* Member::Impl::send_status(Group& group) noexcept {
    Segment* segment = control_frame();
    if (segment == nullptr) return nullptr;
    pcode::GroupState& state = *group.pcode;
    std::array<Be32, wire::kStatusEntriesMax> next;
    const std::size_t first = state.status_from;
    const std::size_t count_all = group.ranks.size() - first;
    const std::size_t fit =
        (config_.mtu - sizeof(wire::Header) - sizeof(wire::StatusBody) - sizeof(Be32)) /
        sizeof(Be32);  // with a CRC
    const std::size_t entries = std::min({count_all, next.size(), fit});
    for (std::size_t i = 0; i < entries; ++i) {
        Session* session = sessions_[group.ranks[first + i]].get();
        const RxStream* rx = session != nullptr ? heard(group, *session) : nullptr;
        Seq reached = rx != nullptr ? rx->next : config_.first_seq;
        if (first + i == group.own && group.tx != nullptr) reached = group.tx->sent;
        next[i] = reached.value;
    }
    wire::StatusBody body{};
    body.global = state.global.current();
    body.first = static_cast<std::uint16_t>(first);
    body.count = static_cast<std::uint16_t>(entries);
    body.flags = state.status_wanted ? wire::kStatusWanted : 0;
    const wire::FrameHead head = head_to(group, wire::FrameType::kStatus);
    segment->length = static_cast<std::uint32_t>(
        wire::build_status(segment->frame, head, body, std::span(next).first(entries)));
    count(Counter::status_sent);
    state.status_wanted = false;
    state.status_from = static_cast<std::uint16_t>(entries == count_all ? 0 : first + entries);
    if (state.status_from == 0) {
        state.status_due = false;
        state.status_at = kNever;
        state.global.on_told();
    }
    return segment;
}

/// The part of it that is about us: what the sender has of ours.
void Member::Impl::status_of_ours(Group& group, std::uint32_t at, Seq next, Nanos now) noexcept {
    TxStream* tx = group.tx.get();
    if (tx == nullptr || !tx->is_destination(at) || config_.params.detect_only) return;
    if (tx->sent.before(next)) {
        count(Counter::drop_ack_range);
        return;
    }
    tx->allow(at, next + tx->window);  // the flow window bounds us, not credit
    if (!tx->next[at].before(next)) return;
    if (tx->acknowledge(at, next)) release_acknowledged(*tx, now);
}

void Member::Impl::on_status(const wire::FrameView& frame, Session& session, Nanos now) {
    Group* group = find_group(frame.handle);
    if (group == nullptr || group->pcode == nullptr) {
        count(group != nullptr ? Counter::drop_type : Counter::drop_unknown_handle);
        return;
    }
    const std::uint16_t at = group->index_of[session.rank];
    const auto& body = *reinterpret_cast<const wire::StatusBody*>(frame.body);
    const std::uint32_t first = body.first;
    const std::uint32_t entries = body.count;
    if (at == kNoRank || first + entries > group->ranks.size()) {
        count(Counter::drop_ack_range);
        return;
    }
    count(Counter::status_received);
    const auto* next = reinterpret_cast<const Be32*>(frame.body + sizeof body);
    if (!group->pcode->global.on_progress(at, body.global)) count(Counter::drop_counter_range);
    if (group->own - first < entries)
        status_of_ours(*group, at, Seq{next[group->own - first]}, now);
    const bool wanted = (body.flags & wire::kStatusWanted) != 0;
    if (at - first < entries && (wanted || config_.params.group_rules == GroupRules::kPcode))
        learn_tail(*group, session, Seq{next[at - first]}, now);
    if (!wanted) return;
    pcode::GroupState& state = *group->pcode;
    const auto members = static_cast<Nanos>(group->ranks.size());
    const Nanos spread = members > 2 ? random_below(members * config_.params.probe_slot) : 0;
    state.status_at = std::min(state.status_at, now + 1 + spread);
    timers_.arm_by(state.timer, state.status_at);
}

/// Its source has sent all before `end`: what of that is not here is missing.
void Member::Impl::learn_tail(Group& group, Session& session, Seq end, Nanos now) {
    RxStream* rx = group_stream(group, session);
    if (end - rx->next > static_cast<std::int32_t>(rx->window)) {
        count(Counter::drop_ack_range);
        return;
    }
    if (!rx->high.before(end)) return;
    rx->high = end;
    if (rx->missing()) on_gap(*rx, true, now);
}

}  // namespace ulc::urtp
