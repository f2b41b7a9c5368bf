// SPDX-License-Identifier: BSD-3-Clause
// Ranks on other machines: `ulc run --hosts FILE`, where each machine runs its own ulc-engine, and
// `ulc run --hosts a,b,c`, where each rank has an engine inside, on a UDP socket. Pure but for
// reading the file.
//
// A rank is a shell on its host, started by ssh, that starts the program. The nonce of the job
// comes on the shell's standard input, since other users see the words of a command. That input
// stays open as long as the rank runs: when it ends, for whatever reason, so does the program.
//
// Engines inside ranks meet at that of rank 0, whose port is drawn, so that jobs at one time seldom
// have the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ulc/run/cluster.h"

namespace ulc::tools {

inline constexpr std::string_view kSsh = "ssh -o BatchMode=yes -o ConnectTimeout=10";

struct Host {
    std::string name;    ///< as ssh takes it: "node1", "user@node1"
    unsigned slots = 1;  ///< ranks that it takes
};

struct HostOptions {
    std::string file;                  ///< or names between commas
    std::string ssh{kSsh};             ///< words, between spaces, before the host
    std::vector<std::string> exports;  ///< "NAME=value", or "NAME" for our own value
    bool others = false;               ///< rank 0 is the caller, and is not started
    unsigned port_drawn = 0;           ///< random: the port of rank 0's engine
    std::string library_path;          ///< LD_LIBRARY_PATH of ranks with engines inside
    /// True if ranks have engines inside.
    [[nodiscard]] bool is_list() const { return file.find(',') != std::string::npos; }
};

/// Reads hosts from a file, one a line: "NAME [slots=K]", with comments from '#' on, or from a
/// list with commas, in which a host stands once for each rank. Returns what is wrong, as a
/// sentence with the line's number; empty: nothing.
[[nodiscard]] std::string read_hosts(const std::string& file, std::vector<Host>& hosts);

/// Fills `plan` with the ranks, each host's slots in turn, all in folder `folder` of their host.
/// Returns what is wrong, as a sentence; empty: nothing.
[[nodiscard]] std::string place_on_hosts(const HostOptions& options, const std::vector<Host>& hosts,
                                         const ClusterOptions& cluster, const std::string& folder,
                                         ClusterPlan& plan);

}  // namespace ulc::tools
