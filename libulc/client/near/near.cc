// SPDX-License-Identifier: BSD-3-Clause
#include "client/near/near.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace ulc::client {

Near::~Near() {
    for (const auto& receiver : receivers_) {
        if (!receiver->used) memory_.hide(receiver->offer);
        memory_.unmap(receiver->memory);
    }
    for (const auto& sender : senders_)
        memory_.unmap(sender->memory);
}

int Near::name(std::uint16_t peer) noexcept {
    if (const int error = membership_.may_communicate(); error != ULC_OK) return error;
    if (!membership_.knows(peer)) return ULC_ERR_INVALID;
    if (peer == membership_.rank() || membership_.peer_error(peer) != 0) return ULC_OK;
    note_named(peer);
    ask();
    return ULC_OK;
}

void Near::note_named(std::uint16_t peer) noexcept try {
    if (peers_[peer].named != Named::kNo) return;
    peers_[peer].named = Named::kFar;
    unasked_.reserve(unasked_.size() + 1);
    known_.try_emplace(peer);
    unasked_.push_back(peer);
    peers_[peer].named = Named::kWanted;
} catch (const std::bad_alloc&) {  // messages go on through the engine
}

void Near::on_rows(std::uint16_t peer, const abi::NearRows* rows) noexcept {
    Peer& one = peers_[peer];
    if (one.named != Named::kAsked) return;  // it is gone
    Known& known = known_.find(peer)->second;
    if (rows == nullptr || !memory_.sees(*rows)) {
        malformed_ += known.offers ? 1 : 0;
        known_.erase(peer);
        one.named = Named::kFar;
        return;
    }
    known.rows = *rows;
    one.named = Named::kNear;
    if (known.offers) use(peer, known.offer);
    if (one.arrived != 0) begin(peer);
}

bool Near::on_record(const abi::CompletionRecord& record) noexcept {
    if (record.source >= membership_.size()) return false;
    abi::NearRows rows;
    const bool near = record.status == 0;
    if (near && record.inline_length != sizeof rows) return false;
    std::memcpy(&rows, record.body.inline_octets, sizeof rows);
    on_rows(record.source, near ? &rows : nullptr);
    return true;
}

void Near::ask() noexcept {
    std::erase_if(unasked_, [&](std::uint16_t peer) {
        if (!submitter_.submit(abi::SubmitKind::kNear, peer)) return false;
        peers_[peer].named = Named::kAsked;
        return true;
    });
}

int Near::processes(std::uint16_t peer, abi::NearRows& out) noexcept {
    if (const int error = name(peer); error != ULC_OK) return error;
    const Named named = peers_[peer].named;
    if (!is_near(named))
        return named == Named::kWanted || named == Named::kAsked ? ULC_ERR_AGAIN
                                                                 : ULC_ERR_UNSUPPORTED;
    out = known_.find(peer)->second.rows;
    return ULC_OK;
}

void Near::forget(std::uint16_t peer) noexcept {
    end_receiver(peer);
    end_sender(peer);
    std::erase(unasked_, peer);
    known_.erase(peer);
    peers_[peer] = Peer{};
}

// Makes a ring for the messages of a peer. Whatever fails is not tried again.
void Near::begin(std::uint16_t from) noexcept {
    peers_[from].named = Named::kTried;
    if (receivers_.size() >= kPeersMax) return;
    NearOffer offer{};
    std::byte* memory = memory_.make(offer);
    if (memory == nullptr) return;
    try {
        receivers_.reserve(receivers_.size() + 1);
        unsaid_.push_back(from);
        receivers_.push_back(
            std::unique_ptr<Receiver>(new Receiver{memory, NearReceiver(memory), offer, from}));
        peers_[from].receiver = receivers_.back().get();
    } catch (const std::bad_alloc&) {
        memory_.hide(offer);
        memory_.unmap(memory);
    }
}

