// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/eal.h"

#include <sched.h>
#include <unistd.h>

#include <dirent.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>

#include "dpdk/device.h"
#include "dpdk/log.h"
#include "dpdk/pci_card.h"
#include "dpdk/quirks/own_drivers.h"
#include "dpdk/quirks/parked.h"
#include "dpdk/quirks/runtime_dir.h"

namespace ulc::dpdk {
namespace {

/// A process has one EAL, so it has one state.
enum class State : std::uint8_t { kNew, kStarted, kStopped };
State g_state = State::kNew;

/// Returns the MB of free hugepages of all sizes.
std::uint64_t free_hugepage_mb() {
    constexpr const char* kRoot = "/sys/kernel/mm/hugepages";
    DIR* dir = opendir(kRoot);
    if (dir == nullptr) return 0;
    std::uint64_t total_kb = 0;
    while (const dirent* entry = readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): own DIR
        unsigned long page_kb = 0;
        if (std::sscanf(entry->d_name, "hugepages-%lukB", &page_kb) != 1) continue;
        const std::string path = std::string(kRoot) + "/" + entry->d_name + "/free_hugepages";
        FILE* file = std::fopen(path.c_str(), "r");
        if (file == nullptr) continue;
        unsigned long pages = 0;
        if (std::fscanf(file, "%lu", &pages) == 1) total_kb += pages * page_kb;
        std::fclose(file);
    }
    closedir(dir);
    return total_kb / 1024;
}

/// Returns "(0,1,5)", the CPUs of a set as --lcores takes them.
std::string cpu_list(const cpu_set_t& cpus) {
    std::string list = "(";
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &cpus)) continue;
        if (list.size() > 1) list += ',';
        list += std::to_string(cpu);
    }
    return list + ")";
}

/// Returns true if a card accesses memory at physical addresses, which only hugepages keep.
bool needs_hugepages(const EalOptions& options) {
    return std::any_of(options.devices.begin(), options.devices.end(), [](const auto& device) {
        const std::string address = device.substr(0, device.find(','));
        return is_pci_address(address) && !behind_iommu(address);
    });
}

/// Checks that each card exists and belongs to no other process. Called before DPDK starts, which
/// would reset the card of another engine.
Err check_cards(const EalOptions& options, std::string& why) {
    for (const std::string& device : options.devices) {
        const std::string address = device.substr(0, device.find(','));
        if (!is_pci_address(address)) continue;
        if (const Err error = claim_card(address, why); error != Err::kOk) return error;
    }
    return Err::kOk;
}

Err choose_hugepages(const EalOptions& options, EalReport& report, std::string& why) {
    report.hugepages = false;
    if (options.hugepages == Hugepages::kNever) return Err::kOk;
    const std::uint64_t free_mb = free_hugepage_mb();
    if (free_mb >= options.memory_mb) {
        report.hugepages = true;
        return Err::kOk;
    }
    const std::uint64_t pages = (options.memory_mb + 1) / 2;
    const std::string how = "reserve some with: sysctl -w vm.nr_hugepages=" + std::to_string(pages);
    const std::string state = std::to_string(free_mb) + " MB of hugepages are free, " +
                              std::to_string(options.memory_mb) + " MB are wanted";
    if (needs_hugepages(options)) {
        why = state + ", and a NIC without an IOMMU can use no other memory; " + how;
        return Err::kNoMemory;
    }
    if (options.hugepages == Hugepages::kAlways) {
        why = state + "; " + how + ", lower memory_mb, or set hugepages = \"auto\"";
        return Err::kNoMemory;
    }
    report.notes.push_back("running without hugepages (" + state + "; " + how + ")");
    return Err::kOk;
}

