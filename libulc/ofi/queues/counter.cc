// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/queues/counter.h"

#include <sched.h>

#include <algorithm>
#include <new>

#include "ofi/endpoint.h"
#include "ofi/fabric.h"
#include "ofi/not_there.h"
#include "ofi/queues/completions.h"

namespace ulc::ofi {

void Counter::progress() noexcept {
    // Peers access memory by any endpoint of the domain.
    if (regions > 0) {
        static_cast<void>(domain.progress());
        return;
    }
    const Guard hold(domain.lock);
    for (Endpoint* endpoint : endpoints_)
        endpoint->progress();
}

void Counter::attach(Endpoint& endpoint) {
    if (std::find(endpoints_.begin(), endpoints_.end(), &endpoint) == endpoints_.end())
        endpoints_.push_back(&endpoint);
}

namespace {

constexpr NotThere kNotThere;

Counter& counter_of(fid_cntr* cntr) noexcept { return *static_cast<Counter*>(cntr); }

std::uint64_t read(fid_cntr* cntr) noexcept {
    counter_of(cntr).progress();
    return counter_of(cntr).count;
}

std::uint64_t read_errors(fid_cntr* cntr) noexcept {
    counter_of(cntr).progress();
    return counter_of(cntr).errors;
}

int wait(fid_cntr* cntr, std::uint64_t threshold, int timeout_ms) noexcept {
    Counter& counter = counter_of(cntr);
    const Nanos deadline = timeout_ms < 0 ? kNever : now() + timeout_ms * kMillisecond;
    const std::uint64_t errors = counter.errors;
    IdleLadder ladder;
    for (;;) {
        counter.progress();
        if (counter.count >= threshold) return 0;
        if (counter.errors != errors) return -FI_EAVAIL;
        const Nanos at = now();
        if (at >= deadline) return -FI_ETIMEDOUT;
        if (ladder.idle(at) == IdleLadder::Step::kSpin) continue;
        ::sched_yield();
        ladder.yielded(at, now());
    }
}

int close_counter(fid* handle) noexcept {
    auto& counter = object_of<Counter, fid_cntr>(handle);
    if (counter.in_use()) return -FI_EBUSY;
    --counter.domain.users;
    delete &counter;
    return 0;
}

fi_ops fid_ops = {sizeof(fi_ops), close_counter, kNotThere, kNotThere,
                  kNotThere,      kNotThere,     kNotThere};
fi_ops_cntr cntr_ops = {
    sizeof(fi_ops_cntr),
    read,
    read_errors,
    [](fid_cntr* cntr, std::uint64_t value) -> int {
        counter_of(cntr).count += value;
        return 0;
    },
    [](fid_cntr* cntr, std::uint64_t value) -> int {
        counter_of(cntr).count = value;
        return 0;
    },
    wait,
    [](fid_cntr* cntr, std::uint64_t value) -> int {
        counter_of(cntr).errors += value;
        return 0;
    },
    [](fid_cntr* cntr, std::uint64_t value) -> int {
        counter_of(cntr).errors = value;
        return 0;
    },
};

}  // namespace

int open_counter(fid_domain* domain, fi_cntr_attr* attr, fid_cntr** out, void* context) noexcept {
    if (attr->events != FI_CNTR_EVENTS_COMP || attr->flags != 0 ||
        (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC))
        return -FI_ENOSYS;
    auto& in = *static_cast<Domain*>(domain);
    auto* counter = new (std::nothrow) Counter(in);
    if (counter == nullptr) return -FI_ENOMEM;
    counter->fid = {FI_CLASS_CNTR, context, &fid_ops};
    counter->ops = &cntr_ops;
    ++in.users;
    *out = counter;
    return 0;
}

}  // namespace ulc::ofi
