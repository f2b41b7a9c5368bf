// SPDX-License-Identifier: BSD-3-Clause
// Follows the network interface of the kernel under a port: its name, its MAC address and its MTU
// may change while the engine runs, and it may be removed and made again. Used by the packet port
// and by DPDK's af_packet. The calls to the kernel are a table, so that tests script the readings.
//
//   look():  interface of this index? ──yes──▶ read it: name, running, MAC, MTU
//                 └──no──▶ interface of the last name? ──yes──▶ bind to it, then read it
//                               └──no──▶ down
//
// A port has one address for all of its jobs (PortInfo::mac). If the interface gets another one,
// the old address is kept: the interface is asked to pass frames for it, too. Interfaces that pass
// frames for their own address alone cannot do so, and lose it. Engine thread only.
#pragma once

#include <cstdint>
#include <string>

#include "port/port.h"
#include "wire/ids.h"

namespace ulc::port {

struct InterfaceReading {
    std::string name;  ///< present name
    Mac mac;
    int mtu = 0;           ///< 0: not told
    bool running = false;  ///< up, with a carrier
};

/// Calls to the kernel about an interface.
struct InterfaceCalls {
    void* context = nullptr;
    /// Reads the interface of that index. False: there is none.
    bool (*read)(void* context, int index, InterfaceReading& out) = nullptr;
    /// Returns the index of the interface of that name; 0: there is none.
    int (*find)(void* context, const std::string& name) = nullptr;
    /// Makes the port one of that interface. False: it cannot be. Has its context.
    bool (*bind)(void* context, int index) = nullptr;
    void* bind_context = nullptr;
    /// Lets that interface pass frames for an address besides its own, from now on. False: it
    /// cannot.
    bool (*keep_address)(void* context, int index, const Mac& address) = nullptr;
};

class InterfaceWatch {
public:
    /// Begins with the interface that the port was opened on. mac: the port's address; mtu: the
    /// port's, in bytes behind the Ethernet header.
    void begin(const InterfaceCalls& calls, const std::string& name, int index, const Mac& mac,
               std::uint16_t mtu);
    /// Reads the interface. True: it is up and has a carrier.
    [[nodiscard]] bool look();
    /// Returns what the last look found.
    [[nodiscard]] const InterfaceState& state() const noexcept { return state_; }
    /// The interface's address becomes the port's.
    void take_address() noexcept;

private:
    [[nodiscard]] bool read(InterfaceReading& out);

    InterfaceCalls calls_;
    int index_ = 0;
    std::uint16_t port_mtu_ = 0;
    InterfaceState state_;
};

}  // namespace ulc::port
