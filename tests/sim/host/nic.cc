// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/host/nic.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace ulc::sim {
namespace {

bool is_mcast(const Segment& segment) noexcept {
    if (segment.length < wire::kHeadOctets) return false;
    const auto* header =
        reinterpret_cast<const wire::Header*>(segment.frame + sizeof(wire::EthernetHeader));
    return (header->version_type & 0xfU) == static_cast<unsigned>(wire::FrameType::kMcast);
}

std::uint64_t acknowledgements_of(const Counters& counters) noexcept {
    return counters.get(Counter::ack_sent) + counters.get(Counter::ack_piggybacked) +
           counters.get(Counter::ack_received);
}

bool is_to_group(const wire::EthernetHeader& header) noexcept {
    return (header.destination.octets[0] & 1U) != 0;
}

// Overwrites memory that must not be read any more, so that a reader is found.
void land(Segment& segment, const Landing& landing) {
    if (segment.length <= landing.front_octets) return;
    const std::vector<std::byte> payload(segment.frame, segment.frame + segment.length);
    std::fill(segment.frame + landing.front_octets, segment.frame + segment.length,
              std::byte{0xdb});
    const Landed landed = landing.where(landing.context, segment.frame, segment.length);
    if (landed.to == nullptr) {
        std::memcpy(segment.frame, payload.data(), segment.length);
        return;
    }
    std::memcpy(landed.to, payload.data() + segment.length - landed.octets, landed.octets);
    segment.tail = landed.to;
    segment.tail_octets = landed.octets;
}

}  // namespace

Nanos line_time(std::uint64_t octets, std::uint64_t bits_per_second) noexcept {
    if (bits_per_second == 0) return 0;
    const std::uint64_t bits =
        (std::max<std::uint64_t>(octets, wire::kFrameOctetsMin) + kLineOverheadOctets) * 8;
    return static_cast<Nanos>(bits * static_cast<std::uint64_t>(kSecond) / bits_per_second);
}

Nic::Nic(Config config, const HostCosts& costs, HandOver hand_over)
    : config_(std::move(config)),
      all_multicasts_(config_.multicast_filters == kPassesAll),
      costs_(costs),
      hand_over_(std::move(hand_over)),
      cpu_(costs.speed),
      tx_pool_(config_.segments,
               static_cast<std::uint32_t>(config_.mtu + sizeof(wire::EthernetHeader))),
      rx_pool_(config_.segments,
               static_cast<std::uint32_t>(config_.mtu + sizeof(wire::EthernetHeader))) {}

Port Nic::port() noexcept {
    Port port;
    port.context = this;
    port.info.mac = config_.mac;
    port.info.mtu = config_.mtu;
    port.info.tx_ring_frames = costs_.tx_ring_frames;
    port.info.rx_frames = config_.segments;
    port.info.gathers = true;
    port.info.link_bits_per_second = config_.bits_per_second;
    port.info.half_duplex = config_.half_duplex;
    port.info.multicast_filters = config_.multicast_filters;
    port.pool = tx_pool_.table();
    port.rx = [](void* context, Segment** out, std::uint16_t n) {
        return static_cast<Nic*>(context)->rx(out, n);
    };
    port.rx_landing = [](void* context, const Landing& landing) {
        return static_cast<Nic*>(context)->rx_landing(landing);
    };
    port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<Nic*>(context)->tx(frames, n);
    };
    port.missed = [](void* context) { return static_cast<Nic*>(context)->stats.overruns; };
    port.drops = [](void* context) {
        return PortDrops{.too_long = static_cast<Nic*>(context)->stats.too_long};
    };
    port.tx_pending = [](void* context) {
        return static_cast<std::uint32_t>(static_cast<Nic*>(context)->tx_ring_.size());
    };
    if (port.info.half_duplex)
        port.tx_failed = [](void* context) -> Segment* {
            auto& failed = static_cast<Nic*>(context)->failed_;
            if (failed.empty()) return nullptr;
            Segment* segment = failed.front();
            failed.pop_front();
            return segment;
        };
    port.set_multicasts = [](void* context, std::span<const Mac> addresses) {
        return static_cast<Nic*>(context)->set_multicasts(addresses);
    };
    port.link_up = [](void* context) { return static_cast<Nic*>(context)->plugged; };
    if (!config_.reads_arenas) return port;
    port.add_memory = [](void* context, std::span<const std::byte> memory) {
        return static_cast<Nic*>(context)->add_arena(memory);
    };
    port.remove_memory = [](void* context, const std::byte* memory) {
        std::erase_if(static_cast<Nic*>(context)->arenas_,
                      [&](const Arena& each) { return each.memory.data() == memory; });
    };
    return port;
}

