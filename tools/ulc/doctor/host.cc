// SPDX-License-Identifier: BSD-3-Clause
// The doctor's look at cores, memory, hugepages, programs and the engine's socket.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/ulc/doctor/doctor.h"
#include "tools/ulc/doctor/files.h"
#include "tools/ulc/programs.h"

namespace ulc::tools {
namespace {

constexpr std::uint64_t kMebi = 1024 * 1024;
constexpr std::uint64_t kShmMin = 64 * kMebi;
constexpr std::uint64_t kMemlockMin = 64 * kMebi;
constexpr std::uint64_t kAvailableMin = 512 * kMebi;

[[maybe_unused]] bool has_flag(const std::string& cpuinfo, const std::string& flag) {
    const auto at = cpuinfo.find("\nflags");
    const auto line = cpuinfo.substr(std::min(at, cpuinfo.size()), cpuinfo.find('\n', at + 1) - at);
    return (line + " ").find(" " + flag + " ") != std::string::npos;
}

/// "MemAvailable:   123 kB" → octets, 0 if absent.
std::uint64_t meminfo(const std::string& text, const std::string& field) {
    const auto at = text.find(field + ":");
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + field.size() + 1)) * 1024;
}

}  // namespace

void check_cores(const std::string& root, Findings& out) {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    const int cores = CPU_COUNT(&set);
    const auto online = ::sysconf(_SC_NPROCESSORS_ONLN);
    const auto text = fmt::format("{} of {} online cores may be used", cores, online);
    if (cores >= 2) {
        out.push_back({Level::kOk, "cores", text, ""});
    } else if (online >= 2) {
        out.push_back({Level::kWarn, "cores",
                       text + ": engine and application would take turns on one",
                       fmt::format("taskset -p -c 0-{} $$", online - 1)});
    } else {
        out.push_back(
            {Level::kWarn, "cores",
             text + ": engine and application take turns, so latency is that of the scheduler",
             ""});
    }
    const std::string cpuinfo = whole_file(root + "/proc/cpuinfo");
#if defined(__x86_64__)
    if (!has_flag(cpuinfo, "sse4_2")) {
        out.push_back({Level::kFail, "processor", "no SSE4.2, which the portable build uses",
                       "meson configure build/release -Dmarch=native"});
    }
    if (!has_flag(cpuinfo, "constant_tsc")) {
        out.push_back({Level::kWarn, "clock",
                       "the time stamp counter is not constant; measured times may be off", ""});
    }
#endif
    const std::string governor =
        first_line(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if (governor == "powersave" || governor == "ondemand" || governor == "conservative") {
        out.push_back(
            {Level::kWarn, "frequency", fmt::format("governor {} slows a core that naps", governor),
             "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"});
    }
}

void check_memory(const std::string& root, Findings& out) {
    struct statvfs shm {};
    if (::statvfs((root + "/dev/shm").c_str(), &shm) != 0) {
        out.push_back({Level::kWarn, "/dev/shm", "is not there",
                       "sudo mount -t tmpfs -o size=1G tmpfs /dev/shm"});
    } else if (const auto free = std::uint64_t{shm.f_bavail} * shm.f_frsize; free < kShmMin) {
        out.push_back({Level::kWarn, "/dev/shm", fmt::format("only {} MiB free", free / kMebi),
                       "sudo mount -o remount,size=1G /dev/shm"});
    } else {
        out.push_back({Level::kOk, "/dev/shm", fmt::format("{} MiB free", free / kMebi), ""});
    }
    const auto available = meminfo(whole_file(root + "/proc/meminfo"), "MemAvailable");
    if (available > 0 && available < kAvailableMin) {
        out.push_back(
            {Level::kWarn, "memory",
             fmt::format("only {} MiB available; an engine without hugepages takes 256 MiB",
                         available / kMebi),
             ""});
    }
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || ::geteuid() == 0) {
        out.push_back({Level::kOk, "memlock",
                       ::geteuid() == 0 ? "root may lock all memory" : "no limit", ""});
    } else if (limit.rlim_cur < kMemlockMin) {
        out.push_back({Level::kWarn, "memlock",
                       fmt::format("this user may lock {} KiB; an engine that it starts wants {} "
                                   "MiB for endpoints, more with vfio",
                                   limit.rlim_cur / 1024, kMemlockMin / kMebi),
                       "echo \"$USER - memlock unlimited\" | sudo tee "
                       "/etc/security/limits.d/ulc.conf   # then log in again"});
    } else {
        out.push_back({Level::kOk, "memlock", fmt::format("{} MiB", limit.rlim_cur / kMebi), ""});
    }
}

