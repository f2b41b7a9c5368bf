// SPDX-License-Identifier: BSD-3-Clause
// This file describes one endpoint in the counter page (abi/attach.h). Shown by `ulc top`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulc::abi {

inline constexpr std::uint32_t kNoRowRank = UINT32_MAX;

/// Figures of one endpoint at one moment. Cursors run freely and wrap.
struct EndpointRow {
    std::uint32_t endpoint;  ///< handle
    std::uint32_t pid;       ///< the client, as the kernel names it
    std::uint32_t uid;
    std::uint32_t net;
    std::uint32_t rank;                ///< kNoRowRank: of no job, or open for links
    std::uint32_t size;                ///< ranks of the job; 0: none
    std::uint32_t records_taken;       ///< submissions since it was attached
    std::uint32_t records_given;       ///< completions since then
    std::uint32_t frames_unacked;      ///< to be sent, or sent and not acknowledged
    std::uint32_t frames_undelivered;  ///< received, and not given to the client
    std::uint32_t records_unread;      ///< completions; 0: at most a quarter of the ring
    std::uint32_t client_blocks;       ///< 1: a message waits for space in the client's memory
    std::uint32_t rtt_ns_max;          ///< largest smoothed round trip to a peer; 0: none measured
    std::uint32_t rtt_rank;            ///< the peer of rtt_ns_max; kNoRowRank: none
    std::uint32_t handler;             ///< upper half of handler_word(); 0: none runs
    std::uint32_t handler_since_ms;    ///< its lower half; both are the client's word
};
static_assert(sizeof(EndpointRow) == 64);

}  // namespace ulc::abi
