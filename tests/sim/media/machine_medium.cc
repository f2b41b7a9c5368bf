// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/media/machine_medium.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tests/sim/media/ethernet.h"

namespace ulc::sim {

MachineMedium::MachineMedium(std::unique_ptr<Medium> cables, MachineConfig config)
    : cables_(std::move(cables)),
      config_(std::move(config)),
      sending_(config_.macs.size()),
      queued_(config_.macs.size() / config_.threads) {
    ULC_CHECK(config_.macs.size() % config_.threads == 0);
}

bool MachineMedium::is_from(std::uint16_t station, const FramePtr& frame) const noexcept {
    return std::memcmp(frame->data() + sizeof(Mac), &config_.macs[station], sizeof(Mac)) == 0;
}

bool MachineMedium::is_to(std::uint16_t station, const FramePtr& frame) const noexcept {
    return std::memcmp(frame->data(), &config_.macs[station], sizeof(Mac)) == 0;
}

void MachineMedium::write_rings(std::uint16_t from, const FramePtr& frame, Nanos now) {
    const bool to_group = PortAddresses::is_group(frame);
    const std::uint16_t first = first_of(from);
    for (std::uint16_t to = first; to < first + config_.threads; ++to)
        if (to != from && (to_group || is_to(to, frame)))
            events_.push(now + config_.ring_latency, {to, frame});
}

void MachineMedium::transmit(std::uint16_t from, FramePtr frame, Nanos now) {
    ULC_CHECK(frame != nullptr && frame->size() >= kMacHeaderOctets);
    write_rings(from, frame, now);
    if (!is_from(from, frame)) return;  // handed over
    const std::uint16_t first = first_of(from);
    bool near = false;
    for (std::uint16_t to = first; to < first + config_.threads; ++to)
        near |= is_to(to, frame);
    sending_[from].push_back(near);
    if (near) {
        events_.push(now, {from, nullptr});
        return;
    }
    const auto machine = static_cast<std::uint16_t>(from / config_.threads);
    queued_[machine].push_back(from);
    cables_->transmit(machine, std::move(frame), now);
}

Nanos MachineMedium::next_event() const { return std::min(events_.next(), cables_->next_event()); }

void MachineMedium::advance(Nanos to, MediumSink& sink) {
    sink_ = &sink;
    while (next_event() <= to) {
        if (cables_->next_event() <= events_.next()) {
            cables_->advance(cables_->next_event(), *this);
            continue;
        }
        const Nanos at = events_.next();
        const Event event = events_.pop();
        if (event.frame == nullptr) {
            tell_what_left(event.station, at);
        } else {
            sink.on_arrival(event.station, event.frame, at);
        }
    }
    cables_->advance(to, *this);
    sink_ = nullptr;
}

void MachineMedium::on_sent(std::uint16_t machine, bool sent, Nanos at) {
    ULC_CHECK(sent);  // no machine has a half-duplex cable
    const std::uint16_t station = queued_[machine].front();
    queued_[machine].pop_front();
    *std::ranges::find(sending_[station], false) = true;
    tell_what_left(station, at);
}

/// A station's frames are reported in their order.
void MachineMedium::tell_what_left(std::uint16_t station, Nanos at) {
    std::deque<bool>& sending = sending_[station];
    while (!sending.empty() && sending.front()) {
        sending.pop_front();
        sink_->on_sent(station, true, at);
    }
}

void MachineMedium::on_arrival(std::uint16_t machine, const FramePtr& frame, Nanos at) {
    const auto first = static_cast<std::uint16_t>(machine * config_.threads);
    const bool to_group = PortAddresses::is_group(frame);
    if (config_.steering == Steering::kBySoftware ||
        (to_group && config_.steering == Steering::kUnicastByNic)) {
        sink_->on_arrival(first, frame, at);
        return;
    }
    for (std::uint16_t to = first; to < first + config_.threads; ++to)
        if (to_group || is_to(to, frame)) sink_->on_arrival(to, frame, at);
}

}  // namespace ulc::sim
