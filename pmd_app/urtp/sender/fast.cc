// The fast path of a new packet: may_send(), plan() and commit() in one function, for a whole short
// message to one receiver. Everything is decided before the first store. A message that any rule of
// the general path has a say in goes there, with nothing changed. Both give the same bytes.
#include <cstring>

#include "urtp/sender/sender.h"

namespace ulc::urtp {

namespace {

/// Window, credit and congestion admit the next packet.
bool is_clear(const TxStream& tx, Nanos now) noexcept {
    return tx.has_room() && tx.pacer.next() <= now && tx.repairs == 0 &&
           tx.slot(tx.tail).segment == nullptr;
}

}  // namespace

/// The next packet would be the only one on its way, at once, and would name no other stream.
bool Sender::may_pass(const TxStream& tx, Nanos now) const noexcept {
    return takes_short_ && tx.freed == tx.tail && is_clear(tx, now) && tx.pacer.gap() == 0 &&
           active_groups_.empty();
}

[[gnu::flatten]] bool Sender::send_short(const ShortMessage& message, Nanos now) noexcept {
    if (!takes_short_ || message.stream >= sessions_.size()) return false;
    Session* session = sessions_.find(message.stream);
    if (session == nullptr || session->gone) return false;
    TxStream* tx = session->tx.get();
    if (tx == nullptr || !is_clear(*tx, now)) return false;
    if (!active_groups_.empty()) return false;  // the packet may have to name them (§5)
    const FrameShare* share = context_.config.send_frames;
    if (share != nullptr && !share->may_take()) return false;
    Segment* segment = context_.pool.get();
    if (segment == nullptr) return false;

    wire::Extensions& extensions = draft_.extensions;
    const bool asks = tx->asks();
    std::uint8_t flags = wire::kFlagFirst | wire::kFlagLast | (asks ? wire::kFlagAckNow : 0);
    std::size_t offset = wire::kHeadOctets;
    extensions.after_count = 0;
    extensions.tag = message.tag;
    if (receiver_.piggyback(*session, true, extensions.ack, now)) {
        flags |= wire::kFlagAck;
        offset += sizeof(wire::AckEntry);
    }
    if (message.has_tag) {
        flags |= wire::kFlagTag;
        offset += sizeof message.tag;
    }
    std::memcpy(segment->frame + offset, message.payload, message.octets);
    segment->length = static_cast<std::uint32_t>(wire::build_data(
        segment->frame, sessions_.head_of(*tx), flags, tx->tail, extensions, message.octets));
    draft_.stream = nullptr;
    retain(*tx, segment, asks, now);
    return true;
}

}  // namespace ulc::urtp
