// SPDX-License-Identifier: BSD-3-Clause
// This file judges what `ulc doctor --net` counted. Pure: tests give it any counts and times.
//
// A multicast that something between filters is asked for again by its receiver, each time. One
// that is only late, because a machine is crowded, is not. So requests decide, and times are shown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/endpoint_row.h"
#include "tools/ulc/doctor/doctor.h"

namespace ulc::tools {

/// Messages of each kind that a rank sends to each other rank.
inline constexpr std::uint32_t kNetRounds = 50;

/// Findings of one rank about one other. They are sent between ranks of one build.
struct NetReport {
    double unicast_us = -1;  ///< median round trip; -1: no answer
    double multicast_us = -1;
    std::uint32_t counted = 0;        ///< 1: the engine gave the two counts below
    std::uint32_t unicast_asked = 0;  ///< requests for repairs while unicasts were sent
    std::uint32_t multicast_asked = 0;
};

/// Returns the requests for repairs that this process's endpoint got from each rank, by rank;
/// empty: the page has no row of it.
[[nodiscard]] std::vector<std::uint32_t> requests_by_rank(std::span<const abi::StreamRow> rows,
                                                          std::uint32_t pid, std::uint16_t rank,
                                                          std::uint16_t size);

/// Appends what the reports of rank `source`, by rank, say of multicasts.
void judge_net(std::uint16_t source, std::span<const NetReport> reports, Findings& out);

/// Returns the median; -1: there are no values.
[[nodiscard]] double median(std::vector<double>& values);

}  // namespace ulc::tools
