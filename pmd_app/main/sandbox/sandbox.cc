// SPDX-License-Identifier: BSD-3-Clause
#include "main/sandbox/sandbox.h"

#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>

#include "main/wires/wire.h"

namespace ulc::daemon {
namespace {

constexpr int kWaitsMax = 2000;  ///< milliseconds, until each thread has answered its signal

struct CapabilityName {
    unsigned number;
    const char* name;
};
constexpr CapabilityName kNames[] = {{CAP_DAC_OVERRIDE, "dac_override"},
                                     {CAP_IPC_LOCK, "ipc_lock"},
                                     {CAP_NET_ADMIN, "net_admin"},
                                     {CAP_NET_RAW, "net_raw"},
                                     {CAP_SYS_RAWIO, "sys_rawio"}};

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

/// State of one thread, from /proc/self/task/ID/status.
struct ThreadState {
    std::uint64_t permitted = 0;
    std::uint64_t effective = 0;
    std::uint64_t blocked = 0;
    bool no_new_privs = false;
};

std::vector<pid_t> threads() {
    std::vector<pid_t> ids;
    DIR* folder = opendir("/proc/self/task");
    if (folder == nullptr) return ids;
    while (const dirent* entry = readdir(folder)) {  // NOLINT(concurrency-mt-unsafe): own DIR
        if (entry->d_name[0] != '.')
            ids.push_back(static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)));
    }
    closedir(folder);
    return ids;
}

/// False: the thread has ended.
bool read_state(pid_t thread, ThreadState& out) {
    std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
    if (!status) return false;
    for (std::string line; std::getline(status, line);) {
        const auto value = [&](int base) {
            return std::strtoull(line.c_str() + line.find('\t'), nullptr, base);
        };
        if (line.starts_with("CapPrm:")) out.permitted = value(16);
        if (line.starts_with("CapEff:")) out.effective = value(16);
        if (line.starts_with("SigBlk:")) out.blocked = value(16);
        if (line.starts_with("NoNewPrivs:")) out.no_new_privs = value(10) == 1;
    }
    return true;
}

/// Capabilities that the calling thread may have; /proc need not be there.
std::uint64_t permitted() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (syscall(SYS_capget, &header, data) != 0) return 0;
    return data[0].permitted | std::uint64_t{data[1].permitted} << 32;
}

// Read by the signal handler of each thread.
std::uint64_t g_kept = 0;
bool g_gives_up = true;  // false: all are kept, and the credentials stay as they are

/// Gives up privileges for the calling thread: the kernel keeps both for each thread on its own.
void restrict_this_thread() {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!g_gives_up) return;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    for (unsigned half = 0; half < 2; ++half)
        data[half].effective = data[half].permitted =
            static_cast<std::uint32_t>(g_kept >> (32 * half));
    syscall(SYS_capset, &header, data);
}

void on_signal(int /*number*/) {
    const int saved = errno;
    restrict_this_thread();
    errno = saved;
}

void sleep_a_millisecond() {
    const timespec nap{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&nap, nullptr);
}

/// A real-time signal that nothing handles and no thread blocks; 0: there is none.
int free_signal(const std::vector<pid_t>& ids) {
    std::uint64_t blocked = 0;
    for (const pid_t id : ids) {
        ThreadState state;
        if (read_state(id, state)) blocked |= state.blocked;
    }
    for (int number = SIGRTMAX; number >= SIGRTMIN; --number) {
        struct sigaction action {};
        if (((blocked >> (number - 1)) & 1) == 0 && sigaction(number, nullptr, &action) == 0 &&
            action.sa_handler == SIG_DFL)
            return number;
    }
    return 0;
}

bool restricted(const ThreadState& state) {
    return state.no_new_privs && ((state.permitted | state.effective) & ~g_kept) == 0;
}

