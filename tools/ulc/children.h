// SPDX-License-Identifier: BSD-3-Clause
// Child processes of `ulc run`: started, listened to, ended, whatever happens to us.
//
// Three mechanisms end a child:
//   1. end() and the caller's loop.
//   2. PR_SET_PDEATHSIG: the kernel kills a child when this process dies.
//   3. The janitor: a small process that holds the other end of a pipe. When this process ends, by
//      SIGKILL too, the janitor reads end-of-file. It kills the process groups that are still
//      registered and removes the run directory.
// Each child leads a separate process group, so its children end with it.
//
// One thread. The thread that starts children must live as long as they do, since PDEATHSIG counts
// for a thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <string>
#include <vector>

namespace ulc::tools {

using Clock = std::chrono::steady_clock;

enum class StdinFrom { kNothing, kParent, kText };

struct ChildSpec {
    std::string name;                      ///< for messages: "rank 3"
    std::vector<std::string> argv;         ///< argv[0] is looked for in PATH
    std::vector<std::string> environment;  ///< NAME=value, on top of ours
    StdinFrom stdin_from = StdinFrom::kNothing;
    std::string text;  ///< kText: begins its input, which then stays open until it ends
    int network = -1;  ///< descriptor of the network namespace that it runs in; -1: ours
};

struct Event {
    enum class Kind { kLine, kExited, kSignal, kTimeout };
    Kind kind = Kind::kTimeout;
    std::size_t child = 0;   ///< kLine, kExited
    bool is_stderr = false;  ///< kLine
    std::string text;        ///< kLine: without its newline
    int status = 0;          ///< kExited: exit status, or 128 + signal number
    int signal = 0;          ///< kSignal: SIGINT, SIGTERM or SIGHUP, sent to us
};

class Children {
public:
    /// Starts the janitor over `directory` (empty: none). Blocks SIGINT, SIGTERM, SIGHUP and
    /// SIGCHLD, which become events.
    explicit Children(std::string directory);
    /// Kills what still runs, waits for it, and releases the janitor.
    ~Children();
    Children(const Children&) = delete;
    Children& operator=(const Children&) = delete;

    /// Starts a process. On failure returns false; `error` is the reason, as in "No such file or
    /// directory".
    [[nodiscard]] bool start(const ChildSpec& spec, std::size_t* child, std::string* error);
    /// The next event, at the latest at `deadline`. A child's lines come before its kExited.
    [[nodiscard]] Event next(Clock::time_point deadline);

    void send(std::size_t child, int signal);
    /// Its end has not been reported by next() yet.
    [[nodiscard]] bool running(std::size_t child) const { return !children_[child].delivered; }
    [[nodiscard]] const std::string& name(std::size_t child) const { return children_[child].name; }
    [[nodiscard]] std::size_t count() const { return children_.size(); }
    /// The janitor leaves the directory alone from now on.
    void keep_directory();

private:
    struct Stream {
        int fd = -1;
        std::string partial;
    };
    struct Child {
        std::string name;
        int input = -1;          ///< our end of its standard input; -1: none
        pid_t pid = 0;           ///< and number of its process group
        bool exited = false;     ///< ended, not reaped yet
        bool reported = false;   ///< reaped, kExited queued
        bool delivered = false;  ///< kExited handed out
        int status = 0;
        Clock::time_point exited_at;
        Stream streams[2];
    };

    void start_janitor();
    void tell_janitor(char what, pid_t group) const;
    void wait_for_activity(Clock::time_point deadline);
    void read_stream(std::size_t child, int which);
    void read_signals();
    void reap();
    void report_exits();

    std::string directory_;
    std::vector<Child> children_;
    std::deque<Event> events_;
    int signal_fd_ = -1;
    int janitor_fd_ = -1;
    pid_t janitor_ = 0;
};

}  // namespace ulc::tools
