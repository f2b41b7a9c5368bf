// SPDX-License-Identifier: BSD-3-Clause
#include "endpoint/send_queue.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "endpoint/offload.h"
#include "endpoint/send_record.h"
#include "wire/packed.h"

namespace ulc::endpoint {
namespace {

using abi::SubmissionRecord;

/// Shorter ends of payloads are copied: a second piece costs more.
constexpr std::uint32_t kGatherOctetsMin = 256;
/// Shorter payloads are copied into frames at once: their sender would wait longer for the ACK than
/// the copy takes.
constexpr std::uint32_t kGatherPayloadMin = 64U << 10;

/// Returns true if it is answered when the transport has released its last segment.
bool wants_acked(const SubmissionRecord& r, bool gathered) noexcept {
    return gathered || ((r.flags & abi::kSubmitNotifyAcked) != 0 && ends_message(r));
}

}  // namespace

SendQueue::SendQueue(std::uint32_t capacity)
    : mask_(capacity - 1), ring_(std::make_unique<Pending[]>(capacity)) {
    ULC_CHECK(capacity >= 8 && (capacity & (capacity - 1)) == 0);
}

abi::SubmissionRecord* SendQueue::slot() noexcept {
    return tail_ - head_ > mask_ ? nullptr : &at(tail_).record;
}

// Checks sizes and offsets: a correct client never writes wrong ones.
bool SendQueue::shape_valid(const SubmissionRecord& record, const abi::Region& region) noexcept {
    if ((record.flags & ~kSendFlags) != 0) return false;
    const bool has_subset = (record.flags & abi::kSubmitHasSubset) != 0;
    if (is_inline(record)) {
        return record.inline_length <= abi::kInlineOctetsMax && !has_subset && !is_direct(record);
    }
    const abi::Block& block = record.body.block;
    if (is_direct(record)) {
        if (!region.reaches_process() || !is_whole(record) || block.address == 0 ||
            !pieces_fit(record))
            return false;
    } else if (region.tx(block.offset, block.length) == nullptr) {
        return false;
    }
    if (has_subset && !is_group(record.stream)) return false;
    switch (record.flags & kWhole) {
        case kWhole:
            return block.message_length == block.length;
        case abi::kSubmitFirst:
            return block.length > 0 && block.length < block.message_length;
        default:
            return block.length > 0;
    }
}

std::uint8_t SendQueue::find_open(std::uint32_t stream) const noexcept {
    if (open_count_ == 0) return kNoMessage;
    for (std::uint8_t i = 0; i < kOpenMax; ++i) {
        if (open_[i].used && !open_[i].complete && open_[i].stream == stream) return i;
    }
    return kNoMessage;
}

bool SendQueue::same_subset(const OpenMessage& message, const SubmissionRecord& record) noexcept {
    const bool has_subset = (record.flags & abi::kSubmitHasSubset) != 0;
    return has_subset == message.has_subset &&
           (!has_subset || record.body.block.subset == message.subset);
}

SendQueue::Verdict SendQueue::place_chunk(Pending& pending, Err stream_error) noexcept {
    const SubmissionRecord& record = pending.record;
    std::uint8_t index = find_open(record.stream);
    if ((record.flags & abi::kSubmitFirst) != 0) {
        if (index != kNoMessage)
            return Verdict::kCorrupt;  // messages of one stream do not interleave
        for (index = 0; index < kOpenMax && open_[index].used; ++index) {
        }
        if (index == kOpenMax || stream_error != Err::kOk) {
            finish(pending, stream_error != Err::kOk ? stream_error : Err::kLimit);
            return Verdict::kFailed;
        }
        open_[index] = {.length = record.body.block.message_length,
                        .subset = record.body.block.subset,
                        .stream = record.stream,
                        .has_subset = (record.flags & abi::kSubmitHasSubset) != 0,
                        .used = true};
        ++open_count_;
    } else if (index == kNoMessage) {  // its first chunk failed
        finish(pending, stream_error != Err::kOk ? stream_error : Err::kInvalid);
        return Verdict::kFailed;
    }
    OpenMessage& message = open_[index];
    // Packets of one message go to the same members: a member that gets only some drops all.
    if (!same_subset(message, record)) return Verdict::kCorrupt;
    // Its group may have been removed since the first chunk, and made again with other members.
    if (stream_error == Err::kInvalid && message.status == Err::kOk) message.status = stream_error;
    const std::uint32_t length = record.body.block.length;
    const bool last = (record.flags & abi::kSubmitLast) != 0;
    if (length > message.length - message.submitted) return Verdict::kCorrupt;
    message.submitted += length;
    if (last != (message.submitted == message.length)) return Verdict::kCorrupt;
    message.complete = last;
    ++message.records;
    pending.message = index;
    return Verdict::kOk;
}

SendQueue::Verdict SendQueue::accept(const abi::Region& region, Err stream_error) noexcept {
    Pending& pending = at(tail_);
    if (!shape_valid(pending.record, region)) return Verdict::kCorrupt;
    pending.done = 0;
    pending.state = State::kQueued;
    pending.message = kNoMessage;
    pending.status = Err::kOk;
    pending.gathered = false;
    pending.key = 0;
    pending.sink = {};
    Verdict verdict = Verdict::kOk;
    if (!is_whole(pending.record)) {
        verdict = place_chunk(pending, stream_error);
    } else if (find_open(pending.record.stream) != kNoMessage) {
        verdict = Verdict::kCorrupt;
    } else if (stream_error != Err::kOk) {
        finish(pending, stream_error);
        verdict = Verdict::kFailed;
    }
    if (verdict != Verdict::kCorrupt) ++tail_;
    return verdict;
}

// A message that still lacks chunks shares a destination: messages that waited for its end could
// keep the chunks out of this queue.
bool SendQueue::waits_for_chunks(std::uint32_t stream) const noexcept {
    if (open_count_ == 0) return false;
    return std::ranges::any_of(open_, [&](const OpenMessage& message) {
        const bool shares =
            is_group(stream) || is_group(message.stream) || message.stream == stream;
        return message.used && !message.complete && shares;
    });
}

bool SendQueue::inject(const SubmissionRecord& record, Sink sink) noexcept {
    if (slot() == nullptr || waits_for_chunks(record.stream)) return false;
    Pending& pending = at(tail_++);
    pending = {.record = record, .sink = sink};
    return true;
}

// Queued chunks end with an error, and chunks that the client is submitting find no message.
void SendQueue::peer_gone(std::uint32_t rank, const SegmentPool& pool) noexcept {
    for (Awaiting& one : awaiting_)
        if (one.stream == rank && pool.holders(one.segment) > 1) one.failed = true;
    if (const std::uint8_t index = find_open(rank); index != kNoMessage) end_open(open_[index]);
}

bool SendQueue::end_unfinished() noexcept {
    if (open_count_ == 0) return false;
    bool any = false;
    for (OpenMessage& message : open_) {
        if (!message.used || message.complete) continue;
        message.status = Err::kClosed;  // its receivers can use no part of it
        end_open(message);
        any = true;
    }
    return any;
}

void SendQueue::end_open(OpenMessage& message) noexcept {
    message.complete = true;
    if (message.records > 0) return;
    message.used = false;
    --open_count_;
    retry_ = !empty();  // the messages that it held back
}

bool SendQueue::has(std::uint32_t stream) const noexcept {
    for (std::uint32_t n = head_; n != tail_; ++n) {
        const Pending& pending = ring_[n & mask_];
        if (pending.state != State::kDone && pending.record.stream == stream) return true;
    }
    return std::ranges::any_of(awaiting_,
                               [stream](const Awaiting& one) { return one.stream == stream; });
}

// Blocks the destinations of messages that have begun and wait for chunks.
void SendQueue::block_open() noexcept {
    if (open_count_ == 0) return;
    for (OpenMessage& message : open_) {
        if (!message.used) continue;
        message.stalled = false;
        if (message.started) blocked_.add(message.stream);
    }
}

[[gnu::flatten]] bool SendQueue::pump(const SendContext& context, Nanos now) {
    bool moved = answer_acknowledged(context);
    retry_ = false;
    // A message in chunks that ended has stopped others in this scan, and if it ended because its
    // receiver is gone, no frame will cause another scan.
    for (std::uint32_t open = UINT32_MAX; head_ != tail_ && open_count_ < open;) {
        open = open_count_;
        moved |= scan(context, now);
    }
    retry_ = !empty() && (retry_ || !awaiting_.empty());
    return moved;
}

bool SendQueue::scan(const SendContext& context, Nanos now) {
    bool moved = false;
    blocked_.clear();
    block_open();
    for (std::uint32_t n = head_; n != tail_; ++n) {
        Pending& pending = at(n);
        if (pending.state != State::kDone) moved |= advance(pending, context, now);
        if (pending.state == State::kDone && n == head_) ++head_;
        if (blocked_.group && open_count_ == 0) break;
    }
    return moved;
}

// Advances one record in a scan.
bool SendQueue::advance(Pending& pending, const SendContext& context, Nanos now) {
    const std::uint32_t stream = pending.record.stream;
    bool moved = false;
    if (pending.state == State::kQueued) {
        OpenMessage* message = pending.message == kNoMessage ? nullptr : &open_[pending.message];
        const bool begun = message != nullptr && message->started;
        const bool stopped =
            context.member == nullptr || (begun ? message->stalled : blocked_.stops(stream));
        if (!stopped) {
            if (message != nullptr && message->status != Err::kOk) {
                finish(pending, message->status);
                moved = true;
            } else {
                moved = transmit(pending, context, now);
            }
        }
        if (pending.state == State::kQueued) {
            if (message != nullptr) message->stalled = true;
            blocked_.add(stream);
            return moved;
        }
        // Finished: a message in chunks continues to block until its last one.
        if (message != nullptr) {
            message->started = true;
            if (--message->records == 0 && message->complete) {
                message->used = false;
                --open_count_;
                pending.message = kNoMessage;
                retry_ = true;  // the records that it held back were skipped in this scan
            } else {
                blocked_.add(stream);
            }
        }
    }
    answer(pending, context);
    return true;
}

urtp::MessageSize SendQueue::size_of(const Pending& pending) const noexcept {
    if (pending.message == kNoMessage) {
        const std::uint32_t octets = octets_of(pending.record);
        return {octets, octets - pending.done};
    }
    const OpenMessage& message = open_[pending.message];
    return {message.length, message.length - message.sent};
}

// Decides before the first packet, for all of the record. An operation that the engine carries out
// may write to a block that it has sent, so its payloads are copied.
void SendQueue::choose_gathering(Pending& pending, const SendContext& context) noexcept {
    const SubmissionRecord& record = pending.record;
    if (context.gathers == nullptr || is_inline(record) || pending.sink ||
        octets_of(record) < kGatherPayloadMin)
        return;
    if (lies_in_arena(record, context.region))
        pending.key = context.gathers->key_of(arena_of(context.region));
    pending.gathered = is_direct(record) || pending.key != 0;
}

// Sends packets of one record, as many as the transport admits.
bool SendQueue::transmit(Pending& pending, const SendContext& context, Nanos now) {
    const SubmissionRecord& record = pending.record;
    const bool has_subset = (record.flags & abi::kSubmitHasSubset) != 0;
    const std::uint64_t subset = has_subset ? record.body.block.subset : 0;
    if (pending.done == 0) choose_gathering(pending, context);
    bool moved = false;
    while (pending.state == State::kQueued) {
        if (wants_acked(record, pending.gathered) && awaiting_.full())
            return moved;  // so retry() is true
        switch (
            context.member->may_send(record.stream, subset, has_subset, now, size_of(pending))) {
            case urtp::Admission::kYes:
                break;
            case urtp::Admission::kWindow:
            case urtp::Admission::kAfter:
                return moved;
            case urtp::Admission::kPeerGone:
                finish(pending, Err::kPeerDied);
                return true;
            case urtp::Admission::kUnknown:
                finish(pending, Err::kInvalid);
                return true;
        }
        const bool over = context.frames != nullptr && !context.frames->may_take();
        if (over || !send_packet(pending, context, now)) {
            context.counters.add(over ? Counter::over_frame_share : Counter::no_segment);
            context.member->want_segments(now);
            retry_ = true;
            return moved;
        }
        moved = true;
    }
    return moved;
}

// Cuts one packet. Returns false if there is no segment.
bool SendQueue::send_packet(Pending& pending, const SendContext& context, Nanos now) {
    const SubmissionRecord& record = pending.record;
    OpenMessage* message = pending.message == kNoMessage ? nullptr : &open_[pending.message];
    Segment* segment = context.pool.has_for_data() ? context.pool.get() : nullptr;
    if (segment == nullptr) return false;
    const std::uint32_t rest = octets_of(record) - pending.done;
    const bool final_record = message == nullptr || (record.flags & abi::kSubmitLast) != 0;
    urtp::PacketMeta meta;
    meta.stream = record.stream;
    meta.first = message == nullptr ? pending.done == 0 : message->sent == 0;
    const bool tagged = (record.flags & abi::kSubmitHasTag) != 0;
    // With `pack`, a packet that is the first and the last of its message begins a list.
    const bool may_list = meta.first && final_record && context.member->packs();
    const std::uint32_t head = may_list ? wire::packed_head_octets(tagged) : 0;
    meta.last = final_record && rest + head <= context.mtu - sizeof(wire::Header);
    const bool is_end = meta.last || (!final_record && rest <= context.mtu - sizeof(wire::Header));
    meta.ack_now = is_end && wants_acked(record, pending.gathered);
    meta.has_tag = meta.first && tagged && !(may_list && meta.last);
    meta.tag = record.tag;
    meta.has_subset = (record.flags & abi::kSubmitHasSubset) != 0;
    meta.subset = meta.has_subset ? record.body.block.subset : 0;
    meta.message_length = message == nullptr ? octets_of(record) : message->length;
    urtp::PacketPlan plan = context.member->plan(meta, now);
    if (meta.last && rest + head > plan.payload_max) {  // it would have fitted without extensions
        meta.last = false;
        meta.has_tag = meta.first && tagged;
        plan = context.member->plan(meta, now);
    }
    // The second plan may have fewer extensions than the first; the last packet still needs a byte.
    const std::uint32_t most = final_record && !meta.last ? rest - 1 : rest;
    const std::uint32_t octets = std::min<std::uint32_t>(most, plan.payload_max);
    const std::byte* payload = payload_of(record, context.region, pending.done, octets);
    std::uint32_t listed = 0;
    if (may_list && meta.last) {
        listed = pack(pending, context, segment->frame + plan.payload_offset, plan.payload_max);
    } else if (payload == nullptr) {
        place_of(record).read(pending.done, segment->frame + plan.payload_offset, octets);
    } else if (pending.gathered && octets >= kGatherOctetsMin) {
        segment->tail = payload;
        segment->tail_octets = octets;
        segment->tail_key = pending.key;
        context.counters.add(Counter::tx_gathered_bytes, octets);
    } else {
        std::memcpy(segment->frame + plan.payload_offset, payload, octets);
        context.counters.add(Counter::tx_copied_bytes, octets);
    }
    if (pending.done + octets == octets_of(record) && wants_acked(record, pending.gathered)) {
        context.pool.hold(segment);
        ULC_CHECK(awaiting_.push_back({segment, record.cookie, record.stream, pending.gathered}));
    }
    context.member->commit(meta, plan, segment, listed > 0 ? listed : octets, now);
    pending.done += octets;
    if (message != nullptr) {
        message->started = true;
        message->sent += octets;
    }
    if (meta.last) context.counters.add(Counter::messages_sent);
    if (pending.done == octets_of(record)) finish(pending, Err::kOk);
    return true;
}

// Ends a record that needs the transport no more. A failure of a message in chunks is that of the
// whole rest.
void SendQueue::finish(Pending& pending, Err status) noexcept {
    pending.status = status;
    pending.state = State::kAnswer;
    if (status == Err::kOk) return;
    if (pending.message != kNoMessage) open_[pending.message].status = status;
    note_failed(pending.record, status);
}

// Counts a message that ends here, because its receiver is gone. The chunks behind it are invalid,
// and so are those to a rank that the job lacks.
void SendQueue::note_failed(const SubmissionRecord& record, Err status) noexcept {
    const bool refused = status == Err::kPeerDied;
    const bool rest = status == Err::kInvalid && !is_whole(record);
    const bool ends = is_inline(record) || (record.flags & abi::kSubmitLast) != 0;
    if (!(refused || rest) || !ends || record.stream >= blocked_.ranks.size()) return;
    const auto rank = static_cast<Rank>(record.stream);
    auto it = std::ranges::find(failed_, rank, &Failed::rank);
    if (it == failed_.end()) it = failed_.insert(it, Failed{rank});
    ++(refused ? it->refused : it->rests);
}

// Says that a record is done, unless answer_acknowledged() will.
void SendQueue::answer(Pending& pending, const SendContext& context) noexcept {
    const SubmissionRecord& record = pending.record;
    if (pending.sink) {
        if (context.offloads != nullptr) context.offloads->on_sent(pending.sink, pending.status);
        pending.state = State::kDone;
        return;
    }
    const bool later = wants_acked(record, pending.gathered) && pending.status == Err::kOk;
    if (wants_answer(record) && !later && !context.client_gone) {
        // It failed, so no stream retransmits its packets; the port may not have taken all of them.
        if (pending.gathered) context.gathers->pull_tails();
        context.outlet.end_send(record.cookie, pending.status);
    }
    pending.state = State::kDone;
}

// One that is not acknowledged holds back none behind it: they may be for others.
bool SendQueue::answer_acknowledged(const SendContext& context) noexcept {
    std::size_t kept = 0;
    for (const Awaiting& one : awaiting_) {
        if (context.pool.holders(one.segment) > 1) {
            awaiting_[kept++] = one;
            continue;
        }
        // A frame that the port has not taken may be a retransmission of an earlier packet of this
        // payload.
        if (one.gathered && !context.client_gone) context.gathers->pull_tails();
        context.pool.drop(one.segment);
        if (!context.client_gone)
            context.outlet.end_send(one.cookie, one.failed ? Err::kPeerDied : Err::kOk);
    }
    const bool moved = kept < awaiting_.size();
    while (awaiting_.size() > kept)
        awaiting_.pop_back();
    return moved;
}

std::uint64_t SendQueue::waiting_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (std::uint32_t n = head_; n != tail_; ++n) {
        const Pending& pending = ring_[n & mask_];
        if (pending.state == State::kQueued) bytes += octets_of(pending.record) - pending.done;
    }
    return bytes;
}

void SendQueue::abort(const SegmentPool& pool) noexcept {
    head_ = tail_;
    retry_ = false;
    for (OpenMessage& message : open_)
        message.used = false;
    open_count_ = 0;
    for (const Awaiting& one : awaiting_)
        pool.drop(one.segment);
    awaiting_.clear();
    failed_.clear();
}

}  // namespace ulc::endpoint
