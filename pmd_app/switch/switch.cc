// SPDX-License-Identifier: BSD-3-Clause
#include "switch/switch.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace ulc::ether_switch {
namespace {

constexpr std::uint16_t kBurst = 32;
constexpr Nanos kLinkCheckEvery = 1 * kMillisecond;

void add(Switch::Row& row, SwitchCounter counter, std::uint64_t n = 1) noexcept {
    row[static_cast<std::size_t>(counter)] += n;
}

/// Returns the counter of a kind: data, mcast and control are consecutive in the table, in the
/// order of Kind.
SwitchCounter counter_of(SwitchCounter data, Switch::Kind kind) noexcept {
    return static_cast<SwitchCounter>(static_cast<std::size_t>(data) +
                                      static_cast<std::size_t>(kind) - 1);
}
static_assert(static_cast<int>(SwitchCounter::in_control) ==
              static_cast<int>(SwitchCounter::in_data) + 2);
static_assert(static_cast<int>(SwitchCounter::out_control) ==
              static_cast<int>(SwitchCounter::out_data) + 2);

wire::EthernetHeader ethernet_of(const Segment& segment) noexcept {
    wire::EthernetHeader header;
    std::memcpy(&header, segment.frame, sizeof header);
    return header;
}

}  // namespace

Switch::Switch(const SwitchConfig& config, std::span<const Port> ports)
    : config_(config),
      count_(static_cast<std::uint16_t>(ports.size())),
      stations_(config.stations_max, config.age) {
    ULC_CHECK(ports.size() < kNoPort);
    outputs_.reserve(ports.size());
    for (std::uint16_t i = 0; i < count_; ++i) {
        outputs_.push_back(
            {.port = ports[i],
             .faults = FaultModel(config.faults, config.seed, i),
             .queue = OutQueue(config.rate, config.buffer, config.queue_frames_max)});
    }
}

Switch::~Switch() {
    Waiting frame;
    for (Output& output : outputs_) {
        while (output.queue.pop(kNever, frame))
            drop(frame.from, frame.segment);
    }
}

bool Switch::poll(Nanos now) {
    if (now - links_checked_ >= kLinkCheckEvery) check_links(now);
    bool moved = false;
    for (std::uint16_t from = 0; from < count_; ++from) {
        std::array<Segment*, kBurst> burst;
        const Port& port = outputs_[from].port;
        const std::uint16_t n = port.rx(port.context, burst.data(), kBurst);
        for (std::uint16_t i = 0; i < n; ++i) {
            take(from, burst[i], now);
            drop(from, burst[i]);
        }
        moved |= n != 0;
    }
    for (Output& output : outputs_) {
        if (!output.queue.empty()) moved |= flush(output, now);
    }
    return moved;
}

void Switch::check_links(Nanos now) {
    links_checked_ = now;
    for (std::uint16_t i = 0; i < count_; ++i) {
        Output& output = outputs_[i];
        const bool up = output.port.link_up(output.port.context);
        if (output.up && !up) stations_.forget_port(i);
        output.up = up;
    }
}

Switch::Kind Switch::classify(const Segment& segment, std::uint16_t& payload) const noexcept {
    if (segment.length < wire::kHeadOctets || ethernet_of(segment).type != config_.ether_type) {
        return Kind::kOther;
    }
    wire::Header header;
    std::memcpy(&header, segment.frame + sizeof(wire::EthernetHeader), sizeof header);
    payload = header.length;
    const auto type = static_cast<wire::FrameType>(header.version_type & 0x0f);
    if (type == wire::FrameType::kData) return Kind::kData;
    return type == wire::FrameType::kMcast ? Kind::kMcast : Kind::kControl;
}

void Switch::take(std::uint16_t from, Segment* segment, Nanos now) {
    Row& row = outputs_[from].row;
    add(row, SwitchCounter::in_frames);
    add(row, SwitchCounter::in_bytes, segment->length);
    if (segment->length < sizeof(wire::EthernetHeader)) return add(row, SwitchCounter::filtered);
    std::uint16_t payload = 0;
    const Kind kind = classify(*segment, payload);
    if (kind != Kind::kOther) add(row, counter_of(SwitchCounter::in_data, kind));
    if (kind == Kind::kData || kind == Kind::kMcast)
        add(row, SwitchCounter::in_payload_bytes, payload);
    const wire::EthernetHeader header = ethernet_of(*segment);
    stations_.learn(header.source, from, now);
    if (is_link_local(header.destination)) return add(row, SwitchCounter::filtered);
    const std::uint16_t to =
        is_group_address(header.destination) ? kNoPort : stations_.find(header.destination, now);
    if (to == from) return add(row, SwitchCounter::filtered);
    const Waiting frame{.due = now,
                        .segment = segment,
                        .length = segment->length,
                        .from = from,
                        .kind = static_cast<std::uint8_t>(kind)};
    if (to != kNoPort) return offer(to, frame);
    add(row, SwitchCounter::flooded);
    for (std::uint16_t other = 0; other < count_; ++other) {
        if (other != from) offer(other, frame);
    }
}

void Switch::offer(std::uint16_t to, const Waiting& frame) {
    Output& output = outputs_[to];
    Fate fate;
    if (config_.faults.any()) fate = output.faults.judge();
    if (!output.up) return add(output.row, SwitchCounter::dropped_down);
    if (fate.copies == 0) {
        output.queue.waste(frame);
        return add(output.row, SwitchCounter::lost);
    }
    if (fate.copies == 2) add(output.row, SwitchCounter::duplicated);
    if (fate.held) add(output.row, SwitchCounter::reordered);
    for (int copy = 0; copy < fate.copies; ++copy) {
        Waiting one = frame;
        one.due += fate.after[copy];
        if (output.queue.push(one, fate.held && copy == 0)) {
            hold(frame.from, frame.segment);
        } else {
            add(output.row, SwitchCounter::dropped_full);
        }
    }
}

/// Sends the frames that are due. Frames that the port does not take stay, in order.
bool Switch::flush(Output& output, Nanos now) {
    std::array<Waiting, kBurst> due;
    std::array<Segment*, kBurst> burst;
    std::uint16_t n = 0;
    while (n < kBurst && output.queue.pop(now, due[n])) {
        burst[n] = due[n].segment;
        ++n;
    }
    if (n == 0) return false;
    if (!output.up) {
        for (std::uint16_t i = 0; i < n; ++i)
            drop(due[i].from, burst[i]);
        add(output.row, SwitchCounter::dropped_down, n);
        return true;
    }
    const std::uint16_t sent = output.port.tx(output.port.context, burst.data(), n);
    for (std::uint16_t i = 0; i < sent; ++i) {
        add(output.row, SwitchCounter::out_frames);
        add(output.row, SwitchCounter::out_bytes, due[i].length);
        const auto kind = static_cast<Kind>(due[i].kind);
        if (kind != Kind::kOther) add(output.row, counter_of(SwitchCounter::out_data, kind));
    }
    for (std::uint16_t i = sent; i < n; ++i)
        output.queue.put_back(due[i]);
    return sent != 0;
}

Nanos Switch::next_due() const noexcept {
    Nanos due = kNever;
    for (const Output& output : outputs_)
        due = std::min(due, output.queue.next_due());
    return due;
}

}  // namespace ulc::ether_switch
