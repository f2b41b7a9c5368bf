// SPDX-License-Identifier: BSD-3-Clause
// A formed job of real libulc endpoints for tests that only start and test operations.
#pragma once

#include <gtest/gtest.h>
#include <ulc.h>

#include <functional>
#include <vector>

#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {

/// A formed job, run by polls and tests alone.
class LibulcCluster {
public:
    LibulcCluster(const ClusterConfig& config, std::uint16_t ranks)
        : lib_(config, ranks), formed_(lib_.form()) {}

    [[nodiscard]] ulc_endpoint* ep(std::size_t rank) {
        return lib_.endpoint(static_cast<std::uint16_t>(rank));
    }
    [[nodiscard]] bool formed() const noexcept { return formed_; }

    /// test: what each rank does after each of its polls.
    bool run(
        const std::function<bool()>& done, Nanos limit = 20 * kSecond,
        const std::function<void(std::uint16_t)>& test = [](std::uint16_t) {}) {
        return lib_.run(limit, done, [&](std::uint16_t rank, Nanos) {
            if (ulc_job_state(ep(rank)) == ULC_OK) {
                EXPECT_GE(lib_.events(rank), 0);
            }
            test(rank);
            return kNever;
        });
    }
    bool run_until_done(std::vector<ulc_request>& requests, std::size_t rank_of_first,
                        std::size_t requests_per_rank) {
        return run([&] {
            for (std::size_t n = 0; n < requests.size(); ++n)
                if (ulc_test(ep(rank_of_first + n / requests_per_rank), &requests[n], nullptr) ==
                    ULC_ERR_AGAIN)
                    return false;
            return true;
        });
    }

private:
    LibCluster lib_;
    bool formed_;
};

/// Engines of both kinds, and frames that are lost, repeated and overtaken.
inline ClusterConfig lossy(std::uint16_t ports) {
    ClusterConfig config;
    config.embedded = Embedded::kHalf;
    config.net.ports = ports;
    config.net.faults = {.loss = 0.02, .duplicate = 0.005, .reorder = 0.01};
    return config;
}

}  // namespace ulc::sim
