// SPDX-License-Identifier: BSD-3-Clause
#include "client/near/near.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace ulc::client {

Near::~Near() {
    for (const auto& receiver : receivers_) {
        if (!receiver->used) memory_.hide(receiver->offer);
        memory_.unmap(receiver->memory);
    }
    for (const auto& sender : senders_)
        memory_.unmap(sender->memory);
}

void Near::name(std::uint16_t peer) noexcept {
    if (peers_[peer].named != Named::kNo) return;
    peers_[peer].named = Named::kYes;
    if (peers_[peer].arrived != 0) begin(peer);
}

void Near::forget(std::uint16_t peer) noexcept {
    end_receiver(peer);
    end_sender(peer);
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
    if (word.size() != sizeof offer || peer.named == Named::kNo || peer.sender != nullptr)
        return false;
    std::memcpy(&offer, word.data(), sizeof offer);
    if (senders_.size() >= kPeersMax) return true;
    std::byte* memory = memory_.map(offer);
    if (memory == nullptr) return true;  // messages go on through the engine
    try {
        senders_.reserve(senders_.size() + 1);
        senders_.push_back(std::unique_ptr<Sender>(new Sender{memory, NearSender(memory)}));
        peers_[from].sender = senders_.back().get();
    } catch (const std::bad_alloc&) {
        memory_.unmap(memory);
    }
    return true;
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
        if (!receivers_[i]->ring.ready()) continue;
        if (!drain(receivers_[i]->source)) *stalled = true;
    }
    return std::exchange(given_, 0);
}

}  // namespace ulc::client
