// SPDX-License-Identifier: BSD-3-Clause
// Ports on a queue pair of an RDMA device.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "main/wires/wire.h"
#include "verbs/verbs_port.h"

namespace ulc::daemon {
namespace {

class VerbsWire final : public Wire {
public:
    explicit VerbsWire(std::unique_ptr<verbs::VerbsPort> port) : port_(std::move(port)) {}
    [[nodiscard]] const Port& table() const noexcept override { return port_->port(); }
    [[nodiscard]] std::string name() const override { return port_->name(); }
    [[nodiscard]] std::string losses() const override {
        const verbs::Counts& c = port_->counts();
        if (c.no_handle + c.bad_completions + c.failed_completions + c.too_short + c.too_long +
                c.forged + c.join_failures + c.groups_lost ==
            0)
            return {};
        return fmt::format(
            "{}: {} frames without an address handle, {} bad and {} failed completions, {} wrong "
            "lengths, {} frames not of the sender that they name; {} resets; {} multicast groups "
            "not joined and {} lost",
            name(), c.no_handle, c.bad_completions, c.failed_completions, c.too_short + c.too_long,
            c.forged, c.resets, c.join_failures, c.groups_lost);
    }

private:
    std::unique_ptr<verbs::VerbsPort> port_;
};

Err open(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) {
    verbs::PortOptions rdma{
        .mtu = options.port.mtu,
        .ether_type = options.port.ether_type,
        .segments = options.port.segments,
        .send_frames = options.port.tx_descriptors,
        .receive_frames = options.port.rx_descriptors,
        .report = [](const std::string& line) { spdlog::warn("{}", line); },
    };
    if (const Err e = verbs::parse_device(options.port.device, rdma.device, why); e != Err::kOk)
        return e;
    std::unique_ptr<verbs::VerbsPort> port;
    if (const Err e = verbs::VerbsPort::open(rdma, nullptr, port, why); e != Err::kOk) return e;
    out = std::make_unique<VerbsWire>(std::move(port));
    return Err::kOk;
}

}  // namespace

constinit const WireKind wire_verbs{
    .takes = verbs::is_verbs,
    .no_exception =
        "the kernel keeps the network interface of a verbs device, so IP works on it "
        "already",
    .no_ip = "a queue pair of RDMA carries no frames of IP",
    .add_needs = [](const std::string&, SandboxNeeds& needs) { needs.rdma = true; },
    .open = open};

}  // namespace ulc::daemon
