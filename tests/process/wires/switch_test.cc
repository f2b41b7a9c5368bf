// SPDX-License-Identifier: BSD-3-Clause
// Runs ulc-switch as a process, its stations as processes on memif: flooding, counters, a killed
// station, clean end.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dpdk/eal.h"
#include "dpdk/ethdev_port.h"
#include "tests/process/from_meson.h"
#include "wire/header.h"

namespace ulc::dpdk {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFrames = 50;
const char* const kSwitchProgram = test::from_meson("ULC_SWITCH_PATH");

class SwitchProcess : public ::testing::Test {
protected:
    void SetUp() override {
        char path[] = "/tmp/ulc-switch-XXXXXX";
        directory_ = mkdtemp(path);
    }
    void TearDown() override {
        for (const pid_t pid : stations_)
            end(pid, SIGKILL);
        if (switch_ > 0) end(switch_, SIGKILL);
        for (const char* name : {"/s", "/stats"})
            unlink((directory_ + name).c_str());
        rmdir(directory_.c_str());
    }
    static int end(pid_t pid, int signal) {
        int status = -1;
        if (signal != 0) kill(pid, signal);
        waitpid(pid, &status, 0);
        return status;
    }

    /// Starts the switch and waits for its line.
    void start_switch(std::vector<std::string> more) {
        std::vector<std::string> args{kSwitchProgram,       "--ports",         "3",
                                      "--socket",           directory_ + "/s", "--stats",
                                      directory_ + "/stats"};
        args.insert(args.end(), more.begin(), more.end());
        int out[2];
        ASSERT_EQ(pipe(out), 0);
        switch_ = fork();
        if (switch_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(out[1], STDOUT_FILENO);
            close(out[0]);
            close(out[1]);
            std::vector<char*> argv;
            argv.reserve(args.size() + 1);
            for (std::string& arg : args)
                argv.push_back(arg.data());
            argv.push_back(nullptr);
            execv(kSwitchProgram, argv.data());
            _exit(127);
        }
        close(out[1]);
        char line[64] = {};
        ASSERT_GT(read(out[0], line, sizeof line - 1), 0) << "the switch did not start";
        close(out[0]);
        EXPECT_EQ(std::string(line), "ulc-switch ready: 3 ports\n");
    }

    /// Starts a station process on port `id`; the result of `body` is its exit status.
    void station(int id, const std::function<int(const Port&)>& body) {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(run_station(id, body));
        }
        stations_.push_back(pid);
    }
    int run_station(int id, const std::function<int(const Port&)>& body) const {
        EalOptions eal;
        eal.memory_mb = 48;
        EalReport report;
        std::string why;
        if (start_eal(eal, report, why) != Err::kOk) return 2;
        PortOptions options;
        options.segments = 256;
        options.device = "net_memif,role=client,socket-abstract=no,id=" + std::to_string(id) +
                         ",socket=" + directory_ + "/s";
        int status = 3;
        {
            std::unique_ptr<EthdevPort> owner;
            if (EthdevPort::open(options, owner, why) != Err::kOk) return 2;
            const Port& port = owner->port();
            for (int i = 0; i < 5000 && !port.link_up(port.context); ++i)
                usleep(1000);
            if (port.link_up(port.context)) status = body(port);
        }
        stop_eal();
        return status;
    }

    std::uint64_t stat(const char* where, const char* name) const {
        std::ifstream file(directory_ + "/stats");
        const auto json = nlohmann::json::parse(file);
        const auto& row =
            *where == 't' ? json["total"] : json["ports"][static_cast<std::size_t>(*where - '0')];
        return row[name].get<std::uint64_t>();
    }

    std::string directory_;
    pid_t switch_ = -1;
    std::vector<pid_t> stations_;
};

void send_group_frame(const Port& port, std::uint8_t number) {
    Segment* segment = port.pool.get();
    if (segment == nullptr) return;
    const wire::EthernetHeader ethernet{
        .destination = kBroadcastMac, .source = port.info.mac, .type = wire::kEtherTypeDefault};
    wire::Header header{};
    header.version_type = 0x10 | static_cast<int>(wire::FrameType::kMcast);
    header.length = 100;
    header.seq = number;
    std::memcpy(segment->frame, &ethernet, sizeof ethernet);
    std::memcpy(segment->frame + sizeof ethernet, &header, sizeof header);
    segment->length = 128;
    while (port.tx(port.context, &segment, 1) == 0)
        usleep(100);
}

