// SPDX-License-Identifier: BSD-3-Clause
// Tells systemd how the daemon is doing: ready, alive, stopping (sd_notify(3), Type=notify).
//
// The messages are datagrams to the socket that NOTIFY_SOCKET names. libsystemd opens a socket for
// each message; here it is opened once, before the sandbox closes the way to it. Without systemd
// every function does nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/units.h"

namespace ulc::daemon {

class ServiceManager {
public:
    /// Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment, so that no child
    /// inherits them. If the socket cannot be used, `why` says so and nothing is sent later.
    explicit ServiceManager(std::string& why);
    ~ServiceManager();
    ServiceManager(const ServiceManager&) = delete;
    ServiceManager& operator=(const ServiceManager&) = delete;

    /// Clients may attach. The status is one line for `systemctl status`.
    void ready(std::string_view status) noexcept;
    /// Restarts the watchdog's clock.
    void alive() noexcept;
    /// The engine drains and ends. The watchdog does not apply any more.
    void stopping() noexcept;

    /// Time between two calls of alive(): half of what the unit grants. kNever: no watchdog.
    [[nodiscard]] Nanos interval() const noexcept { return interval_; }

private:
    void send(std::string_view message, int flags) noexcept;

    int socket_ = -1;
    Nanos interval_ = kNever;
};

}  // namespace ulc::daemon
