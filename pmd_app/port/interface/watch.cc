// SPDX-License-Identifier: BSD-3-Clause
#include "port/interface/watch.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::port {

void InterfaceWatch::begin(const InterfaceCalls& calls, const std::string& name, int index,
                           const Mac& mac, std::uint16_t mtu) {
    ULC_CHECK(index > 0);
    calls_ = calls;
    index_ = index;
    port_mtu_ = mtu;
    state_ = {.name = name, .mac = mac, .own = mac, .keeps_own = true, .mtu = mtu};
}

/// The name is looked up again only if the index is gone: a renamed interface keeps its index, and
/// another one may have its name.
bool InterfaceWatch::read(InterfaceReading& out) {
    if (calls_.read(calls_.context, index_, out)) return true;
    const int index = calls_.find(calls_.context, state_.name);
    if (index == 0 || !calls_.bind(calls_.bind_context, index)) return false;
    index_ = index;
    state_.mac = {};  // what was asked of the old interface does not hold for this one
    return calls_.read(calls_.context, index_, out);
}

bool InterfaceWatch::look() {
    InterfaceReading reading;
    if (!read(reading)) return false;
    state_.name = reading.name;
    if (reading.mtu > 0)
        state_.mtu = static_cast<std::uint16_t>(std::min<int>(reading.mtu, port_mtu_));
    if (reading.mac != state_.mac) {
        state_.mac = reading.mac;
        state_.keeps_own =
            state_.mac == state_.own || calls_.keep_address(calls_.context, index_, state_.own);
    }
    return reading.running;
}

void InterfaceWatch::take_address() noexcept {
    state_.own = state_.mac;
    state_.keeps_own = true;
}

}  // namespace ulc::port
