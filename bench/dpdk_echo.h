// SPDX-License-Identifier: BSD-3-Clause
// The bare reference of all ULC figures on DPDK links: two processes that pass frames straight
// through rte_eth_rx_burst and rte_eth_tx_burst, with none of our protocol between. The time that
// ULC adds is the ratio.
//
//   this process ── commands ──▶ near ══ memif, or af_packet on a veth pair ══ far ◀── commands ──
//     this process
//
// This process starts no DPDK and so can start any number of these, one after the other; between
// measurements both sides sleep. Setting up the EAL is shared with the engine; the measured path is
// not.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace ulc::bench {

enum class DpdkLink : std::uint8_t { kMemif, kVeth };

[[nodiscard]] const char* name_of(DpdkLink link);

class DpdkEcho {
public:
    /// Forks both sides and waits until they see each other. nullptr when the link cannot be made
    /// here (veth needs root); why: one sentence.
    static std::unique_ptr<DpdkEcho> start(DpdkLink link, std::string& why);
    ~DpdkEcho();  ///< ends both
    DpdkEcho(const DpdkEcho&) = delete;
    DpdkEcho& operator=(const DpdkEcho&) = delete;

    /// Nanoseconds of `count` round trips of frames that carry `payload` octets (at most 1500)
    /// after the Ethernet header, from the median of a few batches; half of one is the one-way
    /// latency. Negative: frames were lost.
    [[nodiscard]] double round_trips_ns(std::uint32_t payload, std::uint32_t count);
    /// Nanoseconds until the far side has counted `count` frames sent as fast as the link takes
    /// them. received: how many of them arrived (af_packet may lose some). Negative: no answer.
    [[nodiscard]] double one_way_ns(std::uint32_t payload, std::uint32_t count,
                                    std::uint32_t& received);

private:
    DpdkEcho() = default;
    struct Side {
        pid_t pid = -1;
        int control = -1;
    };
    bool launch(DpdkLink link, std::string& why);

    Side near_;
    Side far_;
    std::string directory_;
};

}  // namespace ulc::bench
