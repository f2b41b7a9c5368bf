// SPDX-License-Identifier: BSD-3-Clause
// The port over an Adapter: the hot path of verbs_port.h, and its recovery.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "port/frame_pool.h"
#include "verbs/adapter.h"
#include "verbs/groups.h"
#include "verbs/library.h"
#include "verbs/peer_table.h"
#include "verbs/verbs_port.h"

namespace ulc::verbs {

class QueuePort final : public VerbsPort {
public:
    explicit QueuePort(const Library& library);
    ~QueuePort() override;
    QueuePort(const QueuePort&) = delete;
    QueuePort& operator=(const QueuePort&) = delete;

    Err start(const PortOptions& options, std::string& why);
    [[nodiscard]] const Port& port() const noexcept override { return port_; }
    [[nodiscard]] std::string name() const override { return "verbs " + name_; }
    [[nodiscard]] const Counts& counts() const noexcept override { return counts_; }

private:
    static constexpr std::uint32_t kChain = 32;        ///< work requests posted at once
    static constexpr std::uint32_t kSignalEvery = 16;  ///< frames of a long chain
    static constexpr std::uint32_t kPoll = 32;         ///< completions taken at once

    /// Destination of a frame.
    struct Way {
        ibv_ah* handle = nullptr;  ///< nullptr: nowhere
        std::uint32_t qpn = 0;
        Peer* peer = nullptr;
    };

    void fill_table(const PortOptions& options);
    Err make_pools(const PortOptions& options, std::string& why);
    // --- sending
    [[nodiscard]] std::uint16_t send(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] bool compose(ibv_send_wr& wr, ibv_sge* pieces, Segment& segment);
    [[nodiscard]] Way way_to(const Mac& to);
    [[nodiscard]] ibv_ah* handle_of(Peer& peer);
    [[nodiscard]] std::uint32_t pending();
    void on_sent(const ibv_wc& wc);
    void retire(std::uint64_t until);
    // --- receiving
    [[nodiscard]] std::uint16_t receive(Segment** out, std::uint16_t n);
    [[nodiscard]] Segment* take(const ibv_wc& wc);
    [[nodiscard]] bool judge(const ibv_wc& wc, const Segment& segment);
    [[nodiscard]] bool heard(const Mac& mac, const Address& from, const ibv_wc& wc);
    void refill();
    void take_back_receives();
    // --- the device's state
    [[nodiscard]] bool look();
    void on_event(Event event);
    void on_gids_changed();
    [[nodiscard]] Mac take_address();
    void recover();
    void follow_groups();
    void note_join(int error);
    void say(const std::string& what) const;
    [[nodiscard]] bool set_multicasts(std::span<const Mac> addresses);

    Library verbs_;
    Port port_;
    std::string name_;
    void (*report_)(const std::string& line) = nullptr;
    port::FramePool tx_pool_;
    port::FramePool rx_pool_;
    Adapter adapter_;  // after the pools: its end unregisters their memory
    Groups groups_;
    PeerTable peers_;
    Counts counts_;
    std::uint32_t frame_max_ = 0;
    std::uint32_t tx_key_ = 0;
    std::uint32_t rx_key_ = 0;

    // Frames by number: [completed_, posted_) are with the device.
    std::vector<Segment*> sent_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;

    std::vector<Segment*> slots_;  ///< receive requests; nullptr: free
    std::vector<std::uint32_t> free_slots_;
    std::uint32_t generation_ = 0;  ///< part of their names, one more at each reset

    bool active_ = true;   ///< the port carries frames
    bool failed_ = false;  ///< the queue pair has to be reset
    bool gone_ = false;    ///< the device, for good
    bool join_failure_reported_ = false;
    std::uint32_t looks_ = 0;
    std::uint32_t reset_at_ = 0;    ///< the look at which the next reset may be
    std::uint32_t reset_wait_ = 1;  ///< looks between two resets
    std::string failure_;           ///< the first reason since the last reset
    InterfaceState interface_;      ///< its addresses follow from GID and queue pair

    std::array<ibv_send_wr, kChain> send_chain_{};
    std::array<ibv_sge, 2 * kChain> send_pieces_{};
    std::array<ibv_recv_wr, kChain> receive_chain_{};
    std::array<ibv_sge, kChain> receive_pieces_{};
    std::array<ibv_wc, kPoll> completions_{};
};

}  // namespace ulc::verbs
