// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/running_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace ulc::ofi {
namespace {

/// Later versions append fields to libfabric's structs.
constexpr std::size_t kSlack = 512;

/// Finds a function of the running library, in its default version. An MPI may have loaded
/// libfabric for itself alone (RTLD_LOCAL), so the global scope does not suffice.
void* find(const char* name) noexcept {
    if (void* found = dlsym(RTLD_DEFAULT, name); found != nullptr) return found;
    void* library = dlopen("libfabric.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) library = dlopen("libfabric.so.2", RTLD_LAZY | RTLD_NOLOAD);
    return library == nullptr ? nullptr : dlsym(library, name);
}

template <class T>
T* allocate() noexcept {
    return static_cast<T*>(std::calloc(1, sizeof(T) + kSlack));
}

}  // namespace

std::uint32_t running_version() noexcept {
    auto* version = reinterpret_cast<decltype(&fi_version)>(find("fi_version"));
    return version != nullptr ? version() : FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

fi_info* allocate_info() noexcept {
    auto* duplicate = reinterpret_cast<decltype(&fi_dupinfo)>(find("fi_dupinfo"));
    if (duplicate != nullptr) return duplicate(nullptr);
    // A libfabric inside of another library shows no symbol. It frees each part by free().
    auto* info = allocate<fi_info>();
    if (info == nullptr) return nullptr;
    info->tx_attr = allocate<fi_tx_attr>();
    info->rx_attr = allocate<fi_rx_attr>();
    info->ep_attr = allocate<fi_ep_attr>();
    info->domain_attr = allocate<fi_domain_attr>();
    info->fabric_attr = allocate<fi_fabric_attr>();
    if (info->tx_attr != nullptr && info->rx_attr != nullptr && info->ep_attr != nullptr &&
        info->domain_attr != nullptr && info->fabric_attr != nullptr)
        return info;
    free_info(info);
    return nullptr;
}

void free_info(fi_info* info) noexcept {
    if (info == nullptr) return;
    if (info->domain_attr != nullptr) std::free(info->domain_attr->name);
    if (info->fabric_attr != nullptr) std::free(info->fabric_attr->name);
    std::free(info->dest_addr);
    std::free(info->tx_attr);
    std::free(info->rx_attr);
    std::free(info->ep_attr);
    std::free(info->domain_attr);
    std::free(info->fabric_attr);
    std::free(info);
}

}  // namespace ulc::ofi
