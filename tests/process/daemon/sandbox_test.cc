// SPDX-License-Identifier: BSD-3-Clause
// The sandbox of a running engine: on in every thread, refusing what it forbids, allowing what an
// engine does after its start.
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <ulc.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include "main/sandbox/sandbox.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

using daemon::enter_sandbox;
using daemon::SandboxMode;
using daemon::SandboxNeeds;

constexpr int kSkipped = 42;

struct State {
    std::uint64_t capabilities = ~std::uint64_t{0};  ///< effective, permitted and inheritable
    int no_new_privs = -1;
    int seccomp = -1;
};

State state_of(const std::filesystem::path& task) {
    State state;
    state.capabilities = 0;
    std::ifstream status(task / "status");
    for (std::string line; std::getline(status, line);) {
        const std::string value = line.substr(line.find('\t') + 1);
        if (line.starts_with("CapEff:") || line.starts_with("CapPrm:"))
            state.capabilities |= std::stoull(value, nullptr, 16);
        if (line.starts_with("NoNewPrivs:")) state.no_new_privs = std::stoi(value);
        if (line.starts_with("Seccomp:")) state.seccomp = std::stoi(value);
    }
    return state;
}

std::vector<std::filesystem::path> tasks_of(pid_t pid) {
    std::vector<std::filesystem::path> tasks;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task"))
        tasks.push_back(entry.path());
    return tasks;
}

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

