// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/cluster/sim_net.h"

#include <algorithm>

namespace ulc::sim {

SimNet::SimNet(const NetConfig& config, std::vector<HostCosts> hosts) : made_(make_medium(config)) {
    if (hosts.empty()) hosts.emplace_back();
    for (std::uint16_t index = 0; index < config.ports; ++index) {
        Nic::Config nic{index,
                        mac_of(index),
                        config.mtu_of(index),
                        config.rate_of(index),
                        config.segments,
                        config.medium == MediumKind::kHub,
                        config.multicast_filters,
                        config.overtaken_every,
                        {},
                        false};
        const int first = index - index % config.threads;
        nic.reads_arenas = config.reads_arenas;
        nic.hands_over =
            config.threads > 1 && index == first && config.steering != Steering::kByNic;
        for (int other = first; other < first + config.threads; ++other)
            if (other != index) nic.neighbours.push_back(mac_of(static_cast<std::uint16_t>(other)));
        nics_.push_back(std::make_unique<Nic>(std::move(nic),
                                              hosts[std::min<std::size_t>(index, hosts.size() - 1)],
                                              [this](std::uint16_t from, FramePtr frame, Nanos at) {
                                                  hand_over(from, std::move(frame), at);
                                              }));
    }
}

SimNet::~SimNet() { drop_all(); }

Nanos SimNet::next_event() const noexcept {
    if (closed_) return kNever;
    return std::min(hand_overs_.next(), made_.medium->next_event());
}

void SimNet::advance(Nanos to) {
    while (true) {
        const Nanos next = next_event();
        if (next > to || next == kNever) break;
        now_ = std::max(now_, next);
        if (hand_overs_.next() <= next) {
            HandOver due = hand_overs_.pop();
            transmit(due.from, std::move(due.frame));
        } else {
            made_.medium->advance(now_, *this);
        }
    }
    now_ = std::max(now_, to);
}

void SimNet::hand_over(std::uint16_t from, FramePtr frame, Nanos at) {
    if (at <= now_) {
        transmit(from, std::move(frame));
        return;
    }
    hand_overs_.push(at, {from, std::move(frame)});
}

void SimNet::transmit(std::uint16_t from, FramePtr frame) {
    if (closed_) return;
    if (tap_ != nullptr) tap_->on_frame(from, true, *frame, now_);
    made_.medium->transmit(from, std::move(frame), now_);
}

void SimNet::on_sent(std::uint16_t port, bool sent, Nanos at) {
    if (closed_) return;
    now_ = std::max(now_, at);
    nics_[port]->on_sent(sent);
    if (listener_) listener_(port, false, at);
}

void SimNet::on_arrival(std::uint16_t port, const FramePtr& frame, Nanos at) {
    if (closed_ || port >= nics_.size()) return;  // a lone node's cable ends nowhere
    now_ = std::max(now_, at);
    if (tap_ != nullptr) tap_->on_frame(port, false, *frame, at);
    const Nanos in_memory = nics_[port]->on_arrival(frame, at);
    if (in_memory != kNever && listener_) listener_(port, true, in_memory);
}

void SimNet::drop_all() {
    closed_ = true;
    hand_overs_ = {};
    for (const auto& nic : nics_)
        nic->drop_all();
}

void SimNet::inject(std::uint16_t index, const std::byte* frame, std::uint32_t octets) {
    const auto copy = std::make_shared<const std::vector<std::byte>>(frame, frame + octets);
    const Nanos in_memory = nics_[index]->on_arrival(copy, now_);
    if (in_memory != kNever && listener_) listener_(index, true, in_memory);
}

}  // namespace ulc::sim
