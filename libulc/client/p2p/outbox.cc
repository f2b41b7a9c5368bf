// SPDX-License-Identifier: BSD-3-Clause
#include "client/p2p/outbox.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/group_handle.h"
#include "client/arrivals/arrival.h"

namespace ulc::client {
namespace {

constexpr std::uint32_t kChunkOctetsMin = 4096;
constexpr unsigned kBlockedMax = 64;  ///< blocked requests checked in one pass
constexpr int kDoneMax = 1024;        ///< sends that one call finds done
/// Sends out, above which none begins that the engine reads from the caller's memory. They take no
/// memory that would run out, and only a client that polls hears that its receiver wants no more.
constexpr std::uint32_t kDirectInFlightMax = 512;

}  // namespace

Request SendArgs::request() const noexcept {
    Request request{};
    request.state = RequestState::kQueued;
    request.has_subset = has_subset;
    request.tag = tag;
    request.delivered = delivered;
    request.matched = matched;
    request.lies_in(payload);
    request.subset = subset;
    request.stream = stream;
    return request;
}

Outbox::Outbox(const abi::Region& region, Submitter& submitter) noexcept
    : submitter_(submitter),
      done_(region.send_done_consumer()),
      reaches_process_(region.reaches_process()),
      arena_(region.tx(0, region.layout().tx_arena_octets), region.layout().tx_arena_octets),
      chunk_octets_(std::clamp(arena_.largest_block() / 8, kChunkOctetsMin, kChunkOctetsMax)),
      in_flight_(region.layout().dq_entries) {}

// Requests of callers may be gone by now: only our own are touched.
Outbox::~Outbox() {
    while (Detached* detached = detached_.pop_front())
        std::free(detached);
}

bool Outbox::begin_job(std::uint16_t ranks) noexcept {
    try {
        peers_.assign(ranks, Peer{});
        announcements_.begin_job(ranks);
        in_flight_.reserve();
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

int Outbox::send(const SendArgs& args, ulc_request* memory) noexcept {
    if ((args.payload.length >= announcements_.from() || args.matched) &&
        announcements_.include(args)) [[unlikely]]
        return send_announced(args, memory);
    if (memory == nullptr) {
        if (args.payload.length > chunk_octets_) return send_detached(args);
        if (must_queue(args.stream)) return ULC_ERR_AGAIN;
        Request request = args.request();
        request.detached = true;  // never zero-copy: the caller may change the payload at once
        return advance(request, true) == Step::kFinished ? ULC_OK : ULC_ERR_AGAIN;
    }
    auto* request = ::new (static_cast<void*>(memory)) Request(args.request());
    if (must_queue(args.stream) || advance(*request, false) != Step::kFinished) enqueue(*request);
    return ULC_OK;
}

// Sends a long message without a request: a copy waits in the pending list.
int Outbox::send_detached(const SendArgs& args) noexcept {
    int error = ULC_OK;
    Request* request = copy_detached(args, error);
    if (request == nullptr) return error;
    enqueue(*request);
    (void)progress();
    return ULC_OK;
}

// Makes a send of a copy, which is freed when it ends; nullptr: `error` says why not.
Request* Outbox::copy_detached(const SendArgs& args, int& error) noexcept {
    const std::uint64_t length = args.payload.length;
    if (detached_octets_ != 0 && detached_octets_ + length > kDetachedOctetsMax) {
        error = ULC_ERR_AGAIN;
        return nullptr;
    }
    void* memory = std::malloc(sizeof(Detached) + length);
    if (memory == nullptr) {
        error = ULC_ERR_NO_MEMORY;
        return nullptr;
    }
    auto* copy = static_cast<unsigned char*>(memory) + sizeof(Detached);
    auto* detached = ::new (memory) Detached{{}, args.request(), length};
    Request& request = detached->request;
    request.read(0, copy, length);
    request.lies_in(Pieces::one(copy, length));
    request.detached = true;
    request.owner = detached;
    detached_octets_ += length;
    detached_.push_back(*detached);
    return &request;
}

// Ends the request; a detached one in the pending list is freed.
void Outbox::end(Request& request, int error) noexcept {
    request.done(error);
    if (!request.detached) return;
    auto* detached = static_cast<Detached*>(request.owner);
    detached_octets_ -= detached->octets;
    detached_.remove(*detached);
    std::free(detached);
}

bool Outbox::must_queue(std::uint32_t stream) const noexcept {
    if (pending_.empty()) return false;
    if (is_group(stream) || pending_groups_ > 0) return true;
    return peers_[stream].pending > 0;
}

void Outbox::enqueue(Request& request) noexcept {
    pending_.push_back(request);
    if (is_group(request.stream)) {
        ++pending_groups_;
    } else {
        ++peers_[request.stream].pending;
    }
}

void Outbox::dequeue(Request& request) noexcept {
    pending_.remove(request);
    if (is_group(request.stream)) {
        --pending_groups_;
    } else {
        --peers_[request.stream].pending;
    }
}

unsigned Outbox::advance_pending() noexcept {
    unsigned ended = 0;
    unsigned blocked = 0;
    ++pass_;
    for (Request* request = pending_.front(); request != nullptr;) {
        Request* const after = RequestList::next(*request);
        const bool group = is_group(request->stream);
        if (group && blocked > 0) break;  // it shares a receiver with a blocked one
        if (!group && peers_[request->stream].blocked_pass == pass_) {
            request = after;
            continue;
        }
        const Step step = advance(*request, false);
        if (step == Step::kFinished) {
            dequeue(*request);
            ++ended;
            if (request->detached && request->state == RequestState::kDone) end(*request, ULC_OK);
        } else if (step == Step::kRingFull || group || ++blocked == kBlockedMax) {
            break;
        } else {
            peers_[request->stream].blocked_pass = pass_;
        }
        request = after;
    }
    return ended;
}

Outbox::Step Outbox::advance(Request& request, bool whole_only) noexcept {
    if (request.announces) [[unlikely]]
        return hand_announcement(request);
    if (request.capacity <= abi::kInlineOctetsMax && !request.has_subset)
        return hand_inline(request);
    if (!request.detached && request.length == 0 && request.capacity > 0) {
        std::uint32_t offset = 0;
        if (reaches_process_ && request.capacity >= kDirectOctetsMin &&
            request.capacity <= UINT32_MAX)
            return hand_whole(request, abi::kSubmitDirect, 0);
        if (request.pieces == nullptr &&
            arena_.contains(request.payload, request.capacity, &offset))
            return hand_whole(request, 0, offset);
    }
    Step step{};
    do {
        step = hand_chunk(request, whole_only);
        if (step != Step::kFinished) return step;
    } while (request.length < request.capacity);
    request.handed_over();
    return Step::kFinished;
}

Outbox::Step Outbox::hand_inline(Request& request) noexcept {
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kSend);
    if (record == nullptr) return Step::kRingFull;
    if (request.delivered) {
        record->cookie = in_flight_.take();
        if (record->cookie == kNoCookie) return Step::kBlocked;
        in_flight_[record->cookie].request = &request;
        in_flight_[record->cookie].stream = request.stream;
    }
    describe_inline(*record, request.stream, request.tag, request.capacity);
    if (request.delivered) record->flags |= abi::kSubmitNotifyAcked;
    if (request.capacity > 0) request.read(0, record->body.inline_octets, request.capacity);
    submitter_.publish();
    request.length = request.capacity;
    request.handed_over();
    return Step::kFinished;
}

void Outbox::fill(abi::SubmissionRecord& record, const Request& request, std::uint32_t cookie,
                  std::uint32_t offset, std::uint32_t octets) noexcept {
    unsigned flags = abi::kSubmitNotify;
    if (request.tag != 0) flags |= abi::kSubmitHasTag;
    if (request.has_subset) flags |= abi::kSubmitHasSubset;
    if (request.length == 0) flags |= abi::kSubmitFirst;
    if (request.length + octets == request.capacity) {
        flags |= abi::kSubmitLast;
        if (request.delivered) flags |= abi::kSubmitNotifyAcked;
    }
    record.flags = static_cast<std::uint8_t>(flags);
    record.stream = request.stream;
    record.cookie = cookie;
    record.tag = request.tag;
    record.body.block = {offset, octets, request.capacity, request.subset, request.length, 0};
}

/// Submits a payload that is read in place.
Outbox::Step Outbox::hand_whole(Request& request, std::uint8_t flag,
                                std::uint32_t offset) noexcept {
    if ((flag & abi::kSubmitDirect) != 0 && in_flight_.count() >= kDirectInFlightMax)
        return Step::kBlocked;
    const std::uint32_t cookie = in_flight_.take();
    if (cookie == kNoCookie) return Step::kBlocked;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kSend);
    if (record == nullptr) {
        in_flight_.drop(cookie);
        return Step::kRingFull;
    }
    fill(*record, request, cookie, offset, static_cast<std::uint32_t>(request.capacity));
    record->flags |= flag;
    if ((flag & abi::kSubmitDirect) != 0) {
        record->body.block.offset = request.piece_count;
        record->body.block.address = request.pieces == nullptr
                                         ? std::bit_cast<std::uintptr_t>(request.payload)
                                         : std::bit_cast<std::uintptr_t>(request.pieces);
    }
    in_flight_[cookie].request = &request;
    in_flight_[cookie].stream = request.stream;
    request.length = request.capacity;
    request.state = RequestState::kSubmitted;
    submitter_.publish();
    return Step::kFinished;
}

Outbox::Step Outbox::hand_chunk(Request& request, bool whole_only) noexcept {
    const std::uint64_t left = request.capacity - request.length;
    auto octets = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, chunk_octets_));
    std::uint32_t& held = held_by(request.stream);
    if (held != 0 && held + octets > arena_.octets() / 2) return Step::kBlocked;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kSend);
    if (record == nullptr) return Step::kRingFull;
    const std::uint32_t cookie = in_flight_.take();
    if (cookie == kNoCookie) return Step::kBlocked;
    InFlight::Entry& entry = in_flight_[cookie];
    if (octets > 0) {
        entry.block = arena_.allocate(octets);
        while (entry.block == TxArena::kNone && !whole_only && octets > kChunkOctetsMin) {
            octets /= 2;  // the part that is in one piece
            entry.block = arena_.allocate(octets);
        }
        if (entry.block == TxArena::kNone) {
            in_flight_.drop(cookie);
            return Step::kBlocked;
        }
        request.read(request.length, arena_.at(entry.block), octets);
    }
    if (request.delivered && request.length + octets == request.capacity) entry.request = &request;
    entry.octets = octets;
    entry.stream = request.stream;
    held += octets;
    fill(*record, request, cookie, octets > 0 ? entry.block : 0, octets);
    request.length += octets;
    submitter_.publish();
    return Step::kFinished;
}