void Nic::begin_round(const Counters& counters, bool idle) noexcept {
    counters_ = &counters;
    submissions_charged_ = counters.get(Counter::submissions);
    acknowledgements_charged_ = acknowledgements_of(counters);
    interrupt_due_ = idle && costs_.notice == Notice::kInterrupt;
}

void Nic::end_round() noexcept {
    charge_counted();
    counters_ = nullptr;
    interrupt_due_ = false;
}

void Nic::charge_counted() noexcept {
    if (counters_ == nullptr) return;
    const std::uint64_t taken = counters_->get(Counter::submissions);
    const std::uint64_t acknowledged = acknowledgements_of(*counters_);
    cpu_.charge(static_cast<double>(costs_.submit) *
                    static_cast<double>(taken - submissions_charged_) +
                static_cast<double>(costs_.acknowledge) *
                    static_cast<double>(acknowledged - acknowledgements_charged_));
    submissions_charged_ = taken;
    acknowledgements_charged_ = acknowledged;
}

Nanos Nic::bus_time(std::size_t octets) const noexcept {
    return costs_.bus_setup + static_cast<Nanos>(costs_.bus_octet * static_cast<double>(octets));
}

std::uint16_t Nic::tx(Segment* const* frames, std::uint16_t n) {
    std::uint16_t count = 0;
    while (count < n && tx_ring_.size() < costs_.tx_ring_frames)
        send(frames[count++]);
    return count;
}

std::uint32_t Nic::add_arena(std::span<const std::byte> memory) {
    for (const Arena& each : arenas_)
        if (each.memory.data() == memory.data()) return each.key;
    arenas_.push_back({memory, ++next_key_});
    return next_key_;
}

/// A device refuses memory that it was not told of, and the frames of all fail then.
bool Nic::may_read(const Segment& segment) const noexcept {
    if (segment.tail == nullptr || segment.tail_key == 0) return true;
    return std::ranges::any_of(arenas_, [&](const Arena& each) {
        const std::byte* const end = each.memory.data() + each.memory.size();
        return each.key == segment.tail_key && segment.tail >= each.memory.data() &&
               segment.tail + segment.tail_octets <= end;
    });
}

void Nic::send(Segment* segment) {
    ULC_CHECK(may_read(*segment));
    const std::uint32_t octets = segment->length;
    charge_counted();
    const auto& header = *reinterpret_cast<const wire::EthernetHeader*>(segment->frame);
    cpu_.charge(static_cast<double>(send_cost(header)) + costs_.send_octet * octets);
    const Nanos begin = std::max(cpu_.now(), bus_free_);
    const Nanos whole = begin + bus_time(octets);
    bus_free_ = whole;
    if (costs_.bus_by_processor) cpu_.wait_until(whole);
    Nanos ready = whole;
    if (!takes_all_at_once(costs_.send_threshold, octets)) {
        ready = std::max(begin + bus_time(costs_.send_threshold),
                         whole - line_time(octets, config_.bits_per_second));
    }
    last_hand_over_ = std::max(ready + costs_.nic, last_hand_over_);
    ++stats.tx_frames;
    stats.tx_octets += octets;
    if (is_mcast(*segment)) ++stats.mcast_frames;
    std::vector<std::byte> whole_frame(octets);
    copy_frame(whole_frame.data(), *segment);
    auto frame = std::make_shared<const std::vector<std::byte>>(std::move(whole_frame));
    tx_ring_.push_back({segment, frame});
    hand_over_(config_.index, std::move(frame), last_hand_over_);
}

void Nic::on_sent(bool sent) {
    Sending oldest = std::move(tx_ring_.front());
    tx_ring_.pop_front();
    if (sent) {
        FramePool::drop(oldest.segment);
        return;
    }
    ++stats.given_up;
    failed_.push_back(oldest.segment);
}

bool Nic::set_multicasts(std::span<const Mac> addresses) {
    multicasts_.assign(addresses.begin(), addresses.end());
    if (config_.multicast_filters == kPassesAll) return true;
    all_multicasts_ = addresses.size() > config_.multicast_filters;
    return !all_multicasts_;
}

bool Nic::passes(const Mac& destination) const noexcept {
    const bool multicast = (destination.octets[0] & 1U) != 0 && destination != kBroadcastMac;
    return !multicast || all_multicasts_ || std::ranges::count(multicasts_, destination) > 0;
}

bool Nic::is_neighbour(const Mac& address) const noexcept {
    return !config_.neighbours.empty() && std::ranges::count(config_.neighbours, address) > 0;
}

Nanos Nic::send_cost(const wire::EthernetHeader& header) const noexcept {
    if (is_neighbour(header.destination)) return costs_.hand_over_frame;
    const bool has_ring = is_to_group(header) && !config_.neighbours.empty();
    return costs_.send_frame + (has_ring ? costs_.hand_over_frame : 0);
}

