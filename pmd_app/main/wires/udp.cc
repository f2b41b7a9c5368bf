// SPDX-License-Identifier: BSD-3-Clause
// Ports on a UDP socket. Engines exchange their addresses, and datagrams may be sealed.
#include "main/wires/wire.h"
#include "seal/keys.h"
#include "udp/udp_port.h"

namespace ulc::daemon {
namespace {

class UdpWire final : public Wire {
public:
    explicit UdpWire(std::unique_ptr<udp::UdpPort> port) : port_(std::move(port)) {}
    [[nodiscard]] const Port& table() const noexcept override { return port_->port(); }
    [[nodiscard]] std::string name() const override { return port_->name(); }
    [[nodiscard]] std::string addresses() const override { return port_->addresses(); }
    void meet(std::span<const udp::Address> nodes) override { port_->meet(nodes); }
    [[nodiscard]] bool add_secret(std::span<const std::uint8_t, 16> nonce) noexcept override {
        return port_->add_secret(seal::secret_of_nonce(nonce));
    }
    [[nodiscard]] bool needs_secret() const noexcept override { return port_->needs_secret(); }

private:
    std::unique_ptr<udp::UdpPort> port_;
};

Err open(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) {
    udp::PortOptions sockets{.mtu = options.port.mtu,
                             .ether_type = options.port.ether_type,
                             .segments = options.port.segments,
                             .seed = options.seed,
                             .takes_secrets = options.takes_secrets};
    if (const Err e = udp::parse_device(options.port.device, sockets.device, why); e != Err::kOk)
        return e;
    std::unique_ptr<udp::UdpPort> port;
    if (const Err e = udp::UdpPort::open(sockets, port, why); e != Err::kOk) return e;
    out = std::make_unique<UdpWire>(std::move(port));
    return Err::kOk;
}

}  // namespace

constinit const WireKind wire_udp{
    .takes = udp::is_udp,
    .seals_itself = true,
    .no_exception = "the kernel keeps the network of a UDP socket",
    .no_ip = "a UDP socket has the IP of the kernel",
    .add_needs = [](const std::string&, SandboxNeeds& needs) { needs.udp = true; },
    .open = open};

}  // namespace ulc::daemon
