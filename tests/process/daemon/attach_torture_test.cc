// SPDX-License-Identifier: BSD-3-Clause
// Attacks of local users on the attach server: floods, silence, nonsense, descriptors that linger,
// used up descriptors.
//
// Bounds under each: another user attaches before the attach thread has gone to sleep 30 times, the
// engine uses at most 8 % of a core more than an idle one, the log grows by at most 1 MB an hour
// beyond a burst, SIGTERM ends the engine within 2 s. A sleep ends each pass of the attach thread,
// so a busy machine does not add to them. The least of eight attaches is judged. One that a held-up
// thread does not answer without a sleep is given up by libulc after 5 s.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <ulc.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "abi/attach.h"
#include "tests/process/daemon/local_users.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr double kCpuShareMax = 0.08;  // the budgets are 0.05, and a busy machine is slower
constexpr double kLogBytesPerSecond = 1e6 / 3600;
constexpr std::size_t kLogBurst = 64 << 10;
using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr char kAttachThread[] = "ulc-attach";
constexpr long kSleepsMax = 30;
constexpr auto kWindow = 300ms;
constexpr int kTries = 8;
constexpr int kPassRights = 83;  // SO_PASSRIGHTS, Linux 6.16

abi::Hello hello() {
    abi::Hello packet{};
    packet.magic = abi::kHelloMagic;
    packet.abi_version = abi::kAbiVersion;
    packet.kind = abi::HelloKind::kAttach;
    return packet;
}

