// SPDX-License-Identifier: BSD-3-Clause
#include "udp/peers.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/node_address.h"

namespace ulc::udp {

Mac name_of_bits(std::uint64_t bits) noexcept {
    Mac name;
    std::memcpy(name.octets.data(), &bits, name.octets.size());
    name.octets[0] = static_cast<std::uint8_t>((name.octets[0] & 0xfcU) | 2U);
    return name;
}

Peers::Peers(const PeersConfig& config)
    : config_(config),
      tokens_(config.seed),
      secret_(config.seed.number(1)),
      by_address_(config.seed.number(2)),
      by_name_(config.seed.number(3)) {
    ULC_CHECK(config.own != Mac{} && !is_group(config.own));
}

// ---- the table ----------------------------------------------------------------------------------

/// Two addresses may share a key: then the second one finds no place.
std::uint64_t Peers::key_of(const Address& address) const noexcept {
    std::uint64_t words[2];
    std::memcpy(words, address.ip.data(), sizeof words);
    std::uint64_t key = secret_ ^ address.port;
    for (const std::uint64_t word : words) {
        key = (key ^ word) * 0x9e3779b97f4a7c15U;
        key ^= key >> 29U;
    }
    return key;
}

std::uint32_t Peers::at(const Address& address) const noexcept {
    const std::uint32_t slot = by_address_.find(key_of(address));
    if (slot == KeyedIndex::kNone || peers_[slot].address != address) return KeyedIndex::kNone;
    return slot;
}

/// Returns the slot of a new address; kNone: there is no space.
std::uint32_t Peers::insert(const Address& address, Nanos now) {
    const bool taken = by_address_.find(key_of(address)) != KeyedIndex::kNone;
    if (taken || used_.size() >= kPeersMax || address.port == 0) return KeyedIndex::kNone;
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(peers_.size()));
        peers_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    used_.push_back(slot);
    peers_[slot] = Peer{};
    peers_[slot].address = address;
    peers_[slot].next = now;
    by_address_.insert(key_of(address), slot);
    ++strangers_;
    next_look_ = std::min(next_look_, now);
    return slot;
}

void Peers::remove(std::uint32_t slot) {
    if (peers_[slot].answers()) clear_name(slot);
    if (!peers_[slot].configured) --strangers_;
    by_address_.erase(key_of(peers_[slot].address));
    std::erase(used_, slot);
    free_.push_back(slot);
    peers_[slot] = Peer{};
}

void Peers::set_name(std::uint32_t slot, const Mac& name) {
    Peer& peer = peers_[slot];
    if (peer.name == name) return;
    if (peer.answers()) clear_name(slot);
    peer.name = name;
    by_name_.insert(number_of(name), slot);
    answering_.push_back(slot);
    if (!peer.configured) --strangers_;
    if (new_.size() < kPeersMax) new_.push_back(peer.address);
}

bool Peers::next_new(Address& out) {
    if (new_.empty()) return false;
    out = new_.front();
    new_.pop_front();
    return true;
}

void Peers::clear_name(std::uint32_t slot) {
    Peer& peer = peers_[slot];
    if (peer.keys != nullptr) count_keys(peer, false);
    peer.keys.reset();
    set_narrow(peer, false);
    peer.asked_long = false;
    peer.long_lost = 0;
    peer.parts = {};
    by_name_.erase(number_of(peer.name));
    std::erase(answering_, slot);
    peer.name = Mac{};
    peer.from = 0;
    if (!peer.configured) ++strangers_;
}

void Peers::add(const Address& address, Nanos now) {
    std::uint32_t slot = at(address);
    if (slot == KeyedIndex::kNone) slot = insert(address, now);
    if (slot == KeyedIndex::kNone) {
        ++counts_.refused;
        return;
    }
    if (peers_[slot].configured) return;
    peers_[slot].configured = true;
    if (!peers_[slot].answers()) --strangers_;
}

Mac Peers::name_of(const Address& address) const noexcept {
    const std::uint32_t slot = at(address);
    return slot == KeyedIndex::kNone ? Mac{} : peers_[slot].name;
}

