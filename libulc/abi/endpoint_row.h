// SPDX-License-Identifier: BSD-3-Clause
// This file describes one endpoint in the counter page (abi/attach.h), shown by `ulc top`, and one
// of its peers in the page of streams, shown by `ulc stat --streams`.
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
    // Repairs and requests with all peers, counted since the endpoint was attached. Then the peer
    // that has most of each, with its number; kNoRowRank: no peer has any.
    std::uint32_t repairs_sent;       ///< packets repeated, to one peer or to several at once
    std::uint32_t requests_received;  ///< for repairs
    std::uint32_t requests_sent;
    std::uint32_t repairs_rank;  ///< the peer that loses most of this endpoint's packets
    std::uint32_t repairs_max;
    std::uint32_t asks_rank;  ///< the peer that asks this endpoint most
    std::uint32_t asks_max;
    std::uint32_t asked_rank;  ///< the peer that this endpoint asks most: it lacks packets of it
    std::uint32_t asked_max;
    std::uint32_t unacked_rank;  ///< the peer that has not acknowledged most; a level, not a count
    std::uint32_t unacked_max;
    std::uint32_t reserved[5];
};
static_assert(sizeof(EndpointRow) == 128);

/// Figures of an endpoint with one peer that it has heard from or sent to. The counts wrap.
struct StreamRow {
    std::uint32_t endpoint;  ///< handle
    std::uint32_t pid;       ///< the client, as the kernel names it
    std::uint32_t uid;
    std::uint32_t net;
    std::uint32_t rank;  ///< kNoRowRank: open for links
    std::uint32_t peer;  ///< rank, or the slot of a link
    std::uint32_t repairs_sent;
    std::uint32_t requests_received;
    std::uint32_t requests_sent;
    std::uint32_t rtt_ns;   ///< smoothed; 0: none measured, as of a peer on this node
    std::uint32_t unacked;  ///< packets, those of groups included
    std::uint32_t state;    ///< StreamState
};
static_assert(sizeof(StreamRow) == 48);

enum class StreamState : std::uint32_t {
    kOpen = 0,
    kLocal = 1,  ///< the peer is on this node
    kGone = 2,   ///< the peer left, died or was excluded
};

}  // namespace ulc::abi
