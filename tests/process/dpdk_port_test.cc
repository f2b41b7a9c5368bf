// Port over ethdev between real processes: memif, and af_packet on a veth pair. Each process starts its
// own EAL, so every test forks its peers first and starts none in the parent.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dpdk/eal.h"
#include "dpdk/ethdev_port.h"
#include "wire/header.h"

namespace ulc::dpdk {
namespace {

using Clock = std::chrono::steady_clock;

/// Fails the child process with words; the parent sees the exit code.
#define CHILD_CHECK(condition)                                                            \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            std::fprintf(stderr, "child: %s is false (line %d)\n", #condition, __LINE__); \
            _exit(1);                                                                     \
        }                                                                                 \
    } while (false)

/// Child processes that die with the test.
class Children {
public:
    ~Children() {
        for (const pid_t pid : pids_) {
            if (pid > 0) kill(pid, SIGKILL);
        }
        for (const pid_t pid : pids_) {
            if (pid > 0) waitpid(pid, nullptr, 0);
        }
    }
    std::size_t start(const std::function<void()>& body) {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            body();
            stop_eal();
            _exit(0);
        }
        pids_.push_back(pid);
        return pids_.size() - 1;
    }
    /// The wait status.
    int wait(std::size_t index) {
        int status = -1;
        waitpid(pids_[index], &status, 0);
        pids_[index] = -1;
        return status;
    }
    void kill_hard(std::size_t index) { kill(pids_[index], SIGKILL); }
    void expect_success(std::size_t index) {
        int status = -1;
        for (int ms = 0; waitpid(pids_[index], &status, WNOHANG) == 0; ++ms) {
            if (ms == 30'000) {
                ADD_FAILURE() << "a child process did not end";
                return;  // the destructor ends it
            }
            usleep(1000);
        }
        pids_[index] = -1;
        EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
        EXPECT_EQ(WEXITSTATUS(status), 0);
    }

private:
    std::vector<pid_t> pids_;
};

std::string scratch_directory() {
    char path[] = "/tmp/ulc-port-XXXXXX";
    return mkdtemp(path);
}

std::unique_ptr<EthdevPort> open_or_exit(const PortOptions& options) {
    EalReport report;
    std::string why;
    EalOptions eal;
    eal.memory_mb = 64;
    if (start_eal(eal, report, why) != Err::kOk) {
        std::fprintf(stderr, "child: %s\n", why.c_str());
        _exit(1);
    }
    std::unique_ptr<EthdevPort> port;
    if (EthdevPort::open(options, port, why) != Err::kOk) {
        std::fprintf(stderr, "child: %s\n", why.c_str());
        _exit(1);
    }
    return port;
}

std::string memif(const std::string& socket, bool server) {
    return std::string("net_memif,role=") + (server ? "server" : "client") +
           ",id=0,socket-abstract=no,socket=" + socket;
}

PortOptions memif_options(const std::string& socket, bool server) {
    PortOptions options;
    options.device = memif(socket, server);
    options.segments = 512;
    return options;
}

bool wait_for_link(const Port& port, int ms = 5000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    while (Clock::now() < until) {
        // The first rx gives a memif peer its first buffers; before it, the peer's tx would take nothing.
        Segment* early = nullptr;
        if (port.rx(port.context, &early, 1) != 0) port.pool.drop(early);
        if (port.link_up(port.context)) {
            if (port.rx(port.context, &early, 1) != 0) port.pool.drop(early);
            return true;
        }
        usleep(1000);
    }
    return false;
}

/// One frame, or nullptr after the time.
Segment* receive_one(const Port& port, int ms = 5000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    Segment* segment = nullptr;
    while (port.rx(port.context, &segment, 1) == 0) {
        if (Clock::now() > until) return nullptr;
        sched_yield();
    }
    return segment;
}

/// An Ethernet frame of our test type, filled with a pattern.
Segment* make_frame(const Port& port, std::uint32_t length, std::uint8_t seed) {
    Segment* segment = port.pool.get();
    if (segment == nullptr) return nullptr;
    auto* header = reinterpret_cast<wire::EthernetHeader*>(segment->frame);
    header->destination = kBroadcastMac;
    header->source = port.info.mac;
    header->type = 0x88B6;
    for (std::uint32_t i = sizeof *header; i < length; ++i) {
        segment->frame[i] = static_cast<std::byte>(seed + i);
    }
    segment->length = length;
    return segment;
}

