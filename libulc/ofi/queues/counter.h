// SPDX-License-Identifier: BSD-3-Clause
// struct fid_cntr: counts completions of the endpoints that are bound to it.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "ofi/domain.h"

namespace ulc::ofi {

class Endpoint;

class Counter : public fid_cntr {
public:
    explicit Counter(Domain& in) noexcept : fid_cntr{}, domain(in) {}

    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> errors{0};
    std::atomic<unsigned> regions{0};  ///< memory whose accesses it counts (rma/regions.h)

    void progress() noexcept;
    void attach(Endpoint& endpoint);
    void detach(Endpoint& endpoint) noexcept { std::erase(endpoints_, &endpoint); }
    [[nodiscard]] bool in_use() const noexcept { return !endpoints_.empty() || regions > 0; }

    Domain& domain;

private:
    std::vector<Endpoint*> endpoints_;
};

int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** out, void* context) noexcept;

}  // namespace ulc::ofi
