// SPDX-License-Identifier: BSD-3-Clause
// The interface under a net's port at the last look: its link, its MTU, its MAC address.
// interface.cc answers to what has changed since.
#pragma once

#include <cstdint>
#include <utility>

#include "base/counters.h"
#include "base/units.h"
#include "port/port.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::engine {

class InterfaceWatch {
public:
    explicit InterfaceWatch(const PortInfo& port) noexcept : mtu_(port.mtu), mac_(port.mac) {}

    /// Asks the port for its link, whose changes are counted. A memif client connects again when it
    /// is asked.
    void look_at_link(const Port& port, Counters& counters, Nanos now);
    /// Returns when to look again.
    [[nodiscard]] Nanos due() const noexcept { return due_; }
    [[nodiscard]] bool link_is_up() const noexcept { return link_is_up_; }

    /// Returns the least of the port's MTU and its interface's.
    [[nodiscard]] std::uint16_t mtu() const noexcept { return mtu_; }
    /// Notes another one. Refusals of longer frames count from now on.
    void set_mtu(std::uint16_t mtu, const Port& port);
    /// Returns true if the interface has refused frames for that long because of its MTU, which
    /// then counts from the next refusal on. The port has Port::drops.
    [[nodiscard]] bool has_refused(const Port& port, Nanos patience, Nanos now);
    /// Notes the interface's address. Returns true if it is another one.
    bool note_mac(const Mac& mac) noexcept { return std::exchange(mac_, mac) != mac; }

    /// Begins where the core before this one ended, which has reported what is so now. refused:
    /// frames that were counted.
    void resume(const InterfaceState* interface, std::uint64_t refused) noexcept;
    void fields(state::Archive& archive);

private:
    /// Frames that the interface refuses while its MTU is below the port's.
    struct Refusals {
        std::uint64_t counted = 0;  ///< PortDrops::unsendable at the last look
        Nanos since = kNever;       ///< the first look that found some
        Nanos last = 0;             ///< the latest one
    };

    Nanos due_ = 0;
    bool link_is_up_ = true;
    std::uint16_t mtu_;
    Refusals refusals_;
    Mac mac_;
};

}  // namespace ulc::engine
