// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/job_link.h"

#include <fmt/format.h>

#include "tools/shared/command_line.h"
#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

void add_job_options(Command& command, JobOptions& options) {
    const std::string group = "Place in a job (`ulc run` sets all of these)";
    command
        .add_option("--engine", options.engine,
                    "The engine's socket, or embedded:DEVICE (ULC_ENGINE, else the default)")
        .group(group);
    command.add_option("--job", options.job, "Name of the job (ULC_JOB)").group(group);
    command.add_option("--rank", options.rank, "Rank of this process (ULC_RANK)")
        .range(0, 65533)
        .group(group);
    command.add_option("--size", options.size, "Ranks of the job (ULC_SIZE)")
        .range(2, 65534)
        .group(group);
    command
        .add_option("--timeout", options.timeout_seconds,
                    "Time to wait for the job and for an answer (10s)")
        .time(kSecond, kMillisecond, 3600 * kSecond)
        .group(group);
}

bool JobLink::join() {
    ulc_endpoint* raw = nullptr;
    const char* engine = options_.engine.empty() ? nullptr : options_.engine.c_str();
    if (failed("cannot open an endpoint", ulc_open(engine, &raw))) return false;
    ep_.reset(raw);
    const auto rank = options_.rank < 0 ? ULC_RANK_ANY : static_cast<std::uint16_t>(options_.rank);
    const char* job = options_.job.empty() ? nullptr : options_.job.c_str();
    const int error = ulc_join_wait(raw, job, rank, static_cast<std::uint16_t>(options_.size),
                                    nanoseconds(options_.timeout_seconds));
    if (failed("the job did not form", error)) {
        if (error == ULC_ERR_TIMEOUT) {
            fmt::print(stderr,
                       "{}: start all ranks within {} s of each other, with one --job and one "
                       "--size; if they were, "
                       "look at the wire with: ulc doctor\n",
                       command_, options_.timeout_seconds);
        }
        return false;
    }
    if (size() < 2) {
        fmt::print(stderr,
                   "{}: a job of one rank has no peer; start two or more: ulc run -n 2 {}\n",
                   command_, command_);
        return false;
    }
    return true;
}

bool JobLink::is_rank_0() const {
    return options_.rank == 0 || (options_.rank < 0 && environment_of("ULC_RANK") == "0");
}

bool JobLink::leave() {
    return !failed("leaving the job",
                   ulc_leave_wait(ep_.get(), nanoseconds(options_.timeout_seconds)));
}

int JobLink::send(std::uint16_t to, std::uint64_t tag, const std::vector<unsigned char>& payload) {
    int error = ULC_OK;
    while ((error = ulc_send(ep_.get(), to, tag, payload.data(), payload.size(), nullptr)) ==
           ULC_ERR_AGAIN) {
        if (const int n = ulc_poll(ep_.get()); n < 0) return -n;
    }
    return error;
}

int JobLink::multicast(std::uint64_t tag, const std::vector<unsigned char>& payload) {
    const ulc_group world = ulc_world(ep_.get());
    int error = ULC_OK;
    while ((error = ulc_multicast(ep_.get(), world, ULC_SUBSET_ALL, tag, payload.data(),
                                  payload.size(), nullptr)) == ULC_ERR_AGAIN) {
        if (const int n = ulc_poll(ep_.get()); n < 0) return -n;
    }
    return error;
}

int JobLink::receive(std::uint16_t from, std::uint64_t tag, std::vector<unsigned char>& into,
                     ulc_status* status, double seconds) {
    ulc_request request;
    const std::uint64_t mask = tag == 0 ? 0 : ~std::uint64_t{0};
    if (const int error =
            ulc_receive(ep_.get(), from, tag, mask, into.data(), into.size(), &request);
        error != ULC_OK) {
        return error;
    }
    if (const int error = ulc_wait_for(ep_.get(), &request, status, nanoseconds(seconds));
        error != ULC_OK) {
        ulc_cancel(ep_.get(), &request);
        return error;
    }
    return status->error;
}

bool JobLink::failed(const std::string& what, int error) const {
    if (error == ULC_OK) return false;
    fmt::print(stderr, "{}: {}: {}\n", command_, what, ulc_error_text(error));
    const std::string detail = ulc_last_error_text();
    if (!detail.empty() && detail != ulc_error_text(error)) fmt::print(stderr, "    {}\n", detail);
    return true;
}

}  // namespace ulc::tools
