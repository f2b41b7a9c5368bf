// SPDX-License-Identifier: BSD-3-Clause
#include "hub_medium.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::sim {
namespace {

constexpr std::uint64_t kGapPart1Bits = 64;
constexpr std::uint64_t kGapPart2Bits = 32;
constexpr std::uint64_t kPreambleBits = 64;
constexpr std::uint64_t kJamBits = 32;

Nanos longest_cables(const HubConfig& config) {
    if (config.port_cable.empty()) return 2 * config.cable;
    auto cables = config.port_cable;
    std::sort(cables.begin(), cables.end(), std::greater<>());
    return cables[0] + cables[1];
}

}  // namespace

std::string problem_of(const HubConfig& config) {
    if (config.macs.size() < 2 || config.macs.size() > 1024)
        return "a hub has 2 to 1024 ports";  // clause 13: stations of one collision domain
    if (config.bits_per_second != 10'000'000 && config.bits_per_second != 100'000'000)
        return "a hub runs at 10 or 100 Mb/s";
    if (!config.port_cable.empty() && config.port_cable.size() != config.macs.size())
        return "there must be one cable delay for each port, or none";
    const auto is_negative = [](Nanos cable) { return cable < 0; };
    if (config.repeater < 0 || is_negative(config.cable) ||
        std::any_of(config.port_cable.begin(), config.port_cable.end(), is_negative))
        return "delays must not be negative";
    const Nanos bit = kSecond / static_cast<Nanos>(config.bits_per_second);
    const Nanos there_and_back = 2 * (longest_cables(config) + config.repeater);
    if (there_and_back > static_cast<Nanos>(kHubSlotBits) * bit)
        return "a signal must come and go between any two stations within the slot time of 512 "
               "bits";
    return {};
}

HubMedium::HubMedium(const HubConfig& config)
    : config_(config),
      addresses_(config.macs),
      faults_(addresses_.count(), config.seed),
      prng_(~config.seed),
      bit_time_(kSecond / static_cast<Nanos>(config.bits_per_second)),
      stations_(config.macs.size()) {
    ULC_CHECK(problem_of(config).empty());
    for (std::size_t port = 0; port < stations_.size(); ++port)
        stations_[port].cable = config.port_cable.empty() ? config.cable : config.port_cable[port];
}

void HubMedium::transmit(std::uint16_t from, FramePtr frame, Nanos now) {
    ULC_CHECK(now >= now_ && now <= events_.next());
    ULC_CHECK(frame != nullptr && frame->size() >= kMacHeaderOctets);
    now_ = now;
    Station& station = stations_[from];
    station.queue.push_back(std::move(frame));
    if (station.sender == Sender::kIdle) want_to_send(from);
}

void HubMedium::advance(Nanos to, MediumSink& sink) {
    while (events_.next() <= to) {
        now_ = events_.next();
        Event event = events_.pop();
        handle(event, sink);
    }
    now_ = std::max(now_, to);
}

void HubMedium::handle(Event& event, MediumSink& sink) {
    const Station& station = stations_[event.port];
    switch (event.kind) {
        case Kind::kCarrierOn:
            carrier_on(event.port);
            break;
        case Kind::kCarrierOff:
            carrier_off(event, sink);
            break;
        case Kind::kSendEnd:
            if (event.serial == station.send_serial) end_sending(event.port, sink);
            break;
        case Kind::kJamEnd:
            end_jam(event.port, sink);
            break;
        case Kind::kGapPart:
            if (event.serial == station.gap_serial) end_gap_part(event.port);
            break;
        case Kind::kBackoffEnd:
            want_to_send(event.port);
            break;
        case Kind::kLate:
            if (!faults_.is_unplugged(event.port)) sink.on_arrival(event.port, event.frame, now_);
            break;
    }
}

void HubMedium::force_collisions(std::uint16_t port, std::uint32_t n) {
    stations_[port].forced += n;
}

HubCounts HubMedium::total() const {
    HubCounts sum;
    for (const Station& station : stations_) {
        const HubCounts& counts = station.counts;
        sum.sent += counts.sent;
        sum.octets += counts.octets;
        sum.collisions += counts.collisions;
        sum.deferred += counts.deferred;
        sum.given_up += counts.given_up;
        sum.carried += counts.carried;
        for (std::size_t n = 0; n < sum.after_collisions.size(); ++n)
            sum.after_collisions[n] += counts.after_collisions[n];
    }
    return sum;
}

double HubMedium::utilisation() const {
    return now_ == 0 ? 0 : static_cast<double>(total().carried) / static_cast<double>(now_);
}

// ---------------------------------------------------------------- sending

void HubMedium::want_to_send(std::uint16_t port) {
    Station& station = stations_[port];
    station.sender = Sender::kWaiting;
    if (station.defer == Defer::kClear) {
        start_sending(port);
    } else if (station.attempts == 0 && !station.was_sending) {
        ++station.counts.deferred;
    }
}

