// SPDX-License-Identifier: BSD-3-Clause
#include "switch_medium.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::sim {
namespace {

constexpr std::int64_t kPicosPerNano = 1000;
constexpr std::int64_t kPicosPerSecond = 1'000'000'000'000;

/// Returns the first whole nanosecond at or after this time.
Nanos nanos_of(std::int64_t picos) noexcept { return (picos + kPicosPerNano - 1) / kPicosPerNano; }

}  // namespace

std::string problem_of(const SwitchConfig& config) {
    const std::size_t ports = config.macs.size() / config.macs_each;
    if (ports < 2 || config.macs.size() >= UINT16_MAX) return "a switch has 2 to 65534 ports";
    if (!config.port_bits_per_second.empty() && config.port_bits_per_second.size() != ports)
        return "there must be one rate for each port, or none";
    const auto is_slow = [](std::uint64_t rate) { return rate < 1'000'000; };
    if (is_slow(config.bits_per_second) || std::any_of(config.port_bits_per_second.begin(),
                                                       config.port_bits_per_second.end(), is_slow))
        return "a port's rate must be at least 1 Mb/s";
    if (!config.vlans.empty() && config.vlans.size() != ports)
        return "there must be one VLAN for each port, or none";
    if (config.latency < 0 || config.cable < 0) return "latencies must not be negative";
    return {};
}

SwitchMedium::SwitchMedium(const SwitchConfig& config)
    : config_(config),
      addresses_(config.macs, config.macs_each),
      faults_(addresses_.count(), config.seed),
      ports_(addresses_.count()),
      processor_(config.sharing, config.seed) {
    ULC_CHECK(problem_of(config).empty());
    for (std::size_t port = 0; port < ports_.size(); ++port)
        ports_[port].bits_per_second = config.port_bits_per_second.empty()
                                           ? config.bits_per_second
                                           : config.port_bits_per_second[port];
}

SwitchMedium::Picos SwitchMedium::duration(std::uint64_t bits_per_second,
                                           std::uint64_t octets) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<Picos>(Wide{octets} * 8 * kPicosPerSecond / bits_per_second);
}

bool SwitchMedium::cuts_through(const Port& in, const Port& out) const noexcept {
    return config_.forwarding == Forwarding::kCutThrough &&
           out.bits_per_second <= in.bits_per_second;
}

void SwitchMedium::transmit(std::uint16_t from, FramePtr frame, Nanos now) {
    ULC_CHECK(now >= now_ && now <= events_.next());
    ULC_CHECK(frame != nullptr && frame->size() >= kMacHeaderOctets);
    now_ = now;
    Port& port = ports_[from];
    const std::uint64_t octets = wire_octets(frame->size());
    const std::uint64_t rate =
        config_.host_bits_per_second != 0 ? config_.host_bits_per_second : port.bits_per_second;
    const Picos start = std::max(now * kPicosPerNano, port.host_free_at);
    const Picos end = start + duration(rate, octets);
    port.host_free_at = end + duration(rate, kGapOctets);
    ++port.counts.in_frames;
    port.counts.in_octets += frame->size();
    events_.push(nanos_of(end), {Kind::kSent, from, from, nullptr, nullptr});
    if (faults_.is_unplugged(from)) return;
    auto held = std::make_shared<Held>();
    held->octets = stored_octets(frame->size());
    held->from = from;
    held->frame = std::move(frame);
    const Picos header = config_.forwarding == Forwarding::kCutThrough
                             ? start + duration(rate, std::min(config_.cut_through_octets, octets))
                             : end;
    events_.push(nanos_of(header) + config_.cable + config_.latency,
                 {Kind::kForward, from, from, std::move(held), nullptr});
}

/// Returns whether the event waits until the switch has its processor again. The lines transmit
/// without it.
bool SwitchMedium::put_off(const Event& event) {
    if (event.kind == Kind::kLeft || event.kind == Kind::kLate) return false;
    const bool first = event.port % 2 != 0;
    const Nanos at = processor_.next(now_, first ? SwitchConfig::kTurnOver : 0);
    if (at == now_) return false;
    events_.push(at, event);
    return true;
}

void SwitchMedium::advance(Nanos to, MediumSink& sink) {
    while (events_.next() <= to) {
        now_ = events_.next();
        const Event event = events_.pop();
        if (put_off(event)) continue;
        switch (event.kind) {
            case Kind::kSent:
                sink.on_sent(event.port, true, now_);
                break;
            case Kind::kForward:
                forward(event.held, now_);
                break;
            case Kind::kOutput:
                output(event.port, event.held, now_);
                break;
            case Kind::kLeft:
                for (std::uint16_t port = event.port; port <= event.last; ++port)
                    if (port != event.held->from) release(port, *event.held);
                break;
            case Kind::kArrived:
                for (std::uint16_t port = event.port; port <= event.last; ++port)
                    if (port != event.held->from) arrive(port, *event.held, now_, sink);
                break;
            case Kind::kLate:
                if (!faults_.is_unplugged(event.port))
                    sink.on_arrival(event.port, event.frame, now_);
                break;
        }
    }
    now_ = std::max(now_, to);
}