std::vector<std::string> eal_arguments(const EalOptions& options, bool hugepages,
                                       const cpu_set_t& cpus) {
    std::vector<std::string> args{options.program, "--no-telemetry"};
    args.push_back("--file-prefix=" + runtime_prefix());
    args.push_back("--lcores=0@" + cpu_list(cpus));
    args.push_back("--log-level=" + options.log_level);
    args.insert(args.end(), {"-m", std::to_string(options.memory_mb)});
    args.emplace_back(hugepages ? "--huge-unlink" : "--no-huge");
    std::vector<std::string> addresses;
    for (const std::string& device : options.devices) {
        const std::string address = device.substr(0, device.find(','));
        if (!is_pci_address(address)) continue;
        args.insert(args.end(), {"-a", device});
        addresses.push_back(address);
    }
    if (addresses.empty()) args.emplace_back("--no-pci");
    const std::vector<std::string> own = own_driver_arguments(addresses);
    args.insert(args.end(), own.begin(), own.end());
    args.insert(args.end(), options.extra_args.begin(), options.extra_args.end());
    return args;
}

Err explain_init_failure(int error, const EalOptions& options, std::string& why) {
    const std::string said = take_recent_log();
    why = "DPDK did not start: " + std::string(rte_strerror(error));
    if (!said.empty()) why += " (" + said + ")";
    switch (error) {
        case EALREADY:
            why += "; it was started before in this process and cannot be started again";
            return Err::kInvalid;
        case EACCES:
        case EPERM:
            why += "; run as root, or give the user the device as 'ulc doctor' says";
            return Err::kPermission;
        case ENOMEM:
            why +=
                "; lower memory_mb (now " + std::to_string(options.memory_mb) + ") or free memory";
            return Err::kNoMemory;
        case EINVAL:
            why += options.extra_args.empty() ? "; this is a bug, please report it"
                                              : "; check eal_args";
            return Err::kInvalid;
        default:
            return Err::kSystem;
    }
}

}  // namespace

Err start_eal(const EalOptions& options, EalReport& report, std::string& why) {
    if (g_state == State::kStarted) return Err::kOk;
    if (g_state == State::kStopped) return explain_init_failure(EALREADY, options, why);
    if (const Err error = check_cards(options, why); error != Err::kOk) return error;
    if (const Err error = choose_hugepages(options, report, why); error != Err::kOk) return error;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
        why = std::string("sched_getaffinity: ") +
              std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
        return Err::kSystem;
    }
    route_log(nullptr, nullptr);
    std::vector<std::string> args = eal_arguments(options, report.hugepages, cpus);
    std::vector<char*> argv;
    argv.reserve(args.size());
    for (std::string& arg : args)
        argv.push_back(arg.data());
    // rte_eal_init reorders its array with getopt, whose state belongs to the process: restore it.
    const int saved_optind = optind;
    const int saved_opterr = opterr;
    int result = 0;
    {
        const RuntimeDirectory directory;
        result = rte_eal_init(static_cast<int>(argv.size()), argv.data());
    }
    const int error = rte_errno;
    optind = saved_optind;
    opterr = saved_opterr;
    if (sched_setaffinity(0, sizeof cpus, &cpus) != 0) {
        report.notes.emplace_back("the CPU affinity of the calling thread could not be restored");
    }
    if (result < 0) return explain_init_failure(error, options, why);
    g_state = State::kStarted;
    return Err::kOk;
}

void stop_eal() {
    if (g_state != State::kStarted) return;
    g_state = State::kStopped;
    // Does not call rte_eal_cleanup(): it closes memif servers (parked.h), and everything else that
    // it frees ends with the process.
    remove_parked_sockets();
    remove_runtime_directory();
}

std::uint64_t tsc_hz() { return rte_get_tsc_hz(); }

bool adopt_thread() {
    if (rte_lcore_id() != LCORE_ID_ANY) return true;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const bool known = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
    const bool adopted = rte_thread_register() == 0;
    if (known) sched_setaffinity(0, sizeof cpus, &cpus);
    return adopted;
}

void release_thread() {
    if (rte_lcore_id() != LCORE_ID_ANY) rte_thread_unregister();
}

}  // namespace ulc::dpdk