/// Threads of DPDK were made with all privileges, and only a thread itself can give them up.
bool restrict_all_threads(std::string& why) {
    restrict_this_thread();
    int number = free_signal(threads());
    for (int waits = 0; number == 0 && waits < kWaitsMax; ++waits) {
        sleep_a_millisecond();  // a thread that starts blocks all signals for a moment
        number = free_signal(threads());
    }
    if (number == 0) {
        why = "every real-time signal is taken, so that DPDK's threads keep their privileges";
        return false;
    }
    if (threads().empty()) {
        why = "/proc is not mounted, so that DPDK's threads keep their privileges";
        return false;
    }
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
    std::set<pid_t> asked;
    std::vector<pid_t> left;
    for (int waits = 0; waits < kWaitsMax; ++waits) {
        left.clear();
        for (const pid_t id : threads()) {
            ThreadState state;
            if (!read_state(id, state) || restricted(state)) continue;
            left.push_back(id);
            if (asked.insert(id).second) syscall(SYS_tgkill, getpid(), id, number);
        }
        if (left.empty()) break;
        sleep_a_millisecond();
    }
    action.sa_handler = SIG_IGN;  // one that comes late must not end the process
    sigaction(number, &action, nullptr);
    if (left.empty()) return true;
    why = "thread " + std::to_string(left.front()) + " did not give up its privileges";
    return false;
}

/// True if this user may make and remove files in the folder of the path, and use what lies there,
/// without CAP_DAC_OVERRIDE.
bool is_own_place(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "."
                               : slash == 0               ? "/"
                                                          : path.substr(0, slash);
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) return false;
    const bool for_all = (status.st_mode & (S_IWOTH | S_IXOTH)) == (S_IWOTH | S_IXOTH);
    if (status.st_uid != geteuid() && !for_all) return false;
    struct stat file {};
    return lstat(path.c_str(), &file) != 0 || file.st_uid == geteuid();
}

/// Lifts the limit of locked memory, so that mlock() needs no capability. False: not permitted.
bool unlimited_lock() {
    const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_MEMLOCK, &none) == 0;
}

/// The kernel refuses write() to an RDMA device by a process whose credentials are others than
/// when it opened the device (ib_safe_file_access), and some providers send by write().
std::uint64_t capabilities_for(const SandboxNeeds& needs) {
    if (needs.rdma) return permitted();
    std::uint64_t kept = 0;
    if (needs.packet_socket) kept |= bit(CAP_NET_RAW);
    if (needs.kernel_interface) kept |= bit(CAP_NET_ADMIN);
    if (needs.card)
        kept |= bit(CAP_NET_ADMIN) | bit(CAP_NET_RAW) | bit(CAP_IPC_LOCK) | bit(CAP_SYS_RAWIO);
    if (!std::ranges::all_of(needs.paths, is_own_place)) kept |= bit(CAP_DAC_OVERRIDE);
    if (!unlimited_lock()) kept |= bit(CAP_IPC_LOCK);
    return kept & permitted();
}

std::string text_of_capabilities(std::uint64_t set) {
    std::string text;
    for (const auto& [number, name] : kNames) {
        if ((set & bit(number)) != 0) text += (text.empty() ? "" : " ") + std::string(name);
    }
    return text.empty() ? "none" : text;
}

}  // namespace

SandboxNeeds needs_of(const std::vector<std::string>& devices, bool exception,
                      const std::string& attach_socket) {
    SandboxNeeds needs;
    needs.kernel_interface = exception;
    needs.paths.push_back(attach_socket);
    for (const std::string& device : devices)
        wire_of(device).add_needs(device, needs);
    return needs;
}

Err enter_sandbox(SandboxMode mode, const SandboxNeeds& needs, std::string& report,
                  std::string& why) {
    if (mode == SandboxMode::kNo) {
        report = "sandbox: off";
        return Err::kOk;
    }
    g_kept = capabilities_for(needs);
    g_gives_up = g_kept != permitted();
    std::string missing;
    const bool threads_done = restrict_all_threads(missing);
    const bool filtered = filter_system_calls(needs, missing);
    if ((!threads_done || !filtered) && mode == SandboxMode::kYes) {
        why = "--sandbox yes: " + missing + "; use --sandbox auto for what is possible here";
        return Err::kUnsupported;
    }
    report = "sandbox: capabilities " + text_of_capabilities(g_kept) +
             (threads_done ? ", no new privileges" : "") +
             (filtered ? ", system calls filtered" : "");
    if (!missing.empty()) report += "; incomplete: " + missing;
    return Err::kOk;
}

}  // namespace ulc::daemon
