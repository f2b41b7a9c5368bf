// SPDX-License-Identifier: BSD-3-Clause
// A net of UDP over IPv4 around a wire of Ethernet frames, for a NIC that the kernel does not have.
#include "ip/ip_socket.h"

#include <utility>

#include "base/clock.h"
#include "main/wires/wire.h"
#include "udp/udp_port.h"

namespace ulc::daemon {
namespace {

class IpWire final : public Wire {
public:
    /// socket: that of `port`, which owns it.
    IpWire(std::unique_ptr<Wire> below, const ip::IpSocket* socket,
           std::unique_ptr<udp::UdpPort> port)
        : below_(std::move(below)), socket_(socket), port_(std::move(port)), table_(port_->port()) {
        const PortInfo& link = below_->table().info;
        table_.info.link_bits_per_second = link.link_bits_per_second;
        table_.info.half_duplex = link.half_duplex;
        table_.info.tx_pending_time = link.tx_pending_time;
    }
    [[nodiscard]] const Port& table() const noexcept override { return table_; }
    [[nodiscard]] std::string name() const override {
        return below_->name() + " with " + port_->name();
    }
    [[nodiscard]] std::string traffic() const override { return below_->traffic(); }
    [[nodiscard]] std::string losses() const override {
        std::string text = socket_->drops_as_text();
        if (!text.empty()) text = name() + ": dropped " + text;
        const std::string others = below_->losses();
        return text + (text.empty() || others.empty() ? "" : "; ") + others;
    }
    void abandon() noexcept override { below_->abandon(); }
    [[nodiscard]] std::string addresses() const override { return port_->addresses(); }
    void meet(std::span<const udp::Address> nodes) override { port_->meet(nodes); }
    [[nodiscard]] bool add_secret(std::span<const std::uint8_t, 16> nonce) noexcept override {
        return port_->add_secret(seal::secret_of_nonce(nonce));
    }
    [[nodiscard]] bool needs_secret() const noexcept override { return port_->needs_secret(); }

private:
    std::unique_ptr<Wire> below_;
    const ip::IpSocket* socket_;
    std::unique_ptr<udp::UdpPort> port_;  // it ends first: frames that wait are of `below_`
    Port table_;
};

/// Takes the key that --seal names. Errors: kInvalid.
Err take_key(const WireOptions& options, udp::DeviceSpec& device, std::string& why) {
    if (options.seal.empty() || (options.seal == "job" && options.takes_secrets)) return Err::kOk;
    if (options.seal == "job") {
        why = "--seal job is for engines inside processes; name a key file, the same on all nodes";
        return Err::kInvalid;
    }
    if (device.open || !device.key_file.empty()) {
        why = "--ip has a key or the word open, and --seal names a key; leave one out";
        return Err::kInvalid;
    }
    device.key_file = options.seal;
    return Err::kOk;
}

}  // namespace

Err put_ip_around(const WireOptions& options, std::unique_ptr<Wire>& wire, std::string& why) {
    ip::DeviceSpec spec = options.ip;
    if (const Err e = take_key(options, spec.socket, why); e != Err::kOk) return e;
    std::unique_ptr<ip::IpSocket> socket;
    if (const Err e = ip::IpSocket::open(wire->table(),
                                         {.address = spec.address,
                                          .prefix = spec.prefix,
                                          .port = spec.socket.own.port,
                                          .gateway = spec.gateway,
                                          .vlan = spec.vlan,
                                          .seed = options.seed.of(4).number(0),
                                          .clock = monotonic_now},
                                         socket, why);
        e != Err::kOk)
        return e;
    const udp::PortOptions sockets{.device = std::move(spec.socket),
                                   .ether_type = options.port.ether_type,
                                   .segments = options.port.segments,
                                   .seed = options.seed,
                                   .takes_secrets = options.takes_secrets};
    const ip::IpSocket* const known = socket.get();
    std::unique_ptr<udp::UdpPort> port;
    if (const Err e = udp::UdpPort::open(sockets, std::move(socket), port, why); e != Err::kOk)
        return e;
    wire = std::make_unique<IpWire>(std::move(wire), known, std::move(port));
    return Err::kOk;
}

}  // namespace ulc::daemon
