// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/doctor/net_counts.h"

#include <fmt/format.h>

#include <algorithm>

namespace ulc::tools {
namespace {

/// True if most multicasts were asked for again, and unicasts were not: a link that loses both
/// filters nothing.
bool is_filtered(const NetReport& report) {
    return report.counted != 0 && report.multicast_asked > kNetRounds / 2 &&
           report.unicast_asked < report.multicast_asked / 2;
}

}  // namespace

double median(std::vector<double>& values) {
    if (values.empty()) return -1;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::vector<std::uint32_t> requests_by_rank(std::span<const abi::StreamRow> rows, std::uint32_t pid,
                                            std::uint16_t rank, std::uint16_t size) {
    std::vector<std::uint32_t> requests;
    for (const abi::StreamRow& row : rows) {
        if (row.pid != pid || row.rank != rank || row.peer >= size) continue;
        requests.resize(size);
        requests[row.peer] = row.requests_received;
    }
    return requests;
}

void judge_net(std::uint16_t source, std::span<const NetReport> reports, Findings& out) {
    std::vector<double> unicast;
    std::vector<double> multicast;
    bool any_filtered = false;
    bool all_counted = true;
    for (std::size_t r = 0; r < reports.size(); ++r) {
        if (r == source) continue;
        const NetReport& report = reports[r];
        unicast.push_back(report.unicast_us);
        multicast.push_back(report.multicast_us);
        all_counted &= report.counted != 0;
        if (!is_filtered(report)) continue;
        any_filtered = true;
        out.push_back(
            {Level::kWarn, fmt::format("multicast {} → {}", source, r),
             fmt::format("arrives by repair only: asked for again {} times in {} multicasts, {} in "
                         "as many unicasts; something between filters multicast",
                         report.multicast_asked, kNetRounds, report.unicast_asked),
             "on a Linux bridge: echo 0 | sudo tee "
             "/sys/class/net/BRIDGE/bridge/multicast_snooping; on a switch: turn IGMP snooping and "
             "storm control off for this net"});
    }
    if (any_filtered) return;
    out.push_back({Level::kOk, fmt::format("from rank {}", source),
                   fmt::format("unicast {:.1f} µs and multicast {:.1f} µs there and back (medians)"
                               "{}",
                               median(unicast), median(multicast),
                               all_counted ? ""
                                           : "; whether multicasts come by repair was not counted: "
                                             "an engine inside the program does not tell, a daemon "
                                             "does"),
                   ""});
}

}  // namespace ulc::tools
