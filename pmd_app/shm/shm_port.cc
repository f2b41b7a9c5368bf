// SPDX-License-Identifier: BSD-3-Clause
#include "shm/shm_port.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/clock.h"
#include "port/device_arguments.h"

namespace ulc::shm {
namespace {

constexpr std::string_view kName = "shm";
constexpr std::uint32_t kEthernetOctets = 14;
constexpr std::uint32_t kVlanOctets = 4;
constexpr std::uint16_t kMtuDefault = 1500;
constexpr std::uint32_t kLeastFrame = 60;  ///< bytes; its record takes one cache line
static_assert(record_octets(kLeastFrame) == kCacheLine);
constexpr std::uint16_t kFramesInFlight = 64;  ///< a burst of the engine
constexpr unsigned kTurnFrames = 16;           ///< frames of one peer, while another may have some
/// Records of one peer that a call reads: it ends, however many for others come meanwhile.
constexpr unsigned kLooksMax = 256;

/// Locally administered, different on each wire and at each station.
Mac address_of(const WireFile& wire) {
    Mac mac;
    mac.octets[0] = 0x02;
    const std::uint64_t nonce = wire.nonce();
    std::memcpy(&mac.octets[1], &nonce, 4);
    mac.octets[5] = static_cast<std::uint8_t>(wire.station());
    return mac;
}

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Sets one argument. Returns the reason of a refusal; empty: it is set.
std::string set_argument(std::string_view key, std::string_view value, DeviceSpec& spec) {
    const auto given = number(value);
    if (key == "path" && !value.empty()) {
        spec.path = value;
    } else if (given && key == "station") {
        spec.station = *given;
    } else if (given && key == "stations") {
        spec.shape.stations = *given;
    } else if (given && key == "ring") {
        spec.shape.ring_octets = *given;
    } else {
        return "shm device: '" + std::string(key) + "=" + std::string(value) +
               "' is not understood; write shm,path=FILE,station=N[,stations=N][,ring=OCTETS]";
    }
    return "";
}

}  // namespace

bool is_shm(std::string_view device) noexcept {
    return device == kName || (device.starts_with(kName) && device.size() > kName.size() &&
                               device[kName.size()] == ',');
}

Err parse_device(std::string_view device, DeviceSpec& out, std::string& why) {
    ULC_CHECK(is_shm(device));
    DeviceSpec spec;
    const auto set = [&](auto key, auto value) { return set_argument(key, value, spec); };
    if (std::string wrong = port::set_arguments(device, set); !wrong.empty()) {
        why = std::move(wrong);
    } else if (spec.path.empty()) {
        why =
            "shm device without path=; name a file that all engines of the wire share, as in "
            "shm,path=/dev/shm/lab,station=0";
    } else if (spec.shape.stations < 1 || spec.shape.stations > kStationsMax) {
        why = "shm device: stations= must be 1 to " + std::to_string(kStationsMax);
    } else if (spec.station >= spec.shape.stations) {
        why = "shm device: station= must be below stations=, which is " +
              std::to_string(spec.shape.stations);
    } else if (!ring_octets_valid(spec.shape.ring_octets)) {
        why = "shm device: ring= must be a power of two, " + std::to_string(kRingOctetsMin) +
              " to " + std::to_string(kRingOctetsMax) + " octets";
    } else {
        out = std::move(spec);
        return Err::kOk;
    }
    return Err::kInvalid;
}

Err ShmPort::open(const PortOptions& options, std::unique_ptr<ShmPort>& out, std::string& why) {
    std::unique_ptr<ShmPort> port(new ShmPort);
    Port& table = port->port_;
    table.info.mtu = options.mtu == 0 ? kMtuDefault : options.mtu;
    table.info.mtu_sure = table.info.mtu;
    port->frame_max_ = table.info.mtu + kEthernetOctets + kVlanOctets;
    const DeviceSpec& device = options.device;
    if (record_octets(port->frame_max_) > device.shape.ring_octets / 4) {
        why = "ring=" + std::to_string(device.shape.ring_octets) + " is short for MTU " +
              std::to_string(table.info.mtu) + "; double it, on every engine of the wire";
        return Err::kInvalid;
    }
    if (const Err e = WireFile::open(device.path, device.shape, device.station, port->wire_, why);
        e != Err::kOk)
        return e;
    if (const Err e = port->tx_pool_.create(options.segments, port->frame_max_, why); e != Err::kOk)
        return e;
    if (const Err e =
            port->rx_pool_.create(options.segments + kFramesInFlight, port->frame_max_, why);
        e != Err::kOk)
        return e;
    table.info.mac = address_of(*port->wire_);
    table.info.tx_ring_frames = static_cast<std::uint16_t>(std::min<std::uint64_t>(
        device.shape.ring_octets / record_octets(port->frame_max_), UINT16_MAX));
    table.info.rx_frames = options.segments;
    table.info.gathers = true;
    port->join();
    table.context = port.get();
    table.pool = port->tx_pool_.table();
    table.rx = [](void* context, Segment** frames, std::uint16_t n) {
        return static_cast<ShmPort*>(context)->receive(frames, n);
    };
    table.rx_landing = [](void* context, const Landing& landing) {
        return static_cast<ShmPort*>(context)->receive_landing(landing);
    };
    table.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<ShmPort*>(context)->send(frames, n);
    };
    table.link_up = [](void*) { return true; };
    table.missed = [](void* context) {
        const Counts& counts = static_cast<ShmPort*>(context)->counts_;
        return counts.missed + counts.broken + counts.no_frame;
    };
    table.drops = [](void* context) {
        const Counts& counts = static_cast<ShmPort*>(context)->counts_;
        return PortDrops{.other_station = counts.other_station, .too_long = counts.too_long};
    };
    out = std::move(port);
    return Err::kOk;
}