void check_hugepages(const std::string& root, Findings& out) {
    const std::string pages = root + "/sys/kernel/mm/hugepages";
    long long total = 0;
    long long free = 0;
    for (const auto& size : names_in(pages)) {
        const auto mebi = size.starts_with("hugepages-") ? std::stoll(size.substr(10)) / 1024 : 0;
        total += mebi * number_in(fmt::format("{}/{}/nr_hugepages", pages, size), 0);
        free += mebi * number_in(fmt::format("{}/{}/free_hugepages", pages, size), 0);
    }
    const std::string reserve =
        "echo 256 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    if (total == 0) {
        out.push_back(
            {Level::kWarn, "hugepages",
             "none reserved; engines run without, but a NIC bound to vfio or uio wants them",
             reserve});
    } else if (free == 0) {
        out.push_back({Level::kWarn, "hugepages",
                       fmt::format("all {} MiB are taken, perhaps by a run that crashed", total),
                       "sudo rm -f /dev/hugepages/*map_*   # only when no DPDK program runs"});
    } else {
        out.push_back({Level::kOk, "hugepages", fmt::format("{} of {} MiB free", free, total), ""});
    }
    if (total > 0 && whole_file(root + "/proc/mounts").find(" hugetlbfs ") == std::string::npos) {
        out.push_back(
            {Level::kWarn, "hugetlbfs", "is not mounted",
             "sudo mkdir -p /dev/hugepages && sudo mount -t hugetlbfs none /dev/hugepages"});
    }
}

void check_programs(Findings& out) {
    const std::string build = "tools/setup build && tools/build release";
    const std::pair<const char*, const char*> programs[] = {{"ulc-engine", "pmd_app/main"},
                                                            {"ulc-switch", "pmd_app/switch"}};
    for (const auto& [name, folder] : programs) {
        const auto path = find_program(name, folder, "");
        out.push_back(path.empty() ? Finding{Level::kFail, name, "is not there", build}
                                   : Finding{Level::kOk, name, path, ""});
    }
    const auto library = find_library("libulc-engine.so", "pmd_app/main");
    out.push_back(library.empty() ? Finding{Level::kWarn, "libulc-engine.so",
                                            "is not there, so no embedded engines", build}
                                  : Finding{Level::kOk, "libulc-engine.so", library, ""});
    for (const char* base : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/local/lib/x86_64-linux-gnu", "/usr/local/lib64", "/usr/lib64"}) {
        for (const auto& pmds : names_in(fmt::format("{}/dpdk", base))) {
            const auto folder = fmt::format("{}/dpdk/{}", base, pmds);
            const auto drivers = names_in(folder);
            const auto memif = std::count_if(drivers.begin(), drivers.end(), [](const auto& n) {
                return n.starts_with("librte_net_memif.so");
            });
            if (memif == 0) continue;
            out.push_back(
                {Level::kOk, "DPDK", fmt::format("{} drivers in {}", drivers.size(), folder), ""});
            return;
        }
    }
    out.push_back({Level::kFail, "DPDK", "its drivers are not in the usual folders",
                   "sudo apt-get install dpdk   # or: tools/setup build"});
}

void check_socket(const std::string& socket, Findings& out) {
    const std::string topic = "socket " + socket;
    const std::string folder = std::filesystem::path(socket).parent_path().string();
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) {
        const bool denied = errno == EACCES;
        out.push_back({Level::kWarn, topic,
                       denied ? "its folder is closed to this user"
                              : "no engine runs: its folder is not there",
                       fmt::format("sudo install -d -m 0755 {}", folder)});
        return;
    }
    if (::stat(socket.c_str(), &info) != 0) {
        out.push_back(
            {Level::kWarn, topic, "no engine runs here (embedded engines and `ulc run` need none)",
             fmt::format("ulc-engine --socket {}   # with --device; see ulc-engine --help",
                         socket)});
        return;
    }
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    const int error =
        ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
    ::close(fd);
    if (error == 0) {
        out.push_back({Level::kOk, topic, "an engine answers", ""});
    } else if (error == EACCES) {
        out.push_back({Level::kFail, topic, "this user may not connect",
                       "sudo setfacl -m u:$USER:rw " + socket +
                           "   # and allow the user in the engine's configuration"});
    } else if (error == ECONNREFUSED) {
        out.push_back({Level::kWarn, topic,
                       "left over from an engine that has ended; the next one replaces it",
                       "ulc-engine --socket " + socket});
    } else {
        out.push_back({Level::kFail, topic, std::strerror(error),
                       "rm " + socket + "   # if it is no engine's"});
    }
}

}  // namespace ulc::tools
