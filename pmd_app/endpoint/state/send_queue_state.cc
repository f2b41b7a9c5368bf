// SPDX-License-Identifier: BSD-3-Clause
// State of send_queue.h.
#include <algorithm>

#include "base/state/containers.h"
#include "endpoint/send_queue.h"
#include "wire/state/ids.h"

namespace ulc::endpoint {
namespace {

constexpr const char* kFuller = "a send queue is fuller than it can be";
constexpr const char* kNoSend = "a send that waits is none that a client may submit";

}  // namespace

void SendQueue::Pending::fields(state::Archive& archive) {
    ULC_STATE(archive, SendQueue::Pending, 2, (done, state, message, status, gathered, key, sink),
              (record));
    archive.octets(std::as_writable_bytes(std::span(&record, 1)));
}

void SendQueue::OpenMessage::fields(state::Archive& archive) {
    ULC_STATE(archive, SendQueue::OpenMessage, 1,
              (length, submitted, sent, subset, stream, records, status, has_subset, used, started,
               complete, stalled),
              ());
}

void SendQueue::Awaiting::fields(state::Archive& archive) {
    ULC_STATE(archive, SendQueue::Awaiting, 1, (cookie, stream, gathered, failed), (segment));
}

void SendQueue::fields(state::Archive& archive, const abi::Region& region,
                       const SegmentPool& pool) {
    ULC_STATE(archive, SendQueue, 1, (head_, tail_, retry_, open_),
              (mask_, open_count_, ring_, blocked_, awaiting_, failed_));
    std::size_t ranks = blocked_.ranks.size();
    const std::size_t awaiting = archive.count(awaiting_.size(), kAwaitingMax, kFuller);
    archive.bounded(ranks, kNoRank + std::size_t{1}, kFuller);
    if (archive.importing()) {
        if (blocked_.ranks.size() == 0) begin_job(ranks);  // else its member has begun the job
        open_count_ =
            static_cast<std::uint32_t>(std::ranges::count(open_, true, &OpenMessage::used));
        awaiting_.clear();
        for (const OpenMessage& message : open_)
            archive.require(!message.used || may_block(message.stream), kNoSend);
    }
    for (std::size_t n = 0; n < awaiting && archive.ok(); ++n) {
        if (archive.importing()) (void)awaiting_.push_back({});
        archive.values(awaiting_[n]);
        archive.frame(awaiting_[n].segment, pool);
        if (!archive.require(awaiting_[n].segment != nullptr, kNoSend)) awaiting_.pop_back();
    }
    if (!archive.require(tail_ - head_ <= mask_ + 1, kFuller)) tail_ = head_;
    for (std::uint32_t n = head_; n != tail_ && archive.ok(); ++n) {
        Pending& pending = at(n);
        archive.values(pending);
        if (archive.importing()) archive.require(may_wait(pending, region), kNoSend);
    }
}

/// Judges a record that waits for the transport as accept() did. Its destination may be blocked.
bool SendQueue::may_wait(const Pending& pending, const abi::Region& region) const noexcept {
    if (pending.state != State::kQueued) return true;
    const std::uint32_t stream = pending.record.stream;
    const bool of_message = pending.message < kOpenMax && open_[pending.message].used;
    return shape_valid(pending.record, region) && (pending.message == kNoMessage || of_message) &&
           may_block(stream);
}

bool SendQueue::may_block(std::uint32_t stream) const noexcept {
    return is_group(stream) || stream < blocked_.ranks.size();
}

}  // namespace ulc::endpoint
