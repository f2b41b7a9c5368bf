// SPDX-License-Identifier: BSD-3-Clause
// Engine daemons and client processes for tests: started, awaited, killed, and ended with the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process/from_meson.h"

namespace ulc::test {

inline const char* const kEngineProgram = from_meson("ULC_ENGINE_PATH");

/// A scratch folder, removed at the end.
class Scratch {
public:
    Scratch() {
        char path[] = "/tmp/ulc-process-XXXXXX";
        path_ = mkdtemp(path);
    }
    ~Scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] std::string operator/(const std::string& name) const {
        return path_ + "/" + name;
    }
    /// Lets other users access its files.
    void let_others_in() const {
        std::filesystem::permissions(path_, std::filesystem::perms(0755));
    }

private:
    std::string path_;
};

/// A child process; killed if it still runs when this object is destroyed.
class Process {
public:
    Process() = default;
    explicit Process(pid_t pid) : pid_(pid) {}
    ~Process() { kill_now(); }
    Process(Process&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
    Process& operator=(Process&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    void signal(int number) const { kill(pid_, number); }
    /// Stops all its threads; returns when none runs. SIGCONT continues them.
    [[nodiscard]] bool stop() const {
        int status = 0;
        signal(SIGSTOP);
        return waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
    }
    /// Waits. Returns the exit code, or minus the signal.
    int wait() {
        int status = 0;
        if (pid_ <= 0 || waitpid(pid_, &status, 0) != pid_) return -1000;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    /// Returns the same, if the process has ended.
    std::optional<int> ended() {
        int status = 0;
        if (pid_ <= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    void kill_now() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        (void)wait();
    }

private:
    pid_t pid_ = -1;
};

/// Runs `body` in a child; its result is the exit code.
inline Process run_child(const std::function<int()>& body) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid != 0) return Process(pid);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int code = body();
    std::fflush(nullptr);
    _exit(code);
}

/// Starts ulc-engine, or what ULC_ENGINE_PATH names, with these arguments; its output goes to the
/// log file. `before` runs first in its process.
inline Process start_engine(const std::vector<std::string>& arguments, const std::string& log,
                            const std::function<bool()>& before = {}) {
    const char* path = from_meson("ULC_ENGINE_PATH");
    return run_child([&] {
        if (before && !before()) return 126;
        const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        std::vector<char*> argv{const_cast<char*>(path)};
        for (const std::string& argument : arguments)
            argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        execvp(argv[0], argv.data());
        return 127;
    });
}

/// Returns a counter of the engine on that socket, as `ulc stat` prints it.
inline std::uint64_t counter_of(const std::string& socket, const std::string& name) {
    const std::string command = std::string(from_meson("ULC_PATH")) + " stat --json " + socket;
    FILE* out = popen(command.c_str(), "r");
    std::string text(1 << 16, '\0');
    text.resize(fread(text.data(), 1, text.size(), out));
    pclose(out);
    const std::size_t at = text.find("\"" + name + "\":");
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size() + 3));
}

inline std::string text_of(const std::string& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

/// Returns true once condition() holds; checks it every 5 ms.
inline bool eventually(const std::function<bool()>& condition, int seconds = 20) {
    for (int i = 0; i < seconds * 200; ++i) {
        if (condition()) return true;
        usleep(5000);
    }
    return false;
}

/// Two engines joined by a memif link: a serves the socket "a", b "b".
class EnginePair {
public:
    explicit EnginePair(const std::vector<std::string>& more = {}) {
        start('a', "server", more);
        start('b', "client", more);
    }
    [[nodiscard]] std::string socket(char which) const { return scratch / std::string(1, which); }
    [[nodiscard]] std::string log(char which) const {
        return scratch / (std::string(1, which) + ".log");
    }
    Process& engine(char which) { return which == 'a' ? a_ : b_; }
    void start(char which, const char* role, const std::vector<std::string>& more) {
        std::vector<std::string> arguments{
            "--device",
            std::string("net_memif,role=") + role + ",id=0,socket=" + (scratch / "wire"),
            "--socket",
            socket(which),
            "--hugepages",
            "never"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        engine(which) = start_engine(arguments, log(which));
        EXPECT_TRUE(eventually([&] {
            return text_of(log(which)).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log(which));
    }
    Scratch scratch;

private:
    Process a_;
    Process b_;
};

}  // namespace ulc::test
