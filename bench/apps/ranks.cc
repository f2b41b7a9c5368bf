// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/ranks.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "tools/shared/command_line.h"

namespace ulc::bench {

void add_options(tools::Command& app, RunOptions& options) {
    app.add_option("-r,--repeat", options.repeat, "runs to take the median of")
        .range(1U, 1000U)
        .capture_default_str();
    app.add_flag("--unicast", options.unicast,
                 "emulate broadcast by unicast, as on a network that has none");
}

Times slowest(Job& job, const Times& own) {
    std::vector<Times> all(job.size());
    job.allgather(&own, all.data(), sizeof own);
    return *std::max_element(all.begin(), all.end(),
                             [](const Times& x, const Times& y) { return x.whole < y.whole; });
}

Times median(std::vector<Times> runs) {
    std::sort(runs.begin(), runs.end(),
              [](const Times& x, const Times& y) { return x.whole < y.whole; });
    return runs[runs.size() / 2];
}

void print_times(const char* unit, const Times& times, unsigned repeat) {
    std::printf("time: %.3f ms %s (median of %u), of which communication %.3f ms = %.1f %%\n",
                times.whole * 1e3, unit, repeat, times.communicate * 1e3,
                100 * times.communicate / times.whole);
}

std::uint64_t hash_of(std::span<const double> values, std::uint64_t hash) {
    for (const double value : values) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 0x9e3779b97f4a7c15U;
        hash ^= hash >> 29;
    }
    return hash;
}

bool agree(Job& job, const std::string& error, std::uint64_t hash) {
    struct Report {
        std::uint64_t failed;
        std::uint64_t hash;
    };
    if (!error.empty()) std::fprintf(stderr, "rank %u: %s\n", unsigned{job.rank()}, error.c_str());
    const Report own{!error.empty(), hash};
    std::vector<Report> all(job.size());
    job.allgather(&own, all.data(), sizeof own);
    for (const Report& report : all) {
        if (report.failed != 0) return false;  // that rank has printed the reason
    }
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        if (all[rank].hash == all[0].hash) continue;
        if (job.rank() == 0) {
            std::fprintf(
                stderr, "rank %zu read another input than rank 0: give all the same files\n", rank);
        }
        return false;
    }
    return true;
}

int conclude(Job& job, std::vector<Times> runs, const std::function<int(const Times&)>& report) {
    std::int32_t status = job.rank() == 0 ? report(median(std::move(runs))) : 0;
    job.broadcast(&status, sizeof status);
    return status;
}

int run_in_job(const char* program, const std::function<int(Job&)>& body) {
    std::string why;
    const std::unique_ptr<Job> job = Job::join(why);
    if (job == nullptr) {
        std::fprintf(stderr, "%s: cannot join the job: %s\n", program, why.c_str());
        return 1;
    }
    try {
        return body(*job);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "%s: rank %u is out of memory\n", program, unsigned{job->rank()});
        return 1;
    }
}

}  // namespace ulc::bench
