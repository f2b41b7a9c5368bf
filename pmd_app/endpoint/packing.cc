// SPDX-License-Identifier: BSD-3-Clause
// The profile `pack` (docs/protocol/MESSAGES.md §6.7): lists of messages in packets, at the sender
// and at the receiver.
#include <cstring>
#include <span>

#include "endpoint/outlet.h"
#include "endpoint/send_queue.h"
#include "endpoint/send_record.h"
#include "wire/packed.h"

namespace ulc::endpoint {

using abi::SubmissionRecord;

// Writes the list of a packet: the message, and those directly behind it that may join. These are
// finished. Returns the octets of the list. A message of which the client wants to know when it
// arrived is at most the first, since one reference to the segment tells that.
std::uint32_t SendQueue::pack(const Pending& first, const SendContext& context, std::byte* list,
                              std::uint32_t room) noexcept {
    const auto head_of = [](const SubmissionRecord& r) {
        return wire::packed_head_octets((r.flags & abi::kSubmitHasTag) != 0);
    };
    const auto put = [&](const SubmissionRecord& r, std::uint32_t used) {
        const std::uint32_t octets = octets_of(r);
        std::byte* const to =
            wire::put_packed_head(list + used, octets, (r.flags & abi::kSubmitHasTag) != 0, r.tag);
        const std::byte* payload = payload_of(r, context.region, 0, octets);
        if (payload == nullptr) {
            place_of(r).read(0, to, octets);
        } else if (octets > 0) {
            std::memcpy(to, payload, octets);
        }
        return used + head_of(r) + octets;
    };
    constexpr std::uint8_t kSubset = abi::kSubmitHasSubset;
    std::uint32_t used = put(first.record, 0);
    std::uint32_t n = head_ + ((static_cast<std::uint32_t>(&first - ring_.get()) - head_) & mask_);
    for (unsigned count = 1; ++n != tail_ && count < wire::kPackedMax; ++count) {
        Pending& next = at(n);
        const SubmissionRecord& r = next.record;
        if (next.state != State::kQueued || next.message != kNoMessage || next.done != 0 ||
            r.stream != first.record.stream || (r.flags & abi::kSubmitNotifyAcked) != 0 ||
            ((r.flags ^ first.record.flags) & kSubset) != 0 ||
            ((r.flags & kSubset) != 0 && r.body.block.subset != first.record.body.block.subset) ||
            head_of(r) + octets_of(r) > room - used)
            break;
        used = put(r, used);
        next.done = octets_of(r);
        context.counters.add(Counter::messages_sent);
        context.counters.add(Counter::messages_packed);
        finish(next, Err::kOk);
    }
    return used;
}

// Delivers the messages of a packet that were not delivered by an earlier call.
bool Outlet::deliver_list(Rank rank, Source& source, const urtp::ReadyPacket& packet) {
    const std::span<const std::byte> list(packet.payload, packet.length);
    if (source.unpacked == 0 && (packet.has_tag() || wire::count_packed(list) == 0)) {
        counters_.add(Counter::drop_pack);
        return true;
    }
    while (source.unpacked < list.size()) {
        wire::PackedMessage message;
        const std::uint32_t octets = wire::take_packed(list.subspan(source.unpacked), message);
        if (octets == 0) {  // only from the state of a broken engine
            counters_.add(Counter::drop_pack);
            break;
        }
        urtp::ReadyPacket one = packet;
        one.payload = message.payload;
        one.length = static_cast<std::uint16_t>(message.length);
        one.message_length = message.length;
        one.tag = message.tag;
        if (message.has_tag) one.flags |= wire::kFlagTag;
        if (!deliver_whole(rank, source, one)) return false;
        delivered_part_ = true;
        source.unpacked = static_cast<std::uint16_t>(source.unpacked + octets);
    }
    source.unpacked = 0;
    delivered_part_ = false;
    return true;
}

}  // namespace ulc::endpoint
