// SPDX-License-Identifier: BSD-3-Clause
// Takes from the running engine what it needs only to start: capabilities, and system calls that an
// engine never makes. Used by ulc-engine after its threads run; an embedded engine has no sandbox,
// since it belongs to the application.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace ulc::daemon {

/// Things that the ports of an engine use after the start.
struct SandboxNeeds {
    bool packet_socket = false;      ///< af_packet: opened again after its interface was lost
    bool kernel_interface = false;   ///< tap, --exception
    bool udp = false;                ///< a UDP socket: asked how much of it has not left
    bool rdma = false;               ///< a verbs device: objects are made by ioctl()
    bool upgrades = true;            ///< another engine core may be loaded
    bool card = false;               ///< a PCI device: its driver decides what it calls
    std::vector<std::string> paths;  ///< sockets that are made, removed or connected to later
};

enum class SandboxMode : std::uint8_t {
    kAuto,  ///< as much as this system offers
    kYes,   ///< all of it, or an error
    kNo,
};

/// Returns the needs of these devices, in the form of --device without the name of the net.
[[nodiscard]] SandboxNeeds needs_of(const std::vector<std::string>& devices, bool exception,
                                    const std::string& attach_socket);

/// Restricts every thread of this process, for good: no_new_privs, only the capabilities that the
/// needs ask for, a system call filter. report: one line for the log. Takes a few milliseconds.
/// Errors: kUnsupported (kYes, and a part is not possible here); why: a sentence with what to do.
Err enter_sandbox(SandboxMode mode, const SandboxNeeds& needs, std::string& report,
                  std::string& why);

/// Filters the system calls of all threads (syscall_filter.cc). False: not possible; why: a reason.
bool filter_system_calls(const SandboxNeeds& needs, std::string& why);

}  // namespace ulc::daemon
