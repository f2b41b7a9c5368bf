#include "ofi/domain.h"

#include <new>

#include "ofi/addresses.h"
#include "ofi/completions.h"
#include "ofi/counter.h"
#include "ofi/endpoint.h"
#include "ofi/fabric.h"
#include "ofi/not_there.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;

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
    kNotThere,  // poll_open
    kNotThere,  // stx_ctx
    kNotThere,  // srx_ctx
    kNotThere,  // query_atomic
    kNotThere,  // query_collective
    [](fid_domain* domain, fi_info* info, fid_ep** out, std::uint64_t flags, void* context) -> int {
        return flags != 0 ? -FI_EBADFLAGS : open_endpoint(domain, info, out, context);
    },
};
/// Memory that is registered for local use. Nothing needs it; applications may do it anyway.
struct Memory : fid_mr {
    Domain& domain;
};

int close_memory(fid* handle) noexcept {
    auto& memory = object_of<Memory, fid_mr>(handle);
    --memory.domain.users;
    delete &memory;
    return 0;
}

fi_ops memory_fid_ops = {sizeof(fi_ops), close_memory, kNotThere, kNotThere,
                         kNotThere,      kNotThere,    kNotThere};

int register_memory(fid* in, std::uint64_t access, std::uint64_t key, std::uint64_t flags,
                    fid_mr** out, void* context) noexcept {
    if (flags != 0) return -FI_EBADFLAGS;
    if ((access & ~(FI_SEND | FI_RECV)) != 0) return -FI_ENOSYS;  // there is no RMA
    auto& domain = object_of<Domain, fid_domain>(in);
    auto* memory = new (std::nothrow) Memory{{}, domain};
    if (memory == nullptr) return -FI_ENOMEM;
    memory->fid = {FI_CLASS_MR, context, &memory_fid_ops};
    memory->key = key;
    ++domain.users;
    *out = memory;
    return 0;
}

fi_ops_mr memory_ops = {
    sizeof(fi_ops_mr),
    [](fid* in, const void*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t key,
       std::uint64_t flags, fid_mr** out,
       void* context) -> int { return register_memory(in, access, key, flags, out, context); },
    [](fid* in, const iovec*, std::size_t, std::uint64_t access, std::uint64_t, std::uint64_t key,
       std::uint64_t flags, fid_mr** out,
       void* context) -> int { return register_memory(in, access, key, flags, out, context); },
    [](fid* in, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** out) -> int {
        return register_memory(in, attr->access, attr->requested_key, flags, out, attr->context);
    },
};

}  // namespace

int open_domain(fid_fabric*, fi_info* info, fid_domain** out, void* context) noexcept {
    const fi_threading model = info->domain_attr->threading;
    const bool serialised = model == FI_THREAD_DOMAIN || model == FI_THREAD_COMPLETION;
    auto* domain = new (std::nothrow) Domain(!serialised);
    if (domain == nullptr) return -FI_ENOMEM;
    domain->fid = {FI_CLASS_DOMAIN, context, &domain_fid_ops};
    domain->ops = &domain_ops;
    domain->mr = &memory_ops;
    *out = domain;
    return 0;
}

}  // namespace ulc::ofi
