// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/domain.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <system_error>

#include "ofi/endpoint.h"
#include "ofi/fabric.h"
#include "ofi/info.h"
#include "ofi/not_there.h"
#include "ofi/peers/addresses.h"
#include "ofi/queues/completions.h"
#include "ofi/queues/counter.h"
#include "ofi/queues/poll_set.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;
/// Time between two looks of the thread of a domain: the first after something came, and the
/// longest.
constexpr Nanos kNapMin = 50 * kMicrosecond;
constexpr Nanos kNapMax = kMillisecond;

int close_domain(fid* handle) noexcept {
    auto& domain = object_of<Domain, fid_domain>(handle);
    if (domain.users != 0) return -FI_EBUSY;
    delete &domain;
    return 0;
}

fi_ops domain_fid_ops = {sizeof(fi_ops), close_domain, kNotThere, kNotThere,
                         kNotThere,      kNotThere,    kNotThere};
fi_ops_domain domain_ops = {
    sizeof(fi_ops_domain),
    open_addresses,
    open_completions,
    open_endpoint,
    kNotThere,  // scalable_ep
    open_counter,
    open_poll_set,
    kNotThere,  // stx_ctx
    kNotThere,  // srx_ctx
    query_atomic_of_domain,
    kNotThere,  // query_collective
    [](fid_domain* domain, fi_info* info, fid_ep** out, std::uint64_t flags, void* context) -> int {
        return flags != 0 ? -FI_EBADFLAGS : open_endpoint(domain, info, out, context);
    },
};
}  // namespace

Domain::~Domain() {
    if (!thread_.joinable()) return;
    if (process_ != ::getpid()) {  // a child of fork() has no such thread
        thread_.detach();
        return;
    }
    {
        const std::lock_guard hold(sleep_);
        ended_ = true;
    }
    ends_.notify_one();
    thread_.join();
}

void Domain::start_progress() {
    process_ = ::getpid();
    // Signals are for the application's threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread(&Domain::run, this);
    } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Domain::forget(Region& region, const void* descriptor) noexcept {
    const Guard hold(lock);
    bool all = true;
    for (Endpoint* endpoint : endpoints_) {
        if (region.users > 0) endpoint->remote_memory().forget(region);
        all &= endpoint->remote_memory().forget_local(descriptor);
    }
    return all;
}

bool Domain::progress() noexcept {
    const Guard hold(lock);
    bool moved = false;
    for (Endpoint* endpoint : endpoints_)
        moved = endpoint->progress() || moved;
    return moved;
}

void Domain::run() noexcept {
    Nanos nap = kNapMin;
    for (;;) {
        nap = progress() ? kNapMin : std::min(2 * nap, kNapMax);
        std::unique_lock hold(sleep_);
        if (ends_.wait_for(hold, std::chrono::nanoseconds(nap), [this] { return ended_; })) return;
    }
}

int open_domain(fid_fabric*, fi_info* info, fid_domain** out, void* context) noexcept {
    const fi_threading model = info->domain_attr->threading;
    const bool serialised = model == FI_THREAD_DOMAIN || model == FI_THREAD_COMPLETION;
    const bool automatic = info->domain_attr->data_progress == FI_PROGRESS_AUTO ||
                           info->domain_attr->control_progress == FI_PROGRESS_AUTO;
    const int memory = info->domain_attr->mr_mode;
    const RegionTable::Mode mode{
        memory == kMemoryBasic || (memory & FI_MR_VIRT_ADDR) != 0,
        memory == kMemoryBasic || (memory & FI_MR_PROV_KEY) != 0,
    };
    auto* domain = new (std::nothrow) Domain(!serialised || automatic, mode);
    if (domain == nullptr) return -FI_ENOMEM;
    try {
        if (automatic) domain->start_progress();
    } catch (const std::system_error&) {
        delete domain;
        return -FI_EAGAIN;
    }
    domain->fid = {FI_CLASS_DOMAIN, context, &domain_fid_ops};
    domain->ops = &domain_ops;
    domain->mr = &memory_entries();
    *out = domain;
    return 0;
}

}  // namespace ulc::ofi
