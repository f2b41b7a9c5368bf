// SPDX-License-Identifier: BSD-3-Clause
// Other local users and older kernels, for tests of what an engine lets clients do.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ulc::test {

inline constexpr uid_t kNobody = 65534;

/// Makes this process that user, in no other group.
inline bool become(uid_t uid) {
    return setgroups(0, nullptr) == 0 && setgid(uid) == 0 && setuid(uid) == 0;
}

enum class Kernel { kThis, kOld };

/// A system call that fails, always or if the low half of one argument has this value.
struct RefusedCall {
    static constexpr int kAlways = -1;
    unsigned number;
    int error;
    int argument = kAlways;
    unsigned value = 0;
};

/// Makes these calls fail in this process and its children, as an older kernel would.
inline bool refuse_calls(const std::vector<RefusedCall>& calls) {
    std::vector<sock_filter> code;
    for (const RefusedCall& call : calls) {
        const bool always = call.argument == RefusedCall::kAlways;
        const auto rest = static_cast<unsigned char>(always ? 1 : 3);
        code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
        code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.number, 0, rest));
        if (!always) {
            const auto low_half = offsetof(seccomp_data, args) + 8U * unsigned(call.argument);
            code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(low_half)));
            code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.value, 0, 1));
        }
        const unsigned verdict = SECCOMP_RET_ERRNO | unsigned(call.error);
        code.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
    }
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Takes SO_PASSRIGHTS, SO_PEERPIDFD and MFD_NOEXEC_SEAL away, as before Linux 6.3.
inline bool pretend_old_kernel() {
    constexpr unsigned kPassRights = 83;
    constexpr unsigned kPeerPidfd = 77;
    constexpr unsigned kSealNoexec = 0x0b;  // with CLOEXEC and ALLOW_SEALING
    return refuse_calls({{SYS_setsockopt, ENOPROTOOPT, 2, kPassRights},
                         {SYS_getsockopt, ENOPROTOOPT, 2, kPeerPidfd},
                         {SYS_memfd_create, EINVAL, 1, kSealNoexec}});
}

/// Takes pidfd_open() away too, as before Linux 5.3.
inline bool pretend_kernel_without_pidfd() {
    return pretend_old_kernel() && refuse_calls({{SYS_pidfd_open, ENOSYS}});
}

/// Arguments of an engine on shared memory, which starts in milliseconds.
inline std::vector<std::string> shm_engine(const std::string& wire, const std::string& socket,
                                           int station = 0) {
    return {"--device", "shm,path=" + wire + ",stations=2,station=" + std::to_string(station),
            "--socket", socket};
}

/// A connection to an engine's socket, or -1.
inline int connect_to(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    return -1;
}

/// Processor time of all threads of a process.
inline double cpu_seconds(pid_t pid) {
    clockid_t clock{};
    timespec now{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Returns how often the thread of this name went to sleep; -1: there is none.
inline long sleeps_of_thread(pid_t pid, std::string_view name) {
    constexpr std::string_view kField = "voluntary_ctxt_switches:";
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        std::string line;
        std::getline(std::ifstream(task.path() / "comm"), line);
        if (line != name) continue;
        std::ifstream status(task.path() / "status");
        while (std::getline(status, line))
            if (line.starts_with(kField)) return std::stol(line.substr(kField.size()));
    }
    return -1;
}

}  // namespace ulc::test
