// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/peers/addresses.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "ofi/endpoint.h"
#include "ofi/fabric.h"
#include "ofi/not_there.h"
#include "ofi/say.h"

namespace ulc::ofi {

fi_addr_t AddressVector::add(const Address& address) {
    const std::lock_guard hold(mutex_);
    fi_addr_t index = slots_.size();
    if (free_.empty()) {
        slots_.push_back({address, true});
    } else {
        index = free_.back();
        free_.pop_back();
        slots_[index] = {address, true};
    }
    indices_.try_emplace(Job::identity_of(address), index);
    for (Endpoint* endpoint : endpoints_)
        endpoint->peers().meet(address);
    return index;
}

bool AddressVector::remove(fi_addr_t index) noexcept {
    const std::lock_guard hold(mutex_);
    if (index >= slots_.size() || !slots_[index].used) return false;
    slots_[index].used = false;
    const auto known = indices_.find(Job::identity_of(slots_[index].address));
    if (known != indices_.end() && known->second == index) indices_.erase(known);
    free_.push_back(index);
    return true;
}

bool AddressVector::find(fi_addr_t index, Address& out) const noexcept {
    const std::lock_guard hold(mutex_);
    if (index >= slots_.size() || !slots_[index].used) return false;
    out = slots_[index].address;
    return true;
}

void AddressVector::tell_removed(fi_addr_t index) noexcept {
    const std::lock_guard hold(mutex_);
    for (Endpoint* endpoint : endpoints_)
        endpoint->peers().forget(index);
}

fi_addr_t AddressVector::index_of(const Address& address) const noexcept {
    const std::lock_guard hold(mutex_);
    const auto known = indices_.find(Job::identity_of(address));
    return known != indices_.end() ? known->second : FI_ADDR_NOTAVAIL;
}

namespace {

constexpr NotThere kNotThere;

AddressVector& vector_of(fid_av* av) noexcept { return *static_cast<AddressVector*>(av); }

/// Prints an objection, unless the last one was the same.
void say_once(const std::string& objection) {
    static std::mutex guard;
    static std::string last;
    const std::lock_guard hold(guard);
    if (objection == last) return;
    last = objection;
    say("an address was refused: %s", objection.c_str());
}

/// Returns 0 or the FI_E… with which an address is refused, after a sentence that says why.
int refuse(const Address& address) {
    std::string reason;
    const Job* job = Job::of_process(&reason);
    const char* objection = job == nullptr ? reason.c_str() : job->objection(address);
    if (objection == nullptr) return 0;
    say_once(objection);
    return FI_EINVAL;
}

int insert(fid_av* av, const void* addresses, std::size_t count, fi_addr_t* out,
           std::uint64_t flags, void* context) noexcept {
    if ((flags & ~(FI_MORE | FI_SYNC_ERR)) != 0) return -FI_EBADFLAGS;
    AddressVector& vector = vector_of(av);
    if (addresses == nullptr || (out == nullptr && vector.type() == FI_AV_MAP)) return -FI_EINVAL;
    auto* errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
    const Guard hold(vector.domain.lock);
    int added = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Address address;
        std::memcpy(address.data(),
                    static_cast<const unsigned char*>(addresses) + i * address.size(),
                    address.size());
        fi_addr_t index = FI_ADDR_NOTAVAIL;
        int error = refuse(address);
        try {
            if (error == 0) index = vector.add(address);
        } catch (const std::bad_alloc&) {
            error = FI_ENOMEM;
        }
        added += error == 0 ? 1 : 0;
        if (out != nullptr) out[i] = index;
        if (errors != nullptr) errors[i] = error;
    }
    return added;
}

int remove(fid_av* av, fi_addr_t* indices, std::size_t count, std::uint64_t flags) noexcept {
    if (flags != 0) return -FI_EBADFLAGS;
    AddressVector& vector = vector_of(av);
    const Guard hold(vector.domain.lock);
    for (std::size_t i = 0; i < count; ++i) {
        if (!vector.remove(indices[i])) return -FI_EINVAL;
        vector.tell_removed(indices[i]);
    }
    return 0;
}

int look_up(fid_av* av, fi_addr_t index, void* address, std::size_t* length) noexcept {
    AddressVector& vector = vector_of(av);
    const Guard hold(vector.domain.lock);
    Address found;
    if (!vector.find(index, found)) return -FI_EINVAL;
    std::memcpy(address, found.data(), std::min(*length, found.size()));
    *length = found.size();
    return 0;
}

const char* to_text(fid_av*, const void* address, char* out, std::size_t* length) noexcept {
    static constexpr char kDigits[] = "0123456789abcdef";
    char text[2 * kAddressBytes + 8] = "ulc://";
    char* end = text + 6;
    for (std::size_t i = 0; i < kAddressBytes; ++i) {
        const unsigned char byte = static_cast<const unsigned char*>(address)[i];
        *end++ = kDigits[byte >> 4];
        *end++ = kDigits[byte & 15];
    }
    *end++ = '\0';
    const auto needed = static_cast<std::size_t>(end - text);
    if (*length > 0) {
        std::memcpy(out, text, std::min(*length, needed));
        out[std::min(*length, needed) - 1] = '\0';
    }
    *length = needed;
    return out;
}

int close_addresses(fid* handle) noexcept {
    auto& vector = object_of<AddressVector, fid_av>(handle);
    if (vector.in_use()) return -FI_EBUSY;
    --vector.domain.users;
    delete &vector;
    return 0;
}

fi_ops fid_ops = {sizeof(fi_ops), close_addresses, kNotThere, kNotThere,
                  kNotThere,      kNotThere,       kNotThere};
fi_ops_av av_ops = {sizeof(fi_ops_av), insert,  kNotThere, kNotThere, remove,
                    look_up,           to_text, kNotThere};

}  // namespace

int open_addresses(fid_domain* domain, fi_av_attr* attr, fid_av** out, void* context) noexcept {
    // Neither addresses that arrive later (FI_EVENT) nor a vector shared between processes.
    if (attr->flags != 0 || attr->name != nullptr || attr->rx_ctx_bits != 0) return -FI_ENOSYS;
    if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
    auto& in = *static_cast<Domain*>(domain);
    auto* vector = new (std::nothrow) AddressVector(in, attr->type);
    if (vector == nullptr) return -FI_ENOMEM;
    vector->fid = {FI_CLASS_AV, context, &fid_ops};
    vector->ops = &av_ops;
    ++in.users;
    *out = vector;
    return 0;
}

}  // namespace ulc::ofi
