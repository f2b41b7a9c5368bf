// SPDX-License-Identifier: BSD-3-Clause
// Ports on a packet socket, whose interface stays with the kernel.
#include <fmt/format.h>

#include "main/wires/wire.h"
#include "packet/packet_port.h"

namespace ulc::daemon {
namespace {

class PacketWire final : public Wire {
public:
    explicit PacketWire(std::unique_ptr<packet::PacketPort> port) : port_(std::move(port)) {}
    [[nodiscard]] const Port& table() const noexcept override { return port_->port(); }
    [[nodiscard]] std::string name() const override { return port_->name(); }
    [[nodiscard]] std::string traffic() const override {
        const auto& calls = port_->ring_counts();
        return fmt::format("{}: {} frames sent by {} system calls, {} of which left some over",
                           name(), port_->counts().frames_sent, calls.pushes, calls.refusals);
    }

private:
    std::unique_ptr<packet::PacketPort> port_;
};

Err open(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) {
    packet::PortOptions shared{.mtu = options.port.mtu,
                               .ether_type = options.port.ether_type,
                               .segments = options.port.segments};
    if (const Err e = packet::parse_device(options.port.device, shared.device, why); e != Err::kOk)
        return e;
    std::unique_ptr<packet::PacketPort> port;
    if (const Err e = packet::PacketPort::open(shared, port, why); e != Err::kOk) return e;
    out = std::make_unique<PacketWire>(std::move(port));
    return Err::kOk;
}

}  // namespace

constinit const WireKind wire_packet{
    .takes = packet::is_packet,
    .may_be_link = true,
    .no_exception = "the kernel keeps this interface, so IP works on it already",
    .no_ip = "the kernel keeps this interface and its IP, which --device udp,addr=ADDRESS uses",
    .add_needs = [](const std::string&, SandboxNeeds& needs) { needs.packet_socket = true; },
    .open = open};

}  // namespace ulc::daemon
