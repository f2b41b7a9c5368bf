// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/sender/questions.h"

namespace ulc::urtp {

Segment* make_probe(Context& context, const Sessions& sessions, TxStream& tx, Nanos now) {
    if (tx.group != nullptr && tx.group->counted) {
        tx.probed_at = now;
        return tx.group->rules->ask_for_news();
    }
    Segment* segment = context.control_frame();
    if (segment == nullptr) return nullptr;
    std::uint32_t lacking = 0;
    Rank to = tx.rank[0];
    for (std::uint32_t i = 0; i < tx.members; ++i) {
        if (!tx.lacks(i)) continue;
        ++lacking;
        to = tx.rank[i];
    }
    wire::FrameHead head = lacking > 1 ? sessions.head_to(*tx.group, wire::FrameType::kProbe)
                                       : sessions.head_to(to, wire::FrameType::kProbe);
    head.seq = tx.sent;
    const StreamId stream = tx.id;
    tx.probed_at = now;
    segment->length = static_cast<std::uint32_t>(wire::build_probe(segment->frame, head, stream));
    context.count(Counter::probe_sent);
    return segment;
}

Segment* make_reserve(Context& context, const Sessions& sessions, const TxStream& tx) noexcept {
    Segment* segment = context.control_frame();
    if (segment == nullptr) return nullptr;
    const bool all = tx.group != nullptr && tx.want_at == TxSlot::kSeveral;
    const wire::FrameHead head =
        all ? sessions.head_to(*tx.group, wire::FrameType::kFlow)
            : sessions.head_to(tx.rank[tx.group != nullptr ? tx.want_at : 0],
                               wire::FrameType::kFlow);
    const wire::FlowBody body{tx.id, tx.want_first.value, tx.want, wire::FlowKind::kReserve, 0};
    segment->length = static_cast<std::uint32_t>(wire::build_flow(segment->frame, head, body));
    context.count(Counter::reserve_sent);
    return segment;
}

Segment* make_doubt(Context& context, const Sessions& sessions, Session& session) noexcept {
    Segment* segment = context.control_frame();
    if (segment == nullptr) return nullptr;
    session.in_doubt = false;
    wire::FrameHead head = sessions.head_to(session.rank, wire::FrameType::kProbe);
    head.seq = session.tx != nullptr ? session.tx->sent : sessions.ends_of(session.rank).out;
    segment->length =
        static_cast<std::uint32_t>(wire::build_probe(segment->frame, head, session.rank));
    context.count(Counter::probe_sent);
    return segment;
}

}  // namespace ulc::urtp
