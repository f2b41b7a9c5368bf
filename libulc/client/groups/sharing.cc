// SPDX-License-Identifier: BSD-3-Clause
#include "client/groups/sharing.h"

#include <algorithm>
#include <cstring>

#include "client/p2p/tags.h"

namespace ulc::client {

Sharing::Group* Sharing::find(std::uint32_t handle) noexcept {
    const auto at = std::ranges::find(groups_, handle, &Group::handle);
    return at == groups_.end() ? nullptr : &*at;
}

/// Returns true if no member has to listen first, else false.
bool Sharing::decided(std::uint32_t group, AddressId address, AddressId own) {
    const bool now = address == own || address == kBroadcastAddress;
    errands_.push_back({now ? What::kUse : What::kListen, 0, group, address});
    return now;
}

void Sharing::agreed(std::uint32_t group, AddressId address, AddressId own,
                     std::uint16_t coordinator) {
    if (!decided(group, address, own)) groups_.push_back({group, address, coordinator, {}, {}});
    progress();
}

void Sharing::agreed_here(std::uint32_t group, AddressId address, AddressId own,
                          std::span<const std::uint16_t> ranks, std::uint16_t self) {
    self_ = self;
    if (!decided(group, address, own)) {
        Group& shared = groups_.emplace_back();
        shared.handle = group;
        shared.address = address;
        shared.coordinator = self;
        shared.waiting.assign(ranks.begin(), ranks.end());
        shared.others = shared.waiting;
        std::erase(shared.others, self);
    }
    progress();
}

void Sharing::on_listens(std::uint32_t handle, AddressId address, int status) {
    Group* group = find(handle);
    if (group == nullptr || group->address != address) return;
    if (status !=
        // Its place is gone; the coordinator waits without result, and the group stays at broadcast
        ULC_OK) {
        forget(handle);
    } else if (group->others.empty()) {
        errands_.push_back({What::kSayListening, group->coordinator, handle, address});
    } else {
        on_listening(*group, self_);
    }
    progress();
}

void Sharing::on_listening(Group& group, std::uint16_t rank) {
    if (std::erase(group.waiting, rank) == 0 || !group.waiting.empty()) return;
    for (const std::uint16_t other : group.others)
        errands_.push_back({What::kSayUse, other, group.handle, group.address});
    errands_.push_back({What::kUse, 0, group.handle, group.address});
    std::erase_if(groups_, [&](const Group& each) { return &each == &group; });
}

bool Sharing::on_word(std::uint16_t source, std::uint64_t tag,
                      std::span<const unsigned char> octets) {
    Word word;
    if (octets.size() < sizeof word) return false;
    std::memcpy(&word, octets.data(), sizeof word);
    Group* group = find(word.group);
    if (group == nullptr || group->address != word.address) return true;  // abandoned meanwhile
    if (tag == kTagListening) {
        on_listening(*group, source);
    } else if (source == group->coordinator && group->others.empty()) {
        errands_.push_back({What::kUse, 0, group->handle, group->address});
        std::erase_if(groups_, [&](const Group& each) { return &each == group; });
    }
    progress();
    return true;
}

void Sharing::forget(std::uint32_t handle) noexcept {
    std::erase_if(groups_, [&](const Group& group) { return group.handle == handle; });
    std::erase_if(errands_, [&](const Errand& errand) { return errand.group == handle; });
}

void Sharing::peer_gone(std::uint16_t rank) noexcept {
    std::erase_if(groups_, [&](const Group& group) {
        return group.coordinator == rank || std::ranges::count(group.others, rank) > 0;
    });
    std::erase_if(errands_, [&](const Errand& errand) {
        return errand.what >= What::kSayListening && errand.rank == rank;
    });
}

bool Sharing::run(const Errand& errand) {
    if (errand.what <= What::kUse) {
        abi::SubmissionRecord* record =
            submitter_.claim(errand.what == What::kListen ? abi::SubmitKind::kListenGroup
                                                          : abi::SubmitKind::kUseAddress);
        if (record == nullptr) return false;
        record->stream = errand.group;
        record->cookie = errand.address;
        submitter_.publish();
        return true;
    }
    Word word;
    word.group = errand.group;
    word.address = errand.address;
    SendArgs args;
    args.stream = errand.rank;
    args.tag = errand.what == What::kSayUse ? kTagUse : kTagListening;
    args.payload = Pieces::one(&word, sizeof word);
    return outbox_.send(args, nullptr) == ULC_OK;
}

void Sharing::run_errands() {
    std::erase_if(errands_, [this](const Errand& errand) { return run(errand); });
}

}  // namespace ulc::client
