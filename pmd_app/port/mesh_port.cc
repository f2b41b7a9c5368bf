// SPDX-License-Identifier: BSD-3-Clause
#include "port/mesh_port.h"

#include <algorithm>

#include "base/check.h"
#include "port/bond_frame.h"

namespace ulc::port {
namespace {

/// Bursts that one rx() asks each link for.
constexpr std::size_t kAsksMost = 4;

}  // namespace

MeshPort::MeshPort(const Port& row, const Port& column, const MeshConfig& config)
    : config_(config), tokens_(config.seed), places_(config.seed.number(1)) {
    const auto is_number = [](std::uint16_t n) { return n >= 1 && n <= kMeshLinesMax; };
    ULC_CHECK(is_number(config.place.row) && is_number(config.place.column));
    ULC_CHECK(row.info.mtu == column.info.mtu && row.info.mac != column.info.mac);
    links_[kRow].port = row;
    links_[kColumn].port = column;
    own_[kRow] = {row.info.mac, 0, config.place.row};
    own_[kColumn] = {column.info.mac, 0, config.place.column};
    info_ = row.info;
    info_.links = kLines;
    info_.mtu = static_cast<std::uint16_t>(row.info.mtu - sizeof(wire::ForwardHeader));
    const bool rates_known =
        row.info.link_bits_per_second != 0 && column.info.link_bits_per_second != 0;
    info_.link_bits_per_second =
        rates_known ? row.info.link_bits_per_second + column.info.link_bits_per_second : 0;
    info_.tx_ring_frames = static_cast<std::uint16_t>(
        std::min<std::uint32_t>(UINT16_MAX, row.info.tx_ring_frames + column.info.tx_ring_frames));
    // Frames in transit hold segments of the receive ring.
    const auto spare = [](const PortInfo& info) {
        return info.rx_frames > 2 * kTransit ? info.rx_frames - kTransit : info.rx_frames / 2;
    };
    info_.rx_frames = row.info.rx_frames == 0 || column.info.rx_frames == 0
                          ? 0
                          : spare(row.info) + spare(column.info);
    info_.tx_pending_time = std::max(row.info.tx_pending_time, column.info.tx_pending_time);
    info_.half_duplex |= column.info.half_duplex;
    info_.multicast_filters = std::min(row.info.multicast_filters, column.info.multicast_filters);
    info_.gathers &= column.info.gathers;
    fit_speeds();
    (void)look_at_links();
}

MeshPort::~MeshPort() {
    for (Link& link : links_)
        drop_waiting(link);
}

Port MeshPort::table() noexcept {
    Port port;
    port.context = this;
    port.info = info_;
    port.pool = links_[kRow].port.pool;
    port.rx = [](void* context, Segment** out, std::uint16_t n) {
        return static_cast<MeshPort*>(context)->rx(out, n);
    };
    port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        return static_cast<MeshPort*>(context)->tx(frames, n);
    };
    port.tx_pending = [](void* context) { return static_cast<MeshPort*>(context)->tx_pending(); };
    port.set_multicasts = [](void* context, std::span<const Mac> addresses) {
        bool fits = true;
        for (Link& link : static_cast<MeshPort*>(context)->links_)
            if (link.port.set_multicasts != nullptr)
                fits &= link.port.set_multicasts(link.port.context, addresses);
        return fits;
    };
    port.addresses = [](void* context) {
        return std::span<const NodeAddress>(static_cast<MeshPort*>(context)->own_);
    };
    port.set_addresses = [](void* context, std::span<const NodeAddress> addresses, bool proved) {
        static_cast<MeshPort*>(context)->set_addresses(addresses, proved);
    };
    port.reorder_wait = [](void* context, std::uint32_t megabits) {
        return static_cast<const MeshPort*>(context)->reorder_wait(megabits);
    };
    port.link_up = [](void* context) { return static_cast<MeshPort*>(context)->look_at_links(); };
    port.interface = [](void* context) { return static_cast<MeshPort*>(context)->interface(); };
    port.take_address = [](void* context) {
        return static_cast<MeshPort*>(context)->take_address();
    };
    port.silences = [](void* context) { return static_cast<MeshPort*>(context)->silences_; };
    port.transit = [](void* context) { return static_cast<MeshPort*>(context)->counts_; };
    port.missed = [](void* context) {
        std::uint64_t missed = 0;
        for (const Link& link : static_cast<MeshPort*>(context)->links_)
            if (link.port.missed != nullptr) missed += link.port.missed(link.port.context);
        return missed;
    };
    port.drops = [](void* context) {
        PortDrops sum = static_cast<MeshPort*>(context)->drops_;
        for (const Link& link : static_cast<MeshPort*>(context)->links_)
            if (link.port.drops != nullptr) sum += link.port.drops(link.port.context);
        return sum;
    };
    if (links_[kRow].port.costs != nullptr)
        port.costs = [](void* context) {
            PortCosts sum;
            for (const Link& link : static_cast<MeshPort*>(context)->links_) {
                const PortCosts costs = link.port.costs(link.port.context);
                sum.calls += costs.calls;
                sum.refusals += costs.refusals;
                sum.copied_bytes += costs.copied_bytes;
            }
            return sum;
        };
    return port;
}

