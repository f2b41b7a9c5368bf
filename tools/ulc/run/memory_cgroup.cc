// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/memory_cgroup.h"

#include <unistd.h>

#include <fstream>

namespace ulc::tools {
namespace {

constexpr const char* kRoot = "/sys/fs/cgroup";

/// The file of a group that counts kills: of version 2, or of version 1.
constexpr const char* kCounts[] = {"/memory.events", "/memory.oom_control"};

/// Folder of the group that a line of /proc/self/cgroup names; empty: no memory controller.
std::string folder_of(const std::string& line) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) return "";
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) return kRoot + path;
    return ("," + controllers + ",").find(",memory,") != std::string::npos
               ? std::string(kRoot) + "/memory" + path
               : "";
}

}  // namespace

MemoryCgroup::MemoryCgroup() {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; folder_.empty() && std::getline(groups, line);) {
        const std::string folder = folder_of(line);
        for (const char* counts : kCounts) {
            if (!folder.empty() && ::access((folder + counts).c_str(), R_OK) == 0) folder_ = folder;
        }
    }
    kills_before_ = kills();
}

bool MemoryCgroup::killed() const { return kills() > kills_before_; }

std::uint64_t MemoryCgroup::kills() const {
    for (const char* counts : kCounts) {
        std::ifstream file(folder_ + counts);
        std::string name;
        for (std::uint64_t value = 0; !folder_.empty() && file >> name >> value;) {
            if (name == "oom_kill") return value;
        }
    }
    return 0;
}

}  // namespace ulc::tools
