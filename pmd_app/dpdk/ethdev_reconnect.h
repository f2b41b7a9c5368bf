// SPDX-License-Identifier: BSD-3-Clause
// The part of an EthdevPort that EAL's interrupt thread shares: it stops, starts and closes the
// device there, so that no handler of the driver runs at the same time.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "dpdk/card_request.h"
#include "dpdk/ethdev_port.h"

namespace ulc::dpdk {

[[nodiscard]] inline bool is_memif_server(const DeviceSpec& spec) {
    return spec.kind == DeviceKind::kMemif && spec.argument("role").value_or("client") == "server";
}

struct EthdevPort::Reconnect {
    std::uint16_t id = 0;
    std::atomic<bool> done{true};
    bool closing = false;                  ///< stop for good
    bool keep = false;                     ///< and do not close: parked.h
    const CardRequest* request = nullptr;  ///< after closing the card is given back
    bool started = false;                  ///< valid when done
    Nanos tried_at = 0;                    ///< for the engine's thread alone
    bool been_up = false;                  ///< since the last try; for the engine's thread alone

    /// Lets EAL's interrupt thread call run(). False: it will not.
    [[nodiscard]] bool ask();
    /// False: that thread did not come to an end of it (interrupt_thread.h).
    [[nodiscard]] bool wait() const;
    static void run(void* context);
};

}  // namespace ulc::dpdk
