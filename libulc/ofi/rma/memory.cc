// SPDX-License-Identifier: BSD-3-Clause
// struct fid_mr: registration of memory.
#include <rdma/fi_errno.h>
#include <sched.h>

#include <new>

#include "ofi/domain.h"
#include "ofi/fabric.h"
#include "ofi/not_there.h"
#include "ofi/queues/completions.h"
#include "ofi/queues/counter.h"
#include "ofi/rma/regions.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;
constexpr std::uint64_t kRemote = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kAccess = FI_SEND | FI_RECV | FI_READ | FI_WRITE | kRemote;
/// Time in which replies that an engine of this process reads from memory may end before it stays
/// registered.
constexpr Nanos kCloseMax = 10 * kSecond;

struct Memory : fid_mr {
    explicit Memory(Domain& in) noexcept : fid_mr{}, domain(in) {}
    Domain& domain;
    Region region{};
    bool listed = false;
};

/// Replaces a counter of a region.
void count_by(std::atomic<Counter*>& place, Counter* counter) noexcept {
    if (counter != nullptr) ++counter->regions;
    if (Counter* before = place.exchange(counter); before != nullptr) --before->regions;
}

int close_memory(fid* handle) noexcept {
    auto& memory = object_of<Memory, fid_mr>(handle);
    if (memory.listed) memory.domain.regions.remove(memory.key);
    memory.listed = false;
    // A transfer under way reads or writes the memory, which its owner frees after this.
    if (!memory.domain.forget(memory.region, &memory)) return -FI_EBUSY;
    const Nanos deadline = now() + kCloseMax;
    while (memory.region.users > 0) {
        if (now() >= deadline) return -FI_EBUSY;
        if (!memory.domain.progress()) ::sched_yield();
    }
    count_by(memory.region.writes, nullptr);
    count_by(memory.region.reads, nullptr);
    --memory.domain.users;
    delete &memory;
    return 0;
}

int bind_counter(fid* handle, fid* object, std::uint64_t flags) noexcept {
    if (object->fclass != FI_CLASS_CNTR || (flags & ~kRemote) != 0) return -FI_ENOSYS;
    Region& region = object_of<Memory, fid_mr>(handle).region;
    auto& counter = object_of<Counter, fid_cntr>(object);
    if ((flags & FI_REMOTE_WRITE) != 0) count_by(region.writes, &counter);
    if ((flags & FI_REMOTE_READ) != 0) count_by(region.reads, &counter);
    return 0;
}

/// Memory is usable as soon as it is registered.
int control(fid*, int command, void*) noexcept { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

fi_ops memory_fid_ops = {sizeof(fi_ops), close_memory, bind_counter, control,
                         kNotThere,      kNotThere,    kNotThere};

int register_memory(fid* in, const iovec* pieces, std::size_t count, std::uint64_t access,
                    std::uint64_t key, std::uint64_t flags, fid_mr** out, void* context) noexcept {
    if ((flags & ~FI_RMA_EVENT) != 0) return -FI_EBADFLAGS;
    if (count != 1 || (access & ~kAccess) != 0) return -FI_EINVAL;
    auto& domain = object_of<Domain, fid_domain>(in);
    auto* memory = new (std::nothrow) Memory(domain);
    if (memory == nullptr) return -FI_ENOMEM;
    memory->fid = {FI_CLASS_MR, context, &memory_fid_ops};
    memory->key = key;
    memory->mem_desc = memory;
    memory->region.base = static_cast<unsigned char*>(pieces[0].iov_base);
    memory->region.length = pieces[0].iov_len;
    memory->region.access = access & kRemote;
    // Memory for local use needs no key, so two may have the same one.
    if (memory->region.access != 0) {
        if (const int error = domain.regions.add(memory->region, memory->key); error != 0) {
            delete memory;
            return error;
        }
        memory->listed = true;
    }
    ++domain.users;
    *out = memory;
    return 0;
}

fi_ops_mr memory_ops = {
    sizeof(fi_ops_mr),
    [](fid* in, const void* base, std::size_t length, std::uint64_t access, std::uint64_t,
       std::uint64_t key, std::uint64_t flags, fid_mr** out, void* context) -> int {
        const iovec piece{const_cast<void*>(base), length};
        return register_memory(in, &piece, 1, access, key, flags, out, context);
    },
    [](fid* in, const iovec* pieces, std::size_t count, std::uint64_t access, std::uint64_t,
       std::uint64_t key, std::uint64_t flags, fid_mr** out, void* context) -> int {
        return register_memory(in, pieces, count, access, key, flags, out, context);
    },
    [](fid* in, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** out) -> int {
        return register_memory(in, attr->mr_iov, attr->iov_count, attr->access, attr->requested_key,
                               flags, out, attr->context);
    },
};

}  // namespace

fi_ops_mr& memory_entries() noexcept { return memory_ops; }

}  // namespace ulc::ofi
