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
#include <iterator>
#include <string>
#include <vector>

namespace ulc::test {

inline constexpr uid_t kNobody = 65534;

/// Makes this process that user, in no other group.
inline bool become(uid_t uid) {
    return setgroups(0, nullptr) == 0 && setgid(uid) == 0 && setuid(uid) == 0;
}

enum class Kernel { kThis, kOld };

/// Takes SO_PASSRIGHTS, SO_PEERPIDFD and MFD_NOEXEC_SEAL away from this process and its children,
/// as before Linux 6.3.
inline bool pretend_old_kernel() {
    constexpr auto low_half_of = [](unsigned n) {
        return static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * n);
    };
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getsockopt, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 5, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half_of(2)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 83, 4, 5),  // SO_PASSRIGHTS
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half_of(2)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 2, 3),  // SO_PEERPIDFD
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half_of(1)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 8, 2, 1),  // MFD_NOEXEC_SEAL
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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
    close(fd);
    return -1;
}

/// Processor time of all threads of a process.
inline double cpu_seconds(pid_t pid) {
    clockid_t clock{};
    timespec now{};
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace ulc::test
