#include "client/groups.h"

#include <algorithm>
#include <cstring>

#include "base/group_handle.h"
#include "client/inquiry.h"

namespace ulc::client {
namespace {

constexpr std::uint64_t kLibulcTags = std::uint64_t{3} << 62;

std::uint64_t hash_of(std::span<const std::uint16_t> ranks) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a, 64 bits, over big-endian ranks
    for (const std::uint16_t rank : ranks) {
        hash = (hash ^ (rank >> 8U)) * 0x100000001b3U;
        hash = (hash ^ (rank & 0xffU)) * 0x100000001b3U;
    }
    return hash;
}

}  // namespace

void Groups::begin_job(std::uint32_t world, std::uint16_t self, std::uint16_t size,
                       std::uint16_t per_node) {
    world_ = world;
    self_ = self;
    size_ = size;
    Group all;
    all.own_index = self;
    all.per_node = per_node;
    all.ranks.resize(size);
    for (std::uint16_t rank = 0; rank < size; ++rank)
        all.ranks[rank] = rank;
    groups_.emplace(world, std::move(all));
}

const Group* Groups::find(std::uint32_t handle) const noexcept {
    const auto it = groups_.find(handle);
    return it == groups_.end() ? nullptr : &it->second;
}

Group* Groups::find(std::uint32_t handle) noexcept {
    const auto it = groups_.find(handle);
    return it == groups_.end() ? nullptr : &it->second;
}

// ---------------------------------------------------------------- creation

int Groups::create(std::span<const std::uint16_t> ranks, ulc_request* memory) {
    if (ranks.size() < 2 || ranks.size() > size_) return ULC_ERR_INVALID;
    std::vector<std::uint16_t> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    const bool repeats = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    const auto own = std::find(ranks.begin(), ranks.end(), self_);
    if (repeats || sorted.back() >= size_ || own == ranks.end()) return ULC_ERR_INVALID;
    if (groups_.size() + forming_.size() >= kGroupsMax) return ULC_ERR_LIMIT;

    Forming forming{};
    forming.ranks.assign(ranks.begin(), ranks.end());
    forming.list_hash = hash_of(ranks);
    forming.set_hash = hash_of(sorted);
    forming.nth = set_counts_[forming.set_hash];
    forming.handle = subgroup_handle(world_, ranks, list_counts_[forming.list_hash]);
    forming.coordinator = sorted.front();
    forming.own_index = static_cast<std::uint16_t>(own - ranks.begin());
    forming.missing = ranks.size() - 1;
    forming.heard.assign(ranks.size(), false);
    forming.stage = Stage::kRegistering;
    forming.cookie = kCookieBit | (next_cookie_ & ~kCookieBit);
    if (!submit_add(forming)) return ULC_ERR_AGAIN;
    ++next_cookie_;
    ++set_counts_[forming.set_hash];
    ++list_counts_[forming.list_hash];
    forming.request = &Request::begin(memory, RequestState::kForming);
    forming_.push_back(std::move(forming));
    take_early_reports(forming_.back());
    return ULC_OK;
}

bool Groups::submit_add(Forming& forming) {
    const auto octets = static_cast<std::uint32_t>(forming.ranks.size() * sizeof(std::uint16_t));
    forming.block = outbox_.arena().allocate(octets);
    if (forming.block == TxArena::kNone) return false;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kAddGroup);
    if (record == nullptr) {
        outbox_.arena().free(forming.block);
        return false;
    }
    std::memcpy(outbox_.arena().at(forming.block), forming.ranks.data(), octets);
    record->stream = forming.handle;
    record->cookie = forming.cookie;
    record->body.block = {forming.block, octets, octets, 0, 0, 0};
    submitter_.publish();
    return true;
}

bool Groups::on_registered(std::uint32_t cookie, int status, std::uint16_t per_node) {
    const auto it = std::find_if(forming_.begin(), forming_.end(),
                                 [cookie](const Forming& f) { return f.cookie == cookie; });
    if (it == forming_.end() || it->stage != Stage::kRegistering) return false;
    outbox_.arena().free(it->block);
    it->registered = status == 0;
    it->per_node = per_node;
    if (status != 0 && it->error == 0) it->error = status;
    it->stage = self_ == it->coordinator ? Stage::kWaiting : Stage::kReporting;
    advance(*it);
    return true;
}

void Groups::take_early_reports(Forming& forming) {
    std::erase_if(early_, [&](const Early& early) {
        if (early.control.set_hash != forming.set_hash || early.control.nth != forming.nth)
            return false;
        on_report(forming, early.source, early.control);
        return true;
    });
}

void Groups::on_report(Forming& forming, std::uint16_t source, const Control& control) {
    const auto at = std::find(forming.ranks.begin(), forming.ranks.end(), source);
    if (at == forming.ranks.end()) return;
    const auto index = static_cast<std::size_t>(at - forming.ranks.begin());
    if (forming.heard[index]) return;
    forming.heard[index] = true;
    --forming.missing;
    const auto status = static_cast<int>(std::uint32_t{control.status});
    if (control.list_hash != forming.list_hash || control.handle != forming.handle) {
        forming.error = ULC_ERR_MISMATCH;
    } else if (status != 0 && forming.error == 0) {
        forming.error = status;
    }
}