std::uint32_t& Outbox::held_by(std::uint32_t stream) noexcept {
    return is_group(stream) ? group_octets_ : peers_[stream].arena_octets;
}

int Outbox::take_all_done() noexcept {
    int taken = 0;
    for (abi::SendDone done{}; taken < kDoneMax && done_.take(done); ++taken)
        if (!on_done(done)) return -1;
    return taken;
}

bool Outbox::on_done(const abi::SendDone& done) noexcept {
    if (!in_flight_.has(done.cookie)) return false;
    const InFlight::Entry entry = in_flight_[done.cookie];
    in_flight_.drop(done.cookie);
    if (entry.block != TxArena::kNone) ULC_CHECK(arena_.free(entry.block));
    std::uint32_t& held = held_by(entry.stream);
    held -= std::min(held, entry.octets);
    if (entry.request != nullptr) entry.request->done(static_cast<int>(done.status));
    return true;
}

unsigned Outbox::peer_gone(std::uint16_t rank, int error) noexcept {
    unsigned messages = 0;
    for (Request* request = pending_.front(); request != nullptr;) {
        Request* const after = RequestList::next(*request);
        if (request->stream == rank) {
            dequeue(*request);
            if (request->announces) announcements_.close(request->id);
            end(*request, error);
            ++messages;
        }
        request = after;
    }
    announced_peer_gone(rank, error);
    return messages;
}

void Outbox::fail_all(int error) noexcept {
    while (!pending_.empty()) {
        Request& request = *pending_.front();
        dequeue(request);
        if (request.announces) announcements_.close(request.id);
        end(request, error);
    }
    in_flight_.fail_all(error);
    announcements_.each([&](Request& request) { end(request, error); });
    announcements_.clear();
}

void Outbox::check_invariants() const {
    std::uint32_t groups = 0;
    std::vector<std::uint32_t> pending(peers_.size());
    for (const Request* r = pending_.front(); r != nullptr; r = RequestList::next(*r)) {
        ULC_CHECK(r->state == RequestState::kQueued);
        ++(is_group(r->stream) ? groups : pending[r->stream]);
    }
    ULC_CHECK(groups == pending_groups_);
    std::uint64_t held = group_octets_;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        ULC_CHECK(pending[rank] == peers_[rank].pending);
        held += peers_[rank].arena_octets;
    }
    ULC_CHECK(held == in_flight_.check_invariants());
    std::uint64_t copied = 0;
    for (const Detached* d = detached_.front(); d != nullptr; d = DetachedList::next(*d))
        copied += d->octets;
    ULC_CHECK(copied == detached_octets_);
    announcements_.check_invariants();
}

}  // namespace ulc::client