/// Makes the other stations' writers wait for this one.
void ShmPort::join() {
    const unsigned self = wire_->station();
    std::vector<Line*> cursors;
    for (unsigned station = 0; station < wire_->shape().stations; ++station) {
        if (station == self) continue;
        cursors.push_back(wire_->cursor(station, self));
        peers_.push_back(
            {station, RingReader(wire_->ring_head(station), wire_->ring(station),
                                 wire_->shape().ring_octets, wire_->cursor(self, station))});
    }
    writer_ =
        RingWriter(wire_->ring_head(self), wire_->ring(self), wire_->shape().ring_octets, cursors);
}

ShmPort::~ShmPort() {
    for (Peer& peer : peers_)
        peer.ring.leave();
}

std::string ShmPort::name() const {
    return "shm station " + std::to_string(wire_->station()) + " of " +
           std::to_string(wire_->shape().stations);
}

// ---- the hot path -------------------------------------------------------------------------------

// Copies a record into a frame. Most have the least length, and a copy of a constant length needs
// no call.
inline void ShmPort::copy_in(Segment& segment, const RingReader& ring) noexcept {
    segment.length = ring.length();
    if (segment.length == kLeastFrame) {
        std::memcpy(segment.frame, ring.frame(), kLeastFrame);
    } else {
        std::memcpy(segment.frame, ring.frame(), segment.length);
    }
}

// Copies the headers first, and validates them here, where the peer cannot change them any more.
void ShmPort::land(Segment& segment, const RingReader& ring, const Landing& landing) {
    const std::uint32_t length = ring.length();
    const std::uint32_t front = landing.front_octets;
    if (length <= front) return copy_in(segment, ring);
    segment.length = length;
    std::memcpy(segment.frame, ring.frame(), front);
    const Landed landed = landing.where(landing.context, segment.frame, length);
    if (landed.to == nullptr) {
        std::memcpy(segment.frame + front, ring.frame() + front, length - front);
        return;
    }
    // The bytes of the payload in front are copied with the rest.
    ULC_CHECK(landed.octets <= length && landed.octets >= length - front);
    std::memcpy(landed.to, ring.frame() + length - landed.octets, landed.octets);
    segment.tail = landed.to;
    segment.tail_octets = landed.octets;
}

