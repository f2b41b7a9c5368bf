// SPDX-License-Identifier: BSD-3-Clause
// Ports on memory of one machine.
#include <fmt/format.h>

#include "main/wires/wire.h"
#include "shm/shm_port.h"

namespace ulc::daemon {
namespace {

class ShmWire final : public Wire {
public:
    explicit ShmWire(std::unique_ptr<shm::ShmPort> port) : port_(std::move(port)) {}
    [[nodiscard]] const Port& table() const noexcept override { return port_->port(); }
    [[nodiscard]] std::string name() const override { return port_->name(); }
    void abandon() noexcept override { port_->abandon(); }
    [[nodiscard]] std::string losses() const override {
        const shm::Counts& c = port_->counts();
        if (c.missed + c.broken + c.too_long + c.no_frame + c.overran == 0) return {};
        return fmt::format(
            "{}: overtaken {} times, {} broken records, {} frames above the MTU, {} without a "
            "buffer (raise --segments); did not wait for a silent station {} times",
            name(), c.missed, c.broken, c.too_long, c.no_frame, c.overran);
    }

private:
    std::unique_ptr<shm::ShmPort> port_;
};

Err open(const WireOptions& options, std::unique_ptr<Wire>& out, std::string& why) {
    shm::PortOptions memory{.mtu = options.port.mtu, .segments = options.port.segments};
    if (const Err e = shm::parse_device(options.port.device, memory.device, why); e != Err::kOk)
        return e;
    std::unique_ptr<shm::ShmPort> port;
    if (const Err e = shm::ShmPort::open(memory, port, why); e != Err::kOk) return e;
    out = std::make_unique<ShmWire>(std::move(port));
    return Err::kOk;
}

}  // namespace

constinit const WireKind wire_shm{.takes = shm::is_shm,
                                  .no_exception = "a wire of shared memory carries no IP",
                                  .add_needs = [](const std::string&, SandboxNeeds&) {},
                                  .open = open};

}  // namespace ulc::daemon