// ---- receiving ----------------------------------------------------------------------------------

/// Puts the first addresses of both nodes into a frame that came without FORWARD.
MeshPort::Fate MeshPort::take(std::size_t line, Segment& segment) noexcept {
    if (wire::is_forward(segment.frame, segment.length)) return take_forward(line, segment);
    const Mac to = destination_of(segment);
    const Mac from = source_of(segment);
    if (is_own(from)) {
        ++drops_.own_echo;
        return Fate::kDrop;
    }
    if (!is_group(to)) {
        if (to != own_[line].mac) {
            ++drops_.other_station;
            return Fate::kDrop;
        }
        set_destination(segment, info_.mac);
        if (type_of(segment) == kNodeType && take_echo(line, segment, Mac{})) return Fate::kDrop;
    }
    if (const std::uint16_t peer = find(from); peer != kNone) {
        if (!is_on(line, peers_[peer])) {
            ++counts_.misrouted;
            return Fate::kDrop;
        }
        set_source(segment, peers_[peer].addresses[kRow].mac);
    } else if (asks_about_links(segment)) {
        note_asker(from, line);
    }
    return Fate::kDeliver;
}

/// Takes frames of both links in turn until the burst is full or both are empty, as a bond does.
std::uint16_t MeshPort::rx(Segment** out, std::uint16_t n) {
    std::uint16_t kept = 0;
    std::size_t empty = 0;  ///< links in a row that had no more
    for (std::size_t ask = 0; ask < kLines * kAsksMost && kept < n && empty < kLines; ++ask) {
        const std::size_t line = (turn_ + ask) % kLines;
        const Port& port = links_[line].port;
        const auto wanted = static_cast<std::uint16_t>(n - kept);
        Segment** const from = out + kept;
        const std::uint16_t came = port.rx(port.context, from, wanted);
        empty = came < wanted ? empty + 1 : 0;
        for (std::uint16_t i = 0; i < came; ++i) {
            switch (take(line, *from[i])) {
                case Fate::kDeliver:
                    out[kept++] = from[i];
                    break;
                case Fate::kDrop:
                    port.pool.drop(from[i]);
                    break;
                case Fate::kPassedOn:
                    break;
            }
        }
    }
    ++turn_;
    for (Link& link : links_) {
        if (link.transit.count + link.own_queue.count > 0) {
            look_at_device(link);
            flush(link);
        }
        // Frames that a hub's device gave up: receivers ask for them.
        if (link.port.tx_failed == nullptr) continue;
        while (Segment* segment = link.port.tx_failed(link.port.context)) {
            ++drops_.unsendable;
            link.port.pool.drop(segment);
        }
    }
    return kept;
}

// ---- sending ------------------------------------------------------------------------------------

/// Returns a FORWARD frame around the frame; nullptr: no segment is left.
Segment* MeshPort::wrap(const Segment& segment, const wire::ForwardView& head) noexcept {
    const Port& first = links_[kRow].port;
    Segment* outer = first.pool.get();
    if (outer == nullptr) return nullptr;
    ULC_CHECK(segment.length + sizeof(wire::ForwardHeader) <= outer->capacity);
    if (segment.tail == nullptr) {
        outer->length = static_cast<std::uint32_t>(wire::build_forward(
            outer->frame, head, config_.ether_type, segment.frame, segment.length));
        return outer;
    }
    // The payload is elsewhere: the headers first, then the payload behind them.
    const std::uint32_t front = segment.length - segment.tail_octets;
    const std::size_t octets =
        wire::build_forward(outer->frame, head, config_.ether_type, segment.frame, front);
    std::memcpy(outer->frame + octets, segment.tail, segment.tail_octets);
    auto& forward = *reinterpret_cast<wire::ForwardHeader*>(outer->frame + kTypeAt);
    forward.length = static_cast<std::uint16_t>(forward.length + segment.tail_octets);
    outer->length = static_cast<std::uint32_t>(octets) + segment.tail_octets;
    return outer;
}

