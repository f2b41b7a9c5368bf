// What `ulc doctor` looks at. Each check reads the system, changes nothing, and says what would mend it.
#pragma once

#include <string>
#include <vector>

#include "job_link.h"

namespace ulc::tools {

enum class Level { kOk, kWarn, kFail };

struct Finding {
    Level level = Level::kOk;
    std::string topic;  ///< "hugepages", "nic 0000:03:00.0"
    std::string text;
    std::string mend;  ///< the exact command; empty if there is nothing to do or no command for it
};

using Findings = std::vector<Finding>;

/// The machine without any engine. root: "" or, for tests, a folder that holds sys/, proc/ and dev/.
void check_cores(const std::string& root, Findings& out);
void check_memory(const std::string& root, Findings& out);
void check_hugepages(const std::string& root, Findings& out);
void check_iommu(const std::string& root, Findings& out);
void check_nics(const std::string& root, Findings& out);
void check_interfaces(const std::string& root, Findings& out);

/// Our programs and DPDK's.
void check_programs(Findings& out);
/// The engine's socket and its folder.
void check_socket(const std::string& socket, Findings& out);

/// As one rank of a job, all ranks doing the same: do broadcast, unicast and multicast reach the others? Rank 0 gets all
/// findings, the others an empty list. Returns false if the job could not be formed.
[[nodiscard]] bool check_net(const JobOptions& job, Findings& out);

}  // namespace ulc::tools
