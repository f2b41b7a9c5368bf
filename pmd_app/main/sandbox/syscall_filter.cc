// SPDX-License-Identifier: BSD-3-Clause
// The system calls that an engine may make after its start: an allow list for all of its threads,
// DPDK's included.
//
// A call that is on no list fails with EPERM: a new version of glibc or of a driver may make one
// that was not foreseen. The engine then reports an error; killing it would end the jobs of all
// users. Calls that only an intruder makes (kKilled: run a program, trace a process, load kernel
// code) end the engine at once, and the kernel logs them.
#include "main/sandbox/sandbox.h"

#ifdef ULC_HAVE_SECCOMP

#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace ulc::daemon {
namespace {

constexpr const char* kAllowed[] = {
    // the engine's thread: naps, wake-ups, packet sockets
    "epoll_pwait2", "epoll_wait", "epoll_pwait", "futex", "sched_yield", "sendto", "recvfrom",
    "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "read", "write", "readv", "writev", "pread64",
    "pwrite64", "poll", "ppoll", "select", "pselect6", "nanosleep", "clock_nanosleep",
    // attach server and memif control
    "accept", "accept4", "bind", "listen", "connect", "shutdown", "getsockopt", "setsockopt",
    "getsockname", "getpeername", "socketpair", "close", "close_range", "epoll_create1",
    "epoll_create", "epoll_ctl", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_gettime",
    "pipe2", "dup", "dup3", "fcntl", "flock", "memfd_create", "ftruncate", "fallocate", "lseek",
    "pidfd_open", "membarrier",
    // files: looked at, removed at the end
    "fstat", "newfstatat", "statx", "stat", "lstat", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat", "getdents64", "unlink", "unlinkat", "rmdir", "getcwd",
    // memory
    "brk", "munmap", "mremap", "madvise", "mlock", "mlock2", "munlock", "mincore",
    // threads, signals, time
    "exit", "exit_group", "set_robust_list", "get_robust_list", "rseq", "set_tid_address",
    "arch_prctl", "gettid", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigsuspend",
    "sigaltstack", "restart_syscall", "sched_getaffinity", "sched_setaffinity", "sched_getparam",
    "sched_getscheduler", "getcpu", "getrusage", "getrlimit", "clock_gettime", "clock_getres",
    "gettimeofday", "time", "times", "sysinfo", "uname", "getrandom"};

constexpr const char* kKilled[] = {"execve",
                                   "execveat",
                                   "ptrace",
                                   "process_vm_readv",
                                   "mount",
                                   "umount2",
                                   "process_vm_writev",
                                   "pivot_root",
                                   "chroot",
                                   "setns",
                                   "unshare",
                                   "init_module",
                                   "finit_module",
                                   "delete_module",
                                   "kexec_load",
                                   "kexec_file_load",
                                   "bpf",
                                   "userfaultfd",
                                   "perf_event_open",
                                   "open_by_handle_at",
                                   "io_uring_setup",
                                   "keyctl",
                                   "add_key",
                                   "request_key",
                                   "reboot"};

/// RDMA_VERBS_IOCTL of the kernel's rdma_user_ioctl_cmds.h, whose header has 24 bytes.
constexpr unsigned long kVerbsRequest = _IOC(_IOC_READ | _IOC_WRITE, 0x1b, 1, 24);

/// Requests of a device to a network interface.
constexpr unsigned long kInterfaceRequests[] = {
    SIOCGIFFLAGS, SIOCSIFFLAGS, SIOCGIFMTU,   SIOCSIFMTU,   SIOCGIFHWADDR, SIOCSIFHWADDR,
    SIOCGIFINDEX, SIOCGIFNAME,  SIOCADDMULTI, SIOCDELMULTI, SIOCETHTOOL};

class Filter {
public:
    Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM))) {}
    ~Filter() {
        if (context_ != nullptr) seccomp_release(context_);
    }
    Filter(const Filter&) = delete;
    Filter& operator=(const Filter&) = delete;

    /// A call that this libseccomp or this machine does not know needs no rule.
    void rule(std::uint32_t action, const char* call,
              std::initializer_list<scmp_arg_cmp> when = {}) {
        const int number = seccomp_syscall_resolve_name(call);
        if (context_ == nullptr || number < 0) return;
        const int result = seccomp_rule_add_array(context_, action, number,
                                                  static_cast<unsigned>(when.size()), when.begin());
        if (result != 0 && error_ == 0) error_ = -result;
    }
    void allow(const char* call, std::initializer_list<scmp_arg_cmp> when = {}) {
        rule(SCMP_ACT_ALLOW, call, when);
    }
    void set(scmp_filter_attr attribute, std::uint32_t value) {
        if (context_ == nullptr) return;
        const int result = seccomp_attr_set(context_, attribute, value);
        if (result != 0 && error_ == 0) error_ = -result;
    }
    /// 0, or the number of the first error.
    [[nodiscard]] int load() const {
        if (context_ == nullptr) return ENOMEM;
        return error_ != 0 ? error_ : -seccomp_load(context_);
    }

