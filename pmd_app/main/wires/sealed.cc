// SPDX-License-Identifier: BSD-3-Clause
// A wire whose frames are sealed, around one of any other kind.
#include "sealed/sealed_port.h"

#include <utility>

#include "base/clock.h"
#include "main/wires/wire.h"

namespace ulc::daemon {
namespace {

class SealedWire final : public Wire {
public:
    SealedWire(std::unique_ptr<Wire> below, std::unique_ptr<sealed::SealedPort> port)
        : below_(std::move(below)), port_(std::move(port)) {}
    [[nodiscard]] const Port& table() const noexcept override { return port_->port(); }
    [[nodiscard]] std::string name() const override { return below_->name(); }
    [[nodiscard]] std::string exception_interface() const override {
        return below_->exception_interface();
    }
    [[nodiscard]] std::string traffic() const override { return below_->traffic(); }
    [[nodiscard]] std::string losses() const override { return below_->losses(); }
    void abandon() noexcept override { below_->abandon(); }
    [[nodiscard]] bool add_secret(std::span<const std::uint8_t, 16> nonce) noexcept override {
        return port_->add_secret(seal::secret_of_nonce(nonce));
    }
    [[nodiscard]] bool needs_secret() const noexcept override { return port_->needs_secret(); }

private:
    std::unique_ptr<Wire> below_;
    std::unique_ptr<sealed::SealedPort> port_;  // it ends first: its frames are of `below_`
};

}  // namespace

Err seal_wire(const WireOptions& options, std::unique_ptr<Wire>& wire, std::string& why) {
    const bool by_job = options.seal == "job";
    if (by_job && !options.takes_secrets) {
        why =
            "--seal job is for engines inside processes; name a key file, the same on all nodes, "
            "made by head -c 32 /dev/urandom > FILE";
        return Err::kInvalid;
    }
    const sealed::PortOptions sealed{.ether_type = options.port.ether_type,
                                     .segments = options.port.segments,
                                     .seed = options.seed,
                                     .key_file = by_job ? "" : options.seal,
                                     .clock = monotonic_now};
    std::unique_ptr<sealed::SealedPort> port;
    if (const Err e = sealed::SealedPort::open(wire->table(), sealed, port, why); e != Err::kOk)
        return e;
    wire = std::make_unique<SealedWire>(std::move(wire), std::move(port));
    return Err::kOk;
}

}  // namespace ulc::daemon
