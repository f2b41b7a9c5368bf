// SPDX-License-Identifier: BSD-3-Clause
#include "faults.h"

#include <algorithm>

#include "base/check.h"
#include "wire/header.h"
#include "wire/ids.h"

namespace ulc::sim {

namespace {

bool is_node_frame(const std::vector<std::byte>& frame) noexcept {
    constexpr std::size_t kTypeAt = sizeof(wire::EthernetHeader);
    return frame.size() > kTypeAt &&
           (frame[kTypeAt] & std::byte{0x0f}) == static_cast<std::byte>(wire::FrameType::kNode);
}

}  // namespace

Faults::Faults(std::uint16_t ports, std::uint64_t seed) {
    Prng seeds(seed);
    for (std::uint16_t port = 0; port < ports; ++port)
        receivers_.emplace_back(seeds.next());
}

void Faults::apply(Receiver& receiver, const FaultRates& rates) {
    receiver.rates = rates;
    receiver.has_rates = rates.loss > 0 || rates.burst.enter > 0 || rates.corrupt > 0 ||
                         rates.duplicate > 0 || rates.reorder > 0;
    receiver.in_burst = false;
}

void Faults::set(const FaultRates& rates) {
    for (Receiver& receiver : receivers_)
        apply(receiver, rates);
}

void Faults::set_receiver(std::uint16_t to, const FaultRates& rates) {
    apply(receivers_[to], rates);
}

void Faults::lose_next(std::uint16_t from, std::uint16_t to, std::uint32_t n) {
    if (n > 0) scripted_[{from, to}] += n;
}

void Faults::partition(std::span<const std::uint16_t> islands) {
    ULC_CHECK(islands.size() == receivers_.size());
    for (std::size_t port = 0; port < islands.size(); ++port)
        receivers_[port].island = islands[port];
}

void Faults::cut(std::uint16_t from, std::uint16_t to, bool is_cut) {
    if (is_cut) {
        cuts_.insert({from, to});
    } else {
        cuts_.erase({from, to});
    }
}

void Faults::unplug(std::uint16_t port, bool unplugged) { receivers_[port].unplugged = unplugged; }

void Faults::heal(bool keep_unplugged) {
    set({});
    scripted_.clear();
    cuts_.clear();
    mute_.clear();
    for (Receiver& receiver : receivers_) {
        receiver.island = 0;
        receiver.longest = SIZE_MAX;
        if (!keep_unplugged) receiver.unplugged = false;
    }
}

void Faults::mute(std::uint16_t from) { mute_.insert(from); }

bool Faults::is_apart(std::uint16_t from, std::uint16_t to) const {
    return receivers_[to].unplugged || receivers_[from].island != receivers_[to].island ||
           (!cuts_.empty() && cuts_.contains({from, to}));
}

bool Faults::loses(std::uint16_t from, std::uint16_t to) {
    if (!scripted_.empty()) {
        const auto found = scripted_.find({from, to});
        if (found != scripted_.end()) {
            if (--found->second == 0) scripted_.erase(found);
            return true;
        }
    }
    Receiver& receiver = receivers_[to];
    const FaultRates& rates = receiver.rates;
    if (rates.burst.enter > 0) {
        receiver.in_burst = receiver.in_burst ? !receiver.prng.chance(rates.burst.leave)
                                              : receiver.prng.chance(rates.burst.enter);
        if (receiver.in_burst && receiver.prng.chance(rates.burst.loss)) return true;
    }
    return rates.loss > 0 && receiver.prng.chance(rates.loss);
}

/// Changes some bytes, each to another value. The destination address stays: a frame with another
/// one would reach no port, which is a loss.
FramePtr Faults::damaged(Receiver& receiver, const FramePtr& frame) {
    auto octets = *frame;
    const std::uint64_t count = 1 + receiver.prng.below(receiver.rates.corrupt_octets_max);
    for (std::uint64_t n = 0; n < count; ++n) {
        const std::size_t at = sizeof(Mac) + receiver.prng.below(octets.size() - sizeof(Mac));
        octets[at] = (*frame)[at] ^ static_cast<std::byte>(1 + receiver.prng.below(255));
    }
    return std::make_shared<const std::vector<std::byte>>(std::move(octets));
}

Faults::Copies Faults::judge(std::uint16_t from, std::uint16_t to, const FramePtr& frame) {
    Copies copies;
    Receiver& receiver = receivers_[to];
    const bool muted = mute_.contains(from) && !is_node_frame(*frame);
    const std::size_t longest = std::min(receiver.longest, receivers_[from].longest);
    const bool too_long = frame->size() > sizeof(wire::EthernetHeader) &&
                          frame->size() - sizeof(wire::EthernetHeader) > longest;
    if (muted || too_long || is_apart(from, to)) {
        ++receiver.counts.cut;
        return copies;
    }
    if (loses(from, to)) {
        ++receiver.counts.lost;
        return copies;
    }
    Copy copy{frame, 0};
    if (!receiver.has_rates) {
        ULC_CHECK(copies.push_back(copy));
        return copies;
    }
    const FaultRates& rates = receiver.rates;
    if (receiver.prng.chance(rates.corrupt)) {
        copy.frame = damaged(receiver, frame);
        ++receiver.counts.corrupted;
    }
    const unsigned count = receiver.prng.chance(rates.duplicate) ? 2 : 1;
    receiver.counts.duplicated += count - 1;
    for (unsigned n = 0; n < count; ++n) {
        copy.late = 0;
        if (receiver.prng.chance(rates.reorder)) {
            copy.late = 1 + static_cast<Nanos>(receiver.prng.below(
                                static_cast<std::uint64_t>(rates.reorder_delay)));
            ++receiver.counts.late;
        }
        ULC_CHECK(copies.push_back(copy));
    }
    return copies;
}

}  // namespace ulc::sim
