// SPDX-License-Identifier: BSD-3-Clause
// Messages through memory that two processes map (near_ring.h), and what a name may mean. Memory is
// not mapped if it belongs to another user, to a process that the engine does not name, or shrank
// before it was sealed; a file is not even opened.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <thread>

#include "base/prng.h"
#include "base/process_start.h"
#include "client/near/near_memory.h"
#include "tests/unit/client/fixture.h"

namespace {

/// Memory that its owner shrinks and seals just before its seals are read.
int shrinks_when_seen = -1;

void shrink() {
    if (shrinks_when_seen < 0) return;
    EXPECT_EQ(::ftruncate(shrinks_when_seen, 4096), 0);
    EXPECT_EQ(::fcntl(shrinks_when_seen, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              0);
    shrinks_when_seen = -1;
}

}  // namespace

/// Stands in for the C library's.
extern "C" int fcntl(int descriptor, int command, ...) {
    va_list more;
    va_start(more, command);
    const long argument = va_arg(more, long);
    va_end(more);
    if (command == F_GET_SEALS) shrink();
    return static_cast<int>(::syscall(SYS_fcntl, descriptor, command, argument));
}

namespace ulc::client {
namespace {

abi::ProcessRow row_of(pid_t process) {
    const auto pid = static_cast<std::uint32_t>(process);
    return {pid, static_cast<std::uint32_t>(::getuid()), process_start_ticks(pid)};
}
const abi::ProcessRow kSelf = row_of(::getpid());

struct NearKernel : testing::Test {
    NearKernel() : receiver(kernel_memory().make(offer)) {}
    ~NearKernel() override {
        kernel_memory().hide(offer);
        kernel_memory().unmap(receiver);
    }
    NearOffer offer{};
    std::byte* receiver;
};

TEST_F(NearKernel, the_sender_maps_the_receivers_memory) {
    ASSERT_NE(receiver, nullptr);
    std::byte* sender = kernel_memory().map(kSelf, offer);
    ASSERT_NE(sender, nullptr);
    NearSender writes(sender);
    NearReceiver reads(receiver);
    // Many laps of both circles, with as many under way as fit.
    Prng random(3);
    std::deque<std::string> under_way;
    unsigned taken = 0;
    while (taken < 5000) {
        std::string text =
            pattern(random.below(3) == 0 ? random.below(kNearMax + 1) : random.below(160));
        if (writes.send(taken, under_way.size(), Pieces::one(text.data(), text.size()))) {
            under_way.push_back(std::move(text));
            if (random.below(2) == 0) continue;
        }
        NearMessage message;
        ASSERT_EQ(reads.look(message), NearReceiver::Look::kMessage);
        ASSERT_TRUE(std::string(reinterpret_cast<const char*>(message.payload), message.length) ==
                    under_way.front());
        reads.pop(message);
        under_way.pop_front();
        ++taken;
    }
    kernel_memory().unmap(sender);
}

TEST_F(NearKernel, two_threads_that_write_and_read_at_once_lose_and_change_nothing) {
    ASSERT_NE(receiver, nullptr);
    // One mapping for both: ThreadSanitizer knows memory by its address.
    std::byte* sender = receiver;
    constexpr std::uint32_t kMessages = 20'000;
    // Message n has the byte n in all of its length, which a generator of this seed decides.
    const auto next_length = [](Prng& random) {
        return random.below(4) == 0 ? random.below(kNearMax + 1) : random.below(200);
    };
    std::thread writer([&] {
        NearSender writes(sender);
        Prng random(11);
        std::string text;
        for (std::uint32_t n = 0; n < kMessages; ++n) {
            text.assign(next_length(random), static_cast<char>(n));
            while (!writes.send(n, n, Pieces::one(text.data(), text.size())))
                std::this_thread::yield();
        }
    });
    NearReceiver reads(receiver);
    Prng random(11);
    std::uint32_t wrong = 0;
    for (std::uint32_t n = 0; n < kMessages;) {
        NearMessage message;
        const NearReceiver::Look found = reads.look(message);
        if (found == NearReceiver::Look::kNothing) {
            std::this_thread::yield();
            continue;
        }
        const std::string expected(next_length(random), static_cast<char>(n));
        if (found != NearReceiver::Look::kMessage || message.before != n || message.tag != n ||
            message.length != expected.size() ||
            (message.length > 0 &&
             std::memcmp(message.payload, expected.data(), expected.size()) != 0))
            ++wrong;
        reads.pop(message);
        ++n;
    }
    writer.join();
    EXPECT_EQ(wrong, 0U);
}

/// Runs a function in a child of fork(). Returns its exit code.
template <typename Function>
int in_child(Function function) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(function());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(NearKernel, a_child_of_fork_unmaps_the_ring_and_nothing_else) {
    ASSERT_NE(receiver, nullptr);
    EXPECT_EQ(in_child([&] {
                  // If the ring left its place free, this one would be there.
                  auto* other =
                      static_cast<char*>(::mmap(receiver, kNearBytes, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
                  kernel_memory().unmap(receiver);
                  other[0] = 1;
                  return int{other[0]};
              }),
              1);
    EXPECT_EQ(reinterpret_cast<NearControl*>(receiver)->magic, kNearMagic);
}

TEST_F(NearKernel, a_process_of_another_user_cannot_map_it) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    EXPECT_EQ(
        in_child([&] {
            if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)
                return 2;
            return kernel_memory().map(kSelf, offer) == nullptr ? 0 : 1;
        }),
        0);
    EXPECT_EQ(in_child([&] { return kernel_memory().map(kSelf, offer) != nullptr ? 0 : 1; }), 0);
}

// M-12
TEST_F(NearKernel, a_file_of_the_right_size_and_contents_is_not_even_opened) {
    char path[] = "near_test_XXXXXX";
    const int file = ::mkstemp(path);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::pwrite(file, receiver, sizeof(NearControl), 0),
              static_cast<ssize_t>(sizeof(NearControl)));
    ASSERT_EQ(::ftruncate(file, kNearBytes), 0);
    const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(::inotify_add_watch(watch, path, IN_OPEN), 0);
    NearOffer other = offer;
    other.descriptor = static_cast<std::uint32_t>(file);
    EXPECT_EQ(kernel_memory().map(kSelf, other), nullptr);
    char events[256];
    EXPECT_EQ(::read(watch, events, sizeof events), -1);
    ::unlink(path);
    ::close(file);
    ::close(watch);
}

// M-12
TEST_F(NearKernel, what_is_no_ring_is_not_mapped) {
    NearOffer other = offer;
    other.token[15] ^= 1U;
    EXPECT_EQ(kernel_memory().map(kSelf, other), nullptr);
    const auto refused = [&](int descriptor) {
        other = offer;
        other.descriptor = static_cast<std::uint32_t>(descriptor);
        const bool none = kernel_memory().map(kSelf, other) == nullptr;
        ::close(descriptor);
        return none;
    };
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EXPECT_TRUE(refused(ends[0]));  // and nothing waits for its other end
    ::close(ends[1]);
    // Its size and contents are right, but it could be made shorter under its user.
    const int soft = ::memfd_create("soft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(soft, kNearBytes), 0);
    ASSERT_EQ(::pwrite(soft, receiver, sizeof(NearControl), 0),
              static_cast<ssize_t>(sizeof(NearControl)));
    EXPECT_TRUE(refused(soft));
    const int small = ::memfd_create("small", MFD_CLOEXEC);
    EXPECT_TRUE(refused(small));
}

// M-12
TEST_F(NearKernel, memory_that_shrank_before_it_was_sealed_is_not_mapped) {
    const int shrunk = ::memfd_create("shrunk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(::ftruncate(shrunk, kNearBytes), 0);
    ASSERT_EQ(::pwrite(shrunk, receiver, sizeof(NearControl), 0),
              static_cast<ssize_t>(sizeof(NearControl)));
    NearOffer other = offer;
    other.descriptor = static_cast<std::uint32_t>(shrunk);
    shrinks_when_seen = shrunk;
    EXPECT_EQ(kernel_memory().map(kSelf, other), nullptr);
    EXPECT_EQ(shrinks_when_seen, -1);  // it did
    ::close(shrunk);
}

// M-12
TEST_F(NearKernel, only_the_processes_that_the_engine_names_are_seen) {
    const pid_t child = ::fork();
    if (child == 0)
        for (;;)
            ::pause();
    const abi::ProcessRow peer = row_of(child);
    EXPECT_TRUE(kernel_memory().sees({kSelf, peer}));
    EXPECT_TRUE(kernel_memory().sees({kSelf, kSelf}));
    abi::ProcessRow other = peer;
    ++other.start_ticks;  // one that had the number before
    EXPECT_FALSE(kernel_memory().sees({kSelf, other}));
    EXPECT_EQ(kernel_memory().map(other, offer), nullptr);
    other = peer;
    other.start_ticks = 0;  // the engine does not know
    EXPECT_FALSE(kernel_memory().sees({kSelf, other}));
    other = peer;
    ++other.uid;
    EXPECT_FALSE(kernel_memory().sees({kSelf, other}));
    // The engine counts in another PID namespace: its number of this process is that of another
    // one here, or of none.
    EXPECT_FALSE(kernel_memory().sees({peer, kSelf}));
    EXPECT_FALSE(kernel_memory().sees({abi::ProcessRow{0, kSelf.uid, 0}, peer}));
    other = kSelf;
    ++other.start_ticks;
    EXPECT_FALSE(kernel_memory().sees({other, peer}));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_FALSE(kernel_memory().sees({kSelf, peer}));
    EXPECT_EQ(kernel_memory().map(peer, offer), nullptr);
}

// M-12
TEST_F(NearKernel, the_descriptor_is_looked_up_in_the_process_that_the_engine_names) {
    const pid_t child = ::fork();  // which has the descriptor too
    if (child == 0) {
        ::close(static_cast<int>(offer.descriptor));
        for (;;)
            ::pause();
    }
    const abi::ProcessRow peer = row_of(child);
    std::string path = "/proc/" + std::to_string(child) + "/fd/" +
                       std::to_string(static_cast<std::uint32_t>(offer.descriptor));
    while (::access(path.c_str(), F_OK) == 0)
        std::this_thread::yield();  // until the child has closed it
    EXPECT_EQ(kernel_memory().map(peer, offer), nullptr);
    std::byte* own = kernel_memory().map(kSelf, offer);
    EXPECT_NE(own, nullptr);
    kernel_memory().unmap(own);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace ulc::client
