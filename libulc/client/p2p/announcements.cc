// SPDX-License-Identifier: BSD-3-Clause
#include "client/p2p/announcements.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "client/arrivals/arrival.h"
#include "client/p2p/outbox.h"
#include "client/p2p/rendezvous.h"
#include "client/p2p/tags.h"

namespace ulc::client {

void Announcements::set_threshold() noexcept {
    from_ = holding_ > 0 ? std::min(all_from_, kHeldOctetsMin) : all_from_;
}

bool Announcements::include(const SendArgs& args) const noexcept {
    if (group_of(args.stream) != 0 || args.tag >= kUserTagsEnd) return false;
    const bool held = held_[args.stream] && args.payload.length >= kHeldOctetsMin;
    return args.matched || held || args.payload.length >= all_from_;
}

bool Announcements::set_held(std::uint32_t peer, bool held) noexcept {
    if (held_[peer] == held) return false;
    held_[peer] = held;
    holding_ += held ? 1U : UINT32_MAX;
    set_threshold();
    return held && !leaving_;
}

bool Announcements::open(Request& request) noexcept {
    std::uint32_t index = free_;
    if (index != kNone) {
        free_ = table_[index].next_free;
    } else {
        if (table_.size() == kMax) return false;
        try {
            table_.emplace_back();
        } catch (const std::bad_alloc&) {
            return false;
        }
        index = static_cast<std::uint32_t>(table_.size()) - 1;
    }
    table_[index].request = &request;
    request.id = index | table_[index].generation << kIndexBits;
    return true;
}

void Announcements::close(std::uint32_t id) noexcept {
    Entry& one = table_[id & kIndexMask];
    one.request = nullptr;
    one.generation = (one.generation + 1) & (UINT32_MAX >> kIndexBits);
    one.next_free = free_;
    free_ = id & kIndexMask;
}

Request* Announcements::find(std::uint32_t id) const noexcept {
    const std::uint32_t index = id & kIndexMask;
    Request* request = index < table_.size() ? table_[index].request : nullptr;
    return request != nullptr && request->id == id ? request : nullptr;
}

void Announcements::check_invariants() const {
    ULC_CHECK(holding_ == static_cast<std::uint32_t>(std::ranges::count(held_, true)));
    ULC_CHECK(from_ == (holding_ > 0 ? std::min(all_from_, kHeldOctetsMin) : all_from_));
    for (std::size_t i = 0; i < table_.size(); ++i) {
        const Request* request = table_[i].request;
        if (request == nullptr) continue;
        ULC_CHECK((request->id & kIndexMask) == i);
        ULC_CHECK(request->announces || request->state == RequestState::kAnnounced);
    }
}

}  // namespace ulc::client
