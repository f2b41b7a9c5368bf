// SPDX-License-Identifier: BSD-3-Clause
// Joins the job of an endpoint of the provider for libfabric as a plain program of libulc, and
// sends rank 0 messages with malformed headers, then a good one, all with tag 5.
//   ulc run …; the environment names the job
#include <ulc.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main() {
    constexpr std::uint64_t kTag = std::uint64_t{1} << 62 | 5;
    constexpr std::int64_t kWait = 30'000'000'000;
    const std::vector<std::string> messages = {
        {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'x'},  // version
        {1, 0, 0, 0},                               // short
        {1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'x'},  // flags
        {1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 'x'},  // announcement, too short
        {1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'x'},  // likewise of nothing
        {1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'x'},  // reserved
        {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 'x'},  // data
        {1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 'y'},
    };
    ulc_endpoint* ep = nullptr;
    int error = ulc_open(nullptr, &ep);
    const std::string job = std::string(std::getenv("ULC_JOB")) + ".ofi.0";
    if (error == ULC_OK) error = ulc_join_wait(ep, job.c_str(), ULC_RANK_ANY, 0, kWait);
    for (const std::string& message : messages) {
        ulc_request request;
        if (error == ULC_OK)
            error = ulc_send(ep, 0, kTag, message.data(), message.size(), &request);
        if (error == ULC_OK) error = ulc_wait_for(ep, &request, nullptr, kWait);
    }
    if (error == ULC_OK) error = ulc_leave_wait(ep, kWait);
    if (error != ULC_OK) std::printf("%s\n", ulc_last_error_text());
    ulc_close(ep);
    return error == ULC_OK ? 0 : 1;
}
