// SPDX-License-Identifier: BSD-3-Clause
// The multicast addresses to which one net's port listens, and for how many groups each. The port
// is notified of changes once, at the end of the round in which they were made.
//
//   address    03:55:4c and 24 bits (base/address_plan.h); broadcast needs no place
//   places     the number that the port compares. The world groups of jobs take theirs without
//              asking; if they are too many, the port passes all multicasts until some have ended
#pragma once

#include <cstdint>
#include <vector>

#include "base/address_plan.h"
#include "base/counters.h"
#include "port/port.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

[[nodiscard]] Mac mac_of_address(AddressId address) noexcept;

class MulticastFilter {
public:
    /// `places`: PortInfo::multicast_filters.
    explicit MulticastFilter(std::uint16_t places) : places_(places) {}

    /// Returns true if one more group with this address can listen.
    [[nodiscard]] bool has_room(AddressId address) const noexcept {
        return address == kBroadcastAddress || listens(address) || listened_.size() < places_;
    }
    [[nodiscard]] bool listens(AddressId address) const noexcept;
    /// Listens for one group more.
    void listen(AddressId address);
    void release(AddressId address) noexcept;

    /// Notifies the port of the changes.
    void settle(const Port& port, Counters& counters) {
        if (changed_) [[unlikely]]
            tell(port, counters);
    }
    void fields(state::Archive& archive);
    /// Returns why a group frame to this address came, of which no member is here.
    [[nodiscard]] Counter reason_of_unwanted(const Mac& destination) const noexcept;

private:
    void tell(const Port& port, Counters& counters);

    struct Listened {
        AddressId address;
        std::uint32_t groups;
        void fields(state::Archive& archive);
    };
    std::vector<Listened> listened_;
    std::uint16_t places_;
    std::uint16_t told_ = 0;  ///< addresses in use, as counted
    bool changed_ = false;
};

}  // namespace ulc::engine
