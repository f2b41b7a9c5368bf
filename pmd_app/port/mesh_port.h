// SPDX-License-Identifier: BSD-3-Clause
// A node of a mesh: one link to the segment of its row, one to that of its column
// (docs/protocol/NODES.md §8.8; GAMMA §3.3.1.1). Nodes of other rows and columns are reached by a
// node between, over two paths that share nothing.
//
//   engine ── tx() ──▶ own line: that link        ┌─▶ own ─────┐ take turns
//                └───▶ else FORWARD by the        │            ├─────────────▶ device
//                      less loaded path           │   transit ─┘ by octets
//   engine ◀── rx() ── for this node ◀── links    │      ▲
//                           └── for others ───────┴──────┘ FORWARD, one segment further
//
// The engine knows each node by its first address, that of its row's link. Frames of other nodes
// never reach it.
//
// Invariant: no frame that came with 0 further segments is sent on, so a frame is on two segments
// at most. Engine thread only; no allocation but in set_addresses() and set_multicasts().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/tables/keyed_index.h"
#include "port/link_watch.h"
#include "port/port.h"
#include "wire/forward.h"
#include "wire/job.h"
#include "wire/node_address.h"

namespace ulc::port {

/// Place of a node: numbers of its row and its column, 1 … kMeshLinesMax.
struct MeshPlace {
    std::uint16_t row = 0;
    std::uint16_t column = 0;
};

struct MeshConfig {
    std::uint16_t ether_type = 0;  ///< type of the engine's frames
    seal::Seed seed;               ///< for tokens of echo requests and tables
    MeshPlace place;
};

class MeshPort {
public:
    /// Frames of other nodes that may wait for each link.
    static constexpr std::uint32_t kTransit = 64;

    /// row, column: ports of one kind and MTU, to different segments. They outlive this.
    MeshPort(const Port& row, const Port& column, const MeshConfig& config);
    ~MeshPort();  ///< drops what waits
    MeshPort(const MeshPort&) = delete;
    MeshPort& operator=(const MeshPort&) = delete;

    /// Returns a table over this object. Its MTU is 16 octets below that of the links.
    [[nodiscard]] Port table() noexcept;

private:
    static constexpr std::size_t kLines = 2;
    static constexpr std::size_t kRow = 0;
    static constexpr std::size_t kColumn = 1;
    static constexpr std::uint32_t kRing = 1024;   ///< frames with a device; power of two
    static constexpr std::uint32_t kWaiting = 32;  ///< own frames that the device did not take yet
    static constexpr std::uint32_t kEchoWaiting = 8;  ///< echo frames beyond these
    static constexpr std::size_t kWatched = 64;       ///< nodes whose paths are asked at a time
    static constexpr std::uint16_t kNone = UINT16_MAX;

    /// Frames that wait for a device, oldest first.
    template <std::uint32_t Size>
    struct Queue {
        std::array<Segment*, Size> frames{};
        std::uint32_t count = 0;
        std::uint64_t octets = 0;
        std::uint64_t given = 0;  ///< octets that the device took, as far as turns need it

        [[nodiscard]] bool is_full() const noexcept { return count == Size; }
        void push(Segment* segment) noexcept {
            frames[count++] = segment;
            octets += segment->length;
        }
        void drop_first(std::uint32_t n) noexcept {
            for (std::uint32_t at = n; at < count; ++at)
                frames[at - n] = frames[at];
            count -= n;
        }
    };
    struct Link {
        Port port;
        bool up = true;
        std::uint64_t octet_time = 1;  ///< in units that suit both links
        std::uint64_t given = 0;       ///< time that all own frames took
        std::uint64_t octets = 0;      ///< with the device
        std::uint32_t left = 0;        ///< frames that left the device; free running
        std::uint32_t next = 0;
        std::uint32_t own = 0;  ///< frames with the device that the engine counts
        /// Lengths by frame; kExtra: the engine does not count it.
        std::array<std::uint16_t, kRing> lengths{};
        Queue<kWaiting + kEchoWaiting> own_queue;
        Queue<kTransit> transit;
    };
    /// In Link::lengths: a frame of another node, or one of two copies of a frame.
    static constexpr std::uint16_t kExtra = 0x8000;
    struct Peer {
        std::array<NodeAddress, kLines> addresses;
        LinkWatch watch;  ///< paths, by the line with which each begins
        bool used = true;
        bool proved = false;  ///< it confirmed its place; else it is only asked, and answered
        bool watched = false;
        bool busy = false;  ///< frames went to it in this round
        std::uint16_t looks = 0;

        explicit Peer(const seal::Seed& seed) : watch(seed) {}
    };
    /// A node that is not proved, and whose last question has no reply yet.
    struct Asker {
        Mac mac;               ///< source of the question
        std::size_t line = 0;  ///< by which it came, without FORWARD
        bool waits = false;
    };
    static constexpr std::size_t kAskers = 64;
    enum class Fate : std::uint8_t { kDeliver, kDrop, kPassedOn };