Peers::Assembly* Peers::parts_of(const Address& address) noexcept {
    const std::uint32_t slot = at(address);
    return slot == KeyedIndex::kNone || !peers_[slot].answers() ? nullptr : &peers_[slot].parts;
}

void Peers::set_narrow(const Address& address, bool narrow) noexcept {
    const std::uint32_t slot = at(address);
    if (slot != KeyedIndex::kNone && peers_[slot].answers()) set_narrow(peers_[slot], narrow);
}

void Peers::set_narrow(Peer& peer, bool narrow) noexcept {
    if (peer.narrow == narrow) return;
    peer.narrow = narrow;
    if (narrow) ++counts_.narrowed;
    narrow_count_ += narrow ? 1 : SIZE_MAX;
}

/// Learns from an answer whether the path takes the longest datagrams.
void Peers::learn_path(Peer& peer) {
    if (peer.asked_long) {
        peer.long_lost = 0;
        set_narrow(peer, false);
    } else if (peer.long_lost >= kLongTries) {
        set_narrow(peer, true);
    }
    peer.asked_long = false;
}

const Peers::Peer* Peers::find(const Mac& name) const noexcept {
    const std::uint32_t slot = by_name_.find(number_of(name));
    return slot == KeyedIndex::kNone ? nullptr : &peers_[slot];
}

std::string Peers::unanswered() const {
    constexpr std::size_t kNamedMax = 3;
    std::string text;
    std::size_t silent = 0;
    for (const std::uint32_t slot : used_) {
        const Peer& peer = peers_[slot];
        if (!peer.configured || peer.own || peer.answers() || peer.tries == 0) continue;
        if (++silent > kNamedMax) continue;
        text += (text.empty() ? "" : ", ") + text_of(peer.address);
        if (peer.foreign)
            text += config_.ring == nullptr
                        ? " (its engine is sealed, and this one open: give both one key=FILE, or "
                          "write open at both)"
                        : " (its engine has another key, or is open: give both one key=FILE)";
    }
    if (silent > kNamedMax) text += " and " + std::to_string(silent - kNamedMax) + " more";
    return text;
}

// ---- questions ----------------------------------------------------------------------------------

/// A question has a fresh token, and an answer to an earlier one proves nothing. secret: by which
/// it is proved.
void Peers::ask(Peer& peer, std::size_t secret, Nanos now) {
    peer.next = now + kAskAgain;
    if (queue_.size() >= kQueueMax) return;
    peer.token = tokens_.next();
    peer.asked = now;
    Nanos wait = kRefresh;
    // Others may have forged a word of this address, so it gets a question a second (I-8).
    // Two follow each other at first: with the answer they are less than three HELLOs.
    if (!peer.answers()) wait = peer.tries == 0 ? kAskFirst : kAskAgain;
    if (!peer.answers() && peer.configured)
        wait = std::min(kAskFirst << std::min<unsigned>(peer.tries, 8), kAskAgain);
    // A long question, and a short one after each that is lost.
    const bool was_lost = peer.asked_long;
    if (was_lost && peer.long_lost < kLongTries) ++peer.long_lost;
    peer.asked_long = peer.answers() && config_.datagram_max > 0 && !was_lost;
    if ((peer.asked_long || was_lost) && now - peer.heard < kSilent) wait = kDoubt;
    peer.secret = secret;
    if (peer.tries < UINT8_MAX) ++peer.tries;
    peer.next = now + wait;
    queue_.push_back({.to = peer.address,
                      .token = peer.token,
                      .from = peer.from,
                      .is_question = true,
                      .is_long = peer.asked_long,
                      .secret = secret});
}

void Peers::call_all(const Address& to) {
    for (std::size_t secret = 0; secret < config_.ring->count(); ++secret)
        if (queue_.size() < kQueueMax)
            queue_.push_back(
                {.to = to, .token = kHint, .is_question = true, .is_call = true, .secret = secret});
}