template <typename Copy>
[[gnu::always_inline]] inline Segment* ShmPort::take(RingReader& ring, Copy copy) {
    if (const RingReader::Got got = ring.next(); got != RingReader::Got::kFrame) [[unlikely]] {
        if (got != RingReader::Got::kNothing)
            ++(got == RingReader::Got::kMissed ? counts_.missed : counts_.broken);
        return nullptr;
    }
    Segment* segment = nullptr;
    Mac to;
    std::memcpy(&to, ring.frame(), sizeof to);
    if (ring.length() > frame_max_) [[unlikely]] {
        ++counts_.too_long;
    } else if ((to.octets[0] & 1) != 0 || to == port_.info.mac) {
        segment = rx_pool_.get();
        if (segment == nullptr) {
            ++counts_.no_frame;
        } else {
            copy(*segment);
        }
    } else {
        ++counts_.other_station;
    }
    if (ring.done()) [[likely]]
        return segment;
    ++counts_.missed;
    if (segment != nullptr) port::FramePool::put(segment);
    return nullptr;
}

// Usually nothing has come, and this check is all.
std::uint16_t ShmPort::receive(Segment** out, std::uint16_t n) {
    for (const Peer& peer : peers_)
        if (peer.ring.has_come()) return receive_some(out, n);
    return 0;
}

std::uint16_t ShmPort::receive_some(Segment** out, std::uint16_t n) {
    std::uint16_t received = 0;
    for (std::size_t asked = 0; asked < peers_.size() && received < n; ++asked) {
        RingReader& ring = peers_[turn_].ring;
        if (++turn_ == peers_.size()) turn_ = 0;
        for (unsigned looks = 0; looks < kLooksMax && received < n && ring.has_come(); ++looks) {
            Segment* segment = take(ring, [&](Segment& to) { copy_in(to, ring); });
            if (segment != nullptr) out[received++] = segment;
        }
    }
    return received;
}

Segment* ShmPort::receive_landing(const Landing& landing) {
    for (std::size_t asked = 0; asked < peers_.size(); ++asked) {
        RingReader& ring = peers_[turn_].ring;
        const unsigned looks_max = turn_used_ < kTurnFrames ? kLooksMax : 0;
        for (unsigned looks = 0; looks < looks_max && ring.has_come(); ++looks) {
            Segment* segment = take(ring, [&](Segment& to) { land(to, ring, landing); });
            if (segment != nullptr) {
                ++turn_used_;
                return segment;
            }
        }
        turn_used_ = 0;
        if (++turn_ == peers_.size()) turn_ = 0;
    }
    return nullptr;
}

/// Writes a frame to its record.
inline void ShmPort::copy_out(std::byte* to, const Segment& segment) noexcept {
    if (segment.length == kLeastFrame && segment.tail == nullptr) {
        std::memcpy(to, segment.frame, kLeastFrame);
    } else {
        copy_frame(to, segment);
    }
}

std::uint16_t ShmPort::send(Segment* const* frames, std::uint16_t n) {
    std::uint16_t sent = 0;
    while (sent < n) {
        Segment* segment = frames[sent];
        const auto write = [segment](std::byte* to) { copy_out(to, *segment); };
        if (!writer_.put(segment->length, write)) {
            if (give_up_waiting()) continue;
            return sent;
        }
        port::FramePool::put(segment);
        ++sent;
        waiting_since_ = kNever;
    }
    return sent;
}

bool ShmPort::give_up_waiting() {
    const Nanos now = monotonic_now();
    if (waiting_since_ == kNever) waiting_since_ = now;
    const Nanos waited = now - waiting_since_;
    if (waited < std::min(patience_, kMillisecond)) return false;
    const std::size_t slowest = writer_.slowest();
    if (slowest == writer_.readers()) return true;  // it has just left
    if (!wire_->held(peers_[slowest].station)) {
        writer_.forget(slowest);
    } else if (waited >= patience_) {
        writer_.overrun(slowest);
    } else {
        return false;
    }
    ++counts_.overran;
    waiting_since_ = kNever;
    return true;
}

}  // namespace ulc::shm
