// SPDX-License-Identifier: BSD-3-Clause
// An engine whose thread is stuck ends on SIGTERM within its limits, and says which thread does not
// end. A tracer stops that thread, as a device or a lock would.
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "tests/process/cluster_of_two.h"

namespace ulc::test {
namespace {

constexpr std::chrono::milliseconds kPeerDead{400};
constexpr int kEndSeconds = 60;  ///< 15 s by its clock, on a busy machine

/// Returns the thread that was started last, which makes the rounds.
pid_t engine_thread(pid_t process) {
    pid_t newest = process;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task"))
        newest = std::max<pid_t>(newest, std::stoi(task.path().filename()));
    return newest;
}

/// Stops one thread of a child. False: the machine does not let it.
bool stop_thread(pid_t thread) {
    if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return false;
    int status = 0;
    return ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 &&
           waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status);
}

TEST(StuckEngine, ends_on_sigterm_and_names_the_thread) {
    ClusterOfTwo cluster(false, kPeerDead);
    cluster.start_missing();
    const pid_t thread = engine_thread(cluster.engine(0).pid());
    ASSERT_NE(thread, cluster.engine(0).pid());
    if (!stop_thread(thread)) GTEST_SKIP() << "no thread can be stopped here";
    cluster.signal_engine(0, SIGTERM);
    const auto thread_ended = [&] {
        int status = 0;
        return waitpid(thread, &status, __WALL | WNOHANG) == thread &&
               (WIFEXITED(status) || WIFSIGNALED(status));
    };
    ASSERT_TRUE(eventually(thread_ended, kEndSeconds)) << "it waits without limit";
    std::optional<int> code;
    ASSERT_TRUE(eventually([&] { return (code = cluster.engine(0).ended()).has_value(); }));
    EXPECT_EQ(*code, 1);
    EXPECT_NE(text_of(cluster.log(0)).find("the engine's thread does not end"), std::string::npos)
        << text_of(cluster.log(0));
    EXPECT_EQ(cluster.stop_engine(1), 0) << text_of(cluster.log(1));
}

}  // namespace
}  // namespace ulc::test
