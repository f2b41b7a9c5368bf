// The kernel asks for a card back that is behind an IOMMU, when somebody takes it out or unbinds it, and waits until this
// process has let go of it. A card of uio goes without being asked for: its driver notices.
#pragma once

#include <atomic>
#include <string>

namespace ulc::dpdk {

class CardRequest {
public:
    /// Hears of the card `address` from now on.
    explicit CardRequest(std::string address);
    ~CardRequest();
    CardRequest(const CardRequest&) = delete;
    CardRequest& operator=(const CardRequest&) = delete;

    /// Whether the kernel wants it. Any thread.
    [[nodiscard]] bool came() const noexcept { return came_.load(std::memory_order_relaxed); }

    /// Gives the card back, and says so in the log. Its port is closed; on EAL's interrupt thread, where the driver's own
    /// handlers run.
    void give_back() const;

private:
    std::string address_;
    std::atomic<bool> came_{false};
};

}  // namespace ulc::dpdk