/// Sends a hello and takes the offer, without a look at it. False: no answer.
bool say_hello(int fd, const abi::Hello& packet) {
    const timeval limit{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    abi::Offer offer;
    return send(fd, &packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet &&
           recv(fd, &offer, sizeof offer, 0) == sizeof offer;
}

// ---------------------------------------------------------------- what a flooder does until it is
// killed

void connect_and_close(const std::string& path) {
    for (;;)
        close(connect_to(path));
}

void attach_and_vanish(const std::string& path) {
    for (;;) {
        const int fd = connect_to(path);
        const abi::Mapped mapped{abi::kHelloMagic, 0};
        if (say_hello(fd, hello()) && send(fd, &mapped, sizeof mapped, MSG_NOSIGNAL) > 0) {
            abi::Ready ready;
            (void)recv(fd, &ready, sizeof ready, 0);
        }
        close(fd);
    }
}

void ring_all_the_time(const std::string& path) {
    const int fd = connect_to(path);
    const abi::Mapped mapped{abi::kHelloMagic, 0};
    abi::Ready ready;
    if (!say_hello(fd, hello()) || send(fd, &mapped, sizeof mapped, MSG_NOSIGNAL) <= 0 ||
        recv(fd, &ready, sizeof ready, 0) <= 0)
        return;
    for (const unsigned char octet = abi::kDoorbell;;)
        (void)send(fd, &octet, 1, MSG_NOSIGNAL);
}

void say_nonsense(const std::string& path) {
    std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same nonsense each time
    for (;;) {
        const int fd = connect_to(path);
        abi::Hello packet = hello();
        for (int packets = 0; packets < 4; ++packets) {
            auto* octets = reinterpret_cast<unsigned char*>(&packet);
            octets[random() % sizeof packet] = static_cast<unsigned char>(random());
            (void)send(fd, octets, 1 + random() % sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        close(fd);
    }
}

void hold_silent_connections(const std::string& path) {
    for (std::vector<int> held;; std::this_thread::sleep_for(1ms)) {
        held.push_back(connect_to(path));
        if (held.size() < 200) continue;
        close(held.front());
        held.erase(held.begin());
    }
}

/// A TCP socket that waits ten seconds for its peer when it is closed, and its peer, which never
/// reads.
struct Lingering {
    Lingering() {
        const int listener = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        (void)bind(listener, reinterpret_cast<sockaddr*>(&address), length);
        (void)listen(listener, 1);
        (void)getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
        full = socket(AF_INET, SOCK_STREAM, 0);
        (void)connect(full, reinterpret_cast<sockaddr*>(&address), length);
        peer = accept(listener, nullptr, nullptr);
        close(listener);
        const linger wait{1, 10};
        setsockopt(full, SOL_SOCKET, SO_LINGER, &wait, sizeof wait);
        const std::string octets(1 << 16, 'x');
        while (send(full, octets.data(), octets.size(), MSG_DONTWAIT) > 0) {
        }
    }
    int full;
    int peer;
};

/// True if the socket took the packet with the descriptor, which is closed here. No process may
/// read the socket meanwhile, for the last close of the descriptor waits for its peer.
bool pass(int connection, Lingering& lingering) {
    char octet = 0;
    iovec part{&octet, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &lingering.full, sizeof(int));
    const bool taken = sendmsg(connection, &message, MSG_NOSIGNAL) == 1;
    const int why = errno;
    if (!taken) close(std::exchange(lingering.peer, -1));  // or the next line would wait
    close(lingering.full);
    errno = why;
    return taken;
}

// ---------------------------------------------------------------- the engine and its bounds

struct Torture : testing::Test {
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "only root can be two users";
        scratch.let_others_in();
    }
    void start(const std::vector<std::string>& more, Kernel kernel = Kernel::kThis) {
        std::vector<std::string> arguments = shm_engine(scratch / "wire", socket);
        arguments.insert(arguments.end(), {"--attach-burst", "100000"});
        arguments.insert(arguments.end(), more.begin(), more.end());
        engine = start_engine(arguments, log, before(kernel));
        ASSERT_TRUE(eventually([&] {
            return text_of(log).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log);
        measure_idle();
    }
    /// Passes a descriptor that the engine must close.
    [[nodiscard]] bool pass_to_engine(int connection, Lingering& lingering) const {
        EXPECT_TRUE(engine.stop());
        const bool taken = pass(connection, lingering);
        const int why = errno;
        engine.signal(SIGCONT);
        errno = why;
        return taken;
    }
    static std::function<bool()> before(Kernel kernel) {
        return kernel == Kernel::kThis ? std::function<bool()>{} : pretend_old_kernel;
    }
    /// A child that runs the body as another user, at low priority, until it is killed.
    Process flooder(void (*body)(const std::string&)) const {
        return run_child([&] {
            (void)nice(10);
            if (!become(kNobody)) return 1;
            body(socket);
            return 0;
        });
    }
    struct Attach {
        long sleeps;
        Milliseconds took;
    };
    /// The best of kTries attaches of this user. libulc gives one up after 5 s.
    [[nodiscard]] Attach best_attach() const {
        Attach best{1'000'000, 1h};
        bool any = false;
        for (int n = 0; n < kTries; ++n) {
            const long sleeps = sleeps_of_thread(engine.pid(), kAttachThread);
            EXPECT_GE(sleeps, 0) << "no thread is called " << kAttachThread;
            const auto begun = Clock::now();
            ulc_endpoint* ep = nullptr;
            const int error = ulc_open(socket.c_str(), &ep);
            const Attach now{sleeps_of_thread(engine.pid(), kAttachThread) - sleeps,
                             Clock::now() - begun};
            any |= error == ULC_OK;
            if (error == ULC_OK && now.sleeps < best.sleeps) best = now;
            ulc_close(ep);
        }
        EXPECT_TRUE(any) << ulc_last_error_text();
        return best;
    }
    /// The least share of a core that the engine used in one of several windows, fewer if one is
    /// below `enough`.
    [[nodiscard]] double cpu_share(double enough) const {
        double least = 1e9;
        for (int n = 0; n < kTries && least > enough; ++n) {
            const double before = cpu_seconds(engine.pid());
            const auto begun = Clock::now();
            std::this_thread::sleep_for(kWindow);
            const std::chrono::duration<double> took = Clock::now() - begun;
            least = std::min(least, (cpu_seconds(engine.pid()) - before) / took.count());
        }
        return least;
    }
    /// Sets the bound. The cost of idling is the machine's: it differs threefold between days.
    void measure_idle() { cpu_max = cpu_share(kCpuShareMax / 10) + kCpuShareMax; }
    void expect_within_bounds(const char* what) {
        static_cast<void>(cpu_share(1));  // one window: what the flood may take at once
        const double cpu = cpu_share(cpu_max);
        const Attach attach = best_attach();
        const std::chrono::duration<double> ran = Clock::now() - started;
        const std::size_t bytes = text_of(log).size();
        std::printf(
            "%-24s %5.2f %% of a core (bound %.1f), attach %ld sleeps, %.1f ms, log %zu bytes\n",
            what, cpu * 100, cpu_max * 100, attach.sleeps, attach.took.count(), bytes);
        EXPECT_LE(cpu, cpu_max) << what;
        EXPECT_LE(attach.sleeps, kSleepsMax) << what;
        EXPECT_LE(static_cast<double>(bytes),
                  static_cast<double>(kLogBurst) + ran.count() * kLogBytesPerSecond)
            << what;
    }
    void expect_quick_end() {
        const auto begun = Clock::now();
        engine.signal(SIGTERM);
        EXPECT_EQ(engine.wait(), 0);
        EXPECT_LT(Clock::now() - begun, 9s) << "one lingering descriptor takes 10 s";
        EXPECT_NE(access(socket.c_str(), F_OK), 0) << "the socket is left";
        EXPECT_NE(access((socket + ".lock").c_str(), F_OK), 0) << "the lock is left";
    }
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "engine.log";
    Clock::time_point started = Clock::now();
    double cpu_max = kCpuShareMax;
    Process engine;
};

TEST_F(Torture, floods_of_users_who_may_attach_stay_within_bounds) {
    start({"--allow-all"});
    const std::pair<const char*, void (*)(const std::string&)> floods[] = {
        {"connect and close", connect_and_close},
        {"attach and vanish", attach_and_vanish},
        {"doorbells", ring_all_the_time},
        {"nonsense", say_nonsense},
        {"silent connections", hold_silent_connections},
    };
    ulc_endpoint* root = nullptr;  // another user, for whom the others are limited
    ASSERT_EQ(ulc_open(socket.c_str(), &root), ULC_OK) << ulc_last_error_text();
    for (const auto& [what, body] : floods) {
        const Process one = flooder(body);
        const Process other = flooder(body);
        expect_within_bounds(what);
    }
    ulc_close(root);
    const Process last = flooder(attach_and_vanish);
    expect_quick_end();
}

TEST_F(Torture, a_flood_of_a_refused_user_stays_within_bounds) {
    start({"--allow-uid", "1"});  // the socket's mode lets all users connect
    const Process one = flooder(connect_and_close);
    const Process other = flooder(connect_and_close);
    expect_within_bounds("refused");
    EXPECT_NE(text_of(log).find("not in the engine's allow list"), std::string::npos);
    expect_quick_end();
}

TEST_F(Torture, descriptors_that_linger_do_not_get_in) {
    const int no = 0;
    const int any = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool can_refuse = setsockopt(any, SOL_SOCKET, kPassRights, &no, sizeof no) == 0;
    close(any);
    if (!can_refuse) GTEST_SKIP() << "this kernel has no SO_PASSRIGHTS";
    start({"--allow-all"});
    const int connection = connect_to(socket);
    Lingering lingering;
    EXPECT_FALSE(pass_to_engine(connection, lingering));
    EXPECT_EQ(errno, EPERM);
    close(connection);
    expect_within_bounds("descriptors refused");
    expect_quick_end();
}

TEST_F(Torture, descriptors_that_linger_delay_no_user_where_the_kernel_lets_them_in) {
    start({"--allow-all"}, Kernel::kOld);
    const int connection = connect_to(socket);
    std::vector<Lingering> all(8);
    // Read by the engine before its answer, behind its answer, and never.
    EXPECT_TRUE(pass_to_engine(connection, all[0]));
    const int offered = connect_to(socket);
    EXPECT_TRUE(say_hello(offered, hello()));
    EXPECT_TRUE(pass_to_engine(offered, all[1]));
    for (unsigned n = 2; n < all.size(); ++n) {
        const int closed = connect_to(socket);
        EXPECT_TRUE(pass_to_engine(closed, all[n]));
        close(closed);
    }
    expect_within_bounds("descriptors let in");
    EXPECT_NE(text_of(log).find("sends no descriptors"), std::string::npos);
    const int unread = connect_to(socket);
    Lingering last;
    EXPECT_TRUE(pass_to_engine(unread, last));
    expect_quick_end();
    for (const Lingering& lingering : all)
        close(lingering.peer);
    for (const int fd : {connection, offered, unread, last.peer})
        close(fd);
}

TEST_F(Torture, used_up_descriptors_are_told_once_and_cost_nothing) {
    start({"--allow-all"});
    rlimit limit{};
    ASSERT_EQ(prlimit(engine.pid(), RLIMIT_NOFILE, nullptr, &limit), 0);
    EXPECT_GE(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 3 * (2 * 512 + 16)));
    const rlimit few{32, limit.rlim_max};
    ASSERT_EQ(prlimit(engine.pid(), RLIMIT_NOFILE, &few, nullptr), 0);
    std::vector<ulc_endpoint*> held;
    const auto open_one_more = [&] {
        ulc_endpoint* ep = nullptr;
        const int error = ulc_open(socket.c_str(), &ep);
        if (error == ULC_OK) held.push_back(ep);
        return error;
    };
    const auto open_all = [&] {
        int error = ULC_OK;
        while (held.size() < few.rlim_cur && error == ULC_OK)
            error = open_one_more();
        EXPECT_EQ(error, ULC_ERR_LIMIT) << ulc_last_error_text();
        EXPECT_NE(std::strstr(ulc_last_error_text(), "ulimit -n"), nullptr)
            << ulc_last_error_text();
    };
    const std::string warning = "no client can be taken in";
    std::vector<int> waiting;
    const auto use_up = [&](int connections) {
        for (int n = 0; n < connections; ++n)
            waiting.push_back(connect_to(socket));
        open_all();
    };
    open_all();
    ASSERT_FALSE(held.empty());
    use_up(12);
    EXPECT_TRUE(eventually([&] { return text_of(log).find(warning) != std::string::npos; }));
    EXPECT_LE(cpu_share(cpu_max), cpu_max);
    // A shortage that ends and begins again is not told again.
    ulc_close(held.back());
    held.pop_back();
    use_up(12);
    const std::string text = text_of(log);
    EXPECT_EQ(text.find(warning), text.rfind(warning));
    EXPECT_LT(text.size(), kLogBurst);
    for (const int fd : waiting)
        close(fd);
    std::ranges::for_each(held, ulc_close);
    ASSERT_EQ(prlimit(engine.pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
    expect_within_bounds("descriptors are there again");
    expect_quick_end();
}

}  // namespace
}  // namespace ulc::test
