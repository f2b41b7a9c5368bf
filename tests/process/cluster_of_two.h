// SPDX-License-Identifier: BSD-3-Clause
// Two engine daemons on one wire, shared memory or memif ports of a switch, for tests that kill
// them and start them again.
#pragma once

#include <chrono>

#include "daemons.h"

namespace ulc::test {

inline const char* const kSwitchProgram = from_meson("ULC_SWITCH_PATH");

class ClusterOfTwo {
public:
    ClusterOfTwo(bool with_switch, std::chrono::milliseconds peer_dead)
        : with_switch_(with_switch), peer_dead_(peer_dead) {}

    void start_missing() {
        if (with_switch_ && switch_.pid() <= 0) start_switch();
        for (const int which : {0, 1}) {
            if (engines_[which].pid() <= 0) start_engine_of(which);
        }
    }
    void kill_engine(int which) {
        killed_.push_back(engines_[which].pid());
        engines_[which].kill_now();
    }
    [[nodiscard]] Process& engine(int which) { return engines_[which]; }
    void signal_engine(int which, int number) { engines_[which].signal(number); }
    /// Asks the engine to end, as a service manager does. Its exit code.
    int stop_engine(int which) {
        engines_[which].signal(SIGTERM);
        return engines_[which].wait();
    }
    void kill_switch() { switch_.kill_now(); }
    [[nodiscard]] bool with_switch() const { return with_switch_; }
    [[nodiscard]] std::string socket(int which) const { return scratch_ / std::to_string(which); }

    /// Everything ends in order, and nothing of the killed ones is left.
    void expect_clean_end() {
        start_missing();
        for (const int which : {0, 1}) {
            EXPECT_EQ(stop_engine(which), 0) << text_of(log(which));
            EXPECT_NE(access(socket(which).c_str(), F_OK), 0) << "its socket is left";
        }
        for (const pid_t pid : killed_) {
            const std::string folder = "/var/run/dpdk/ulc-" + std::to_string(pid);
            EXPECT_NE(access(folder.c_str(), F_OK), 0) << folder << " is left";
        }
    }
    /// The output of the engine that runs, or ran last.
    [[nodiscard]] std::string log(int which) const { return socket(which) + ".log"; }

private:
    [[nodiscard]] std::string device(int which) const {
        const std::string number = std::to_string(which);
        if (with_switch_)
            return "net_memif,role=client,id=" + number + ",socket=" + (scratch_ / "switch");
        return "shm,stations=2,station=" + number + ",path=" + (scratch_ / "wire");
    }
    void start_engine_of(int which) {
        unlink(log(which).c_str());
        engines_[which] =
            start_engine({"--device", device(which), "--socket", socket(which), "--hugepages",
                          "never", "--peer-dead", std::to_string(peer_dead_.count() * 1000)},
                         log(which));
        ASSERT_TRUE(eventually([&] {
            return text_of(log(which)).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log(which));
    }
    void start_switch() {
        const std::string socket = scratch_ / "switch";
        const std::string log = scratch_ / "switch.log";
        unlink(log.c_str());
        switch_ = run_child([&] {
            const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            dup2(out, STDOUT_FILENO);
            dup2(out, STDERR_FILENO);
            execl(kSwitchProgram, kSwitchProgram, "--ports", "2", "--socket", socket.c_str(),
                  nullptr);
            return 127;
        });
        ASSERT_TRUE(eventually([&] { return text_of(log).find("ready") != std::string::npos; }))
            << text_of(log);
    }

    bool with_switch_;
    std::chrono::milliseconds peer_dead_;
    Scratch scratch_;
    Process switch_;
    Process engines_[2];
    std::vector<pid_t> killed_;
};

/// A number from the environment.
inline int number_of(const char* name, int usual) {
    const char* text = std::getenv(name);
    return text == nullptr ? usual : std::atoi(text);
}

}  // namespace ulc::test