Nanos Nic::receive_cost(const wire::EthernetHeader& header) const noexcept {
    return is_neighbour(header.source) ? costs_.hand_over_frame : costs_.receive_frame;
}

/// Returns true if the frame was for another thread alone.
bool Nic::pass_on(const FramePtr& frame) {
    const auto& header = *reinterpret_cast<const wire::EthernetHeader*>(frame->data());
    if (is_neighbour(header.source)) return false;
    const bool to_group = is_to_group(header);
    if (!to_group && !is_neighbour(header.destination)) return false;
    cpu_.charge(
        static_cast<double>(costs_.hand_over_frame + (to_group ? 0 : costs_.receive_frame)));
    ++stats.handed_over;
    hand_over_(config_.index, frame, cpu_.now());
    return !to_group;
}

Nanos Nic::on_arrival(const FramePtr& frame, Nanos at) {
    const std::size_t octets = frame->size();
    if (octets >= sizeof(wire::EthernetHeader) &&
        !passes(reinterpret_cast<const wire::EthernetHeader*>(frame->data())->destination)) {
        ++stats.filtered;
        return kNever;
    }
    if (octets > config_.mtu + sizeof(wire::EthernetHeader)) {
        ++stats.too_long;
        return kNever;
    }
    if (rx_ring_.size() >= costs_.rx_ring_frames) {
        ++stats.overruns;
        return kNever;
    }
    ++stats.rx_frames;
    Nanos in_memory = at;
    if (!costs_.bus_by_processor) {
        Nanos begin = at;
        if (!takes_all_at_once(costs_.receive_threshold, octets)) {
            // The bus began when the first bytes were there, and cannot end before the last one is.
            const Nanos line = line_time(octets, config_.bits_per_second);
            const Nanos head = line * costs_.receive_threshold / static_cast<Nanos>(octets);
            begin = at - line + head;
        }
        in_memory = std::max(at, std::max(begin, bus_free_) + bus_time(octets));
        bus_free_ = in_memory;
    }
    in_memory += costs_.nic;
    if (costs_.gather > 0) {
        const Nanos phase = config_.index % 2 * (costs_.gather / 2);
        in_memory += costs_.gather - 1 - (in_memory + phase + costs_.gather - 1) % costs_.gather;
    }
    rx_ring_.push_back({frame, in_memory});
    return in_memory;
}

std::uint16_t Nic::rx(Segment** out, std::uint16_t n) {
    std::uint16_t count = 0;
    while (count < n && !rx_ring_.empty() && rx_ring_.front().at <= cpu_.now()) {
        const FramePtr frame = std::move(rx_ring_.front().frame);
        rx_ring_.pop_front();
        if (config_.hands_over && pass_on(frame)) continue;
        Segment* segment = rx_pool_.get();
        if (segment == nullptr) {
            ++stats.overruns;
            continue;
        }
        const std::size_t octets = frame->size();
        std::memcpy(segment->frame, frame->data(), octets);
        segment->length = static_cast<std::uint32_t>(octets);
        out[count++] = segment;
        if (interrupt_due_) cpu_.charge(static_cast<double>(costs_.interrupt_cost));
        interrupt_due_ = false;
        const auto& header = *reinterpret_cast<const wire::EthernetHeader*>(segment->frame);
        cpu_.charge(static_cast<double>(receive_cost(header)) +
                    costs_.receive_octet * static_cast<double>(octets));
        if (!costs_.bus_by_processor) continue;
        // Early receive: the transfer began, and most bytes were moved, while the rest came in. The
        // bytes that the threshold holds back remain.
        const bool early = !takes_all_at_once(costs_.receive_threshold, octets);
        const Nanos left =
            early ? bus_time(costs_.receive_threshold) - costs_.bus_setup : bus_time(octets);
        bus_free_ = std::max(cpu_.now(), bus_free_) + left;
        cpu_.wait_until(bus_free_);
    }
    return count;
}

Segment* Nic::rx_landing(const Landing& landing) {
    Segment* segment = nullptr;
    while (rx(&segment, 1) == 1) {
        land(*segment, landing);
        if (segment->tail == nullptr || config_.overtaken_every == 0 ||
            ++landed_ % config_.overtaken_every != 0)
            return segment;
        std::memset(const_cast<std::byte*>(segment->tail), 0xdb, segment->tail_octets);
        ++stats.overruns;
        FramePool::drop(segment);
    }
    return nullptr;
}

void Nic::drop_all() {
    for (const Sending& sending : tx_ring_)
        FramePool::drop(sending.segment);
    for (Segment* segment : failed_)
        FramePool::drop(segment);
    tx_ring_.clear();
    failed_.clear();
    rx_ring_.clear();
}

}  // namespace ulc::sim
