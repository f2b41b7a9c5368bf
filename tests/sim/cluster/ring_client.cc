// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/ring_client.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/fnv.h"

namespace ulc::sim {

using abi::CompletionKind;
using abi::SubmissionRecord;
using abi::SubmitKind;

namespace {

/// Cookie of blocks that name ranks or a job
constexpr std::uint32_t kControlCookie = 0x80000000U;

/// Mixes what a completion says into the hash, without the payload.
void mix(std::uint64_t& digest, const abi::CompletionRecord& record) {
    for (const std::uint64_t word :
         {static_cast<std::uint64_t>(record.kind), std::uint64_t{record.flags},
          std::uint64_t{record.source}, static_cast<std::uint64_t>(record.status),
          std::uint64_t{record.stream}, record.tag})
        digest = fnv1a(digest, word);
}
void mix(std::uint64_t& digest, const abi::SendDone& done) {
    for (const auto word : {done.cookie, static_cast<std::uint32_t>(done.status)})
        digest = fnv1a(digest, word);
}

}  // namespace

RegionMemory::RegionMemory(const abi::RegionSizes& sizes) {
    const auto layout = abi::compute_layout(sizes);
    ULC_CHECK(layout.ok());
    layout_ = layout.value();
    base_ = std::aligned_alloc(abi::kPageOctets, layout_.region_octets);
    ULC_CHECK(base_ != nullptr);
    std::memset(base_, 0, layout_.region_octets);
}

RegionMemory::~RegionMemory() { std::free(base_); }

RingClient::RingClient(void* base, const abi::RegionLayout& layout, abi::Reach reach)
    : region_(base, layout, reach),
      submissions_(region_.submission_producer()),
      completions_(region_.completion_consumer()),
      dones_(region_.send_done_consumer()),
      releases_(region_.release_producer()) {}

// Allocates by first fit over the used blocks; returns kNone if there is no space.
std::uint32_t RingClient::allocate(std::uint32_t octets, std::uint32_t cookie) {
    const std::uint32_t wanted = (std::max(octets, 1U) + 63U) & ~63U;
    std::uint32_t at = 0;
    for (const auto& [offset, length] : used_) {
        if (offset - at >= wanted) break;
        at = offset + length;
    }
    if (at + wanted > region_.layout().tx_arena_octets) return UINT32_MAX;
    used_[at] = wanted;
    block_of_cookie_[cookie] = at;
    return at;
}

bool RingClient::submit(const SubmissionRecord& record) { return submissions_.push(record); }

bool RingClient::join(std::string_view name, Rank own_rank, std::uint16_t job_size,
                      std::uint8_t nonce, Nanos patience) {
    abi::JoinRequest request{};
    request.name_length = static_cast<std::uint16_t>(name.size());
    std::memcpy(request.name, name.data(), name.size());
    request.rank = own_rank;
    request.size = job_size;
    request.nonce[0] = nonce;
    request.patience_ns = static_cast<std::uint64_t>(patience);
    const std::uint32_t at = allocate(sizeof request, kControlCookie);
    if (at == UINT32_MAX) return false;
    std::memcpy(region_.tx(at, sizeof request), &request, sizeof request);
    SubmissionRecord record{};
    record.kind = SubmitKind::kJoinJob;
    record.body.block = {at, sizeof request, 0, 0, 0, 0};
    return submit(record);
}

bool RingClient::send(std::uint32_t stream, std::uint64_t tag, std::span<const std::byte> payload,
                      std::uint64_t subset, std::uint8_t extra_flags) {
    if (submissions_.room() == 0) return false;
    SubmissionRecord record{};
    record.kind = SubmitKind::kSend;
    record.stream = stream;
    record.tag = tag;
    record.cookie = cookie_;
    record.flags = static_cast<std::uint8_t>(abi::kSubmitFirst | abi::kSubmitLast |
                                             abi::kSubmitHasTag | extra_flags);
    const auto octets = static_cast<std::uint32_t>(payload.size());
    if (octets <= abi::kInlineOctetsMax && subset == 0) {
        record.flags |= abi::kSubmitInline;
        record.inline_length = static_cast<std::uint16_t>(octets);
        if (octets > 0) std::memcpy(record.body.inline_octets, payload.data(), octets);
    } else if (region_.reaches_process() && octets >= kDirectMin) {
        const auto& kept = direct_[cookie_] = {payload.begin(), payload.end()};
        record.flags |= abi::kSubmitDirect;
        if (subset != 0) record.flags |= abi::kSubmitHasSubset;
        record.body.block = {0,      octets, octets,
                             subset, 0,      std::bit_cast<std::uintptr_t>(kept.data())};
    } else {
        const std::uint32_t at = allocate(octets, cookie_);
        if (at == UINT32_MAX) return false;
        if (octets > 0) std::memcpy(region_.tx(at, octets), payload.data(), octets);
        if (subset != 0) record.flags |= abi::kSubmitHasSubset;
        record.body.block = {at, octets, octets, subset, 0, 0};
    }
    ULC_CHECK(submit(record));
    ++cookie_;
    return true;
}

bool RingClient::send_chunk(std::uint32_t stream, std::uint64_t tag,
                            std::span<const std::byte> payload, std::uint64_t offset,
                            std::uint64_t total) {
    if (submissions_.room() == 0) return false;
    const auto octets = static_cast<std::uint32_t>(payload.size());
    const std::uint32_t at = allocate(octets, cookie_);
    if (at == UINT32_MAX) return false;
    std::memcpy(region_.tx(at, octets), payload.data(), octets);
    SubmissionRecord record{};
    record.kind = SubmitKind::kSend;
    record.stream = stream;
    record.tag = tag;
    record.cookie = cookie_++;
    record.flags =
        static_cast<std::uint8_t>(abi::kSubmitHasTag | (offset == 0 ? abi::kSubmitFirst : 0) |
                                  (offset + octets == total ? abi::kSubmitLast : 0));
    record.body.block = {at, octets, total, 0, offset, 0};
    return submit(record);
}

bool RingClient::add_group(GroupHandle handle, std::span<const Rank> ranks) {
    const auto octets = static_cast<std::uint32_t>(ranks.size() * sizeof(Rank));
    const std::uint32_t at = allocate(octets, kControlCookie | (handle & 0x7fffffffU));
    if (at == UINT32_MAX) return false;
    if (octets > 0) std::memcpy(region_.tx(at, octets), ranks.data(), octets);
    SubmissionRecord record{};
    record.kind = SubmitKind::kAddGroup;
    record.stream = handle;
    record.cookie = cookie_++;
    record.body.block = {at, octets, 0, 0, 0, 0};
    return submit(record);
}

bool RingClient::remove_group(GroupHandle handle) {
    SubmissionRecord record{};
    record.kind = SubmitKind::kRemoveGroup;
    record.stream = handle;
    return submit(record);
}

bool RingClient::expect(Rank source) {
    SubmissionRecord record{};
    record.kind = SubmitKind::kExpect;
    record.stream = source;
    return submit(record);
}

bool RingClient::set_hold(Nanos limit, bool excludes, std::span<const Rank> keep) {
    SubmissionRecord record{};
    record.kind = SubmitKind::kHold;
    record.flags = abi::kSubmitInline;
    record.tag = static_cast<std::uint64_t>(limit);
    record.stream = excludes ? abi::kHoldExcludes : 0;
    record.inline_length = static_cast<std::uint16_t>(keep.size_bytes());
    if (!keep.empty()) std::memcpy(record.body.inline_octets, keep.data(), keep.size_bytes());
    return submit(record);
}

bool RingClient::leave() {
    SubmissionRecord record{};
    record.kind = SubmitKind::kLeave;
    return submit(record);
}

bool RingClient::open_links(std::uint16_t slots, std::uint8_t key) {
    abi::OpenLinksRequest request{};
    request.key[0] = key;
    request.links = slots;
    const std::uint32_t at = allocate(sizeof request, kControlCookie);
    if (at == UINT32_MAX) return false;
    std::memcpy(region_.tx(at, sizeof request), &request, sizeof request);
    SubmissionRecord record{};
    record.kind = SubmitKind::kOpenLinks;
    record.body.block = {at, sizeof request, 0, 0, 0, 0};
    return submit(record);
}

std::uint32_t RingClient::link(const Address& to, Nanos timeout) {
    abi::LinkCall call{};
    std::memcpy(call.address, to.data(), to.size());
    call.timeout_ns = static_cast<std::uint64_t>(timeout);
    SubmissionRecord record{};
    record.kind = SubmitKind::kLink;
    record.cookie = cookie_++;
    std::memcpy(record.body.inline_octets, &call, sizeof call);
    return submit(record) ? record.cookie : 0;
}

bool RingClient::ask_near(Rank peer) {
    SubmissionRecord record{};
    record.kind = SubmitKind::kNear;
    record.stream = peer;
    return submit(record);
}

bool RingClient::unlink(Rank slot) {
    SubmissionRecord record{};
    record.kind = SubmitKind::kUnlink;
    record.stream = slot;
    return submit(record);
}

// A client has fewer than 2^16 sends out, so the last cookie with these bits is the one.
void RingClient::on_send_done(const abi::SendDone& done) {
    const std::uint32_t last = cookie_ - 1;  // those that tests write may be higher
    const bool wraps = last > 0xffffU;
    const std::uint32_t cookie = wraps ? last - ((last - done.cookie) & 0xffffU) : done.cookie;
    if (auto it = block_of_cookie_.find(cookie); it != block_of_cookie_.end()) {
        used_.erase(it->second);
        block_of_cookie_.erase(it);
    }
    direct_.erase(cookie);
    if (!sends_done.emplace(cookie, static_cast<int>(done.status)).second) ++broken;
}

unsigned RingClient::take_sends_done() {
    unsigned taken = 0;
    for (abi::SendDone done{}; dones_.take(done); ++taken) {
        mix(digest, done);
        on_send_done(done);
    }
    return taken;
}

unsigned RingClient::poll(unsigned limit) {
    const unsigned sent = take_sends_done();
    unsigned taken = 0;
    for (; taken < limit; ++taken) {
        const abi::CompletionRecord* record = completions_.front();
        if (record == nullptr) break;
        mix(digest, *record);
        on_record(*record);
        completions_.pop();
    }
    return sent + taken;
}

void RingClient::on_message(const abi::CompletionRecord& record) {
    const bool first = (record.flags & abi::kCompleteFirst) != 0;
    const bool last = (record.flags & abi::kCompleteLast) != 0;
    const bool is_inline = (record.flags & abi::kCompleteInline) != 0;
    Open& open = open_[record.source];
    if (links_open && !peers_.contains(record.source)) ++early;
    if (record.status != 0) {
        open.active = false;
        return;
    }
    if (first == open.active) ++broken;
    const std::uint32_t length = is_inline ? record.inline_length : record.body.block.length;
    if (first) {
        open.active = true;
        open.message = {record.source,
                        record.stream,
                        record.tag,
                        (record.flags & abi::kCompleteHasTag) != 0,
                        {}};
        open.length = is_inline ? length : record.body.block.message_length;
    }
    const std::byte* payload = is_inline
                                   ? reinterpret_cast<const std::byte*>(record.body.inline_octets)
                                   : region_.rx(record.body.block.offset, length);
    if (payload == nullptr || (is_inline && length > abi::kInlineOctetsMax) ||
        record.stream != open.message.stream ||
        (!is_inline && record.body.block.message_offset != open.message.payload.size())) {
        ++broken;
        return;
    }
    open.message.payload.insert(open.message.payload.end(), payload, payload + length);
    if (!is_inline && !keep_) release(record.body.block.offset);
    if (!last) return;
    open.active = false;
    if (open.message.payload.size() != open.length) ++broken;
    messages.push_back(std::move(open.message));
}

void RingClient::on_link_record(const abi::CompletionRecord& record) {
    switch (record.kind) {
        case CompletionKind::kLinksOpen:
            links_open = true;
            size = static_cast<std::uint16_t>(record.stream);
            std::memcpy(address.data(), record.body.inline_octets, address.size());
            return;
        case CompletionKind::kLinked:
            if (!peers_.insert(record.source).second) ++broken;
            linked.emplace_back(record.source, record.stream != 0);
            return;
        case CompletionKind::kLinkDone:
            link_done[static_cast<std::uint32_t>(record.tag)] = {record.source, record.status};
            return;
        case CompletionKind::kUnlinked:
            if (peers_.erase(record.source) != 1) ++broken;
            unlinked.push_back(record.source);
            open_.erase(record.source);
            return;
        default:
            ++broken;
    }
}

void RingClient::on_record(const abi::CompletionRecord& record) {
    switch (record.kind) {
        case CompletionKind::kMessage:
            on_message(record);
            return;
        case CompletionKind::kOffloadDone:
            offloads_done[record.stream] = record.status;
            return;
        case CompletionKind::kJobFormed:
            world = record.stream;
            rank = record.source;
            size = static_cast<std::uint16_t>(record.body.block.length);
            job_status = 0;
            return;
        case CompletionKind::kJobFailed:
            job_status = record.status;
            job_text = region_.control().failure;
            return;
        case CompletionKind::kGroupReady:
        case CompletionKind::kGroupFailed:
            groups[record.stream] = record.status;
            if (auto it = block_of_cookie_.find(kControlCookie | (record.stream & 0x7fffffffU));
                it != block_of_cookie_.end()) {
                used_.erase(it->second);
                block_of_cookie_.erase(it);
            }
            return;
        case CompletionKind::kGroupListens:
            listens[record.stream] = record.status;
            return;
        case CompletionKind::kPeerLeft:
            peers_left.push_back(record.source);
            open_.erase(record.source);
            return;
        case CompletionKind::kPeerDied:
            peers_died.push_back(record.source);
            open_.erase(record.source);
            return;
        case CompletionKind::kFault:
            reports.push_back(
                {static_cast<Err>(record.status), record.source, record.tag, record.stream});
            faults[record.source] += record.tag;  // a message that it aborts has a separate record
            return;
        case CompletionKind::kLinksOpen:
        case CompletionKind::kLinked:
        case CompletionKind::kLinkDone:
        case CompletionKind::kUnlinked:
            on_link_record(record);
            return;
        case CompletionKind::kNear:
            answered.push_back(record.source);
            near.erase(record.source);
            if (record.status == 0)
                std::memcpy(&near[record.source], record.body.inline_octets, sizeof(abi::NearRows));
            return;
        case CompletionKind::kLeft:
            left = true;
            left_status = record.status;
            if (left_status != 0)
                reports.push_back({static_cast<Err>(left_status), record.source, record.tag, 0});
            return;
    }
    ++broken;
}

}  // namespace ulc::sim
