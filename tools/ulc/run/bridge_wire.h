// SPDX-License-Identifier: BSD-3-Clause
// A wire of `ulc run` that is the kernel's Ethernet: a network namespace a node, joined by a bridge
// or a router in one more.
//
//   node 0 [eth0] ═ veth ═ port0 ┐
//   node 1 [eth0] ═ veth ═ port1 ┼ br0      tbf on each port: rate and output queue of a switch
//   node 2 [eth0] ═ veth ═ port2 ┘
//
// A router has each node in a separate IP subnet, and passes no multicast.
//
// A namespace has no name. It ends with its last descriptor, which this process holds, and the last
// process in it, so nothing is left behind, also after SIGKILL. Without root this process enters a
// user namespace first, where it is root.
// Node k has the address 10.77.0.(k + 1) on its first link, and 10.77.k.2 behind a router: for
// engines on UDP, and programs that compare with the kernel's protocols.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ulc::tools {

struct BridgeOptions {
    unsigned nodes = 0;
    unsigned links = 1;                 ///< each node's: eth0, eth1, …
    bool routed = false;                ///< a router in the place of the bridge; one link a node
    std::uint64_t bits_per_second = 0;  ///< each port's output; 0: unlimited
    std::uint64_t queue_octets = 0;     ///< each port's output queue, if it has a rate
    unsigned mtu = 1500;
};

/// One program to run in a namespace while the wire is made.
struct BridgeStep {
    unsigned place = 0;  ///< a node, or BridgeOptions::nodes for the bridge or router
    std::vector<std::string> argv;
};

/// Returns the address of a node on its first link.
[[nodiscard]] std::string address_of_node(bool routed, unsigned node);

/// Returns the programs that make the wire, in order. Pure.
/// namespaces: a path of each, the bridge's last.
[[nodiscard]] std::vector<BridgeStep> bridge_steps(const BridgeOptions& options,
                                                   const std::vector<std::string>& namespaces);

class BridgeWire {
public:
    BridgeWire() = default;
    ~BridgeWire();  ///< closes the descriptors; the wire ends with the last process on it
    BridgeWire(const BridgeWire&) = delete;
    BridgeWire& operator=(const BridgeWire&) = delete;

    /// Makes the wire. Returns a sentence that says what failed and what to do; empty: it is made.
    /// Only while this process has one thread.
    [[nodiscard]] std::string make(const BridgeOptions& options);
    /// Descriptor of a node's network namespace; -1 before make().
    [[nodiscard]] int network(unsigned node) const {
        return node < namespaces_.size() ? namespaces_[node] : -1;
    }
    /// Paths of the nodes' namespaces, by node, separated by spaces: `nsenter --net=PATH` enters
    /// one. Valid while this object lives; empty before make().
    [[nodiscard]] std::string paths() const;

private:
    std::vector<int> namespaces_;  ///< the bridge's last
};

}  // namespace ulc::tools
