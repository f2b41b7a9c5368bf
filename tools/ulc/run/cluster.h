// SPDX-License-Identifier: BSD-3-Clause
// A cluster on one machine as a list of processes. Nothing is started here, so that tests read what
// `ulc run` starts.
//
//   --wire shm          engine k is station k of a wire of shared memory; the default, unless the
//                       wire imitates another
//   --wire memif        two nodes: engine 0 (memif server) ── engine 1 (memif client)
//                       else: engine k (memif client k) ── ulc-switch (a memif server port for each
//                       node, seeded faults, line rate)
//   --wire bridge       engine k and the ranks of node k in a network namespace (bridge_wire.h)
//   --wire routed       the same, each node in a separate IP subnet, on UDP
//   --wire udp          engine k on a UDP socket of an address of the loopback interface
//   --wire mesh:RxC     R · C nodes in rows and columns, a switch for each; node n is in row n / C
//                       and in column n mod C
//   --links K           engine k has K links to the switch or the bridge, as one net
//   --embedded          no engine processes: each rank is a node with its engine inside
//
// Rank r runs on node r mod nodes, so that neighbours talk over the wire. With one_command the
// application is a launcher as mpirun, whose processes choose their node themselves: ULC_ENGINE
// has "%n" for it, ULC_NODES says how many there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/ulc/children.h"

namespace ulc::tools {

inline constexpr std::string_view kWireShm = "shm";
inline constexpr std::string_view kWireMemif = "memif";
inline constexpr std::string_view kWireBridge = "bridge";
inline constexpr std::string_view kWireMesh = "mesh";
inline constexpr std::string_view kWireUdp = "udp";
inline constexpr std::string_view kWireRouted = "routed";

struct ClusterOptions {
    unsigned ranks = 0;
    unsigned nodes = 0;  ///< 0: min(ranks, 2); with embedded: ranks
    bool embedded = false;
    unsigned links = 1;        ///< each node's to the wire, as one net
    bool one_command = false;  ///< `ulc cluster`: ranks is 1, the launcher of the others
    double loss = 0;
    double duplicate = 0;
    double reorder = 0;
    double delay_us = 0;
    std::uint64_t bits_per_second = 0;  ///< speed of every link; 0: that of the machine
    std::uint64_t queue_octets = 0;     ///< each port of a bridge; 0: kQueueOctets
    /// "shm", "memif", "udp", "bridge[:RATE]", "routed[:RATE]", "mesh:RxC"; empty: memif where
    /// needs_switch()
    std::string wire;
    unsigned mesh_rows = 0;     ///< filled by complete()
    unsigned mesh_columns = 0;  ///< the same
    unsigned mtu = 0;  ///< 0: kMtuOwnWire; kMtuEthernet where needs_switch(), and on a bridge
    std::uint64_t seed = 1;
    std::string job;
    std::string nonce;  ///< 32 hexadecimal digits
    std::vector<std::string> engine_options;
    std::vector<std::string> application;  ///< program and arguments

    /// The wire is one that only the switch can play.
    [[nodiscard]] bool needs_switch() const {
        return links > 1 || loss > 0 || duplicate > 0 || reorder > 0 || delay_us > 0 ||
               bits_per_second > 0;
    }
    /// True if frames are lost, repeated, reordered or delayed.
    [[nodiscard]] bool has_faults() const {
        return loss > 0 || duplicate > 0 || reorder > 0 || delay_us > 0;
    }
    /// True for nodes on a bridge or router of the kernel, once complete() has been called.
    [[nodiscard]] bool has_namespaces() const { return wire == kWireBridge || is_routed(); }
    [[nodiscard]] bool is_routed() const { return wire == kWireRouted; }
    /// True if engines read the key of their wire from key_file_of(). Ranks with an engine inside
    /// make theirs of the job's nonce.
    [[nodiscard]] bool needs_key() const { return (wire == kWireUdp || is_routed()) && !embedded; }
    /// True for a mesh of switches, once complete() has been called.
    [[nodiscard]] bool has_mesh() const { return wire == kWireMesh; }
    /// True if one ulc-switch is the wire, once complete() has been called.
    [[nodiscard]] bool has_switch() const {
        return wire == kWireMemif && (nodes > 2 || needs_switch() || one_command);
    }
};

struct ClusterPrograms {
    std::string engine;
    std::string ether_switch;
    std::string library_path;  ///< LD_LIBRARY_PATH for the ranks; empty: leave it
};

struct ClusterPlan {
    std::vector<ChildSpec>
        infrastructure;  ///< started in this order, each must say that it is ready
    std::vector<ChildSpec> ranks;
    unsigned first_rank = 0;  ///< number of the first in `ranks`; earlier ones run already
    std::vector<unsigned> node_of_rank;
    std::vector<std::string> host_of_rank;  ///< filled for ranks on other machines
    unsigned nodes = 0;
};

inline constexpr unsigned kRanksMax = 512;
inline constexpr unsigned kNodesMax = 64;
inline constexpr unsigned kLinksMax = 4;
inline constexpr unsigned kSwitchPortsMax = 64;
/// Default of a wire that imitates no other: a sixth of the frames, and each frame costs every
/// process that it passes.
inline constexpr unsigned kMtuOwnWire = 9000;
inline constexpr unsigned kMtuEthernet = 1500;
inline constexpr unsigned kMtuMax = 9216;
/// Headers of IPv4 and UDP, ours in the place of Ethernet's, and the seal.
inline constexpr unsigned kUdpOctets = 20 + 8 + 4 + 28;
/// Bits a second of a link: what Ethernet was and will be.
inline constexpr std::uint64_t kRateMin = 1'000'000;
inline constexpr std::uint64_t kRateMax = 1'000'000'000'000;
/// A port of a small switch holds this much: 170 frames.
inline constexpr std::uint64_t kQueueOctets = 256 * 1024;
inline constexpr std::uint64_t kQueueOctetsMin = 4 * 1024;
inline constexpr std::uint64_t kQueueOctetsMax = 64 * 1024 * 1024;

/// Fills in the defaults. Returns the first mistake of the options as a sentence; empty: there is
/// none.
[[nodiscard]] std::string complete(ClusterOptions& options);

[[nodiscard]] std::string key_file_of(const std::string& directory);

/// directory: the private run directory, where all sockets go.
[[nodiscard]] ClusterPlan make_plan(const ClusterOptions& options, const ClusterPrograms& programs,
                                    const std::string& directory);

}  // namespace ulc::tools
