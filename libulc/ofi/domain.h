// struct fid_domain. Its lock serialises all objects of the domain if the application asked for a
// threading model that needs it.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <mutex>

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

struct Domain : fid_domain {
    explicit Domain(bool locked) noexcept : fid_domain{}, lock(locked) {}
    Lock lock;
    std::atomic<unsigned> users{0};  ///< objects that are open in it
};

using Guard = std::lock_guard<Lock>;

int open_domain(fid_fabric* fabric, fi_info* info, fid_domain** out, void* context) noexcept;

}  // namespace ulc::ofi
