// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective/offloads.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "client/collective/offload.h"
#include "client/p2p/submitter.h"
#include "client/p2p/tx_arena.h"

namespace ulc::client {

bool Offloads::submit(OffloadRun& run, std::uint32_t group, std::uint64_t tag,
                      std::span<const unsigned char> request) {
    std::uint32_t offset = 0;
    if (!arena_.contains(request.data(), request.size(), &offset)) return false;
    const auto free = std::ranges::find(running_, nullptr);
    const auto cookie = static_cast<std::uint32_t>(free - running_.begin());
    if (free == running_.end()) running_.push_back(nullptr);
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kOffload);
    if (record == nullptr) return false;
    record->stream = group;
    record->cookie = cookie;
    record->tag = tag;
    record->body.block = {offset, static_cast<std::uint32_t>(request.size()), 0, 0, 0, 0};
    submitter_.publish();
    running_[cookie] = &run;
    run.on_started(cookie);
    return true;
}

bool Offloads::cancel(std::uint32_t cookie) noexcept {
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kCancelOffload);
    if (record == nullptr) return false;
    record->cookie = cookie;
    submitter_.publish();
    return true;
}

bool Offloads::on_done(const abi::CompletionRecord& record) noexcept {
    if (record.stream >= running_.size() || running_[record.stream] == nullptr) return false;
    std::exchange(running_[record.stream], nullptr)->on_done(record);
    return true;
}

void Offloads::fail_all(int error) noexcept {
    for (OffloadRun*& run : running_)
        if (run != nullptr) std::exchange(run, nullptr)->on_ended(error);
}

void* Offloads::set_aside(std::size_t octets) noexcept {
    const std::size_t half = arena_.octets() / 2;
    if (octets > half || aside_ + std::bit_ceil(octets) > half) return nullptr;
    void* memory = arena_.allocate_memory(octets);
    if (memory != nullptr) aside_ += std::bit_ceil(octets);
    return memory;
}

void Offloads::give_back(void* memory, std::size_t octets) noexcept {
    ULC_CHECK(aside_ >= std::bit_ceil(octets));
    aside_ -= std::bit_ceil(octets);
    arena_.free_memory(memory);
}

void Offloads::check_invariants() const {
    ULC_CHECK(aside_ <= arena_.octets() / 2);
    for (std::uint32_t cookie = 0; cookie < running_.size(); ++cookie)
        ULC_CHECK(running_[cookie] == nullptr || running_[cookie]->cookie() == cookie);
}

}  // namespace ulc::client
