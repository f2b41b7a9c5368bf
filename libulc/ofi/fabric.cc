// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/fabric.h"

#include <time.h>

#include <new>

#include "ofi/domain.h"
#include "ofi/not_there.h"
#include "ofi/queues/completions.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;

struct EventQueue : fid_eq {
    bool has_wait;
};

int close_event_queue(fid* handle) noexcept {
    delete &object_of<EventQueue, fid_eq>(handle);
    return 0;
}

ssize_t wait_for_event(fid_eq*, std::uint32_t*, void*, std::size_t, int timeout,
                       std::uint64_t) noexcept {
    // Nothing can come. A wait without limit returns too, rather than never.
    const int ms = timeout < 0 || timeout > 1000 ? 1000 : timeout;
    const timespec pause{ms / 1000, (ms % 1000) * 1'000'000L};
    ::nanosleep(&pause, nullptr);
    return -FI_EAGAIN;
}

fi_ops event_queue_fid_ops = {sizeof(fi_ops), close_event_queue, kNotThere, kNotThere,
                              kNotThere,      kNotThere,         kNotThere};
fi_ops_eq event_queue_ops = {
    sizeof(fi_ops_eq),
    [](fid_eq*, std::uint32_t*, void*, std::size_t, std::uint64_t) -> ssize_t {
        return -FI_EAGAIN;
    },
    [](fid_eq*, fi_eq_err_entry*, std::uint64_t) -> ssize_t { return -FI_EAGAIN; },
    kNotThere,
    wait_for_event,
    [](fid_eq*, int, const void*, char*, std::size_t) -> const char* { return "no error"; },
};

int open_event_queue(fid_fabric*, fi_eq_attr*, fid_eq** out, void* context) noexcept {
    auto* queue = new (std::nothrow) EventQueue{};
    if (queue == nullptr) return -FI_ENOMEM;
    queue->fid = {FI_CLASS_EQ, context, &event_queue_fid_ops};
    queue->ops = &event_queue_ops;
    *out = queue;
    return 0;
}

struct Fabric : fid_fabric {};

int close_fabric(fid* handle) noexcept {
    delete &object_of<Fabric, fid_fabric>(handle);
    return 0;
}

fi_ops fabric_fid_ops = {sizeof(fi_ops), close_fabric, kNotThere, kNotThere,
                         kNotThere,      kNotThere,    kNotThere};
fi_ops_fabric fabric_ops = {
    sizeof(fi_ops_fabric),
    open_domain,
    kNotThere,
    open_event_queue,
    kNotThere,
    try_wait,
    [](fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags, void* context)
        -> int { return flags != 0 ? -FI_EBADFLAGS : open_domain(fabric, info, domain, context); },
};

}  // namespace

int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* context) noexcept {
    auto* fabric = new (std::nothrow) Fabric{};
    if (fabric == nullptr) return -FI_ENOMEM;
    fabric->fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops};
    fabric->ops = &fabric_ops;
    fabric->api_version = attr->api_version;
    *out = fabric;
    return 0;
}

}  // namespace ulc::ofi
