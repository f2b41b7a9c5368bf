// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/sender/stream_tx.h"

#include <algorithm>
#include <new>

#include "base/check.h"

namespace ulc::urtp {
namespace {

/// In the arrays of a stream, for each member of a group.
constexpr std::size_t kMemberOctets = 2 * sizeof(Seq) + sizeof(std::uint32_t) + sizeof(Rank);

}  // namespace

TxStream::TxStream(StreamId stream, Group* of_group, std::span<const Rank> of_members,
                   std::size_t own, std::uint32_t ring, Seq first, Nanos initial_rtt)
    : id(stream),
      window(ring),
      base(first),
      sent(first),
      tail(first),
      limit(first + ring),
      cwnd(ring),
      asked(first),
      freed(first),
      slots(std::make_unique<TxSlot[]>(ring)),
      members(static_cast<std::uint16_t>(of_members.size())),
      group(of_group),
      destinations(members),
      rtt(initial_rtt) {
    ULC_CHECK((ring & (ring - 1)) == 0);
    if (members > 1) {
        auto* at = static_cast<std::byte*>(::operator new(kMemberOctets* members));
        const auto array = [&at, this]<typename T>(T*& out) {
            out = ::new (static_cast<void*>(at)) T[members];
            at += sizeof(T) * members;
        };
        array(next);
        array(edge);
        array(absent);
        array(rank);
    } else {
        next = &single_.next;
        edge = &single_.edge;
        absent = &single_rest_.absent;
        rank = &single_rest_.rank;
    }
    for (std::uint32_t i = 0; i < members; ++i) {
        next[i] = first;
        edge[i] = limit;
        absent[i] = 0;
        rank[i] = of_members[i];
    }
    if (own < members) {
        absent[own] = UINT32_MAX;
        --destinations;
    }
    timer.kind = TimerOwner::kSend;
    timer.owner = this;
}

TxStream::~TxStream() {
    if (members > 1) ::operator delete(next);
}

bool TxStream::acknowledge_one_of(std::uint32_t at, Seq seen) noexcept {
    const bool was_last = next[at] == base;
    next[at] = seen;
    return was_last && settle_base();
}

bool TxStream::settle_base() noexcept {
    // Offsets from base are small and unsigned: the least of them is the new base, across the wrap
    // too.
    std::uint32_t least = tail.value - base.value;
    for (std::uint32_t i = 0; i < members; ++i) {
        least = std::min(least, (next[i].value - base.value) | absent[i]);
    }
    base = base + least;
    return least != 0;
}

void TxStream::allow_one_of(std::uint32_t at, Seq beyond) noexcept {
    const bool was_least = edge[at] == limit;
    edge[at] = beyond;
    if (beyond.before(limit)) {
        limit = beyond;
    } else if (was_least) {
        settle_limit();
    }
}

void TxStream::settle_limit() noexcept {
    std::uint32_t least = UINT32_MAX;
    for (std::uint32_t i = 0; i < members; ++i) {
        least = std::min(least, (edge[i].value - base.value) | absent[i]);
    }
    limit = base + (least == UINT32_MAX ? window : least);
}

bool TxStream::remove_destination(std::uint32_t at) noexcept {
    ULC_CHECK(at < members && is_destination(at));
    absent[at] = UINT32_MAX;
    --destinations;
    settle_limit();
    return settle_base();
}

}  // namespace ulc::urtp