struct OneEngine {
    explicit OneEngine(const std::string& device, const std::vector<std::string>& more = {}) {
        std::vector<std::string> arguments{"--device", device,        "--socket",
                                           socket,     "--hugepages", "never"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        engine = start_engine(arguments, log);
        EXPECT_TRUE(eventually([&] {
            return text_of(log).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log);
    }
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    Process engine;
};

void expect_restricted(const OneEngine& one, std::size_t threads) {
    const auto tasks = tasks_of(one.engine.pid());
    EXPECT_GE(tasks.size(), threads);
    for (const auto& task : tasks) {
        const State state = state_of(task);
        // Kept where the limit of locked memory cannot be lifted.
        EXPECT_EQ(state.capabilities & ~bit(CAP_IPC_LOCK), 0U) << task;
        EXPECT_EQ(state.no_new_privs, 1) << task;
        EXPECT_EQ(state.seccomp, 2) << task;
    }
    EXPECT_NE(text_of(one.log).find("no new privileges, system calls filtered"), std::string::npos)
        << text_of(one.log);
}

TEST(Sandbox, holds_every_thread_of_an_engine_on_memif) {
    Scratch scratch;
    OneEngine one("net_memif,role=server,socket-abstract=no,socket=" + (scratch / "wire"),
                  {"--sandbox", "yes"});
    expect_restricted(one, 4);  // main, engine, attach server, DPDK's interrupt thread
    ulc_endpoint* ep = nullptr;
    EXPECT_EQ(ulc_open(one.socket.c_str(), &ep), ULC_OK) << ulc_last_error_text();
    ulc_close(ep);
    one.engine.signal(SIGTERM);
    EXPECT_EQ(one.engine.wait(), 0) << text_of(one.log);
    EXPECT_NE(access(one.socket.c_str(), F_OK), 0) << "its socket is still there";
}

TEST(Sandbox, is_on_without_an_option_on_shared_memory) {
    Scratch scratch;
    const OneEngine one("shm,station=0,path=" + (scratch / "wire"));
    expect_restricted(one, 3);
}

TEST(Sandbox, is_off_if_asked) {
    Scratch scratch;
    const OneEngine one("shm,station=0,path=" + (scratch / "wire"), {"--sandbox", "no"});
    for (const auto& task : tasks_of(one.engine.pid()))
        EXPECT_EQ(state_of(task).seccomp, 0);
}

/// Runs `call` under the sandbox, in a thread that was there before; its exit code or minus the
/// signal that ended the process.
int in_sandbox(const std::function<int()>& call, const SandboxNeeds& needs = {}) {
    return run_child([&] {
               std::atomic<bool> ready{false};
               std::atomic<int> result{-1};
               std::thread other([&] {
                   ready.wait(false);
                   result = call();
               });
               std::string report;
               std::string why;
               if (enter_sandbox(SandboxMode::kYes, needs, report, why) != Err::kOk) {
                   std::fprintf(stderr, "%s\n", why.c_str());
                   return kSkipped;
               }
               ready = true;
               ready.notify_all();
               other.join();
               return result.load();
           })
        .wait();
}

/// 0 if the call failed with EPERM.
int refused(long result) { return result == -1 && errno == EPERM ? 0 : 1; }

TEST(Sandbox, refuses_calls_that_an_engine_never_makes) {
    const std::vector<std::pair<const char*, std::function<long()>>> calls{
        {"socket of IP", [] { return socket(AF_INET, SOCK_STREAM, 0); }},
        {"packet socket", [] { return socket(AF_PACKET, SOCK_RAW, 0); }},
        {"open to write", [] { return open("/dev/null", O_RDWR); }},
        {"open to create", [] { return open("/tmp/ulc-sandbox", O_RDONLY | O_CREAT, 0600); }},
        {"fork", [] { return syscall(SYS_fork); }},
        {"clone of a process", [] { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
        {"signal to another process", [] { return kill(getppid(), SIGUSR1); }},
        {"limits",
         [] {
             const rlimit none{0, 0};
             return setrlimit(RLIMIT_CORE, &none);
         }},
        {"executable memory",
         [] {
             return mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                         0) == MAP_FAILED
                        ? -1L
                        : 0L;
         }},
        {"write to the terminal of others", [] { return ioctl(0, 0x5412, "x"); }},
        {"a call that is on no list", [] { return syscall(SYS_personality, 0xffffffff); }},
    };
    for (const auto& [name, call] : calls)
        EXPECT_EQ(in_sandbox([&call = call] { return refused(call()); }), 0) << name;
}

TEST(Sandbox, ends_a_process_that_acts_like_an_intruder) {
    const std::vector<std::pair<const char*, std::function<void()>>> calls{
        {"execve", [] { execl("/bin/true", "true", nullptr); }},
        {"ptrace", [] { ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }},
        {"unshare", [] { unshare(0); }},
        {"bpf", [] { syscall(SYS_bpf, 0, nullptr, 0); }},
        {"io_uring", [] { syscall(SYS_io_uring_setup, 1, nullptr); }},
        {"reading another process", [] { syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0); }},
    };
    for (const auto& [name, call] : calls) {
        EXPECT_EQ(in_sandbox([&call = call] {
                      call();
                      return 0;
                  }),
                  -SIGSYS)
            << name;
    }
}

TEST(Sandbox, allows_what_an_engine_does) {
    EXPECT_EQ(in_sandbox([] {
                  const int memory = memfd_create("test", MFD_CLOEXEC);
                  if (memory < 0 || ftruncate(memory, 65536) != 0) return 1;
                  void* mapped =
                      mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
                  if (mapped == MAP_FAILED) return 2;
                  if (mlock(mapped, 65536) != 0 && errno != ENOMEM) return 3;
                  const std::string self = "/proc/self/fd/" + std::to_string(memory);
                  if (open(self.c_str(), O_RDONLY | O_CLOEXEC) < 0) return 4;
                  if (socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) < 0) return 5;
                  int started = 0;
                  std::thread([&] { started = 1; }).join();
                  if (started != 1) return 6;
                  return kill(getpid(), 0) == 0 ? 0 : 7;
              }),
              0);
}

TEST(Sandbox, keeps_the_capability_that_a_packet_socket_needs) {
    if ((state_of("/proc/self").capabilities & bit(CAP_NET_RAW)) == 0)
        GTEST_SKIP() << "needs CAP_NET_RAW";
    const auto holds = [](bool packet) {
        return in_sandbox(
            [] {
                const std::uint64_t left = state_of("/proc/thread-self").capabilities;
                return static_cast<int>((left & ~bit(CAP_IPC_LOCK)) == bit(CAP_NET_RAW)) +
                       2 * static_cast<int>((left & ~bit(CAP_IPC_LOCK)) != 0);
            },
            SandboxNeeds{.packet_socket = packet});
    };
    EXPECT_EQ(holds(true), 3);
    EXPECT_EQ(holds(false), 0);
}

}  // namespace
}  // namespace ulc::test
