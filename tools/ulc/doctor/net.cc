// SPDX-License-Identifier: BSD-3-Clause
// ulc doctor --net: every rank in turn sends to all others, one message at a time, and times the
// answers.
//
//   rank 0 ── kTurn ─▶ s;  s: for each r: kPing → kPong (unicast),
//                             then multicasts kCall → a kPong of every r
//   s ── kReport ─▶ 0;  …  rank 0 ── kDone ─▶ all
//
// Forming the job already needed broadcasts both ways. A multicast that a switch drops still
// arrives, by repair, but much later than a unicast. The time shows the fault.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tools/ulc/doctor/doctor.h"

namespace ulc::tools {
namespace {

enum Tag : std::uint64_t { kPing = 1, kCall, kPong, kTurn, kReport, kDone };

constexpr unsigned kRounds = 50;
/// A multicast that takes this much longer than a unicast came by repair, not by itself.
constexpr double kRepairFactor = 8;
constexpr double kRepairMicroseconds = 400;

struct Report {
    double unicast_us = -1;  ///< median round trip; -1: no answer
    double multicast_us = -1;
};

double median(std::vector<double>& values) {
    if (values.empty()) return -1;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

class NetCheck {
public:
    explicit NetCheck(JobLink& link) : link_(link), buffer_(link.size() * sizeof(Report)) {}

    /// Measures from this rank to every other.
    int measure(std::vector<Report>& reports) {
        using Time = std::chrono::steady_clock;
        const auto since = [](Time::time_point t) {
            return std::chrono::duration<double, std::micro>(Time::now() - t).count();
        };
        std::vector<std::vector<double>> unicast(link_.size());
        std::vector<std::vector<double>> multicast(link_.size());
        for (unsigned n = 0; n < kRounds; ++n) {
            for (std::uint16_t r = 0; r < link_.size(); ++r) {
                if (r == link_.rank()) continue;
                const auto begin = Time::now();
                if (const int error = link_.send(r, kPing, {}); error != ULC_OK) return error;
                if (const int error = receive(r, kPong, nullptr); error != ULC_OK) return error;
                unicast[r].push_back(since(begin));
            }
            const auto begin = Time::now();
            if (const int error = link_.multicast(kCall, {}); error != ULC_OK) return error;
            for (std::uint16_t r = 0; r < link_.size(); ++r) {
                if (r == link_.rank()) continue;
                if (const int error = receive(r, kPong, nullptr); error != ULC_OK) return error;
                multicast[r].push_back(since(begin));
            }
        }
        reports.assign(link_.size(), Report{});
        for (std::uint16_t r = 0; r < link_.size(); ++r)
            reports[r] = {median(unicast[r]), median(multicast[r])};
        return ULC_OK;
    }

    /// Any rank but 0: answer, and measure when it is this one's turn.
    int serve() {
        for (;;) {
            ulc_status status{};
            int error = link_.receive(ULC_RANK_ANY, 0, buffer_, &status,
                                      link_.timeout_seconds() * link_.size());
            if (error != ULC_OK || status.tag == kDone) return error;
            error = status.tag == kTurn ? take_turn() : link_.send(status.source, kPong, {});
            if (error != ULC_OK) return error;
        }
    }

    /// Rank 0: has rank s measure. The others, rank 0 included, answer meanwhile.
    int delegate(std::uint16_t s, std::vector<Report>& reports) {
        if (const int error = link_.send(s, kTurn, {}); error != ULC_OK) return error;
        for (;;) {
            ulc_status status{};
            if (const int error = receive(s, 0, &status); error != ULC_OK) return error;
            if (status.tag == kReport) break;
            if (const int error = link_.send(s, kPong, {}); error != ULC_OK) return error;
        }
        reports.resize(link_.size());
        std::memcpy(reports.data(), buffer_.data(), buffer_.size());
        return ULC_OK;
    }

    int finish() {
        for (std::uint16_t r = 1; r < link_.size(); ++r) {
            if (const int error = link_.send(r, kDone, {}); error != ULC_OK) return error;
        }
        return ULC_OK;
    }

private:
    int receive(std::uint16_t from, std::uint64_t tag, ulc_status* status) {
        ulc_status ignored{};
        return link_.receive(from, tag, buffer_, status == nullptr ? &ignored : status,
                             link_.timeout_seconds());
    }

    int take_turn() {
        std::vector<Report> reports;
        if (const int error = measure(reports); error != ULC_OK) return error;
        std::vector<unsigned char> octets(reports.size() * sizeof(Report));
        std::memcpy(octets.data(), reports.data(), octets.size());
        return link_.send(0, kReport, octets);
    }

    JobLink& link_;
    std::vector<unsigned char> buffer_;
};

void judge(std::uint16_t source, const std::vector<Report>& reports, Findings& out) {
    std::size_t repaired = 0;
    for (std::size_t r = 0; r < reports.size(); ++r) {
        if (r == source) continue;
        const auto& [unicast, multicast] = reports[r];
        if (multicast < kRepairFactor * unicast || multicast < unicast + kRepairMicroseconds)
            continue;
        ++repaired;
        out.push_back(
            {Level::kWarn, fmt::format("multicast {} → {}", source, r),
             fmt::format("arrives by repair only: {:.0f} µs against {:.0f} µs unicast; something "
                         "between filters multicast",
                         multicast, unicast),
             "on a Linux bridge: echo 0 | sudo tee "
             "/sys/class/net/BRIDGE/bridge/multicast_snooping; on a switch: turn IGMP snooping and "
             "storm control off for this net"});
    }
    if (repaired > 0) return;
    std::vector<double> unicast;
    std::vector<double> multicast;
    for (std::size_t r = 0; r < reports.size(); ++r) {
        if (r == source) continue;
        unicast.push_back(reports[r].unicast_us);
        multicast.push_back(reports[r].multicast_us);
    }
    out.push_back({Level::kOk, fmt::format("from rank {}", source),
                   fmt::format("unicast {:.1f} µs and multicast {:.1f} µs there and back (medians)",
                               median(unicast), median(multicast)),
                   ""});
}

}  // namespace

bool check_net(const JobOptions& job, Findings& out) {
    JobLink link("ulc doctor --net", job);
    if (!link.join()) {
        if (link.is_rank_0()) {
            out.push_back(
                {Level::kFail, "broadcast",
                 "the job did not form: broadcasts of EtherType 0x88b5 do not pass, or not all "
                 "ranks were started",
                 "ulc stat   # on each node: do rx_frames and tx_frames grow while it tries?"});
        }
        return false;
    }
    NetCheck check(link);
    int error = ULC_OK;
    if (link.rank() != 0) {
        error = check.serve();
    } else {
        out.push_back({Level::kOk, "broadcast",
                       fmt::format("a job of {} ranks formed over it", link.size()), ""});
        for (std::uint16_t s = 0; s < link.size() && error == ULC_OK; ++s) {
            std::vector<Report> reports;
            error = s == 0 ? check.measure(reports) : check.delegate(s, reports);
            if (error == ULC_OK) {
                judge(s, reports, out);
            } else {
                out.push_back(
                    {Level::kFail, fmt::format("from rank {}", s),
                     fmt::format("some rank does not answer: {}", ulc_error_text(error)),
                     "ulc stat --watch   # on both nodes: which side sends, which receives?"});
            }
        }
        if (error == ULC_OK) error = check.finish();
    }
    const bool failed = link.failed("the check broke off", error);
    return link.leave() && !failed;
}

}  // namespace ulc::tools