    // mesh_port.cc
    std::uint16_t rx(Segment** out, std::uint16_t n);
    std::uint16_t tx(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] bool send(Segment& segment) noexcept;
    [[nodiscard]] bool send_group(Segment& segment) noexcept;
    [[nodiscard]] bool send_direct(std::size_t line, const Peer& peer, Segment& segment) noexcept;
    [[nodiscard]] bool send_by_path(Peer& peer, Segment& segment) noexcept;
    [[nodiscard]] bool send_back(Asker& asker, Segment& segment) noexcept;
    [[nodiscard]] Segment* wrap(const Segment& segment, const wire::ForwardView& head) noexcept;
    void give_up(Segment& segment) noexcept;
    [[nodiscard]] Fate take(std::size_t line, Segment& segment) noexcept;

    // mesh_transit.cc
    [[nodiscard]] Fate take_forward(std::size_t line, Segment& segment) noexcept;
    [[nodiscard]] Fate pass_on(std::size_t line, Segment& segment,
                               const wire::ForwardView& view) noexcept;
    [[nodiscard]] Fate spread(std::size_t line, Segment& segment,
                              const wire::ForwardView& view) noexcept;
    [[nodiscard]] Fate arrive(std::size_t line, Segment& segment,
                              const wire::ForwardView& view) noexcept;
    [[nodiscard]] bool is_path_right(std::size_t line, const Segment& segment,
                                     const wire::ForwardView& view) const noexcept;
    void push_transit(std::size_t line, Segment* segment) noexcept;

    // mesh_links.cc
    std::uint32_t tx_pending();
    bool look_at_links();
    const InterfaceState* interface() noexcept;
    Mac take_address() noexcept;
    void fit_speeds() noexcept;
    [[nodiscard]] Nanos reorder_wait(std::uint32_t megabits) const noexcept;
    void look_at_device(Link& link) noexcept;
    void put(Link& link, Segment* segment) noexcept;
    void flush(Link& link) noexcept;
    void drop_waiting(Link& link) noexcept;
    [[nodiscard]] static bool is_full(const Link& link) noexcept {
        return link.own_queue.count >= kWaiting;
    }
    [[nodiscard]] static std::size_t other(std::size_t line) noexcept { return 1 - line; }

    // mesh_peers.cc
    void set_addresses(std::span<const NodeAddress> addresses, bool proved);
    [[nodiscard]] std::uint16_t add_peer();
    void remove_peer(std::uint16_t number);
    void forget_nodes() noexcept;
    void enter(std::uint16_t number);
    void withdraw(std::uint16_t number);
    /// Returns the node with that address; kNone: it is not known, or not proved.
    [[nodiscard]] std::uint16_t find(const Mac& mac) const noexcept;
    /// Returns the same for a frame about links: the node need not be proved.
    [[nodiscard]] std::uint16_t find_for(const Mac& mac, bool proves) const noexcept;
    void note_asker(const Mac& mac, std::size_t line) noexcept;
    [[nodiscard]] Asker* find_asker(const Mac& mac) noexcept;
    [[nodiscard]] bool is_own(const Mac& mac) const noexcept;
    [[nodiscard]] bool is_on(std::size_t line, const Peer& peer) const noexcept {
        return peer.addresses[line].segment == own_[line].segment;
    }
    [[nodiscard]] const Peer* forwarder(std::size_t line, const Peer& peer) const noexcept;
    [[nodiscard]] bool is_there(std::size_t line, const Peer& peer) const noexcept;
    [[nodiscard]] bool is_good(std::size_t line, const Peer& peer) const noexcept;
    void watch() noexcept;
    void begin_watch(Peer& peer) noexcept;
    void ask(Peer& peer) noexcept;
    void choose_group_line() noexcept;
    [[nodiscard]] bool send_echo(std::size_t line, wire::NodeKind kind, const Mac& by,
                                 const Mac& to, std::uint64_t token) noexcept;
    [[nodiscard]] bool take_echo(std::size_t line, const Segment& segment, const Mac& by) noexcept;

    std::array<Link, kLines> links_;
    MeshConfig config_;
    PortInfo info_;
    InterfaceState interface_;  ///< both links as one
    std::array<NodeAddress, kLines> own_{};
    PortTransit counts_;
    PortDrops drops_;
    std::uint32_t turn_ = 0;
    std::size_t group_line_ = kRow;  ///< the line by which frames for groups are spread
    std::uint32_t looks_ = 0;
    bool group_busy_ = false;     ///< frames for groups went since the last look
    std::size_t next_group_ = 0;  ///< peer that is watched next for their sake
    std::uint32_t replies_ = 0;   ///< to echo requests, since the last look
    std::uint64_t silences_ = 0;
    seal::Tokens tokens_;      ///< seeds of peers
    std::vector<Peer> peers_;  ///< numbers are stable
    std::vector<std::uint16_t> free_;
    /// Their numbers, by address: the first one of each, and the other one of proved ones.
    KeyedIndex places_;
    std::array<Asker, kAskers> askers_{};
    std::size_t next_asker_ = 0;
    std::array<std::vector<std::uint16_t>, kLines> beside_;  ///< proved ones on each line, by place
    std::array<std::uint16_t, kWatched> watched_{};          ///< peers
    std::size_t watched_count_ = 0;
};

}  // namespace ulc::port