bool Groups::on_control(std::uint16_t source, std::uint64_t tag,
                        std::span<const unsigned char> octets) {
    if (tag == kTagInquiry) return hear_inquiry(*this, outbox_, source, octets);
    Control control;
    if (octets.size() < sizeof control || (tag & kLibulcTags) != kLibulcTags) return false;
    std::memcpy(&control, octets.data(), sizeof control);
    const auto it = std::find_if(forming_.begin(), forming_.end(), [&](const Forming& f) {
        return f.stage != Stage::kOver && control.set_hash == f.set_hash && control.nth == f.nth;
    });
    if (tag == kTagVerdict) {
        if (it == forming_.end() || source != it->coordinator || it->stage != Stage::kWaiting)
            return true;  // given up meanwhile
        it->error = static_cast<int>(std::uint32_t{control.status});
        end(*it);
        return true;
    }
    if (tag != kTagReport) return false;
    if (it == forming_.end()) {
        if (early_.size() < kReportsMax) early_.push_back({source, control});
        return true;
    }
    on_report(*it, source, control);
    advance(*it);
    return true;
}

bool Groups::send_control(std::uint16_t to, std::uint64_t tag, const Forming& forming) {
    Control control{};
    control.handle = forming.handle;
    control.nth = forming.nth;
    control.set_hash = forming.set_hash;
    control.list_hash = forming.list_hash;
    control.status = static_cast<std::uint32_t>(forming.error);
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = &control;
    args.length = sizeof control;
    return outbox_.send(args, nullptr) == ULC_OK;
}

void Groups::advance(Forming& forming) {
    if (forming.orphaned && forming.stage != Stage::kRegistering) {
        if (forming.stage != Stage::kOver) end(forming);
        return;
    }
    if (forming.stage == Stage::kReporting) {
        if (!send_control(forming.coordinator, kTagReport, forming)) return;
        forming.stage = Stage::kWaiting;
    }
    if (forming.stage == Stage::kWaiting && self_ == forming.coordinator && forming.missing == 0)
        forming.stage = Stage::kConfirming;
    if (forming.stage != Stage::kConfirming) return;
    for (; forming.confirmed < forming.ranks.size(); ++forming.confirmed) {
        const std::uint16_t to = forming.ranks[forming.confirmed];
        if (to != self_ && !send_control(to, kTagVerdict, forming)) return;
    }
    end(forming);
}

void Groups::end(Forming& forming) {
    forming.stage = Stage::kOver;
    if (forming.error != 0) {
        if (forming.registered) remove_here(forming.handle);
    } else {
        Group group;
        group.own_index = forming.own_index;
        group.per_node = forming.per_node;
        group.ranks = forming.ranks;
        groups_.emplace(forming.handle, std::move(group));
        forming.request->stream = forming.handle;
    }
    forming.request->done(forming.error);
}

// ---------------------------------------------------------------- ends

void Groups::remove_here(std::uint32_t handle) {
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kRemoveGroup);
    if (record == nullptr) {
        to_remove_.push_back(handle);
        return;
    }
    record->stream = handle;
    submitter_.publish();
}

int Groups::free(std::uint32_t handle) {
    const auto it = groups_.find(handle);
    if (it == groups_.end() || handle == world_) return ULC_ERR_INVALID;
    groups_.erase(it);
    remove_here(handle);
    return ULC_OK;
}

void Groups::peer_gone(std::uint16_t rank, int error) {
    for (Forming& forming : forming_) {
        if (forming.stage == Stage::kOver) continue;
        const auto at = std::find(forming.ranks.begin(), forming.ranks.end(), rank);
        if (at == forming.ranks.end()) continue;
        if (self_ == forming.coordinator) {
            const auto index = static_cast<std::size_t>(at - forming.ranks.begin());
            if (!forming.heard[index]) --forming.missing;
            forming.heard[index] = true;
            if (forming.error == 0 && forming.stage != Stage::kConfirming) forming.error = error;
            advance(forming);
        } else if (rank == forming.coordinator) {
            forming.error = error;
            forming.orphaned = true;
            advance(forming);
        }
    }
    std::erase_if(early_, [rank](const Early& early) { return early.source == rank; });
    (void)sweep();
}

void Groups::fail_all(int error) {
    for (Forming& forming : forming_)
        if (forming.stage != Stage::kOver) forming.request->done(error);
    forming_.clear();
}

unsigned Groups::sweep() {
    const auto before = forming_.size();
    forming_.remove_if([](const Forming& f) { return f.stage == Stage::kOver; });
    return static_cast<unsigned>(before - forming_.size());
}

unsigned Groups::advance_all() {
    while (!to_remove_.empty()) {
        abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kRemoveGroup);
        if (record == nullptr) break;
        record->stream = to_remove_.back();
        to_remove_.pop_back();
        submitter_.publish();
    }
    if (forming_.empty()) return 0;
    for (Forming& forming : forming_)
        advance(forming);
    return sweep();
}

}  // namespace ulc::client
