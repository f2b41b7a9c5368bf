// SPDX-License-Identifier: BSD-3-Clause
#include "ports/endpoints.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::ports {

void Endpoints::add(ulc_endpoint* ep) noexcept {
    ULC_CHECK(count_ < kMost);
    all_[count_++] = ep;
}

void Endpoints::remove(ulc_endpoint* ep) noexcept {
    const auto end = all_.begin() + count_;
    count_ = static_cast<unsigned>(std::remove(all_.begin(), end, ep) - all_.begin());
}

void Endpoints::promise(const ulc_endpoint* except) noexcept {
    changes_ = true;
    for (ulc_endpoint* ep : all())
        if (ep != except) static_cast<void>(ulc_promise(ep, 1));
    changes_ = false;
}

int Endpoints::revoke(const ulc_endpoint* except) noexcept {
    was_interrupted_ = false;
    changes_ = true;
    int error = ULC_OK;
    for (unsigned n = count_; n > 0 && error == ULC_OK; --n)
        if (all_[n - 1] != except) error = ulc_promise(all_[n - 1], 0);
    changes_ = false;
    if (error == ULC_OK && was_interrupted_) error = ULC_ERR_AGAIN;
    if (error != ULC_OK) promise(except);
    return error;
}

bool Endpoints::was_put_off(ulc_endpoint* from) noexcept {
    if (!changes_) return false;
    was_interrupted_ = true;
    static_cast<void>(ulc_promise(from, 1));
    return true;
}

bool Endpoints::borrow() noexcept {
    for (unsigned n = 0; n < count_; ++n) {
        if (ulc_borrow(all_[n]) == ULC_OK) continue;
        while (n-- > 0)
            static_cast<void>(ulc_give_back(all_[n], 0));
        return false;
    }
    return true;
}

void Endpoints::give_back(bool interrupt) noexcept {
    for (unsigned n = count_; n > 0; --n)
        static_cast<void>(ulc_give_back(all_[n - 1], interrupt && n == 1 ? 1 : 0));
}

int Endpoints::poll(const ulc_endpoint* except) noexcept {
    int events = 0;
    for (ulc_endpoint* ep : all())
        if (ep != except) events += std::max(ulc_poll(ep), 0);
    return events;
}

}  // namespace ulc::ports
