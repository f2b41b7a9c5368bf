// SPDX-License-Identifier: BSD-3-Clause
// The ports of one engine: options → EAL → ports, and the configuration of the engine on them.
// Shared by the daemon, whose engine is a library (core/core.h), and the embedded library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/idle_ladder.h"
#include "dpdk/eal.h"
#include "dpdk/ethdev_port.h"
#include "engine/config.h"
#include "main/trace/trace.h"
#include "main/wires/wire.h"
#include "port/bond_port.h"
#include "port/mesh_port.h"

namespace ulc::daemon {

/// A port, and the name of its net for clients. Ports with one name are links of one net.
struct NodeNet {
    std::string name;
    dpdk::PortOptions port;
};

struct NodeOptions {
    dpdk::EalOptions eal;  ///< memory_mb: of all ports
    std::vector<NodeNet> nets;
    std::optional<port::MeshPlace> mesh;  ///< the net's two ports are links of a mesh
    engine::EngineConfig engine;          ///< seed 0: taken from the system
    IdleLadder::Limits idle;
    std::string seal;             ///< WireOptions
    ip::DeviceSpec ip;            ///< the same; there is one net then
    bool takes_secrets = false;   ///< add_secret() follows, so a sealed wire needs no key yet
    std::uint32_t slow_time = 1;  ///< time passes slower by this factor, if there is a TSC
    TraceOptions trace;           ///< Node fills in nets, ether_type and tsc_hz
};

class Node {
public:
    /// Starts DPDK if a device needs it and this process has not, and opens the ports. `counters`:
    /// the shared page or nullptr. Errors: those of start_eal() and EthdevPort::open(); `why`: one
    /// sentence with the advice. `notes`: for the log.
    static Err open(const NodeOptions& options, Counters* counters, std::unique_ptr<Node>& out,
                    std::vector<std::string>& notes, std::string& why);

    /// For the engine, which must end before this object.
    [[nodiscard]] const engine::EngineConfig& engine_config() const noexcept { return config_; }
    [[nodiscard]] const std::vector<Port>& ports() const noexcept { return tables_; }
    /// The trace, if there is one, records rises of these counters.
    void watch(const Counters& counters) noexcept {
        if (trace_ != nullptr) trace_->watch(counters);
    }
    /// Releases stations on shared memory in a child of fork(): they belong to the parent.
    void abandon() noexcept;
    /// Returns the index of the net of that name; empty: the first. Errors: kInvalid (no such net).
    [[nodiscard]] Result<std::uint32_t> net(std::string_view name) const;
    /// Returns "net_memif0 as 02:…", each net after a comma; with their names if there are several.
    [[nodiscard]] std::string ports_as_text() const;
    /// Returns where engines of other nodes can ask for this one, "10.0.0.5:4001,…"; empty if its
    /// wires find nodes themselves. Asks the kernel.
    [[nodiscard]] std::string addresses() const;
    /// Asks for nodes where addresses() of another engine says. False: they are unreadable.
    /// Engine thread.
    [[nodiscard]] bool meet(std::string_view addresses);
    /// Lets sealed wires reach those that know the nonce of a job. False: they have too many.
    /// Engine thread.
    [[nodiscard]] bool add_secret(std::span<const std::uint8_t, 16> nonce) noexcept;
    /// Returns whether a wire is sealed, and no key is known.
    [[nodiscard]] bool needs_secret() const noexcept;
    /// Returns that of the time stamp counter; 0: unknown.
    [[nodiscard]] std::uint64_t tsc_hz() const noexcept { return tsc_hz_; }
    /// Returns what the log says about frames that wires carried; empty: nothing. Call it after the
    /// engine's thread has ended.
    [[nodiscard]] std::string traffic_as_text() const { return texts_of(&Wire::traffic); }
    /// Returns the same about frames that were lost on wires.
    [[nodiscard]] std::string losses_as_text() const { return texts_of(&Wire::losses); }

private:
    struct OpenPort {
        std::size_t net = 0;  ///< index of its net
        std::unique_ptr<Wire> wire;
    };

    Node() = default;
    Err open_port(const WireOptions& options, std::string& why);
    [[nodiscard]] std::string texts_of(std::string (Wire::*text_of)() const) const;
    /// Makes the tables of the nets: of a port, or of a bond of several.
    Err bond_ports(const NodeOptions& options, std::vector<Port>& tables, std::string& why);
    /// Opens the trace, which watches each port.
    Err open_trace(const NodeOptions& options, std::vector<Port>& ports, std::string& why);
    std::vector<std::string> names_;
    std::uint64_t tsc_hz_ = 0;
    engine::EngineConfig config_;
    std::vector<OpenPort> ports_;
    std::vector<std::unique_ptr<port::BondPort>> bonds_;  ///< one for each net with several links
    std::unique_ptr<port::MeshPort> mesh_;
    std::unique_ptr<Trace> trace_;
    std::vector<Port> tables_;  ///< one for each net
};

/// Returns 128 bits from the system's random source.
[[nodiscard]] seal::Seed system_seed();

}  // namespace ulc::daemon