bool pattern_holds(const Segment& segment, std::uint32_t length, std::uint8_t seed) {
    for (std::uint32_t i = sizeof(wire::EthernetHeader); i < length; ++i) {
        if (segment.frame[i] != static_cast<std::byte>(seed + i)) return false;
    }
    return true;
}

bool send_one(const Port& port, Segment* segment, int ms = 5000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    while (port.tx(port.context, &segment, 1) == 0) {
        if (Clock::now() > until) return false;
        port.link_up(port.context);
        usleep(1000);
    }
    return true;
}

/// Sends back every frame until one of 61 octets says stop. The peer may come and go.
void echo_until_told(const Port& port) {
    for (;;) {
        Segment* segment = nullptr;
        if (port.rx(port.context, &segment, 1) == 0) {
            sched_yield();
            continue;
        }
        const bool stop = segment->length == 61;
        if (port.tx(port.context, &segment, 1) == 0) port.pool.drop(segment);
        if (stop) return;
    }
}

/// Ends the echo. What is in a memif ring is lost when either side leaves: stay until it was read.
void tell_to_stop(const Port& port) {
    CHILD_CHECK(send_one(port, make_frame(port, 61, 0)));
    if (Segment* echo = receive_one(port, 300); echo != nullptr) port.pool.drop(echo);
}

void echo_server(const std::string& socket) {
    auto port = open_or_exit(memif_options(socket, true));
    echo_until_told(port->port());
}

TEST(DpdkPort, eal_leaves_the_affinity_and_no_files) {
    Children children;
    children.expect_success(children.start([] {
        cpu_set_t before;
        cpu_set_t after;
        sched_getaffinity(0, sizeof before, &before);
        EalReport report;
        std::string why;
        EalOptions options;
        options.memory_mb = 64;
        options.hugepages = Hugepages::kNever;
        CHILD_CHECK(start_eal(options, report, why) == Err::kOk);
        sched_getaffinity(0, sizeof after, &after);
        CHILD_CHECK(CPU_EQUAL(&before, &after));
        CHILD_CHECK(start_eal(options, report, why) == Err::kOk);
        stop_eal();
        CHILD_CHECK(access(("/var/run/dpdk/ulc-" + std::to_string(getpid())).c_str(), F_OK) != 0);
    }));
}

