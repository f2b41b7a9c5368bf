// SPDX-License-Identifier: BSD-3-Clause
// The receiving half: streams, the packets that wait in the store, and those that are ready.
#include "urtp/receiver/receiver.h"

#include <functional>

#include "urtp/state/values.h"

namespace ulc::urtp {

namespace {

constexpr char kNoNode[] = "more packets are held than the store has nodes";

/// A place in a frame.
struct Place {
    bool in_tail = false;
    std::uint32_t offset = 0;

    void fields(state::Archive& archive) { archive.values(in_tail, offset); }
    [[nodiscard]] static Place of(const std::byte* at, const Segment& segment) noexcept {
        const std::byte* const tail = segment.tail;
        const bool in_tail = tail != nullptr && std::less_equal<>()(tail, at) &&
                             std::less_equal<>()(at, tail + segment.tail_octets);
        return {in_tail, static_cast<std::uint32_t>(at - (in_tail ? tail : segment.frame))};
    }
    /// Returns nullptr if the segment does not have as many octets there.
    [[nodiscard]] const std::byte* in(const Segment& segment, std::size_t octets) const noexcept {
        const std::size_t tail = segment.tail != nullptr ? segment.tail_octets : 0;
        const std::size_t all = in_tail ? tail : segment.length - tail;
        if (octets > all || offset > all - octets) return nullptr;
        return (in_tail ? segment.tail : segment.frame) + offset;
    }
};

}  // namespace

void KeptRoom::fields(state::Archive& archive) {
    ULC_STATE(archive, KeptRoom, 1,
              (rationed, grant_due, refuse_due, flow_spoke, slots, slots_used, granted, want,
               granted_to, want_first),
              ());
    archive.require(slots_used <= slots, "more nodes are used than kept");
}

void ReorderWait::fields(state::Archive& archive) {
    ULC_STATE(archive, ReorderWait, 1, (learned_, missed_, asked_late_, repairs_), ());
    archive.require(learned_ <= enough_for(kMost + 1) && asked_late_ <= kMost + 1,
                    "packets are later than it is measured");
}

void RxStream::fields(state::Archive& archive) {
    ULC_STATE(archive, RxStream, 2,
              (next, high, ack_at, acked, limit_told, asked_to, late_to, lost_to, reorder,
               too_early, blocked, ack_due, request_due, request_all, patience, timed, room,
               arrived, ack_by, answer_at, ask_new_at, ask_all_at, ask_wait, asked_at),
              (id, window, session, group, sibling, held, counted, after_loss, timer));
    ULC_STATE_BIT(archive, after_loss);
    archive.require(high.value - next.value <= window && !next.before(acked),
                    "the numbers of a stream are out of order");
    archive.require(ask_new_at == kNever || !high.before(lost_to), "a request is out of range");
    archive.require(patience <= kPatienceMax, "a stream is too patient");
}

void RxNode::fields(state::Archive& archive) {
    ULC_STATE(archive, RxNode, 1, (arrived, global, slot),
              (link, packet, after, stream, seq, after_count, reserved, local));
    auto& [segment, payload, tag, message_length, of, length, flags, after_loss] = packet;
    archive.values(tag, message_length, of, length, flags, after_loss);
}

/// The node is in its list already, so that the destructor finds the frame.
void Receiver::packet_fields(state::Archive& archive, RxNode& node) {
    ReadyPacket& packet = node.packet;
    node.fields(archive);
    archive.frame(packet.segment, context_.pool);
    if (!archive.ok() || packet.segment == nullptr) return;
    const Segment& segment = *packet.segment;
    Place place;
    if (archive.exporting()) place = Place::of(packet.payload, segment);
    archive.values(place);
    packet.payload = place.in(segment, packet.length);
    archive.require(packet.payload != nullptr, "a payload is not in its frame");
}

void Receiver::ready_fields(state::Archive& archive, Session& session) {
    std::size_t count = 0;
    for (const RxNode* node = session.ready_head; node != nullptr; node = node->link)
        ++count;
    count = archive.count(count, std::size_t{store_.capacity()} + 1, kNoNode);
    RxNode* node = session.ready_head;
    for (std::size_t i = 0; archive.ok() && i < count; ++i) {
        bool reserved = archive.exporting() && node->reserved;
        archive.values(reserved);
        if (archive.importing()) {
            const bool again = reserved && session.reserved_used;
            node = again ? nullptr : reserved ? &session.reserved : store_.adopt(session.local);
            if (!archive.require(node != nullptr, kNoNode)) return;
            (reserved ? session.reserved_used = true : ++session.held != 0);
            (session.ready_tail != nullptr ? session.ready_tail->link : session.ready_head) = node;
            session.ready_tail = node;
        }
        archive.values(node->seq);
        packet_fields(archive, *node);
        ReadyPacket& packet = node->packet;
        archive.require(reserved == (packet.segment == nullptr), "a ready packet has no frame");
        if (reserved && archive.ok()) {
            if (archive.importing())
                session.reserved_octets = std::make_unique<std::byte[]>(context_.config.mtu_taken);
            const bool fits = packet.length <= context_.config.mtu_taken;
            packet.payload = session.reserved_octets.get();
            if (archive.require(fits, "a packet is longer than the MTU"))
                archive.octets({session.reserved_octets.get(), packet.length});
        }
        if (archive.exporting()) node = node->link;
    }
}

void Receiver::held_fields(state::Archive& archive, RxStream& rx) {
    Session& session = *rx.session;
    const std::size_t count = archive.count(rx.held, store_.capacity(), kNoNode);
    Seq seq = rx.next;
    for (std::size_t i = 0; archive.ok() && i < count; ++i) {
        RxNode* node = nullptr;
        if (archive.exporting())
            while ((node = store_.find(&rx, seq)) == nullptr)
                ++seq;
        archive.values(seq);
        if (archive.importing()) {
            const bool fits = !session.gone && seq.value - rx.next.value < rx.window &&
                              seq.before(rx.high) && store_.find(&rx, seq) == nullptr;
            if (!archive.require(fits, "a held packet is not in its stream's window")) return;
            node = store_.adopt(session.local);
            if (!archive.require(node != nullptr, kNoNode)) return;
            node->seq = seq;
            node->stream = &rx;
            store_.insert(*node);
            ++rx.held;
            ++session.held;
        }
        packet_fields(archive, *node);
        const bool own = node->packet.stream == rx.id;
        archive.require(own, "a held packet is of another stream");
        archive.bounded(node->after_count, wire::kAfterEntriesMax, "a packet waits for too many");
        if (node->after_count > 0 && archive.ok()) {
            const Segment* segment = node->packet.segment;
            if (!archive.require(segment != nullptr, "a packet without a frame waits")) return;
            Place place;
            if (archive.exporting())
                place = Place::of(reinterpret_cast<const std::byte*>(node->after), *segment);
            archive.values(place);
            const std::size_t octets = node->after_count * sizeof(wire::AfterEntry);
            node->after = reinterpret_cast<const wire::AfterEntry*>(place.in(*segment, octets));
            if (!archive.require(node->after != nullptr, "entries are not in their frame"))
                node->after_count = 0;
        }
        ++seq;
    }
    const bool waits = !rx.blocked || holds(rx, rx.next);
    if (archive.require(waits, "a stream is blocked by no packet"))
        session.blocked += archive.importing() && rx.blocked ? 1 : 0;
}

void RxRoom::fields(state::Archive& archive) {
    ULC_STATE(archive, RxRoom, 1, (kept_), (store_, starved_));
}

void RxRoom::starved_fields(state::Archive& archive, const Sessions& named) {
    list_fields(archive, starved_, named);
}

void Receiver::fields(state::Archive& archive) {
    ULC_STATE(archive, Receiver, 1, (room_, expecting_),
              (context_, sessions_, control_, store_, takes_short_, in_turn_, ready_slot_,
               plain_acks_, plain_step_, ack_delay_, awaited_, ready_));
    std::uint32_t kept = 0;
    std::uint32_t expecting = 0;
    sessions_.each([&](Session& session) {
        if (!archive.ok()) return;
        session.fields(archive);
        if (archive.importing()) session.blocked = 0;
        for (RxStream* rx = session.streams(); archive.ok() && rx != nullptr; rx = rx->sibling) {
            rx->fields(archive);
            held_fields(archive, *rx);
            kept += rx->room.granted + (rx->room.slots - rx->room.slots_used);
        }
        if (archive.ok()) ready_fields(archive, session);
        expecting += session.expecting ? 1 : 0;
    });
    list_fields(archive, awaited_, sessions_);
    list_fields(archive, ready_, sessions_);
    room_.starved_fields(archive, sessions_);
    if (!archive.ok()) return;
    archive.require(kept == room_.kept() && (kept == 0 || kept <= store_.free_count()),
                    "the nodes that are kept do not add up");
    archive.require(expecting == expecting_, "the receives that wait do not add up");
    sessions_.each([&](Session& session) {
        archive.require(
            ready_.holds(session) == (session.ready_head != nullptr && !session.in_slot),
            "a source with packets is not listed as such");
        archive.require(!session.in_slot || (ready_slot_ && session.ready_head != nullptr),
                        "a slot has no message");
        archive.require(!room_.is_awaited_by(session) || (session.starved && !session.gone),
                        "a source waits for no space");
        archive.require(!awaited_.holds(session) || session.expecting,
                        "a source is awaited by no receive");
    });
}

}  // namespace ulc::urtp
