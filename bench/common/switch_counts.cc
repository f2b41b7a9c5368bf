// SPDX-License-Identifier: BSD-3-Clause
#include "bench/common/switch_counts.h"

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace ulc::bench {
namespace {

/// The number of `name` in the last object of the switch's JSON, the sums. False: it is not there.
bool find(const std::string& json, const std::string& name, std::uint64_t& out) {
    const std::size_t total = json.rfind("\"total\"");
    if (total == std::string::npos) return false;
    const std::size_t at = json.find('"' + name + "\":", total);
    if (at == std::string::npos) return false;
    out = std::strtoull(json.c_str() + at + name.size() + 3, nullptr, 10);
    return true;
}

const char* file() { return std::getenv("ULC_BENCH_SWITCH"); }

}  // namespace

bool has_switch_counts() { return file() != nullptr; }

bool read_switch_counts(SwitchCounts& out) {
    const std::string path = file();
    std::ifstream pid_file(path + ".pid");
    pid_t pid = 0;
    if (!(pid_file >> pid)) return false;
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    if (kill(pid, SIGUSR1) != 0) return false;
    for (int i = 0; i < 1000 && !std::filesystem::exists(path); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const std::string json = text.str();
    std::uint64_t unicast = 0;
    std::uint64_t group = 0;
    const bool all = find(json, "in_payload_bytes", out.payload_octets) &&
                     find(json, "in_data", unicast) && find(json, "in_mcast", group) &&
                     find(json, "in_control", out.control);
    out.packets = unicast + group;
    return all;
}

}  // namespace ulc::bench
