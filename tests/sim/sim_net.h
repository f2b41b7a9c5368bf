// A simulated Ethernet segment behind port.h: N ports on a store-and-forward switch in virtual time, with seeded loss,
// duplication, reordering and delay. It moves octets and knows no protocol (DESIGN decision 1).
//
//   engine ─tx─▶ serialisation at `bits_per_second` ─▶ per receiver: lost? doubled? late? ─▶ latency ─▶ rx queue ─rx─▶ engine
//
// Segments come from a pool of each port, one heap block each, so that the address sanitizer sees an overrun; a frame is
// copied from the sender's pool into the receiver's on arrival. Same seed and calls, same events.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "engine/port.h"

namespace ulc::sim {

struct NetFaults {
    double loss = 0;  ///< per receiver of a frame
    double duplicate = 0;
    double reorder = 0;  ///< chance of being late by up to reorder_delay
    Nanos reorder_delay = 50 * kMicrosecond;
};

struct NetConfig {
    std::uint16_t ports = 2;
    std::uint16_t mtu = 1500;
    std::uint64_t bits_per_second = 10'000'000'000;
    Nanos latency = 5 * kMicrosecond;  ///< cable and switch, one way
    std::uint32_t segments = 4096;     ///< of each port's pool
    std::uint16_t tx_ring_frames = 256;
    std::uint32_t rx_queue_frames = 1024;
    NetFaults faults;
    std::uint64_t seed = 1;
};

/// Reference-counted segments; counts what is out.
class SimPool {
public:
    SimPool(std::uint32_t segments, std::uint32_t octets);
    [[nodiscard]] SegmentPool table() noexcept;
    [[nodiscard]] std::uint32_t out() const noexcept {
        return static_cast<std::uint32_t>(items_.size() - free_.size());
    }
    [[nodiscard]] Segment* get();
    void drop(Segment* segment);

private:
    struct Item {
        Segment segment;
        std::unique_ptr<std::byte[]> octets;
        std::uint32_t references = 0;
    };
    static Item& item_of(const Segment* segment);
    std::vector<std::unique_ptr<Item>> items_;
    std::vector<Item*> free_;
};

struct PortStats {
    std::uint64_t tx_frames = 0;
    std::uint64_t tx_octets = 0;
    std::uint64_t lost = 0;          ///< on the way here
    std::uint64_t overruns = 0;      ///< rx queue or pool was full
    std::uint64_t mcast_frames = 0;  ///< MCAST frames sent
};

class SimNet {
public:
    explicit SimNet(const NetConfig& config);
    SimNet(const SimNet&) = delete;
    SimNet& operator=(const SimNet&) = delete;
    ~SimNet();

    [[nodiscard]] Port port(std::uint16_t index) noexcept;
    [[nodiscard]] static Mac mac_of(std::uint16_t index) noexcept;
    [[nodiscard]] Nanos now() const noexcept { return now_; }
    [[nodiscard]] Nanos next_event() const noexcept;
    /// Moves the clock and everything that happens until then.
    void advance(Nanos to);
    void set_faults(const NetFaults& faults) noexcept { config_.faults = faults; }
    /// The next frame of this port to each receiver is lost, n times.
    void lose_next(std::uint16_t index, std::uint16_t receiver, std::uint32_t n) noexcept;
    /// Nothing comes from or goes to this port any more: its node is dead.
    void unplug(std::uint16_t index) noexcept;
    /// Drops what is under way and in rx queues.
    void drop_all();
    [[nodiscard]] const PortStats& stats(std::uint16_t index) const noexcept {
        return nodes_[index]->stats;
    }
    [[nodiscard]] std::uint32_t segments_out(std::uint16_t index) const noexcept {
        return nodes_[index]->pool.out();
    }
    /// A frame from outside, as if received by that port.
    void inject(std::uint16_t index, const std::byte* frame, std::uint32_t octets);

private:
    struct Node {
        Node(SimNet& owner, std::uint16_t i, const NetConfig& c)
            : net(owner), index(i), pool(c.segments, c.mtu + 14U) {}
        SimNet& net;
        std::uint16_t index;
        SimPool pool;
        std::deque<Segment*> rx;
        std::uint32_t tx_pending = 0;
        Nanos tx_free_at = 0;
        bool unplugged = false;
        std::vector<std::uint32_t> lose_to;
        PortStats stats;
    };
    struct Event {
        Nanos at = 0;
        std::uint64_t order = 0;
        std::uint16_t from = 0;
        std::uint16_t to = 0;  ///< == from: transmission complete
        Segment* segment = nullptr;
        std::shared_ptr<std::vector<std::byte>> octets;
        bool operator>(const Event& other) const noexcept {
            return at != other.at ? at > other.at : order > other.order;
        }
    };

    static std::uint16_t rx(void* context, Segment** out, std::uint16_t n);
    static std::uint16_t tx(void* context, Segment* const* frames, std::uint16_t n);
    static std::uint32_t tx_pending(void* context);
    void transmit(Node& node, Segment* segment);
    void send_copy(const Node& node, std::uint16_t to, Nanos sent,
                   const std::shared_ptr<std::vector<std::byte>>& octets);
    void arrive(Node& node, const std::vector<std::byte>& octets);

    NetConfig config_;
    Prng prng_;
    Nanos now_ = 0;
    std::uint64_t order_ = 0;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace ulc::sim