void Near::end_receiver(std::uint16_t from) noexcept {
    Receiver* receiver = std::exchange(peers_[from].receiver, nullptr);
    if (receiver == nullptr) return;
    if (!receiver->used) memory_.hide(receiver->offer);
    memory_.unmap(receiver->memory);
    std::erase(unsaid_, from);
    std::erase_if(receivers_, [&](const auto& each) { return each.get() == receiver; });
}

void Near::end_sender(std::uint16_t to) noexcept {
    Sender* sender = std::exchange(peers_[to].sender, nullptr);
    if (sender == nullptr) return;
    memory_.unmap(sender->memory);
    std::erase_if(senders_, [&](const auto& each) { return each.get() == sender; });
}

bool Near::on_offer(std::uint16_t from, std::span<const unsigned char> word) noexcept {
    NearOffer offer;
    const Peer& peer = peers_[from];
    if (word.size() != sizeof offer || peer.named == Named::kNo || peer.named == Named::kFar ||
        peer.sender != nullptr)
        return false;
    std::memcpy(&offer, word.data(), sizeof offer);
    if (is_near(peer.named)) {
        use(from, offer);
        return true;
    }
    Known& known = known_.find(from)->second;
    if (known.offers) return false;
    known.offers = true;
    known.offer = offer;
    return true;
}

// Maps what a near peer offers. Whatever fails leaves messages to the engine.
void Near::use(std::uint16_t peer, const NearOffer& offer) noexcept {
    if (senders_.size() >= kPeersMax) return;
    std::byte* memory = memory_.map(known_.find(peer)->second.rows.peer, offer);
    if (memory == nullptr) return;
    try {
        senders_.reserve(senders_.size() + 1);
        senders_.push_back(std::unique_ptr<Sender>(new Sender{memory, NearSender(memory)}));
        peers_[peer].sender = senders_.back().get();
    } catch (const std::bad_alloc&) {
        memory_.unmap(memory);
    }
}

bool Near::drain(std::uint16_t from) noexcept {
    Peer& peer = peers_[from];
    if (peer.receiver == nullptr) return true;
    NearReceiver& ring = peer.receiver->ring;
    NearMessage message;
    // A sender that writes as fast as this reads is left after one lap.
    for (unsigned n = 0; n < kNearSlots; ++n) {
        const NearReceiver::Look found = ring.look(message);
        if (found == NearReceiver::Look::kNothing) return true;
        if (found == NearReceiver::Look::kMalformed) {
            ++malformed_;
            end_receiver(from);
            return true;
        }
        if (static_cast<std::int32_t>(message.before - peer.arrived) > 0) return true;
        if (!inbox_.deliver(from, message.tag, Pieces::one(message.payload, message.length),
                            Inbox::Counts::kYes))
            return false;
        ring.pop(message);
        ++given_;
        if (!std::exchange(peer.receiver->used, true)) memory_.hide(peer.receiver->offer);
    }
    return true;
}

unsigned Near::drain_all(bool* stalled) noexcept {
    for (std::size_t i = 0; i < receivers_.size(); ++i) {
        const std::uint16_t source = receivers_[i]->source;
        const abi::Intake intake = inbox_.arrivals().shares().intake_of(source);
        if (!receivers_[i]->ring.ready() || intake != abi::Intake::kAll) continue;
        if (!drain(source)) *stalled = true;
    }
    return std::exchange(given_, 0);
}

void Near::check_invariants() const {
    std::size_t senders = 0;
    std::size_t receivers = 0;
    const auto ranks = static_cast<std::uint16_t>(peers_.size());
    for (std::uint16_t rank = 0; rank < ranks; ++rank) {
        const Peer& peer = peers_[rank];
        const bool unasked = std::ranges::count(unasked_, rank) == 1;
        ULC_CHECK(unasked == (peer.named == Named::kWanted));
        ULC_CHECK(known_.contains(rank) == (peer.named >= Named::kWanted));
        ULC_CHECK(peer.receiver == nullptr || peer.receiver->source == rank);
        senders += peer.sender != nullptr ? 1 : 0;
        receivers += peer.receiver != nullptr ? 1 : 0;
    }
    ULC_CHECK(senders == senders_.size() && receivers == receivers_.size());
}

}  // namespace ulc::client
