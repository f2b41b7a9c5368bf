// SPDX-License-Identifier: BSD-3-Clause
// Processes at both ends of a port, and the frames between them. Each process starts its own EAL,
// so every test forks its peers first and starts none in the parent.
#pragma once

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

using Clock = std::chrono::steady_clock;

/// Fails the child process with a text; the parent sees the exit code.
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
    /// Returns the wait status.
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

inline std::string scratch_directory() {
    char path[] = "/tmp/ulc-port-XXXXXX";
    return mkdtemp(path);
}

inline std::unique_ptr<EthdevPort> open_or_exit(const PortOptions& options) {
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

inline std::string memif(const std::string& socket, bool server) {
    return std::string("net_memif,role=") + (server ? "server" : "client") +
           ",id=0,socket-abstract=no,socket=" + socket;
}

inline PortOptions memif_options(const std::string& socket, bool server) {
    PortOptions options;
    options.device = memif(socket, server);
    options.segments = 512;
    return options;
}

inline bool wait_for_link(const Port& port, int ms = 5000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    while (Clock::now() < until) {
        // The first rx gives a memif peer its first buffers; before it, the peer's tx would take
        // nothing.
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

/// Returns one frame, or nullptr after the time.
inline Segment* receive_one(const Port& port, int ms = 5000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    Segment* segment = nullptr;
    while (port.rx(port.context, &segment, 1) == 0) {
        if (Clock::now() > until) return nullptr;
        sched_yield();
    }
    return segment;
}

/// Makes an Ethernet frame of our test type, filled with a pattern.
inline Segment* make_frame(const Port& port, std::uint32_t length, std::uint8_t seed) {
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

inline bool pattern_holds(const Segment& segment, std::uint32_t length, std::uint8_t seed) {
    for (std::uint32_t i = sizeof(wire::EthernetHeader); i < length; ++i) {
        if (segment.frame[i] != static_cast<std::byte>(seed + i)) return false;
    }
    return true;
}

inline bool send_one(const Port& port, Segment* segment, int ms = 5000) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    while (port.tx(port.context, &segment, 1) == 0) {
        if (Clock::now() > until) return false;
        port.link_up(port.context);
        usleep(1000);
    }
    return true;
}

/// Sends every frame back until one of 61 bytes ends it. The peer may come and go.
inline void echo_until_told(const Port& port) {
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

/// Ends the echo. Frames in a memif ring are lost when either side leaves: stay until they were
/// read.
inline void tell_to_stop(const Port& port) {
    CHILD_CHECK(send_one(port, make_frame(port, 61, 0)));
    if (Segment* echo = receive_one(port, 300); echo != nullptr) port.pool.drop(echo);
}

inline void echo_server(const std::string& socket) {
    auto port = open_or_exit(memif_options(socket, true));
    echo_until_told(port->port());
}

}  // namespace ulc::dpdk
