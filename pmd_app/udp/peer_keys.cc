// SPDX-License-Identifier: BSD-3-Clause
// Secrets, proofs and keys of Peers on a sealed net (docs/protocol/IP.md §16).
#include <cstring>

#include "udp/peers.h"

namespace ulc::udp {

seal::PeerKeys* Peers::keys_of(const Address& address) noexcept {
    const std::uint32_t slot = at(address);
    return slot == KeyedIndex::kNone ? nullptr : peers_[slot].keys.get();
}

seal::Cipher Peers::cipher() const noexcept {
    return config_.ring->has_aes() && without_aes_ == 0 ? seal::Cipher::kAes256Gcm
                                                        : seal::Cipher::kChaCha20Poly1305;
}

void Peers::count_keys(const Peer& peer, bool more) noexcept {
    const std::size_t one = more ? 1 : SIZE_MAX;
    holders_[peer.keys->secret()] += one;
    if (!peer.keys->has_aes()) without_aes_ += one;
}

/// Keeps the keys of a node that answered. Numbers that came stay known while its salt is the same.
void Peers::set_keys(Peer& peer, const Proved& proved) {
    if (peer.keys != nullptr) count_keys(peer, false);
    if (peer.keys == nullptr || peer.keys->salt() != proved.proof.salt) {
        peer.keys = std::make_unique<seal::PeerKeys>(peer.name, proved.proof);
    } else {
        peer.keys->pass(proved.proof);
    }
    peer.keys->set_secret(proved.secret);
    count_keys(peer, true);
}

/// Returns the secret of the next question: another one if the last question has no answer.
std::size_t Peers::next_secret(const Peer& peer) const noexcept {
    const bool unanswered = peer.tries > (peer.answers() ? 1 : 0);
    if (config_.ring == nullptr || !unanswered) return peer.secret;
    return (peer.secret + 1) % config_.ring->count();
}

/// Takes the proof off a datagram. False: it is not sealed as this net is. That is a hint, no more:
/// its sender is asked now and then, and sees the same.
bool Peers::take_proof(const Address& from, std::span<const std::byte>& datagram, Proved& out,
                       Nanos now) {
    const auto kind = static_cast<Kind>(datagram[0]);
    const bool sealed = kind == Kind::kSealedHello || kind == Kind::kSealedWelcome;
    if (!sealed && config_.ring == nullptr) return true;
    // The length comes first, and wrong proofs have a limit: each costs a hash a secret.
    const bool fits = datagram.size() <= kQuestionMax && checked_ < kCheckedMax;
    if (sealed && config_.ring != nullptr && fits) {
        out.secret = config_.ring->check(datagram, out.proof);
        if (out.secret != seal::Keyring::kNone) {
            datagram = datagram.first(datagram.size() - sizeof out.proof);
            return true;
        }
        checked_ += datagram.size() * config_.ring->count();
    }
    ++counts_.unsealed;
    const std::uint32_t slot = at(from);
    if (slot != KeyedIndex::kNone && !peers_[slot].own) peers_[slot].foreign = true;
    const bool can_ask = config_.ring == nullptr || config_.ring->count() > 0;
    const bool knows = slot != KeyedIndex::kNone && peers_[slot].configured;  // it is asked anyway
    if (can_ask && !knows && !is_hint(datagram) && may_hint(from, now))
        queue_.push_back({.to = from, .token = kHint, .is_question = true});
    return false;
}

bool Peers::is_hint(std::span<const std::byte> datagram) noexcept {
    Hello hello;
    if (datagram.size() < sizeof hello) return true;
    std::memcpy(&hello, datagram.data(), sizeof hello);
    return hello.token == kHint;
}

/// Returns whether the address has had no hint for a second, and others leave space for one.
bool Peers::may_hint(const Address& to, Nanos now) noexcept {
    Hinted* oldest = &hinted_[0];
    for (Hinted& each : hinted_) {
        if (each.to == to && now - each.at < kAskAgain) return false;
        if (each.at < oldest->at) oldest = &each;
    }
    if (now - oldest->at < kAskAgain || queue_.size() >= kQueueMax) return false;
    *oldest = {to, now};
    return true;
}

}  // namespace ulc::udp