void MeshPort::give_up(Segment& segment) noexcept {
    ++counts_.pathless;
    links_[kRow].port.pool.drop(&segment);
}

bool MeshPort::send_direct(std::size_t line, const Peer& peer, Segment& segment) noexcept {
    Link& link = links_[line];
    if (!link.up || peer.addresses[line].megabits == 0) {
        give_up(segment);
        return true;
    }
    if (is_full(link)) return false;
    const bool by_name = speaks_for_node(segment) && !asks_about_links(segment);
    set_source(segment, by_name ? info_.mac : own_[line].mac);
    set_destination(segment, peer.addresses[line].mac);
    put(link, &segment);
    return true;
}

/// Sends to a node of another row and column, by the path whose first queue is empty first.
bool MeshPort::send_by_path(Peer& peer, Segment& segment) noexcept {
    if (peer.proved) {
        peer.busy = true;
        begin_watch(peer);
    }
    const bool any_good = is_good(kRow, peer) || is_good(kColumn, peer);
    std::size_t best = kLines;
    std::uint64_t best_load = 0;
    bool any = false;
    for (std::size_t line = 0; line < kLines; ++line) {
        if (!(any_good ? is_good(line, peer) : is_there(line, peer))) continue;
        any = true;
        Link& link = links_[line];
        if (is_full(link)) continue;
        const std::uint64_t load =
            (link.octets + link.own_queue.octets + link.transit.octets + segment.length) *
            link.octet_time;
        const bool better = best == kLines || load < best_load ||
                            (load == best_load && link.given < links_[best].given);
        if (!better) continue;
        best = line;
        best_load = load;
    }
    if (!any) {
        give_up(segment);
        return true;
    }
    if (best == kLines) return false;
    Segment* outer = wrap(segment, {forwarder(best, peer)->addresses[best].mac, info_.mac, 1,
                                    info_.mac, peer.addresses[kRow].mac, 0});
    if (outer == nullptr) return false;
    put(links_[best], outer);
    links_[kRow].port.pool.drop(&segment);
    return true;
}

/// Sends by one line with a further segment, and by the other one without.
bool MeshPort::send_group(Segment& segment) noexcept {
    const std::size_t spread_by = links_[group_line_].up ? group_line_ : other(group_line_);
    Link& first = links_[spread_by];
    Link& second = links_[other(spread_by)];
    if (!first.up) {
        give_up(segment);
        return true;
    }
    if (is_full(first) || (second.up && is_full(second))) return false;
    Segment* outer =
        wrap(segment, {kBroadcastMac, info_.mac, 1, info_.mac, destination_of(segment), 0});
    if (outer == nullptr) return false;
    put(first, outer);
    group_busy_ = true;
    if (!second.up) {
        links_[kRow].port.pool.drop(&segment);
        return true;
    }
    set_source(segment, speaks_for_node(segment) ? info_.mac : own_[other(spread_by)].mac);
    put(second, &segment);
    return true;
}

/// Replies to a question by the link that brought it (N-59): nothing else is known of its sender.
bool MeshPort::send_back(Asker& asker, Segment& segment) noexcept {
    Link& link = links_[asker.line];
    if (link.up && is_full(link)) return false;
    asker.waits = false;
    if (link.up) {
        put(link, &segment);
    } else {
        give_up(segment);
    }
    return true;
}

/// Returns false if the frame cannot be taken now.
bool MeshPort::send(Segment& segment) noexcept {
    const Mac to = destination_of(segment);
    if (is_group(to)) return send_group(segment);
    if (answers_about_links(segment)) {
        if (Asker* asker = find_asker(to); asker != nullptr) return send_back(*asker, segment);
    }
    const std::uint16_t number = find_for(to, proves_links(segment, kTypeAt));
    if (number == kNone) {
        give_up(segment);
        return true;
    }
    Peer& peer = peers_[number];
    for (std::size_t line = 0; line < kLines; ++line)
        if (is_on(line, peer)) return send_direct(line, peer, segment);
    return send_by_path(peer, segment);
}

std::uint16_t MeshPort::tx(Segment* const* frames, std::uint16_t n) {
    for (Link& link : links_) {
        look_at_device(link);
        flush(link);
    }
    std::uint16_t taken = 0;
    while (taken < n && send(*frames[taken]))
        ++taken;
    for (Link& link : links_)
        flush(link);
    return taken;
}

}  // namespace ulc::port