TEST(DpdkPort, frames_of_every_size_cross_a_memif_and_come_back) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    const auto client = children.start([&] {
        auto owner =
            open_or_exit(memif_options(socket, false));  // perhaps before the server: it waits
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (std::uint32_t length = 14; length <= 1514; length += length < 70 ? 1 : 97) {
            if (length == 61) continue;
            Segment* sent = make_frame(port, length, static_cast<std::uint8_t>(length));
            CHILD_CHECK(sent != nullptr);
            CHILD_CHECK(send_one(port, sent));
            Segment* back = receive_one(port);
            CHILD_CHECK(back != nullptr);
            CHILD_CHECK(back->length == std::max<std::uint32_t>(length, 60));
            CHILD_CHECK(pattern_holds(*back, length, static_cast<std::uint8_t>(length)));
            for (std::uint32_t i = length; i < back->length; ++i)
                CHILD_CHECK(back->frame[i] == std::byte{0});
            port.pool.drop(back);
        }
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_retained_frame_survives_transmission_and_is_sent_again_unchanged) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    const auto client = children.start([&] {
        auto owner = open_or_exit(memif_options(socket, false));
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        const std::uint32_t before = port.pool.available(port.pool.context);
        Segment* kept = make_frame(port, 300, 7);
        CHILD_CHECK(port.pool.holders(kept) == 1);
        for (int round = 0; round < 1000; ++round) {
            port.pool.hold(kept);
            CHILD_CHECK(port.pool.holders(kept) == 2);
            CHILD_CHECK(send_one(port, kept));
            CHILD_CHECK(port.tx_pending(port.context) == 0);
            CHILD_CHECK(port.pool.holders(kept) == 1);
            Segment* back = receive_one(port);
            CHILD_CHECK(back != nullptr && back != kept);
            CHILD_CHECK(back->length == 300 && pattern_holds(*back, 300, 7));
            port.pool.drop(back);
        }
        port.pool.drop(kept);
        CHILD_CHECK(port.pool.available(port.pool.context) == before);
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, an_exhausted_pool_gives_null_and_recovers) {
    const std::string dir = scratch_directory();
    Children children;
    children.expect_success(children.start([&] {
        auto owner = open_or_exit(memif_options(dir + "/a", true));
        const Port& port = owner->port();
        std::vector<Segment*> all;
        while (Segment* segment = port.pool.get())
            all.push_back(segment);
        CHILD_CHECK(all.size() == 512);
        CHILD_CHECK(port.pool.available(port.pool.context) == 0);
        CHILD_CHECK(port.pool.get() == nullptr);
        for (Segment* segment : all)
            port.pool.drop(segment);
        CHILD_CHECK(port.pool.available(port.pool.context) == 512);
        CHILD_CHECK(port.pool.get() != nullptr);
    }));
    unlink((dir + "/a").c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_client_finds_its_server_again_after_kill_9) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    auto server = children.start([&] { echo_server(socket); });
    const auto client = children.start([&] {
        close(ready[0]);
        auto owner = open_or_exit(memif_options(socket, false));
        const Port& port = owner->port();
        for (int life = 0; life < 4; ++life) {
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 100; ++tries) {
                CHILD_CHECK(wait_for_link(port));
                Segment* frame = make_frame(port, 100, 1);
                if (port.tx(port.context, &frame, 1) == 0) port.pool.drop(frame);
                back = receive_one(port, 50);
            }
            CHILD_CHECK(back != nullptr);
            port.pool.drop(back);
            CHILD_CHECK(write(ready[1], "x", 1) == 1);
            const auto until = Clock::now() + std::chrono::seconds(5);
            // Keep polling hard while the peer dies: this is what must not crash.
            while (port.link_up(port.context) && Clock::now() < until) {
                for (int i = 0; i < 1000; ++i) {
                    Segment* segment = nullptr;
                    if (port.rx(port.context, &segment, 1) != 0) port.pool.drop(segment);
                }
            }
            CHILD_CHECK(Clock::now() < until);
        }
    });
    close(ready[1]);
    for (int life = 0; life < 4; ++life) {
        char byte = 0;
        ASSERT_EQ(read(ready[0], &byte, 1), 1);
        children.kill_hard(server);
        children.wait(server);
        if (life < 3)
            server = children.start([&] { echo_server(socket); });  // over the stale socket
    }
    children.expect_success(client);
    close(ready[0]);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_server_can_be_closed_and_opened_again_in_one_process) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] {
        for (int life = 0; life < 3; ++life)
            echo_server(socket);
    });
    const auto client = children.start([&] {
        for (int life = 0; life < 3; ++life) {
            auto owner = open_or_exit(memif_options(socket, false));
            const Port& port = owner->port();
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 100; ++tries) {
                CHILD_CHECK(wait_for_link(port));
                CHILD_CHECK(send_one(port, make_frame(port, 100, 1)));
                back = receive_one(port, 50);  // nothing, while the server is between two lives
            }
            CHILD_CHECK(back != nullptr);
            port.pool.drop(back);
            tell_to_stop(port);
        }
    });
    children.expect_success(client);
    children.expect_success(server);
    EXPECT_NE(access(socket.c_str(), F_OK), 0) << "the socket stayed";
    rmdir(dir.c_str());
}

