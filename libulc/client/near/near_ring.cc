// SPDX-License-Identifier: BSD-3-Clause
#include "client/near/near_ring.h"

#include "client/p2p/tags.h"

namespace ulc::client {

std::uint32_t NearSender::allocate(std::uint32_t bytes) noexcept {
    constexpr std::uint32_t kLine = kCacheLine;
    const std::uint32_t size = (bytes + kLine - 1) / kLine * kLine;
    const std::uint32_t at = head_ % kNearDataBytes;
    // A block lies in one piece: the rest of the lap is left out if it is too short.
    const std::uint32_t skipped = at + size > kNearDataBytes ? kNearDataBytes - at : 0;
    const auto fits = [&] { return head_ + skipped + size - tail_ <= kNearDataBytes; };
    if (!fits()) {
        const std::uint32_t taken = ring_.produced() - (kNearSlots - ring_.room(kNearSlots));
        if (ring_.corrupt()) return kNoBlock;
        if (taken != 0 || tail_ != 0) tail_ = ends_[(taken - 1) % kNearSlots];
        if (!fits()) return kNoBlock;
    }
    head_ += skipped + size;
    return (at + skipped) % kNearDataBytes;
}

bool NearSender::send(std::uint32_t before, std::uint64_t tag, const Pieces& payload) noexcept {
    if (ring_.corrupt()) return false;
    abi::SubmissionRecord* record = ring_.claim();
    if (record == nullptr) return false;
    const auto length = static_cast<std::uint32_t>(payload.length);
    const bool in_block = length > abi::kInlineOctetsMax;
    unsigned char* to = record->body.inline_octets;
    std::uint32_t offset = 0;
    if (in_block) {
        offset = allocate(length);
        if (offset == kNoBlock) return false;
        to = reinterpret_cast<unsigned char*>(data_ + offset);
    }
    if (payload.list != nullptr) {
        gather(payload.list, payload.count, 0, to, length);
    } else if (length > 0) {
        std::memcpy(to, payload.base, length);
    }
    record->kind = abi::SubmitKind::kSend;
    record->flags = in_block ? 0 : abi::kSubmitInline;
    record->inline_length = static_cast<std::uint16_t>(in_block ? 0 : length);
    record->stream = before;
    record->cookie = 0;
    record->tag = tag;
    if (in_block) record->body.block = {offset, length, length, 0, 0, 0};
    ends_[ring_.produced() % kNearSlots] = head_;
    ring_.publish(*record);
    return true;
}

NearReceiver::Look NearReceiver::look(NearMessage& message) const noexcept {
    const abi::SubmissionRecord* shared = ring_.front();
    if (shared == nullptr) return Look::kNothing;
    abi::SubmissionRecord& record = message.record;
    std::memcpy(&record, shared, sizeof record);
    asm volatile("" ::: "memory");  // the compiler must not read the shared slot again
    message.before = record.stream;
    message.tag = record.tag;
    message.in_block = (record.flags & abi::kSubmitInline) == 0;
    if (record.kind != abi::SubmitKind::kSend || is_of_libulc(record.tag)) return Look::kMalformed;
    if (!message.in_block) {
        message.length = record.inline_length;
        message.payload = reinterpret_cast<const std::byte*>(record.body.inline_octets);
        return message.length <= abi::kInlineOctetsMax ? Look::kMessage : Look::kMalformed;
    }
    const abi::Block& block = record.body.block;
    message.length = block.length;
    if (block.length > kNearMax || block.offset > kNearDataBytes - block.length)
        return Look::kMalformed;
    message.payload = data_ + block.offset;
    return Look::kMessage;
}

}  // namespace ulc::client
