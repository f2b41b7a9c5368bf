#include "sim_net.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/header.h"

namespace ulc::sim {

// ---------------------------------------------------------------- pool

SimPool::SimPool(std::uint32_t segments, std::uint32_t octets) {
    for (std::uint32_t n = 0; n < segments; ++n) {
        auto item = std::make_unique<Item>();
        item->octets = std::make_unique<std::byte[]>(octets);
        item->segment.frame = item->octets.get();
        item->segment.capacity = octets;
        item->segment.owner = item.get();
        free_.push_back(item.get());
        items_.push_back(std::move(item));
    }
}

SimPool::Item& SimPool::item_of(const Segment* segment) {
    return *static_cast<Item*>(segment->owner);
}

Segment* SimPool::get() {
    if (free_.empty()) return nullptr;
    Item* item = free_.back();
    free_.pop_back();
    item->references = 1;
    item->segment.length = 0;
    return &item->segment;
}

void SimPool::drop(Segment* segment) {
    Item& item = item_of(segment);
    ULC_CHECK(item.references > 0);
    if (--item.references == 0) free_.push_back(&item);
}

SegmentPool SimPool::table() noexcept {
    SegmentPool pool;
    pool.context = this;
    pool.allocate = [](void* context) { return static_cast<SimPool*>(context)->get(); };
    pool.retain = [](void*, Segment* segment) {
        ULC_CHECK(item_of(segment).references > 0);
        ++item_of(segment).references;
    };
    pool.release = [](void* context, Segment* segment) {
        static_cast<SimPool*>(context)->drop(segment);
    };
    pool.references = [](void*, const Segment* segment) { return item_of(segment).references; };
    pool.available = [](void* context) {
        return static_cast<std::uint32_t>(static_cast<SimPool*>(context)->free_.size());
    };
    return pool;
}

// ---------------------------------------------------------------- net

SimNet::SimNet(const NetConfig& config) : config_(config), prng_(config.seed) {
    for (std::uint16_t index = 0; index < config.ports; ++index) {
        nodes_.push_back(std::make_unique<Node>(*this, index, config));
        nodes_.back()->lose_to.assign(config.ports, 0);
    }
}

SimNet::~SimNet() { drop_all(); }

Mac SimNet::mac_of(std::uint16_t index) noexcept {
    return Mac{
        {0x02, 0, 0, 0, static_cast<std::uint8_t>(index >> 8), static_cast<std::uint8_t>(index)}};
}

Port SimNet::port(std::uint16_t index) noexcept {
    Port port;
    port.context = nodes_[index].get();
    port.info.mac = mac_of(index);
    port.info.mtu = config_.mtu;
    port.info.tx_ring_frames = config_.tx_ring_frames;
    port.info.link_bits_per_second = config_.bits_per_second;
    port.pool = nodes_[index]->pool.table();
    port.rx = &SimNet::rx;
    port.tx = &SimNet::tx;
    port.tx_pending = &SimNet::tx_pending;
    port.link_up = [](void*) { return true; };
    return port;
}

Nanos SimNet::next_event() const noexcept { return events_.empty() ? kNever : events_.top().at; }

void SimNet::advance(Nanos to) {
    while (!events_.empty() && events_.top().at <= to) {
        const Event event = events_.top();
        events_.pop();
        now_ = event.at;
        if (event.to == event.from) {
            Node& node = *nodes_[event.from];
            --node.tx_pending;
            node.pool.drop(event.segment);
        } else {
            arrive(*nodes_[event.to], *event.octets);
        }
    }
    now_ = std::max(now_, to);
}

void SimNet::lose_next(std::uint16_t index, std::uint16_t receiver, std::uint32_t n) noexcept {
    nodes_[index]->lose_to[receiver] += n;
}

void SimNet::unplug(std::uint16_t index) noexcept { nodes_[index]->unplugged = true; }

void SimNet::drop_all() {
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        if (event.to != event.from) continue;
        --nodes_[event.from]->tx_pending;
        nodes_[event.from]->pool.drop(event.segment);
    }
    for (auto& node : nodes_) {
        while (!node->rx.empty()) {
            node->pool.drop(node->rx.front());
            node->rx.pop_front();
        }
    }
}