/// Returns the port to which a frame goes; nothing: to every port.
std::optional<std::uint16_t> SwitchMedium::port_to(const Held& held) {
    if (config_.learns) learned_[PortAddresses::source_key(held.frame)] = held.from;
    if (PortAddresses::is_group(held.frame)) return std::nullopt;
    if (!config_.learns) return addresses_.port_of(held.frame);
    const auto found = learned_.find(PortAddresses::destination_key(held.frame));
    if (found != learned_.end() && !faults_.is_unplugged(found->second) &&
        is_joined(held.from, found->second))
        return found->second;
    ++flooded_;
    return std::nullopt;
}

/// Called when the switch knows the destination: decides the outputs, and whether they must wait
/// for the last bit.
void SwitchMedium::forward(const HeldPtr& held, Nanos now) {
    Run run;
    const auto put = [&](std::uint16_t to) {
        const Port& in = ports_[held->from];
        if (config_.forwarding == Forwarding::kStoreAndForward || cuts_through(in, ports_[to])) {
            const Nanos end = enqueue(to, *held, now);
            const bool next = to == run.last + 1 || (to == run.last + 2 && to - 1 == held->from);
            if (end != run.end || !next) {
                leave(run, held);
                run = {end, to, to};
            }
            run.last = to;
            return;
        }
        const std::uint64_t octets = wire_octets(held->frame->size());
        const std::uint64_t seen = std::min(config_.cut_through_octets, octets);
        events_.push(now + nanos_of(duration(in, octets - seen)),
                     {Kind::kOutput, to, to, held, nullptr});
    };
    const auto to = port_to(*held);
    if (!to && (config_.learns || PortAddresses::is_group(held->frame))) {
        for (std::uint16_t each = 0; each < addresses_.count(); ++each)
            if (each != held->from && is_joined(each, held->from)) put(each);
        leave(run, held);
        return;
    }
    if (!to || *to == held->from || !is_joined(*to, held->from)) {
        ++unknown_;
        return;
    }
    put(*to);
    leave(run, held);
}

/// Sends on an output that had to wait.
void SwitchMedium::output(std::uint16_t to, const HeldPtr& held, Nanos now) {
    leave({enqueue(to, *held, now), to, to}, held);
}

/// Adds a frame to the output's buffer. Returns when it will have left, after the frames before it;
/// kNever: there is no space.
Nanos SwitchMedium::enqueue(std::uint16_t to, Held& held, Nanos now) noexcept {
    Port& port = ports_[to];
    const std::uint64_t shared_more = held.copies == 0 ? held.octets : 0;
    if (port.buffered + held.octets > config_.buffer_octets ||
        shared_ + shared_more > config_.shared_octets) {
        ++port.counts.overflows;
        return kNever;
    }
    ++held.copies;
    shared_ += shared_more;
    port.buffered += held.octets;
    port.counts.buffer_octets_max = std::max(port.counts.buffer_octets_max, port.buffered);
    const Picos start = std::max(now * kPicosPerNano, port.out_free_at);
    const Picos end = start + duration(port, wire_octets(held.frame->size()));
    port.out_free_at = end + duration(port, kGapOctets);
    return nanos_of(end);
}

void SwitchMedium::leave(const Run& run, const HeldPtr& held) {
    if (run.end == kNever) return;
    events_.push(run.end, {Kind::kLeft, run.first, run.last, held, nullptr});
    events_.push(run.end + config_.cable, {Kind::kArrived, run.first, run.last, held, nullptr});
}

void SwitchMedium::release(std::uint16_t port, Held& held) noexcept {
    ports_[port].buffered -= held.octets;
    if (--held.copies == 0) shared_ -= held.octets;
}

void SwitchMedium::arrive(std::uint16_t to, const Held& held, Nanos now, MediumSink& sink) {
    Port& port = ports_[to];
    ++port.counts.out_frames;
    port.counts.out_octets += held.frame->size();
    for (const Faults::Copy& copy : faults_.judge(held.from, to, held.frame)) {
        if (copy.late == 0) {
            sink.on_arrival(to, copy.frame, now);
        } else {
            events_.push(now + copy.late, {Kind::kLate, to, to, nullptr, copy.frame});
        }
    }
}

}  // namespace ulc::sim
