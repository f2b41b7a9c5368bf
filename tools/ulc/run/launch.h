// SPDX-License-Identifier: BSD-3-Clause
// One run of a cluster: start the engines and the switch, wait until each is ready, start the
// ranks, listen, and end everything in order. Stages only go forward:
//
//   running ──a rank fails or an engine dies──▶ grace ──time──▶ terminating ──time──▶ killing
//      │                                          ▲               (SIGTERM)
//      └──Ctrl-C, SIGTERM, --timeout──────────────┘
//
// Ctrl-C and SIGTERM reach the ranks at once. A second Ctrl-C kills.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/ulc/children.h"
#include "tools/ulc/run/cluster.h"
#include "tools/ulc/run/memory_cgroup.h"

namespace ulc::tools {

struct LaunchOptions {
    bool verbose = false;
    bool label = false;          ///< "[3] " before each line of rank 3
    double ready_seconds = 20;   ///< for the engines and the switch
    double grace_seconds = 5;    ///< for the other ranks after one failed
    double timeout_seconds = 0;  ///< for the whole run; 0: none
};

class Launch {
public:
    Launch(ClusterPlan plan, LaunchOptions options, std::string directory, Children& children);
    /// Returns the exit status for the caller: the worst of the ranks that ended by themselves;
    /// 130 after Ctrl-C, 143 after SIGTERM, 124 after --timeout, 1 if the cluster could not be
    /// started or an engine died.
    [[nodiscard]] int run();

private:
    enum class Stage { kRunning, kGrace, kTerminating, kKilling };
    struct Process {
        std::size_t child = 0;
        bool is_rank = false;
        unsigned number = 0;  ///< index in the plan's ranks, or in its infrastructure
        bool ready = false;
        bool signalled = false;
        std::FILE* log = nullptr;
        std::vector<std::string> last_lines;
    };

    bool start_infrastructure();
    bool start_one(const ChildSpec& spec, bool is_rank, unsigned number);
    bool wait_until_ready(Clock::time_point deadline);
    bool start_ranks();
    void supervise();
    void stop_infrastructure();

    void on_line(const Event& event);
    void on_rank_exit(Process& process, int status);
    void on_infrastructure_exit(Process& process, int status);
    void on_signal(int signal);
    void on_deadline();
    void enter_grace(double seconds);
    void signal_ranks(int signal);
    void print_last_lines(const Process& process) const;
    [[nodiscard]] unsigned ranks_running() const;

    ClusterPlan plan_;
    LaunchOptions options_;
    std::string directory_;
    Children& children_;
    const MemoryCgroup memory_;
    std::vector<Process> processes_;  ///< index = child number
    Stage stage_ = Stage::kRunning;
    Clock::time_point deadline_ = Clock::time_point::max();
    bool stopping_ = false;  ///< engines are being ended on purpose
    int worst_ = 0;
    int forced_ = 0;  ///< status that overrides the ranks'
};

}  // namespace ulc::tools
