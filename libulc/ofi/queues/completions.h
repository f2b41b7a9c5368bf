// SPDX-License-Identifier: BSD-3-Clause
// struct fid_cq: completions of the endpoints that are bound to it. Reading moves these endpoints.
#pragma once

#include <rdma/fi_eq.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/growing_ring.h"
#include "base/idle_ladder.h"
#include "ofi/domain.h"

namespace ulc::ofi {

class Endpoint;

/// Returns the monotonic clock.
[[nodiscard]] Nanos now() noexcept;

struct Completion {
    void* context;
    std::uint64_t flags;
    std::size_t length;
    void* buffer;
    std::uint64_t data;
    std::uint64_t tag;
    fi_addr_t source;
};

class CompletionQueue : public fid_cq {
public:
    CompletionQueue(Domain& in, fi_cq_format format, int timer) noexcept
        : fid_cq{}, domain(in), format_(format), timer_(timer) {}
    ~CompletionQueue();
    CompletionQueue(const CompletionQueue&) = delete;
    CompletionQueue& operator=(const CompletionQueue&) = delete;

    /// Both may throw std::bad_alloc.
    void add(const Completion& completion) { completions_.push_back(completion); }
    void add_error(const fi_cq_err_entry& error) { errors_.push_back(error); }

    /// Writes up to `count` completions in the queue's format; returns how many, or -FI_EAGAIN or
    /// -FI_EAVAIL. sources may be nullptr.
    [[nodiscard]] ssize_t read(void* entries, std::size_t count, fi_addr_t* sources) noexcept;
    [[nodiscard]] ssize_t read_error(fi_cq_err_entry& out) noexcept;
    /// Takes the completions of the engines of the bound endpoints.
    void progress() noexcept;
    /// Counts an empty read. True if nothing has come for long, so that the core must be yielded.
    [[nodiscard]] bool is_idle() noexcept;
    /// Records how long the yield took that is_idle() asked for.
    void yielded() noexcept { ladder_.yielded(looked_at_, now()); }

    void attach(Endpoint& endpoint);
    void detach(Endpoint& endpoint) noexcept { std::erase(endpoints_, &endpoint); }
    [[nodiscard]] bool in_use() const noexcept { return !endpoints_.empty(); }
    [[nodiscard]] bool has_entries() const noexcept {
        return !completions_.empty() || !errors_.empty();
    }
    /// The descriptor of FI_WAIT_FD; -1: none.
    [[nodiscard]] int timer() const noexcept { return timer_; }
    /// Makes the descriptor readable after this many nanoseconds.
    void arm(long nanoseconds) const noexcept;

    Domain& domain;
    std::atomic<bool> signalled{false};

private:
    const fi_cq_format format_;
    const int timer_;
    GrowingRing<Completion> completions_;
    GrowingRing<fi_cq_err_entry> errors_;
    std::vector<Endpoint*> endpoints_;
    unsigned empty_reads_ = 0;
    IdleLadder ladder_;
    Nanos looked_at_ = 0;  ///< at the clock, by is_idle()
};

int open_completions(fid_domain* domain, fi_cq_attr* attr, fid_cq** out, void* context) noexcept;

/// fi_trywait(): -FI_EAGAIN if an object has something, else arms the objects' descriptors.
int try_wait(fid_fabric* fabric, fid** handles, int count) noexcept;

}  // namespace ulc::ofi
