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
fi_ops_mr memory_ops = {sizeof(fi_ops_mr), kNotThere, kNotThere, kNotThere};

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