void SimNet::inject(std::uint16_t index, const std::byte* frame, std::uint32_t octets) {
    arrive(*nodes_[index], std::vector<std::byte>(frame, frame + octets));
}

std::uint16_t SimNet::rx(void* context, Segment** out, std::uint16_t n) {
    Node& node = *static_cast<Node*>(context);
    std::uint16_t count = 0;
    while (count < n && !node.rx.empty()) {
        out[count++] = node.rx.front();
        node.rx.pop_front();
    }
    return count;
}

std::uint32_t SimNet::tx_pending(void* context) { return static_cast<Node*>(context)->tx_pending; }

std::uint16_t SimNet::tx(void* context, Segment* const* frames, std::uint16_t n) {
    Node& node = *static_cast<Node*>(context);
    std::uint16_t count = 0;
    while (count < n && node.tx_pending < node.net.config_.tx_ring_frames) {
        node.net.transmit(node, frames[count]);
        ++count;
    }
    return count;
}

void SimNet::transmit(Node& node, Segment* segment) {
    const std::uint64_t bits =
        (std::max<std::uint64_t>(segment->length, wire::kFrameOctetsMin) + 24) * 8;
    const Nanos duration = config_.bits_per_second == 0
                               ? 0
                               : static_cast<Nanos>(bits * static_cast<std::uint64_t>(kSecond) /
                                                    config_.bits_per_second);
    const Nanos sent = std::max(now_, node.tx_free_at) + duration;
    node.tx_free_at = sent;
    ++node.tx_pending;
    ++node.stats.tx_frames;
    node.stats.tx_octets += segment->length;
    const auto octets =
        std::make_shared<std::vector<std::byte>>(segment->frame, segment->frame + segment->length);
    if (segment->length > 14 &&
        (std::to_integer<unsigned>(segment->frame[14]) & 0xfU) == unsigned{2})
        ++node.stats.mcast_frames;
    Event done;
    done.at = sent;
    done.order = order_++;
    done.from = done.to = node.index;
    done.segment = segment;
    events_.push(done);
    if (node.unplugged) return;
    Mac destination;
    std::memcpy(&destination, segment->frame, sizeof destination);
    const bool to_all = (destination.octets[0] & 1U) != 0;
    for (std::uint16_t to = 0; to < nodes_.size(); ++to) {
        if (to == node.index || nodes_[to]->unplugged) continue;
        if (to_all || destination == mac_of(to)) send_copy(node, to, sent, octets);
    }
}

void SimNet::send_copy(const Node& node, std::uint16_t to, Nanos sent,
                       const std::shared_ptr<std::vector<std::byte>>& octets) {
    std::uint32_t& forced = nodes_[node.index]->lose_to[to];
    if (forced > 0 || prng_.chance(config_.faults.loss)) {
        if (forced > 0) --forced;
        ++nodes_[to]->stats.lost;
        return;
    }
    const unsigned copies = prng_.chance(config_.faults.duplicate) ? 2 : 1;
    for (unsigned n = 0; n < copies; ++n) {
        Event event;
        event.at = sent + config_.latency;
        if (prng_.chance(config_.faults.reorder))
            event.at += static_cast<Nanos>(
                prng_.below(static_cast<std::uint64_t>(config_.faults.reorder_delay)));
        event.order = order_++;
        event.from = node.index;
        event.to = to;
        event.octets = octets;
        events_.push(event);
    }
}

void SimNet::arrive(Node& node, const std::vector<std::byte>& octets) {
    if (node.unplugged) return;
    Segment* segment = node.rx.size() < config_.rx_queue_frames ? node.pool.get() : nullptr;
    if (segment == nullptr || octets.size() > segment->capacity) {
        if (segment != nullptr) node.pool.drop(segment);
        ++node.stats.overruns;
        return;
    }
    std::memcpy(segment->frame, octets.data(), octets.size());
    segment->length = static_cast<std::uint32_t>(octets.size());
    node.rx.push_back(segment);
}

}  // namespace ulc::sim
