// SPDX-License-Identifier: BSD-3-Clause
// The kinds of wires, and an open port of one. wires.def lists the kinds, so options, node and
// sandbox know none by its name. Used while an engine starts and ends: rounds go through the Port
// table alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dpdk/ethdev_port.h"
#include "ip/device.h"
#include "main/sandbox/sandbox.h"
#include "port/port.h"
#include "seal/tokens.h"

namespace ulc::daemon {

/// An open port.
class Wire {
public:
    virtual ~Wire() = default;
    Wire(const Wire&) = delete;
    Wire& operator=(const Wire&) = delete;

    [[nodiscard]] virtual const Port& table() const noexcept = 0;
    [[nodiscard]] virtual std::string name() const = 0;
    /// Returns the kernel's interface for frames that are not ours; empty: there is none.
    [[nodiscard]] virtual std::string exception_interface() const { return {}; }
    /// Returns what the log says about frames that were carried; empty: nothing. Call it after the
    /// engine's thread has ended.
    [[nodiscard]] virtual std::string traffic() const { return {}; }
    /// Returns the same about frames that were lost.
    [[nodiscard]] virtual std::string losses() const { return {}; }
    /// Releases what belongs to the parent, in a child of fork().
    virtual void abandon() noexcept {}

    // A wire that does not find other nodes itself, or whose frames are sealed (Node).
    [[nodiscard]] virtual std::string addresses() const { return {}; }
    virtual void meet(std::span<const udp::Address>) {}
    [[nodiscard]] virtual bool add_secret(std::span<const std::uint8_t, 16>) noexcept {
        return true;
    }
    [[nodiscard]] virtual bool needs_secret() const noexcept { return false; }

protected:
    Wire() = default;
};

struct WireOptions {
    dpdk::PortOptions port;
    std::string seal;            ///< key file; "job": add_secret() brings the key; empty: open
    ip::DeviceSpec ip;           ///< the node's address on this wire; 0: frames have no IP
    bool takes_secrets = false;  ///< NodeOptions
    seal::Seed seed;             ///< known to this node alone
};

struct WireKind {
    /// Returns whether this string of --device, without the name of the net, is of this kind.
    bool (*takes)(std::string_view device) noexcept = nullptr;
    bool needs_eal = false;
    bool may_be_link = false;   ///< one of several links of a net
    bool seals_itself = false;  ///< its device names the key
    /// Returns why a port has no exception interface; nullptr: it may have one.
    const char* no_exception = nullptr;
    /// Returns why its frames cannot have IP around them; nullptr: they can.
    const char* no_ip = nullptr;
    /// Adds what the port uses after the start.
    void (*add_needs)(const std::string& device, SandboxNeeds& needs) = nullptr;
    /// Errors: those of the port; `why`: one sentence with the advice.
    Err (*open)(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) = nullptr;
};

/// Returns the kind of a device.
[[nodiscard]] const WireKind& wire_of(std::string_view device) noexcept;

/// Opens the port of the kind that the device names. Errors: those of WireKind::open; kInvalid: an
/// exception interface or IP is asked for that the kind does not have.
Err open_wire(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why);

/// Puts a wire whose frames are sealed around an open one (wires/sealed.cc). Errors: those of
/// sealed::SealedPort::open(); kInvalid: the key of a job, where no job brings one.
Err seal_wire(const WireOptions& options, std::unique_ptr<Wire>& wire, std::string& why);

/// Puts a net of UDP around an open wire (wires/ip.cc). Errors: those of ip::IpSocket::open() and
/// udp::UdpPort::open(); kInvalid: two keys, or the key of a job where no job brings one.
Err put_ip_around(const WireOptions& options, std::unique_ptr<Wire>& wire, std::string& why);

#define ULC_WIRE(name) extern const WireKind wire_##name;
#include "main/wires/wires.def"
#undef ULC_WIRE

}  // namespace ulc::daemon
