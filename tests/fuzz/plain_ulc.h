// SPDX-License-Identifier: BSD-3-Clause
// The functions of ulc.h that the provider for libfabric calls, over lists in memory: a test says
// which messages arrive. One endpoint at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/near/ulc_near.h"
#include "client/ulc.h"

namespace ulc::fuzz {

/// The rank that opened the endpoint, and the size of its job.
inline constexpr std::uint16_t kRank = 0;
inline constexpr std::uint16_t kRanks = 3;

/// The job of the open endpoint forms until form(). It has formed unless unform() is called.
void form();
void unform();

/// The engine says from now on that all peers are in this process. At first they are in the test's.
void be_in(const ulc_near_process& process);
/// The engine says from now on whether peers are near: ULC_OK, or an error of ulc_near_processes().
void be_near(int error);

/// The engine gives one endpoint, and no links, unless these say otherwise.
void have_endpoints(bool has);
void have_links(bool has);
/// The words of an engine that gives none.
inline constexpr char kNoEndpoint[] = "all endpoints are in use; start the engine with more";

/// A message arrives at the open endpoint. Nothing arrives while its job forms.
void arrive(std::uint16_t source, std::uint64_t tag, std::vector<unsigned char> bytes);

/// The rank ends, and the receives that name it end with this error of ulc.h.
void end_peer(std::uint16_t rank, int error);

/// Messages of the open endpoint to its own rank arrive from now on.
void loop_back();

/// Messages with a request are not done when they are sent, until this says otherwise.
void hold_sends(bool holds);

/// Polls move frames of a long message from now on, which completes nothing; or no more.
void move_frames(bool moves);

/// The last message that the endpoint sent without a request, and where its answer belongs.
struct Sent {
    std::uint16_t to;
    std::uint64_t tag;
    std::vector<unsigned char> bytes;
};
[[nodiscard]] const Sent& last_sent();

/// Messages that no receive has taken.
[[nodiscard]] std::size_t unexpected();

/// Messages that receives, claims and discards have taken, and that begin with no header of the
/// provider.
[[nodiscard]] std::uint64_t malformed_taken();

}  // namespace ulc::fuzz
