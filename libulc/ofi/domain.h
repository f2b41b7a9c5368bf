// SPDX-License-Identifier: BSD-3-Clause
// struct fid_domain. Its lock serialises all objects of the domain if the application asked for a
// threading model that needs it, or for progress without its calls: then a thread polls the
// endpoints of the domain, and sleeps while nothing comes.
#pragma once

#include <rdma/fi_domain.h>

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "ofi/rma/regions.h"

namespace ulc::ofi {

class Lock {
public:
    explicit Lock(bool needed) noexcept : needed_(needed) {}
    void lock() {
        if (needed_) mutex_.lock();
    }
    void unlock() {
        if (needed_) mutex_.unlock();
    }

private:
    const bool needed_;
    std::mutex mutex_;
};

using Guard = std::lock_guard<Lock>;

class Endpoint;

class Domain : public fid_domain {
public:
    Domain(bool locked, RegionTable::Mode memory) noexcept
        : fid_domain{}, lock(locked), regions(memory) {}
    ~Domain();
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    /// Starts the thread that polls the endpoints. May throw std::system_error.
    void start_progress();
    /// The caller has the lock.
    void attach(Endpoint& endpoint) { endpoints_.push_back(&endpoint); }
    void detach(Endpoint& endpoint) noexcept { std::erase(endpoints_, &endpoint); }

    /// Ends the use of memory that is being closed, as far as libulc allows it: by peers, as a
    /// region, and by own operations that were given this descriptor. False: an engine that is
    /// stuck may still write to it.
    [[nodiscard]] bool forget(Region& region, const void* descriptor) noexcept;
    /// Polls the endpoints. Returns true if anything moved.
    bool progress() noexcept;

    Lock lock;
    RegionTable regions;
    std::atomic<unsigned> users{0};  ///< objects that are open in it

private:
    void run() noexcept;

    std::vector<Endpoint*> endpoints_;
    std::thread thread_;
    pid_t process_ = 0;  ///< the process that has the thread
    std::mutex sleep_;
    std::condition_variable ends_;
    bool ended_ = false;
};

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** out, void* context) noexcept;

}  // namespace ulc::ofi
