// SPDX-License-Identifier: BSD-3-Clause
// struct fid_av: the addresses of peers. An fi_addr_t is an index here, in maps and tables alike.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "ofi/domain.h"
#include "ofi/peers/job.h"

namespace ulc::ofi {

class Endpoint;

class AddressVector : public fid_av {
public:
    AddressVector(Domain& in, fi_av_type type) noexcept : fid_av{}, domain(in), type_(type) {}

    /// Calls visit(address) for each.
    template <typename Visit>
    void each(Visit visit) const {
        const std::lock_guard hold(mutex_);
        for (const Slot& slot : slots_)
            if (slot.used) visit(slot.address);
    }
    /// Adds an address, and tells the endpoints. May throw std::bad_alloc.
    [[nodiscard]] fi_addr_t add(const Address& address);
    /// Removes an address; false: it is not there.
    [[nodiscard]] bool remove(fi_addr_t index) noexcept;
    /// False: it is not there.
    [[nodiscard]] bool find(fi_addr_t index, Address& out) const noexcept;
    /// Returns the first index of an address; FI_ADDR_NOTAVAIL: it is not there.
    [[nodiscard]] fi_addr_t index_of(const Address& address) const noexcept;

    void attach(Endpoint& endpoint) {
        const std::lock_guard hold(mutex_);
        endpoints_.push_back(&endpoint);
    }
    void detach(Endpoint& endpoint) noexcept {
        const std::lock_guard hold(mutex_);
        std::erase(endpoints_, &endpoint);
    }
    /// Makes the endpoints forget an address. The caller serialises them.
    void tell_removed(fi_addr_t index) noexcept;
    [[nodiscard]] bool in_use() const noexcept {
        const std::lock_guard hold(mutex_);
        return !endpoints_.empty();
    }
    [[nodiscard]] fi_av_type type() const noexcept { return type_; }

    Domain& domain;

private:
    struct Slot {
        Address address;
        bool used;
    };

    const fi_av_type type_;
    /// Endpoints of several completion queues may ask at once although the domain has no lock.
    mutable std::mutex mutex_;
    std::vector<Slot> slots_;
    std::vector<fi_addr_t> free_;
    std::map<Address, fi_addr_t> indices_;  ///< by Job::identity_of()
    std::vector<Endpoint*> endpoints_;
};

int open_addresses(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* context) noexcept;

}  // namespace ulc::ofi