private:
    scmp_filter_ctx context_;
    int error_ = 0;
};

scmp_arg_cmp equal(unsigned argument, std::uint64_t value) {
    return {argument, SCMP_CMP_EQ, value, 0};
}
scmp_arg_cmp masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
    return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}

/// No memory that can be both written and executed and no second process, only threads. Code comes
/// from files alone, and only if the engine core may be replaced.
void allow_threads_and_memory(Filter& filter, const SandboxNeeds& needs) {
    filter.allow("mmap", {masked(2, PROT_EXEC, 0)});
    if (needs.upgrades)
        filter.allow("mmap", {masked(2, PROT_EXEC | PROT_WRITE, PROT_EXEC),
                              masked(3, MAP_TYPE | MAP_ANONYMOUS, MAP_PRIVATE)});
    filter.allow("mprotect", {masked(2, PROT_EXEC, 0)});
    filter.allow("clone", {masked(0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM)});
    // The flags of clone3 lie in memory, where no filter sees them; glibc then takes clone.
    filter.rule(SCMP_ACT_ERRNO(ENOSYS), "clone3");
    filter.allow("tgkill", {equal(0, static_cast<std::uint64_t>(getpid()))});
    filter.allow("kill", {equal(1, 0)});  // whether a process is there
    filter.allow("prlimit64", {equal(2, 0)});
    for (const int option : {PR_SET_NAME, PR_GET_NAME, PR_SET_TIMERSLACK, PR_SET_VMA})
        filter.allow("prctl", {masked(0, 0xffff'ffff, static_cast<std::uint64_t>(option))});
}

void allow_files(Filter& filter, const SandboxNeeds& needs) {
    // A driver of a card writes to sysfs and device files; otherwise files are only read.
    const std::uint64_t forbidden = needs.card ? O_CREAT | O_TRUNC : O_ACCMODE | O_CREAT | O_TRUNC;
    filter.allow("openat", {masked(2, forbidden, 0)});
    filter.allow("open", {masked(1, forbidden, 0)});
}

void allow_devices(Filter& filter, const SandboxNeeds& needs) {
    filter.allow("socket", {equal(0, AF_UNIX)});
    if (needs.packet_socket) filter.allow("socket", {equal(0, AF_PACKET)});
    if (needs.packet_socket || needs.kernel_interface || needs.card)
        filter.allow("socket", {equal(0, AF_INET)});  // to ask for the state of an interface
    if (needs.kernel_interface || needs.card) filter.allow("socket", {equal(0, AF_NETLINK)});
    if (needs.card) {
        filter.allow("ioctl", {scmp_arg_cmp{1, SCMP_CMP_NE, TIOCSTI, 0}});
        return;
    }
    filter.allow("ioctl", {equal(1, TCGETS)});                   // isatty()
    if (needs.udp) filter.allow("ioctl", {equal(1, SIOCOUTQ)});  // octets that wait in the socket
    if (needs.rdma) {
        filter.allow("ioctl", {equal(1, kVerbsRequest)});  // address handles, groups, resets
        for (const int family : {AF_INET, AF_INET6})       // groups, by IGMP and MLD
            filter.allow("socket", {equal(0, static_cast<std::uint64_t>(family))});
    }
    if (!needs.packet_socket && !needs.kernel_interface) return;
    for (const unsigned long request : kInterfaceRequests)
        filter.allow("ioctl", {equal(1, request)});
}

}  // namespace

bool filter_system_calls(const SandboxNeeds& needs, std::string& why) {
    Filter filter;
    filter.set(SCMP_FLTATR_CTL_TSYNC, 1);
    // Before Linux 5.16 a filter would otherwise slow down every load of the process.
    filter.set(SCMP_FLTATR_CTL_SSB, 1);
    filter.set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    for (const char* call : kAllowed)
        filter.allow(call);
    for (const char* call : kKilled)
        filter.rule(SCMP_ACT_KILL_PROCESS, call);
    allow_threads_and_memory(filter, needs);
    allow_files(filter, needs);
    allow_devices(filter, needs);
    const int error = filter.load();
    if (error == 0) return true;
    why = std::string("the kernel takes no system call filter: ") +
          std::strerror(error);  // NOLINT(concurrency-mt-unsafe): start-up
    return false;
}

}  // namespace ulc::daemon

#else

namespace ulc::daemon {

bool filter_system_calls(const SandboxNeeds& /*needs*/, std::string& why) {
    why = "this engine was built without libseccomp";
    return false;
}

}  // namespace ulc::daemon

#endif
