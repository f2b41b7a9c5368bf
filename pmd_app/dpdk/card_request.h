// SPDX-License-Identifier: BSD-3-Clause
// Handles the kernel's request for a card behind an IOMMU when it is removed or unbound. The kernel
// then waits until this process has released the card. For a card of uio there is no request: its
// driver notices the removal.
#pragma once

#include <atomic>
#include <string>

namespace ulc::dpdk {

class CardRequest {
public:
    /// Watches the card `address` from this call on.
    explicit CardRequest(std::string address);
    ~CardRequest();
    CardRequest(const CardRequest&) = delete;
    CardRequest& operator=(const CardRequest&) = delete;

    /// Returns true if the kernel requests the card. Any thread.
    [[nodiscard]] bool came() const noexcept { return came_.load(std::memory_order_relaxed); }

    /// Releases the card, and logs it. Its port is closed; runs on EAL's interrupt thread, where
    /// the driver's own handlers run.
    void give_back() const;

private:
    std::string address_;
    std::atomic<bool> came_{false};
};

}  // namespace ulc::dpdk
