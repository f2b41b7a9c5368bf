// SPDX-License-Identifier: BSD-3-Clause
#include "client/groups/groups.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/check.h"
#include "base/fnv.h"
#include "base/group_handle.h"
#include "client/groups/inquiry.h"
#include "client/p2p/tags.h"

namespace ulc::client {
namespace {

// Returns FNV-1a, 64 bits, over the ranks and the key if there is one, all big-endian.
std::uint64_t hash_of(std::span<const std::uint16_t> ranks, const std::uint64_t* key) noexcept {
    std::uint64_t hash = kFnvBasis;
    const auto add = [&hash](std::uint64_t octet) { hash = fnv1a(hash, octet); };
    for (const std::uint16_t rank : ranks) {
        add(rank >> 8U);
        add(rank & 0xffU);
    }
    for (unsigned shift = 64; key != nullptr && shift > 0; shift -= 8)
        add(*key >> (shift - 8) & 0xffU);
    return hash;
}

}  // namespace

void Groups::begin_job(std::uint64_t per_node) {
    Group all;
    all.own_index = membership_.rank();
    all.ranks.resize(membership_.size());
    std::iota(all.ranks.begin(), all.ranks.end(), std::uint16_t{0});
    if (per_node >= 1 && per_node <= all.ranks.size())
        all.per_node = static_cast<std::uint16_t>(per_node);
    groups_.emplace(membership_.world(), std::move(all));
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

int Groups::create(const std::uint16_t* ranks, std::uint16_t count, const std::uint64_t* key,
                   ulc_request* request) {
    if (const int error = membership_.may_communicate(); error != ULC_OK) return error;
    if (ranks == nullptr || request == nullptr) return ULC_ERR_INVALID;
    for (std::uint16_t i = 0; i < count; ++i) {
        if (ranks[i] >= membership_.size()) return ULC_ERR_INVALID;
        if (membership_.peer_error(ranks[i]) != 0) return membership_.peer_error(ranks[i]);
    }
    try {
        return begin({ranks, count}, key, request);
    } catch (const std::bad_alloc&) {
        return ULC_ERR_NO_MEMORY;
    }
}

int Groups::begin(std::span<const std::uint16_t> ranks, const std::uint64_t* key,
                  ulc_request* memory) {
    if (ranks.size() < 2 || ranks.size() > membership_.size()) return ULC_ERR_INVALID;
    std::vector<std::uint16_t> sorted(ranks.begin(), ranks.end());
    std::sort(sorted.begin(), sorted.end());
    const bool repeats = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
    const auto own = std::find(ranks.begin(), ranks.end(), membership_.rank());
    if (repeats || own == ranks.end()) return ULC_ERR_INVALID;
    if (groups_.size() + forming_.size() >= kGroupsMax) return ULC_ERR_LIMIT;

    Forming forming{};
    forming.ranks.assign(ranks.begin(), ranks.end());
    forming.list_hash = hash_of(ranks, key);
    forming.set_hash = hash_of(sorted, key);
    forming.nth = set_counts_[forming.set_hash];
    forming.handle =
        subgroup_handle(membership_.world(), ranks, list_counts_[forming.list_hash], key);
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

bool Groups::on_registered(std::uint32_t cookie, int status, const abi::GroupOffers& offers) {
    const auto it = std::find_if(forming_.begin(), forming_.end(),
                                 [cookie](const Forming& f) { return f.cookie == cookie; });
    if (it == forming_.end() || it->stage != Stage::kRegistering) return false;
    if (offers.count > kOffersMax || (status == 0 && offers.count == 0)) return false;
    outbox_.arena().free(it->block);
    it->registered = status == 0;
    it->per_node =
        std::clamp<std::uint16_t>(offers.per_node, 1, static_cast<std::uint16_t>(it->ranks.size()));
    if (offers.has_room != 0) {
        it->own_address = offers.offers[0];
    } else {
        for (std::size_t i = 0; i < offers.count; ++i)
            (void)it->offers.push_back(AddressOffer::of(offers.offers[i]));
        if (!it->offers.empty()) it->choice.add({it->offers.begin(), it->offers.end()});
    }
    if (status != 0 && it->error == 0) it->error = status;
    it->stage = membership_.rank() == it->coordinator ? Stage::kWaiting : Stage::kReporting;
    advance(*it);
    return true;
}

void Groups::take_early_reports(Forming& forming) {
    std::erase_if(early_, [&](const Report& early) {
        if (early.control.set_hash != forming.set_hash || early.control.nth != forming.nth)
            return false;
        on_report(forming, early);
        return true;
    });
}

void Groups::on_report(Forming& forming, const Report& report) {
    const Control& control = report.control;
    const auto at = std::find(forming.ranks.begin(), forming.ranks.end(), report.source);
    if (at == forming.ranks.end()) return;
    const auto index = static_cast<std::size_t>(at - forming.ranks.begin());
    if (forming.heard[index]) return;
    forming.heard[index] = true;
    --forming.missing;
    if (!report.offers.empty()) forming.choice.add({report.offers.begin(), report.offers.end()});
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
    if (tag == kTagListening || tag == kTagUse) return sharing_.on_word(source, tag, octets);
    Control control;
    if (octets.size() < sizeof control || !is_of_libulc(tag)) return false;
    std::memcpy(&control, octets.data(), sizeof control);
    const auto it = std::find_if(forming_.begin(), forming_.end(), [&](const Forming& f) {
        return f.stage != Stage::kOver && control.set_hash == f.set_hash && control.nth == f.nth;
    });
    if (tag == kTagVerdict) {
        if (it == forming_.end() || source != it->coordinator || it->stage != Stage::kWaiting)
            return true;  // abandoned meanwhile
        on_verdict(*it, control);
        return true;
    }
    if (tag != kTagReport) return false;
    const Report report{source, control, read_offers(octets.subspan(sizeof control))};
    if (it == forming_.end()) {
        if (early_.size() < kReportsMax) early_.push_back(report);
        return true;
    }
    on_report(*it, report);
    advance(*it);
    return true;
}

/// Reads the offers after a report; more than the maximum are ignored.
AddressOffers Groups::read_offers(std::span<const unsigned char> octets) {
    AddressOffers offers;
    for (; octets.size() >= sizeof(Be32) && !offers.full(); octets = octets.subspan(sizeof(Be32))) {
        Be32 packed;
        std::memcpy(&packed, octets.data(), sizeof packed);
        (void)offers.push_back(AddressOffer::of(packed));
    }
    return offers;
}

void Groups::on_verdict(Forming& forming, const Control& control) {
    forming.error = static_cast<int>(std::uint32_t{control.status});
    if (forming.error == 0)
        sharing_.agreed(forming.handle, control.address & kAddressIdMax, forming.own_address,
                        forming.coordinator);
    end(forming);
}

bool Groups::send_control(std::uint16_t to, std::uint64_t tag, const Forming& forming) {
    Control control{};
    control.handle = forming.handle;
    control.nth = forming.nth;
    control.set_hash = forming.set_hash;
    control.list_hash = forming.list_hash;
    control.status = static_cast<std::uint32_t>(forming.error);
    control.address = forming.address;
    unsigned char octets[sizeof control + kOffersMax * sizeof(Be32)];
    std::memcpy(octets, &control, sizeof control);
    std::size_t length = sizeof control;
    for (const AddressOffer& offer : forming.offers) {
        if (tag != kTagReport) break;
        const Be32 packed{offer.packed()};
        std::memcpy(octets + length, &packed, sizeof packed);
        length += sizeof packed;
    }
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = Pieces::one(octets, length);
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
    if (forming.stage == Stage::kWaiting && membership_.rank() == forming.coordinator &&
        forming.missing == 0) {
        forming.stage = Stage::kConfirming;
        if (forming.error == 0) {
            forming.address = forming.choice.best(forming.own_address);
            sharing_.agreed_here(forming.handle, forming.address, forming.own_address,
                                 forming.ranks, membership_.rank());
        }
    }
    if (forming.stage != Stage::kConfirming) return;
    for (; forming.confirmed < forming.ranks.size(); ++forming.confirmed) {
        const std::uint16_t to = forming.ranks[forming.confirmed];
        if (to != membership_.rank() && !send_control(to, kTagVerdict, forming)) return;
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

// ---------------------------------------------------------------- members that hold others up

int Groups::set_hold(std::int64_t limit, std::uint32_t flags, std::span<const std::uint16_t> keep) {
    if (const int error = membership_.may_communicate(); error != ULC_OK) return error;
    for (const std::uint16_t rank : keep)
        if (rank >= membership_.size()) return ULC_ERR_INVALID;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kHold);
    if (record == nullptr) return ULC_ERR_AGAIN;
    record->flags = abi::kSubmitInline;
    record->tag = static_cast<std::uint64_t>(limit);
    record->stream = flags;
    record->inline_length = static_cast<std::uint16_t>(keep.size_bytes());
    if (!keep.empty()) std::memcpy(record->body.inline_octets, keep.data(), keep.size_bytes());
    submitter_.publish();
    return ULC_OK;
}

void Groups::on_fault(const abi::CompletionRecord& record) noexcept {
    const bool slow = record.status == ULC_ERR_PEER_SLOW || record.status == ULC_ERR_PEER_SILENT;
    Group* held = slow ? find(record.stream) : nullptr;
    if (held == nullptr) return;
    ulc_holder& holder = held->slowest;
    if (holder.error == ULC_OK || holder.rank != record.source) holder.held_ns = 0;
    holder.error = record.status;
    holder.rank = record.source;
    holder.held_ns += record.tag * kMillisecond;
}

bool Groups::ask(std::uint16_t rank, std::uint32_t group, std::uint32_t number,
                 const Agreement& mine) noexcept {
    if (membership_.may_communicate() != ULC_OK || membership_.peer_error(rank) != 0)
        return true;  // it reports nothing more
    return client::ask(outbox_, rank, group, number, mine);
}

// ---------------------------------------------------------------- ends

void Groups::remove_here(std::uint32_t handle) {
    if (!submitter_.submit(abi::SubmitKind::kRemoveGroup, handle)) to_remove_.push_back(handle);
}

int Groups::free(std::uint32_t handle) {
    if (const int error = membership_.may_communicate(); error != ULC_OK) return error;
    const auto it = groups_.find(handle);
    if (it == groups_.end() || handle == membership_.world()) return ULC_ERR_INVALID;
    groups_.erase(it);
    sharing_.forget(handle);
    remove_here(handle);
    return ULC_OK;
}

void Groups::peer_gone(std::uint16_t rank, int error) {
    for (Forming& forming : forming_) {
        if (forming.stage == Stage::kOver) continue;
        const auto at = std::find(forming.ranks.begin(), forming.ranks.end(), rank);
        if (at == forming.ranks.end()) continue;
        if (membership_.rank() == forming.coordinator) {
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
    std::erase_if(early_, [rank](const Report& early) { return early.source == rank; });
    sharing_.peer_gone(rank);
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
    while (!to_remove_.empty() &&
           submitter_.submit(abi::SubmitKind::kRemoveGroup, to_remove_.back()))
        to_remove_.pop_back();
    if (forming_.empty()) return 0;
    for (Forming& forming : forming_)
        advance(forming);
    return sweep();
}

void Groups::check_invariants() const {
    for (const auto& [handle, group] : groups_) {
        ULC_CHECK(group.own_index < group.ranks.size());
        ULC_CHECK(group.ranks[group.own_index] == membership_.rank());
        ULC_CHECK(group.per_node >= 1 && group.per_node <= group.ranks.size());
    }
    for (const Forming& forming : forming_) {
        const auto unheard = std::ranges::count(forming.heard, false);
        ULC_CHECK(forming.missing + 1 == static_cast<std::size_t>(unheard));
        ULC_CHECK(forming.stage == Stage::kOver || !groups_.contains(forming.handle));
    }
}

}  // namespace ulc::client