void Peers::on_timer(Nanos now) {
    answers_ = 0;
    checked_ = 0;
    if (now < next_look_ || (config_.ring != nullptr && config_.ring->count() == 0)) return;
    next_look_ = now + kAskAgain;
    for (std::size_t n = used_.size(); n-- > 0;) {  // remove() takes the place of later ones
        const std::uint32_t slot = used_[n];
        Peer& peer = peers_[slot];
        if (peer.own && now - peer.asked < kForget) continue;
        peer.own = false;  // its question came back to this node: directly, or by a stranger
        if (peer.answers() && now - peer.heard >= kForget) clear_name(slot);
        const bool kept = peer.configured || peer.answers();
        if (!kept && peer.tries >= kTries && peer.next <= now) {
            remove(slot);
            continue;
        }
        if (peer.next <= now) ask(peer, next_secret(peer), now);
        next_look_ = std::min(next_look_, peer.next);
    }
}

std::size_t Peers::next_tx(Address& to, std::byte* body) {
    if (queue_.empty()) return 0;
    const Answer next = queue_.front();
    queue_.pop_front();
    to = next.to;
    std::size_t octets = sizeof(Hello);
    if (next.is_question) {
        Hello hello;
        if (config_.ring != nullptr) hello.kind = Kind::kSealedHello;
        hello.from = next.from;
        hello.name = config_.own;
        hello.token = next.token;
        std::memcpy(body, &hello, sizeof hello);
        if (next.is_long) octets = put_padding(body);
    } else {
        octets = put_welcome(next, body);
    }
    if (config_.ring == nullptr) return octets;
    const bool is_hint = next.is_question && next.token == kHint && !next.is_call;
    if (is_hint) {  // no proof: it could be repeated elsewhere
        std::memset(body + octets, 0, sizeof(seal::Proof));
    } else {
        config_.ring->prove(next.secret, body, octets);
    }
    return octets + sizeof(seal::Proof);
}

/// Makes a HELLO as long as the longest datagram is. Returns its length without a proof.
std::size_t Peers::put_padding(std::byte* body) const {
    const std::size_t proof = config_.ring == nullptr ? 0 : sizeof(seal::Proof);
    const std::size_t octets = std::max(config_.datagram_max - proof, sizeof(Hello));
    std::memset(body + sizeof(Hello), 0, octets - sizeof(Hello));
    return octets;
}

std::size_t Peers::put_welcome(const Answer& answer, std::byte* body) const {
    Welcome welcome;
    if (config_.ring != nullptr) welcome.kind = Kind::kSealedWelcome;
    welcome.count = static_cast<std::uint16_t>(answering_.size());
    welcome.name = config_.own;
    welcome.token = answer.token;
    std::size_t entries = 0;
    if (answer.with_entries) {
        for (std::size_t n = answer.from; n < answering_.size() && entries < kEntriesMax; ++n) {
            const Address& address = peers_[answering_[n]].address;
            Entry entry;
            entry.ip = address.ip;
            entry.port = address.port;
            entry.reserved = std::uint16_t{0};
            std::memcpy(body + sizeof welcome + entries * sizeof entry, &entry, sizeof entry);
            ++entries;
        }
    }
    welcome.entries = static_cast<std::uint16_t>(entries);
    std::memcpy(body, &welcome, sizeof welcome);
    return sizeof welcome + entries * sizeof(Entry);
}

// ---- what comes ---------------------------------------------------------------------------------

void Peers::on_datagram(const Address& from, std::span<const std::byte> datagram, Nanos now) {
    Proved proved;
    if (datagram.empty()) {
        ++counts_.malformed;
        return;
    }
    const auto kind = static_cast<Kind>(datagram[0]);
    if (!take_proof(from, datagram, proved, now)) return;
    if (kind == Kind::kWelcome || kind == Kind::kSealedWelcome)
        return on_welcome(from, datagram, proved, now);
    Hello hello;
    if (datagram.size() < sizeof hello || datagram.size() > kQuestionMax) {
        ++counts_.malformed;
        return;
    }
    std::memcpy(&hello, datagram.data(), sizeof hello);
    const bool is_hello = kind == Kind::kHello || kind == Kind::kSealedHello;
    if (!is_hello || hello.name == Mac{} || is_group(hello.name)) {
        ++counts_.malformed;
        return;
    }
    on_hello(from, hello, proved.secret, now);
}

