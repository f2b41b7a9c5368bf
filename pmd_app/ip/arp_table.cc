// SPDX-License-Identifier: BSD-3-Clause
#include "ip/arp_table.h"

namespace ulc::ip {

ArpTable::ArpTable(std::uint64_t seed) : index_(seed) {}

const Mac* ArpTable::find(Ipv4 address) noexcept {
    const std::uint32_t at = index_.find(address);
    if (at == KeyedIndex::kNone || !entries_[at].known) return nullptr;
    entries_[at].used = true;
    return &entries_[at].mac;
}

bool ArpTable::ask(Ipv4 address, Nanos now) {
    const std::uint32_t at = index_.find(address);
    if (at != KeyedIndex::kNone) return true;  // on_timer() asks again
    if (entries_.size() == kEntriesMax) return false;
    index_.insert(address, static_cast<std::uint32_t>(entries_.size()));
    entries_.push_back({.address = address});
    question(entries_.back(), now);
    return true;
}

bool ArpTable::is_asked(Ipv4 address) const noexcept {
    const std::uint32_t at = index_.find(address);
    return at != KeyedIndex::kNone && !entries_[at].known;
}

bool ArpTable::on_reply(Ipv4 address, const Mac& mac, Nanos now) {
    const std::uint32_t at = index_.find(address);
    if (at == KeyedIndex::kNone || !entries_[at].open) {
        on_claim(address, mac, now);
        return false;
    }
    Entry& entry = entries_[at];
    entry.mac = mac;
    entry.known = true;
    entry.open = entry.used = entry.doubted = false;
    entry.tries = 0;
    entry.heard = now;
    return true;
}

void ArpTable::on_claim(Ipv4 address, const Mac& mac, Nanos now) {
    const std::uint32_t at = index_.find(address);
    if (at == KeyedIndex::kNone || !entries_[at].known || entries_[at].mac == mac) return;
    Entry& entry = entries_[at];
    entry.doubted = true;
    if (now - entry.asked >= kAskAgain) question(entry, now);
}

void ArpTable::on_timer(Nanos now) {
    if (now < next_look_) return;
    next_look_ = now + kLook;
    for (std::size_t at = 0; at < entries_.size();) {
        if (look_at(entries_[at], now)) {
            ++at;
        } else {
            remove(at);
        }
    }
}

/// Asks if it is time. False: the entry ends.
bool ArpTable::look_at(Entry& entry, Nanos now) {
    if (entry.known && now - entry.heard >= kExpire) {
        if (!entry.used && !entry.open) return false;
        entry.known = false;
        entry.tries = 0;
    }
    const bool due = !entry.known || entry.open || entry.doubted ||
                     (entry.used && now - entry.heard >= kRefresh);
    if (!due || now - entry.asked < kAskAgain) return true;
    if (!entry.known && entry.tries == kTries) return false;
    question(entry, now);
    return true;
}

void ArpTable::question(Entry& entry, Nanos now) {
    entry.open = true;
    entry.asked = now;
    ++entry.tries;
    questions_.push_back(entry.address);
}

bool ArpTable::next_question(Ipv4& out) {
    if (questions_.empty()) return false;
    out = questions_.back();
    questions_.pop_back();
    return true;
}

void ArpTable::remove(std::size_t at) noexcept {
    index_.erase(entries_[at].address);
    if (at + 1 < entries_.size()) {
        entries_[at] = entries_.back();
        index_.erase(entries_[at].address);
        index_.insert(entries_[at].address, static_cast<std::uint32_t>(at));
    }
    entries_.pop_back();
}

}  // namespace ulc::ip
