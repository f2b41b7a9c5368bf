// SPDX-License-Identifier: BSD-3-Clause
// STATUS: how far a member has come in the group, by source and by the global counter (PCODE §4,
// §5.2, §5.5). It frees the buffers of sent messages, opens flow windows (PROGRESS), and shows a
// receiver the tail that it lacks. Sent to all by broadcast:
//   p0, p1   only when a source asks, because its buffer is full or its tail is without news
//   pcode    also whenever the global counter has grown by STATUS_WINDOW
#include <algorithm>
#include <array>

#include "urtp/profiles/pcode/rules.h"

namespace ulc::urtp::pcode {

void Rules::make_status_due(bool wanted) noexcept {
    status_due_ = true;
    status_wanted_ |= wanted;
    parts_.control.push(group_);
}

Segment* Rules::ask_for_news() noexcept {
    make_status_due(true);
    return send_status();
}

void Rules::acknowledge() noexcept { make_status_due(false); }

/// Sends one part of it: at most kStatusEntriesMax sources. The last part ends it.
Segment* Rules::send_status() noexcept {
    Segment* segment = parts_.context.control_frame();
    if (segment == nullptr) return nullptr;
    std::array<Be32, wire::kStatusEntriesMax> next;
    const std::size_t first = status_from_;
    const std::size_t count_all = group_.ranks.size() - first;
    const std::size_t fit = (parts_.context.config.mtu - sizeof(wire::Header) -
                             sizeof(wire::StatusBody) - sizeof(Be32)) /
                            sizeof(Be32);  // with a CRC
    const std::size_t entries = std::min({count_all, next.size(), fit});
    for (std::size_t i = 0; i < entries; ++i) {
        Session* session = parts_.sessions.find(group_.ranks[first + i]);
        const RxStream* rx = session != nullptr ? Sessions::heard(group_, *session) : nullptr;
        Seq reached = rx != nullptr ? rx->next : parts_.context.config.first_seq;
        if (first + i == group_.own && group_.tx != nullptr) reached = group_.tx->sent;
        next[i] = reached.value;
    }
    wire::StatusBody body{};
    body.global = global_.current();
    body.first = static_cast<std::uint16_t>(first);
    body.count = static_cast<std::uint16_t>(entries);
    body.flags = status_wanted_ ? wire::kStatusWanted : 0;
    const wire::FrameHead head = parts_.sessions.head_to(group_, wire::FrameType::kStatus);
    segment->length = static_cast<std::uint32_t>(
        wire::build_status(segment->frame, head, body, std::span(next).first(entries)));
    count(Counter::status_sent);
    status_wanted_ = false;
    status_from_ = static_cast<std::uint16_t>(entries == count_all ? 0 : first + entries);
    if (status_from_ == 0) {
        status_due_ = false;
        status_at_ = kNever;
        global_.on_told();
    }
    return segment;
}

/// Handles the part of it that is about us: what the sender has of ours.
void Rules::status_of_ours(std::uint32_t at, Seq next, Nanos now) noexcept {
    TxStream* tx = group_.tx.get();
    if (tx == nullptr || !tx->is_destination(at) || !params().acknowledged) return;
    if (tx->sent.before(next)) {
        count(Counter::drop_ack_range);
        return;
    }
    tx->allow(at, next + tx->window);  // the flow window bounds us, not credit
    if (!tx->next[at].before(next)) return;
    if (tx->acknowledge(at, next)) parts_.sender.release_acknowledged(*tx, now);
}

bool Rules::on_status(const wire::FrameView& frame, Session& session, Nanos now) {
    const std::uint16_t at = group_.index_of[session.rank];
    const auto& body = *reinterpret_cast<const wire::StatusBody*>(frame.body);
    const std::uint32_t first = body.first;
    const std::uint32_t entries = body.count;
    if (at == kNoRank || first + entries > group_.ranks.size()) {
        count(Counter::drop_ack_range);
        return true;
    }
    count(Counter::status_received);
    const auto* next = reinterpret_cast<const Be32*>(frame.body + sizeof body);
    if (!global_.on_progress(at, body.global)) count(Counter::drop_counter_range);
    if (group_.own - first < entries) status_of_ours(at, Seq{next[group_.own - first]}, now);
    const bool wanted = (body.flags & wire::kStatusWanted) != 0;
    if (at - first < entries && (wanted || version_ == Version::kFull))
        learn_tail(session, Seq{next[at - first]}, now);
    if (!wanted) return true;
    const auto members = static_cast<Nanos>(group_.ranks.size());
    const Nanos spread =
        members > 2 ? parts_.context.random_below(members * params().probe_slot) : 0;
    status_at_ = std::min(status_at_, now + 1 + spread);
    parts_.context.timers.arm_by(timer_, status_at_);
    return true;
}

/// Notes that its source has sent all before `end`: the packets of that which are not here are
/// missing.
void Rules::learn_tail(Session& session, Seq end, Nanos now) {
    RxStream* rx = parts_.receiver.group_stream(group_, session);
    if (end - rx->next > static_cast<std::int32_t>(rx->window)) {
        count(Counter::drop_ack_range);
        return;
    }
    if (!rx->high.before(end)) return;
    rx->high = end;
    if (rx->missing()) parts_.receiver.ask_for_gap(*rx, true, now);
}

}  // namespace ulc::urtp::pcode