/// Counts our frames that come within the time, or until `enough` came.
int count_frames(const Port& port, int enough, int ms) {
    const auto until = Clock::now() + std::chrono::milliseconds(ms);
    int count = 0;
    while (count < enough && Clock::now() < until) {
        Segment* segment = nullptr;
        if (port.rx(port.context, &segment, 1) == 0) {
            usleep(50);
            continue;
        }
        ++count;
        port.pool.drop(segment);
    }
    return count;
}

TEST_F(SwitchProcess, counts_a_multicast_once_in_and_once_for_each_other_station) {
    start_switch({});
    int said[2];  // a receiver writes a byte when it is there, and one when it has all
    ASSERT_EQ(pipe(said), 0);
    for (const int id : {1, 2}) {
        station(id, [&](const Port& port) {
            count_frames(port, 1, 1);  // gives the switch buffers to send into
            if (write(said[1], "x", 1) != 1) return 1;
            const bool all = count_frames(port, kFrames, 15'000) == kFrames;
            return write(said[1], "x", 1) == 1 && all ? 0 : 1;
        });
    }
    station(0, [&](const Port& port) {
        char octet = 0;
        for (int i = 0; i < 2; ++i) {
            if (read(said[0], &octet, 1) != 1) return 1;
        }
        usleep(20'000);  // the switch checks its links each millisecond
        for (int i = 0; i < kFrames; ++i)
            send_group_frame(port, static_cast<std::uint8_t>(i));
        for (int i = 0; i < 2; ++i) {  // frames in a memif ring are lost when a side leaves
            if (read(said[0], &octet, 1) != 1) return 1;
        }
        return 0;
    });
    close(said[0]);
    close(said[1]);
    for (const pid_t pid : stations_)
        EXPECT_EQ(end(pid, 0), 0);
    stations_.clear();
    EXPECT_EQ(end(switch_, SIGTERM), 0);
    switch_ = -1;
    EXPECT_EQ(stat("0", "in_mcast"), static_cast<std::uint64_t>(kFrames));
    EXPECT_EQ(stat("0", "flooded"), static_cast<std::uint64_t>(kFrames));
    EXPECT_EQ(stat("1", "out_mcast"), static_cast<std::uint64_t>(kFrames));
    EXPECT_EQ(stat("2", "out_mcast"), static_cast<std::uint64_t>(kFrames));
    EXPECT_EQ(stat("t", "lost"), 0U);
    EXPECT_NE(access((directory_ + "/s").c_str(), F_OK), 0) << "the socket stayed";
}

TEST_F(SwitchProcess, loses_as_told_and_reports_on_a_signal) {
    start_switch({"--loss", "1"});
    station(0, [](const Port& port) {
        for (int i = 0; i < 10; ++i)
            send_group_frame(port, static_cast<std::uint8_t>(i));
        usleep(300'000);
        return 0;
    });
    station(1, [](const Port& port) { return count_frames(port, 1, 1'000) == 0 ? 0 : 1; });
    for (const pid_t pid : stations_)
        EXPECT_EQ(end(pid, 0), 0);
    stations_.clear();
    kill(switch_, SIGUSR1);
    for (int i = 0; i < 5000 && access((directory_ + "/stats").c_str(), F_OK) != 0; ++i)
        usleep(1000);
    EXPECT_EQ(stat("0", "in_frames"), 10U);
    EXPECT_EQ(stat("t", "out_frames"), 0U);
    EXPECT_EQ(end(switch_, SIGINT), 0);
    switch_ = -1;
}

TEST_F(SwitchProcess, survives_stations_that_are_killed_in_full_flow) {
    start_switch({"--dup", "0.5"});
    for (int life = 0; life < 8; ++life) {
        stations_.clear();
        int flowing[2];
        ASSERT_EQ(pipe(flowing), 0);
        for (const int id : {0, 1}) {
            station(id, [&](const Port& port) {
                for (std::uint32_t i = 0;; ++i) {
                    if (i == 200 && write(flowing[1], "x", 1) != 1) return 1;
                    if (i < 100'000'000) send_group_frame(port, 0);
                    count_frames(port, 32, 0);
                    Segment* segment = nullptr;
                    while (port.rx(port.context, &segment, 1) != 0)
                        port.pool.drop(segment);
                }
                return 0;
            });
        }
        close(flowing[1]);
        char both[2];
        for (char& byte : both)
            EXPECT_EQ(read(flowing[0], &byte, 1), 1) << "a station could not connect";
        close(flowing[0]);
        for (const pid_t pid : stations_)
            end(pid, SIGKILL);
        ASSERT_EQ(waitpid(switch_, nullptr, WNOHANG), 0) << "the switch ended";
    }
    stations_.clear();
    EXPECT_EQ(end(switch_, SIGTERM), 0);
    switch_ = -1;
}

}  // namespace
}  // namespace ulc::dpdk
