// SPDX-License-Identifier: BSD-3-Clause
// The sending half: streams with their retained packets, and the packets that wait for their first
// transmission. Counts that the destructor relies on grow with what was imported.
#include "urtp/sender/sender.h"

#include "urtp/sender/acknowledged.h"
#include "urtp/sender/holders.h"
#include "urtp/state/values.h"

namespace ulc::urtp {

void LossBased::fields(state::Archive& archive) {
    ULC_STATE(archive, LossBased, 1, (window_, threshold_), (most_));
    if (!archive.require(window_ > 0 && window_ <= most_, "a congestion window is out of range"))
        window_ = most_;
}

void RoundTrips::fields(state::Archive& archive) {
    ULC_STATE(archive, RoundTrips, 1, (latest_, shortest_), ());
}

void AdaptiveBackoff::fields(state::Archive& archive) {
    ULC_STATE(archive, AdaptiveBackoff, 1, (reno_, trips_, acked_, lost_), ());
}

void DelayBased::fields(state::Archive& archive) {
    ULC_STATE(archive, DelayBased, 1, (trips_, window_, starting_), (most_));
    if (!archive.require(window_ > 0 && window_ <= most_, "a congestion window is out of range"))
        window_ = most_;
}

void Pacer::fields(state::Archive& archive) {
    ULC_STATE(archive, Pacer, 1, (gap_, next_), ());
    archive.require(gap_ >= 0, "a pacer has a negative gap");
}

void Holders::fields(state::Archive& archive, std::uint16_t members) {
    ULC_STATE(archive, Holders, 1, (requests_, waited_at_, sampled_at_, sample_at_), (members_));
    for (std::uint16_t at = 0; at < members; ++at) {
        auto& [level, requests, news, holds] = members_[at];
        archive.values(level, requests, news.ms, news.silent, holds);
    }
}

void TxStream::fields(state::Archive& archive) {
    // Computed: repairs, destinations, clear, wait (which 0 lets be computed again), and what the
    // constructor and Sender::begin() set. The slots: Sender::stream_fields().
    ULC_STATE(
        archive, TxStream, 1,
        (base, sent, limit, cwnd, ask_every, asked, repair_from, pacer, want_first, want, want_at,
         samples, untold, freed, cut_at, rtt, sampled_at, probe_at, probe_wait, probed_at),
        (id, window, group, tail, repairs, members, destinations, slots, next, edge, absent, rank,
         granted, want_turn, backs_off, wants_credit, takes_short, clear, patience, repeats_halved,
         congestion, wait, timer, active_link, probe_link, repair_link, single_, single_rest_));
    ULC_STATE_BIT(archive, want_turn);
    ULC_STATE_BIT(archive, wants_credit);
    auto patient = static_cast<std::uint8_t>(patience);
    auto halved = static_cast<std::uint8_t>(repeats_halved);
    archive.bounded(patient, kPatienceMax, "a stream is too patient");
    archive.bounded(halved, 31, "a stream repeats too few packets");
    patience = patient & 7U;
    repeats_halved = halved & 31U;
    auto kind = static_cast<std::uint8_t>(congestion.index());
    archive.values(kind);
    if (!archive.require(kind == congestion.index(), "the congestion control is another")) return;
    std::visit(
        [&](auto& control) {
            if constexpr (requires { control.fields(archive); }) control.fields(archive);
        },
        congestion);
    archive.require(cwnd > 0 && cwnd <= window, "a window is out of range");
    archive.require(want_at < members || want_at >= TxSlot::kSeveral, "a member is out of range");
}

void Repairs::fields(state::Archive& archive) {
    ULC_STATE(archive, Repairs, 1, (narrow_), (context_, sessions_, list_));
    list_fields(archive, list_, sessions_);
}

void Sender::stream_fields(state::Archive& archive, TxStream& tx) {
    Seq tail = tx.tail;
    const bool backs_off = tx.backs_off;
    archive.values(tail);
    tx.fields(archive);
    if (archive.importing()) tx.tail = tx.freed;  // grows as packets are taken
    const auto after_freed = [&](Seq seq) { return seq.value - tx.freed.value; };
    const bool ordered = after_freed(tx.base) <= after_freed(tx.sent) &&
                         after_freed(tx.sent) <= after_freed(tail) &&
                         after_freed(tail) <= tx.window;
    archive.require(ordered, "the numbers of a stream are out of order");
    const std::uint32_t pending = tail.value - tx.base.value;
    tx.destinations = 0;
    for (std::uint32_t at = 0; at < tx.members; ++at) {
        bool absent = tx.absent[at] != 0;
        archive.values(tx.next[at], tx.edge[at], absent);
        tx.absent[at] = absent ? UINT32_MAX : 0;
        tx.destinations += absent ? 0 : 1;
        archive.require(absent || tx.next[at].value - tx.base.value <= pending,
                        "an acknowledged number is out of range");
        if (tx.granted != nullptr) archive.values(tx.granted[at]);
    }
    if (tx.group != nullptr) tx.group->holders->fields(archive, tx.members);
    std::uint32_t repairs = 0;
    for (Seq seq = tx.freed; archive.ok() && seq != tail; ++seq) {
        TxSlot& slot = tx.slot(seq);
        static_assert(sizeof slot == 40);  // a union hides its members from the compiler's count
        archive.values(slot.sent_at, slot.ticket, slot.asked_by, slot.transmissions);
        const bool known = slot.asked_by == TxSlot::kNobody || slot.asked_by < tx.members ||
                           (tx.group != nullptr && slot.asked_by == TxSlot::kSeveral);
        archive.require(known, "a repair is asked for by no member");
        archive.frame(slot.segment, context_.pool);
        const Segment* segment = slot.segment;
        const bool whole = segment != nullptr && segment->length >= wire::kHeadOctets;
        if (archive.importing() && segment != nullptr) {
            slot.stream = &tx;
            slot.link = nullptr;
            ++tx.tail;
            if (context_.config.send_frames != nullptr) context_.config.send_frames->take();
        }
        archive.require(whole, "a retained packet has no frame");
        repairs += slot.asked_by != TxSlot::kNobody ? 1 : 0;
    }
    if (archive.exporting()) return;
    tx.repairs = repairs;
    tx.backs_off = backs_off;
    // A stream that ended has no destination, and takes no packet.
    tx.renew_clear();
    archive.require(!tx.clear || tx.freed == tx.base, "a stream keeps what was acknowledged");
}

/// The packets of each stream are in the order of their numbers, so their streams name them.
void Sender::new_packets_fields(state::Archive& archive) {
    std::size_t unsent = 0;
    sessions_.each_sending(
        [&](const TxStream& tx) { unsent += static_cast<std::uint32_t>(tx.tail - tx.sent); });
    const std::size_t count = archive.count(unsent, UINT32_MAX, "too many packets are new");
    archive.require(count == unsent, "packets are missing among the new ones");
    TxSlot* slot = new_head_;
    for (std::size_t i = 0; archive.ok() && i < count; ++i) {
        StreamId stream = archive.exporting() ? slot->stream->id : 0;
        archive.values(stream);
        if (archive.exporting()) {
            slot = slot->link;
            continue;
        }
        // Those that were named already are the stream's first ones.
        TxStream* tx = find_named(sessions_, stream, static_cast<const TxStream*>(nullptr));
        Seq seq = tx != nullptr ? tx->sent : Seq{};
        while (tx != nullptr && seq != tx->tail &&
               (tx->slot(seq).link != nullptr || &tx->slot(seq) == new_tail_))
            ++seq;
        if (!archive.require(tx != nullptr && seq != tx->tail, "a new packet has no stream"))
            return;
        TxSlot& next = tx->slot(seq);
        (new_tail_ != nullptr ? new_tail_->link : new_head_) = &next;
        new_tail_ = &next;
    }
}

void Sender::fields(state::Archive& archive) {
    ULC_STATE(archive, Sender, 1, (sends_failed_),
              (context_, sessions_, control_, receiver_, active_unicast_, active_groups_, new_head_,
               new_tail_, takes_short_, short_octets_max_, tail_wait_, repairs_, draft_));
    HoldRules& hold = context_.hold;
    archive.values(hold.limit, hold.excludes);
    archive.sequence(hold.keeps, sessions_.size(), "too many members are kept");
    // Streams in the order of each_sending(): groups, sessions.
    sessions_.each_sending([&](TxStream& tx) { stream_fields(archive, tx); });
    new_packets_fields(archive);
    list_fields(archive, active_unicast_, sessions_);
    list_fields(archive, active_groups_, sessions_);
    repairs_.fields(archive);
    sessions_.each_sending([&](const TxStream& tx) {
        const auto& list = tx.group != nullptr ? active_groups_ : active_unicast_;
        archive.require(list.holds(tx) == tx.active(), "an active stream is not listed as such");
        archive.require(tx.repairs > 0 || !repairs_.holds(tx), "a stream repairs nothing");
    });
}

}  // namespace ulc::urtp
