// SPDX-License-Identifier: BSD-3-Clause
// ulc doctor --net: every rank in turn sends to all others, one message at a time, and times the
// answers.
//
//   rank 0 ── kTurn ─▶ s;  s: for each r: kPing → kPong (unicast),
//                             then multicasts kCall → a kPong of every r
//   s ── kReport ─▶ 0;  …  rank 0 ── kDone ─▶ all
//
// Forming the job already needed broadcasts both ways. A multicast that a switch drops still
// arrives, by repair: the sender's engine counts who asked for repairs (net_counts.h).
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "tools/ulc/doctor/doctor.h"
#include "tools/ulc/doctor/net_counts.h"
#include "tools/ulc/watch/counter_page.h"
#include "tools/ulc/watch/streams.h"

namespace ulc::tools {
namespace {

enum Tag : std::uint64_t { kPing = 1, kCall, kPong, kTurn, kReport, kDone };

using Report = NetReport;

class NetCheck {
public:
    /// engine: as given to the command.
    NetCheck(JobLink& link, std::string engine)
        : link_(link), engine_(std::move(engine)), buffer_(link.size() * sizeof(Report)) {}

    /// Measures from this rank to every other.
    int measure(std::vector<Report>& reports) {
        std::vector<std::vector<double>> unicast(link_.size());
        std::vector<std::vector<double>> multicast(link_.size());
        const std::vector<std::uint32_t> at_first = requests();
        for (unsigned n = 0; n < kNetRounds; ++n) {
            for (std::uint16_t r = 0; r < link_.size(); ++r) {
                if (r == link_.rank()) continue;
                const auto begin = Time::now();
                if (const int error = link_.send(r, kPing, {}); error != ULC_OK) return error;
                if (const int error = receive(r, kPong, nullptr); error != ULC_OK) return error;
                unicast[r].push_back(since(begin));
            }
        }
        const std::vector<std::uint32_t> between = requests();
        for (unsigned n = 0; n < kNetRounds; ++n) {
            const auto begin = Time::now();
            if (const int error = link_.multicast(kCall, {}); error != ULC_OK) return error;
            for (std::uint16_t r = 0; r < link_.size(); ++r) {
                if (r == link_.rank()) continue;
                if (const int error = receive(r, kPong, nullptr); error != ULC_OK) return error;
                multicast[r].push_back(since(begin));
            }
        }
        const std::vector<std::uint32_t> at_last = requests();
        reports.assign(link_.size(), Report{});
        for (std::uint16_t r = 0; r < link_.size(); ++r) {
            Report& report = reports[r];
            report.unicast_us = median(unicast[r]);
            report.multicast_us = median(multicast[r]);
            if (at_first.empty() || between.empty() || at_last.empty()) continue;
            report.counted = 1;
            report.unicast_asked = between[r] - at_first[r];
            report.multicast_asked = at_last[r] - between[r];
        }
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
    using Time = std::chrono::steady_clock;
    static double since(Time::time_point begin) {
        return std::chrono::duration<double, std::micro>(Time::now() - begin).count();
    }

    /// Returns the requests for repairs that this rank has got so far, by rank; empty: its engine
    /// does not tell.
    [[nodiscard]] std::vector<std::uint32_t> requests() const {
        StreamPage page;
        std::string ignored;
        const std::string socket = counter_socket(engine_, &ignored);
        if (socket.empty() || !read_streams(socket, &page, &ignored)) return {};
        return requests_by_rank(page.rows, static_cast<std::uint32_t>(::getpid()), link_.rank(),
                                link_.size());
    }

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
    std::string engine_;
    std::vector<unsigned char> buffer_;
};

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
    NetCheck check(link, job.engine);
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
                judge_net(s, reports, out);
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