void HubMedium::start_sending(std::uint16_t port) {
    Station& station = stations_[port];
    station.sender = Sender::kSending;
    station.defer = Defer::kBusy;
    station.was_sending = true;
    station.send_start = now_;
    station.is_heard = !faults_.is_unplugged(port);
    const std::uint64_t octets = wire_octets(station.queue.front()->size());
    events_.push(now_ + bits(octets * 8), {Kind::kSendEnd, port, port, ++station.send_serial, {}});
    signal(port, Kind::kCarrierOn, nullptr);
    if (station.forced > 0) {
        --station.forced;
        collide(port);
    } else if (station.carriers > 0 && station.is_heard) {
        collide(port);
    }
}

/// The beginning or the end of a signal, on its way to all others.
void HubMedium::signal(std::uint16_t from, Kind kind, const FramePtr& frame) {
    if (!stations_[from].is_heard) return;
    for (std::uint16_t to = 0; to < addresses_.count(); ++to)
        if (to != from) events_.push(now_ + delay(from, to), {kind, to, from, 0, frame});
}

/// A collision was detected: the preamble is finished, then the jam is sent.
void HubMedium::collide(std::uint16_t port) {
    Station& station = stations_[port];
    station.sender = Sender::kJamming;
    ++station.send_serial;
    ++station.counts.collisions;
    const Nanos preamble_end = station.send_start + bits(kPreambleBits);
    events_.push(std::max(now_, preamble_end) + bits(kJamBits), {Kind::kJamEnd, port, port, 0, {}});
}

void HubMedium::end_sending(std::uint16_t port, MediumSink& sink) {
    Station& station = stations_[port];
    signal(port, Kind::kCarrierOff, station.queue.front());
    ++station.counts.sent;
    ++station.counts.after_collisions[station.attempts];
    station.counts.octets += station.queue.front()->size();
    station.counts.carried += now_ - station.send_start;
    finish_front(port, true, sink);
}

void HubMedium::end_jam(std::uint16_t port, MediumSink& sink) {
    Station& station = stations_[port];
    signal(port, Kind::kCarrierOff, nullptr);
    ++station.attempts;
    if (station.attempts == kHubAttemptsMax) {
        ++station.counts.given_up;
        finish_front(port, false, sink);
        return;
    }
    const unsigned exponent = std::min(station.attempts, kHubBackoffExponentMax);
    const std::uint64_t slots = prng_.below(std::uint64_t{1} << exponent);
    station.sender = Sender::kBackingOff;
    events_.push(now_ + bits(slots * kHubSlotBits), {Kind::kBackoffEnd, port, port, 0, {}});
    look_for_silence(port);
}

void HubMedium::finish_front(std::uint16_t port, bool sent, MediumSink& sink) {
    Station& station = stations_[port];
    station.queue.pop_front();
    station.attempts = 0;
    station.sender = Sender::kIdle;
    look_for_silence(port);
    if (!station.queue.empty()) want_to_send(port);
    sink.on_sent(port, sent, now_);
}

// ---------------------------------------------------------------- hearing and deferring

bool HubMedium::senses(const Station& station) noexcept {
    return station.carriers > 0 || station.sender == Sender::kSending ||
           station.sender == Sender::kJamming;
}

void HubMedium::carrier_on(std::uint16_t port) {
    Station& station = stations_[port];
    ++station.carriers;
    if (station.sender == Sender::kSending && station.is_heard) collide(port);
    if (station.defer == Defer::kClear) {
        station.defer = Defer::kBusy;
        station.was_sending = false;
    } else if (station.defer == Defer::kGapPart1 && !station.was_sending) {
        station.defer = Defer::kBusy;
        ++station.gap_serial;
    }
}

void HubMedium::carrier_off(const Event& event, MediumSink& sink) {
    ULC_CHECK(stations_[event.port].carriers > 0);
    --stations_[event.port].carriers;
    look_for_silence(event.port);
    if (event.frame == nullptr || !addresses_.is_for(event.port, event.frame)) return;
    for (const Faults::Copy& copy : faults_.judge(event.from, event.port, event.frame)) {
        if (copy.late == 0) {
            sink.on_arrival(event.port, copy.frame, now_);
        } else {
            events_.push(now_ + copy.late, {Kind::kLate, event.port, event.from, 0, copy.frame});
        }
    }
}

void HubMedium::look_for_silence(std::uint16_t port) {
    Station& station = stations_[port];
    if (station.defer != Defer::kBusy || senses(station)) return;
    station.defer = Defer::kGapPart1;
    events_.push(now_ + bits(kGapPart1Bits),
                 {Kind::kGapPart, port, port, ++station.gap_serial, {}});
}

void HubMedium::end_gap_part(std::uint16_t port) {
    Station& station = stations_[port];
    if (station.defer == Defer::kGapPart1) {
        station.defer = Defer::kGapPart2;
        events_.push(now_ + bits(kGapPart2Bits),
                     {Kind::kGapPart, port, port, ++station.gap_serial, {}});
        return;
    }
    station.defer = Defer::kClear;
    station.was_sending = false;
    if (station.sender == Sender::kWaiting) {
        start_sending(port);
    } else if (station.carriers > 0) {
        station.defer = Defer::kBusy;
    }
}

}  // namespace ulc::sim
