// SPDX-License-Identifier: BSD-3-Clause
// The checks of `ulc doctor`. Each reads the system, changes nothing, and names the command that
// repairs what it found.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/ulc/run/job_link.h"

namespace ulc::tools {

enum class Level { kOk, kWarn, kFail };

struct Finding {
    Level level = Level::kOk;
    std::string topic;  ///< "hugepages", "nic 0000:03:00.0"
    std::string text;
    std::string fix;  ///< the exact command; empty if there is nothing to do or no command for it
};

using Findings = std::vector<Finding>;

/// Check the machine, without any engine. root: "" or, for tests, a folder with sys/, proc/ and
/// dev/.
void check_cores(const std::string& root, Findings& out);
void check_memory(const std::string& root, Findings& out);
void check_hugepages(const std::string& root, Findings& out);
/// Space for received datagrams, which engines on UDP sockets ask for.
void check_udp(const std::string& root, Findings& out);
void check_iommu(const std::string& root, Findings& out);
void check_nics(const std::string& root, Findings& out);
void check_interfaces(const std::string& root, Findings& out);

/// Our programs and DPDK's.
void check_programs(Findings& out);
/// The engine's socket and its folder.
void check_socket(const std::string& socket, Findings& out);

/// Values of the engine's counters, by name.
using CounterValues = std::map<std::string, std::uint64_t, std::less<>>;
/// Names the frames that an engine did not take or could not send, by reason.
void check_frames(const CounterValues& counters, Findings& out);
/// Applies it to the engine at that socket, if one answers.
void check_engine_frames(const std::string& socket, Findings& out);

/// Finds out, as one rank of a job whose ranks all do so, whether broadcast, unicast and multicast
/// reach the others. Rank 0 gets all findings, the others an empty list. Returns false if the job
/// could not be formed.
[[nodiscard]] bool check_net(const JobOptions& job, Findings& out);

}  // namespace ulc::tools