TEST(DpdkPort, errors_say_what_to_do) {
    const std::string dir = scratch_directory();
    Children children;
    children.expect_success(children.start([&] {
        auto first = open_or_exit(memif_options(dir + "/a", true));
        const auto why_of = [](const std::string& device) {
            PortOptions options;
            options.device = device;
            options.segments = 256;
            std::unique_ptr<EthdevPort> port;
            std::string why;
            CHILD_CHECK(EthdevPort::open(options, port, why) != Err::kOk);
            CHILD_CHECK(port == nullptr);
            return why;
        };
        CHILD_CHECK(why_of("eth0").find("ip link") != std::string::npos ||
                    why_of("eth0").find("PCI address") != std::string::npos);
        CHILD_CHECK(why_of("net_af_packet,iface=nosuch0").find("no network interface") !=
                    std::string::npos);
        CHILD_CHECK(why_of("net_af_packet").find("iface=") != std::string::npos);
        CHILD_CHECK(why_of("0000:ff:1f.7").find("dpdk-devbind.py") != std::string::npos);
        CHILD_CHECK(why_of("net_nosuchdriver").find("did not open") != std::string::npos);
    }));
    unlink((dir + "/a").c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_socket_in_use_is_named_and_left_alone) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    for (int i = 0; i < 500 && access(socket.c_str(), F_OK) != 0; ++i)
        usleep(10'000);
    children.expect_success(children.start([&] {
        EalReport report;
        std::string why;
        EalOptions eal;
        eal.memory_mb = 64;
        CHILD_CHECK(start_eal(eal, report, why) == Err::kOk);
        std::unique_ptr<EthdevPort> port;
        CHILD_CHECK(EthdevPort::open(memif_options(socket, true), port, why) == Err::kInvalid);
        CHILD_CHECK(why.find("in use") != std::string::npos);
        auto owner = open_or_exit(memif_options(socket, false));
        CHILD_CHECK(wait_for_link(owner->port()));
        tell_to_stop(owner->port());
    }));
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

/// A veth pair in two namespaces of its own, removed with the test.
class VethPair {
public:
    VethPair() {
        const std::string id = std::to_string(getpid());
        a_ = "ulca" + id;
        b_ = "ulcb" + id;
        made_ = run("ip netns add " + a_) && run("ip netns add " + b_) &&
                run("ip link add v0 netns " + a_ + " type veth peer name v0 netns " + b_) &&
                up(a_) && up(b_);
    }
    ~VethPair() {
        run("ip netns del " + a_);
        run("ip netns del " + b_);
    }
    VethPair(const VethPair&) = delete;
    VethPair& operator=(const VethPair&) = delete;
    [[nodiscard]] bool made() const { return made_; }
    /// Moves the calling process into one end's namespace.
    void enter(bool first) const {
        const std::string path = "/var/run/netns/" + (first ? a_ : b_);
        FILE* file = std::fopen(path.c_str(), "r");
        CHILD_CHECK(file != nullptr);
        CHILD_CHECK(setns(fileno(file), CLONE_NEWNET) == 0);
        std::fclose(file);
    }

private:
    static bool run(const std::string& command) {
        return std::system((command + " 2>/dev/null").c_str()) ==
               0;  // NOLINT(concurrency-mt-unsafe)
    }
    static bool up(const std::string& ns) {
        return run("ip -n " + ns + " link set v0 mtu 9000") &&
               run("ip -n " + ns + " link set v0 up");
    }
    std::string a_;
    std::string b_;
    bool made_ = false;
};

TEST(DpdkPort, frames_up_to_jumbo_cross_a_veth_by_af_packet) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    Children children;
    const auto options = [] {
        PortOptions o;
        o.device = "net_af_packet,iface=v0";
        o.segments = 256;
        return o;
    };
    children.expect_success(children.start([&] {
        veth.enter(true);
        PortOptions o = options();
        o.mtu = 9001;
        std::unique_ptr<EthdevPort> port;
        std::string why;
        CHILD_CHECK(EthdevPort::open(o, port, why) == Err::kInvalid);
        CHILD_CHECK(why.find("ip link set v0 mtu 9001") != std::string::npos);
    }));
    const auto echo = children.start([&] {
        veth.enter(true);
        auto port = open_or_exit(options());
        CHILD_CHECK(port->port().info.mtu == 9000);
        echo_until_told(port->port());
    });
    const auto client = children.start([&] {
        veth.enter(false);
        auto owner = open_or_exit(options());
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (const std::uint32_t length : {60U, 100U, 1514U, 4000U, 9014U}) {
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 50;
                 ++tries) {  // the echo may not be up yet
                CHILD_CHECK(send_one(port, make_frame(port, length, 3)));
                do {
                    if (back != nullptr) port.pool.drop(back);
                    back = receive_one(port, 100);
                } while (back != nullptr && back->length != length);
            }
            CHILD_CHECK(back != nullptr);
            CHILD_CHECK(pattern_holds(*back, length, 3));
            port.pool.drop(back);
        }
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(echo);
}

}  // namespace
}  // namespace ulc::dpdk