/// A question says that a node may be there: it is answered, and asked in turn.
void Peers::on_hello(const Address& from, const Hello& hello, std::size_t secret, Nanos now) {
    std::uint32_t slot = at(from);
    if (hello.name == config_.own) {
        const bool asked = slot != KeyedIndex::kNone && peers_[slot].tries > 0;
        if (asked && !peers_[slot].answers() && peers_[slot].token == hello.token)
            peers_[slot].own = true;
        return;
    }
    const bool is_call = hello.token == kHint;
    if (is_call && config_.ring == nullptr) return;
    const bool proven = slot != KeyedIndex::kNone && peers_[slot].answers();
    const bool has_room = proven || answers_ < kAnswersPerLook;
    if (!has_room || queue_.size() >= kQueueMax) {
        ++counts_.refused;
        return;
    }
    if (!proven) ++answers_;
    if (!is_call)
        queue_.push_back({.to = from,
                          .token = hello.token,
                          .from = hello.from,
                          .with_entries = proven,
                          .secret = secret});
    if (slot == KeyedIndex::kNone) {
        if (strangers_ >= kStrangersMax || (slot = insert(from, now)) == KeyedIndex::kNone) {
            ++counts_.refused;
            return;
        }
    }
    // Another name at the address of a peer is a hint: the node may have begun again.
    Peer& peer = peers_[slot];
    const bool asks = !proven || peer.name != hello.name;
    peer.own = false;
    if (asks && (peer.tries == 0 || now - peer.asked >= kAskAgain)) ask(peer, secret, now);
}

void Peers::on_welcome(const Address& from, std::span<const std::byte> datagram,
                       const Proved& proved, Nanos now) {
    Welcome welcome;
    if (datagram.size() < sizeof welcome) {
        ++counts_.malformed;
        return;
    }
    std::memcpy(&welcome, datagram.data(), sizeof welcome);
    const std::size_t entries = welcome.entries;
    const bool whole = datagram.size() == sizeof welcome + entries * sizeof(Entry);
    if (!whole || entries > kEntriesMax || welcome.name == Mac{} || is_group(welcome.name) ||
        welcome.name == config_.own) {
        ++counts_.malformed;
        return;
    }
    const std::uint32_t slot = at(from);
    if (slot == KeyedIndex::kNone || peers_[slot].tries == 0 ||
        peers_[slot].token != welcome.token) {
        ++counts_.unproven;
        return;
    }
    // A name stays where it answers.
    const std::uint32_t owner = by_name_.find(number_of(welcome.name));
    if (owner != KeyedIndex::kNone && owner != slot) {
        if (now - peers_[owner].heard < kSilent) {
            ++counts_.refused;
            return;
        }
        clear_name(owner);
    }
    const bool is_new = peers_[slot].name != welcome.name;
    set_name(slot, welcome.name);
    if (config_.ring != nullptr) set_keys(peers_[slot], proved);
    take_entries(datagram.subspan(sizeof welcome), now);
    Peer& peer = peers_[slot];  // take_entries() may have moved it
    peer.foreign = peer.own = false;
    peer.secret = proved.secret;
    peer.heard = now;
    peer.tries = 1;
    learn_path(peer);
    peer.next = now + (peer.long_lost > 0 && !peer.narrow ? kDoubt : kRefresh);
    // The first answer names no one: it went to an address that was not proved there. Later ones
    // name those that came since.
    const std::size_t seen = peer.from + entries;
    const bool asks_on = is_new || (entries > 0 && seen < welcome.count);
    peer.from = static_cast<std::uint16_t>(is_new ? 0 : seen);
    if (!asks_on) return;
    peer.next = now + kAskFirst;
    next_look_ = std::min(next_look_, peer.next);
}

/// Asks at the addresses that a peer names.
void Peers::take_entries(std::span<const std::byte> entries, Nanos now) {
    for (; !entries.empty(); entries = entries.subspan(sizeof(Entry))) {
        Entry entry;
        std::memcpy(&entry, entries.data(), sizeof entry);
        Address address{entry.ip, entry.port};
        if (at(address) != KeyedIndex::kNone) continue;
        if (strangers_ >= kStrangersMax || insert(address, now) == KeyedIndex::kNone)
            ++counts_.refused;
    }
}

}  // namespace ulc::udp
