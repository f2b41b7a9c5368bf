// SPDX-License-Identifier: BSD-3-Clause
// The entries of ulc_names.h, and the wait until an endpoint is open for links.
#include <algorithm>
#include <cstring>

#include "abi/records.h"
#include "client/blocking.h"
#include "client/error_text.h"
#include "client/ulc_names.h"

using ulc::Nanos;
using ulc::abi::NamedAddress;

namespace ulc::client {

int wait_until_open(ulc_endpoint& ep, Nanos deadline) {
    int error = ULC_OK;
    while ((error = ep.membership().job_state()) == ULC_ERR_AGAIN) {
        error = ep.waiter.wait(left_of(ep, deadline));
        if (error != ULC_OK && ep.membership().job_state() == ULC_ERR_AGAIN) return error;
    }
    if (error != ULC_OK)
        set_last_error("links: %s: %s", ulc_error_text(error), ep.membership().job_text().c_str());
    return error;
}

}  // namespace ulc::client

extern "C" {

int ulc_link_name(const char* name, const void* secret, ulc_link_address* out) {
    static_assert(ULC_NAME_BYTES == sizeof NamedAddress::name);
    static_assert(ULC_NAME_SECRET_BYTES == sizeof NamedAddress::secret);
    if (name == nullptr || secret == nullptr || out == nullptr) return ULC_ERR_INVALID;
    const std::size_t octets = strnlen(name, ULC_NAME_BYTES + 1);
    if (octets == 0 || octets > ULC_NAME_BYTES) return ULC_ERR_INVALID;
    NamedAddress named{};
    std::memcpy(named.name, name, octets);
    std::memcpy(named.secret, secret, sizeof named.secret);
    const auto is_zero = [](unsigned char octet) { return octet == 0; };
    if (std::ranges::all_of(named.secret, is_zero)) return ULC_ERR_INVALID;
    std::memcpy(out->bytes, &named, sizeof named);
    return ULC_OK;
}

int ulc_open_links_as(ulc_endpoint* ep, uint16_t links, const ulc_link_address* name) {
    if (ep == nullptr || name == nullptr) return ULC_ERR_INVALID;
    return ep->membership().open_links_as(links, *name);
}

int ulc_open_links_as_wait(ulc_endpoint* ep, uint16_t links, const ulc_link_address* name,
                           int64_t timeout_ns) {
    if (ep == nullptr || name == nullptr || timeout_ns < 0) return ULC_ERR_INVALID;
    const Nanos deadline = ulc::client::deadline_in(*ep, timeout_ns);
    const int error = ulc_open_links_as(ep, links, name);
    return error != ULC_OK ? error : ulc::client::wait_until_open(*ep, deadline);
}

}  // extern "C"
