// SPDX-License-Identifier: BSD-3-Clause
// Ports over DPDK: NICs and its virtual devices.
#include "dpdk/device.h"
#include "main/wires/wire.h"

namespace ulc::daemon {
namespace {

/// Returns "3.1 %".
std::string percent_of(const dpdk::WorkShare& share) {
    const Nanos permille = share.busy() == 0 ? 0 : share.worked() * 1000 / share.busy();
    return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
}

class EthdevWire final : public Wire {
public:
    explicit EthdevWire(std::unique_ptr<dpdk::EthdevPort> port) : port_(std::move(port)) {}
    [[nodiscard]] const Port& table() const noexcept override { return port_->port(); }
    [[nodiscard]] std::string name() const override { return port_->device().name; }
    [[nodiscard]] std::string exception_interface() const override {
        return port_->exception() == nullptr ? "" : port_->exception()->interface();
    }
    [[nodiscard]] std::string traffic() const override {
        const dpdk::ExceptionPath* path = port_->exception();
        if (path == nullptr) return {};
        const dpdk::ExceptionCounts& counts = path->counts();
        return path->interface() + ": " + std::to_string(counts.to_kernel) +
               " frames to the kernel, " + std::to_string(counts.from_kernel) + " from it, " +
               std::to_string(counts.lost) + " not taken by the other side, " +
               percent_of(path->thread_share()) + " of the engine's time and " +
               percent_of(path->wire_share()) + " of the wire's while frames of the engine came";
    }

private:
    std::unique_ptr<dpdk::EthdevPort> port_;
};

Err open(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) {
    std::unique_ptr<dpdk::EthdevPort> port;
    dpdk::PortOptions device = options.port;
    device.all_types = options.ip.address != 0;
    if (const Err e = dpdk::EthdevPort::open(device, port, why); e != Err::kOk) return e;
    out = std::make_unique<EthdevWire>(std::move(port));
    return Err::kOk;
}

void add_needs(const std::string& device, SandboxNeeds& needs) {
    std::string ignored;
    const auto spec = dpdk::parse_device(device, 0, ignored);
    if (!spec) return;
    needs.packet_socket |= spec->kind == dpdk::DeviceKind::kAfPacket;
    needs.card |= spec->kind == dpdk::DeviceKind::kPci;
    needs.kernel_interface |= spec->kind == dpdk::DeviceKind::kOther;
    if (spec->kind == dpdk::DeviceKind::kMemif)
        needs.paths.push_back(spec->argument("socket").value_or("/run/memif.sock"));
}

}  // namespace

constinit const WireKind wire_ethdev{.takes = [](std::string_view) noexcept { return true; },
                                     .needs_eal = true,
                                     .may_be_link = true,
                                     .add_needs = add_needs,
                                     .open = open};

}  // namespace ulc::daemon
