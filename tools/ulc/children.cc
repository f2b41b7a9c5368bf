// SPDX-License-Identifier: BSD-3-Clause
// See children.h. All waiting is in wait_for_activity(): one poll() over the signal descriptor and
// the pipes.
#include "tools/ulc/children.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

namespace ulc::tools {
namespace {

constexpr std::size_t kLineOctetsMax = 64 * 1024;
/// A grandchild may hold a dead child's pipe open; its output is waited for this long.
constexpr auto kDrainAfterExit = std::chrono::milliseconds(200);

struct JanitorRecord {
    char what;  ///< '+' a group lives, '-' it is gone, 'k' keep the directory
    pid_t group;
};

sigset_t handled_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
        sigaddset(&set, s);
    return set;
}

void close_all_but(int kept) {
    const int null_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; ++fd)
        ::dup2(null_fd, fd);
    const auto low = static_cast<unsigned>(kept);
    if (low > 3) ::close_range(3, low - 1, 0);
    ::close_range(low + 1, ~0U, 0);
}

/// Lives until the pipe ends, so at most a moment longer than its parent.
[[noreturn]] void be_janitor(int fd, std::string directory) {
    ::setsid();
    for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
        ::signal(s, SIG_IGN);
    close_all_but(fd);
    std::set<pid_t> groups;
    JanitorRecord record{};
    for (;;) {
        const ssize_t n = ::read(fd, &record, sizeof record);
        if (n < 0 && errno == EINTR) continue;
        if (n != static_cast<ssize_t>(sizeof record)) break;
        if (record.what == '+') groups.insert(record.group);
        if (record.what == '-') groups.erase(record.group);
        if (record.what == 'k') directory.clear();
    }
    for (const pid_t group : groups)
        ::kill(-group, SIGKILL);
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
    ::_exit(0);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    out.reserve(strings.size() + 1);
    for (auto& s : strings)
        out.push_back(s.data());
    out.push_back(nullptr);
    return out;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& extra) {
    std::vector<std::string> all;
    for (char** e = environ; *e != nullptr; ++e) {
        const std::string entry = *e;
        const auto name = entry.substr(0, entry.find('=') + 1);
        const bool replaced = std::any_of(
            extra.begin(), extra.end(), [&](const std::string& x) { return x.starts_with(name); });
        if (!replaced) all.push_back(entry);
    }
    all.insert(all.end(), extra.begin(), extra.end());
    return all;
}

/// A pipe that holds `text`, which must fit. False: errno says why.
bool open_input(const std::string& text, int (&ends)[2]) {
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    return ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// In the child, between fork and exec; only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, char* const* env, pid_t parent, const ChildSpec& spec,
                         int in, int out, int err, int failure_fd) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    if (spec.network >= 0 && ::setns(spec.network, CLONE_NEWNET) != 0) {
        const int why = errno;
        [[maybe_unused]] const ssize_t n = ::write(failure_fd, &why, sizeof why);
        ::_exit(127);
    }
    if (spec.stdin_from == StdinFrom::kNothing) {
        const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::dup2(null_fd, 0);
    }
    if (in >= 0) ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::execvpe(argv[0], argv, env);
    const int why = errno;
    [[maybe_unused]] const ssize_t n = ::write(failure_fd, &why, sizeof why);
    ::_exit(127);
}

}  // namespace

Children::Children(std::string directory) : directory_(std::move(directory)) {
    start_janitor();
    const sigset_t set = handled_signals();
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // our stdout may go away first; then we still clean up
    signal_fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Children::~Children() {
    for (auto& child : children_) {
        if (!child.reported) {
            ::kill(-child.pid, SIGKILL);
            ::waitpid(child.pid, nullptr, 0);
            tell_janitor('-', child.pid);
        }
        for (auto& stream : child.streams) {
            if (stream.fd >= 0) ::close(stream.fd);
        }
        if (child.input >= 0) ::close(child.input);
    }
    ::close(signal_fd_);
    if (janitor_fd_ >= 0) ::close(janitor_fd_);
    if (janitor_ > 0) ::waitpid(janitor_, nullptr, 0);
}

void Children::start_janitor() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;  // the other two nets remain
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::close(ends[1]);
        be_janitor(ends[0], directory_);
    }
    ::close(ends[0]);
    janitor_fd_ = ends[1];
    janitor_ = pid;
}

void Children::tell_janitor(char what, pid_t group) const {
    const JanitorRecord record{what, group};
    // Far below PIPE_BUF: whole or not at all. A janitor that is gone leaves the other two nets.
    [[maybe_unused]] const ssize_t n = ::write(janitor_fd_, &record, sizeof record);
}

void Children::keep_directory() { tell_janitor('k', 0); }

bool Children::start(const ChildSpec& spec, std::size_t* child, std::string* error) {
    int out[2];
    int err[2];
    int failure[2];
    int in[2] = {-1, -1};
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0 ||
        ::pipe2(failure, O_CLOEXEC) != 0 ||
        (spec.stdin_from == StdinFrom::kText && !open_input(spec.text, in))) {
        *error = std::strerror(errno);
        return false;
    }
    auto arguments = spec.argv;
    auto environment = merged_environment(spec.environment);
    const auto argv = pointers(arguments);
    const auto env = pointers(environment);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become(argv.data(), env.data(), parent, spec, in[0], out[1], err[1], failure[1]);
    const int fork_error = errno;
    if (in[0] >= 0) ::close(in[0]);
    ::close(out[1]);
    ::close(err[1]);
    ::close(failure[1]);
    int why = pid < 0 ? fork_error : 0;
    if (pid > 0) {
        ::setpgid(pid, pid);  // the child does it too, because either may be first
        tell_janitor('+', pid);
        if (::read(failure[0], &why, sizeof why) <= 0) why = 0;
    }
    ::close(failure[0]);
    if (why != 0) {
        if (pid > 0) {
            ::waitpid(pid, nullptr, 0);
            tell_janitor('-', pid);
        }
        ::close(out[0]);
        ::close(err[0]);
        if (in[1] >= 0) ::close(in[1]);
        *error = std::strerror(why);
        return false;
    }
    Child added{.name = spec.name, .input = in[1], .pid = pid};
    added.streams[0].fd = out[0];
    added.streams[1].fd = err[0];
    for (auto& stream : added.streams)
        ::fcntl(stream.fd, F_SETFL, O_NONBLOCK);
    *child = children_.size();
    children_.push_back(std::move(added));
    return true;
}

void Children::send(std::size_t child, int signal) {
    if (!children_[child].reported) ::kill(-children_[child].pid, signal);
}

Event Children::next(Clock::time_point deadline) {
    while (events_.empty()) {
        if (Clock::now() >= deadline) return Event{};
        wait_for_activity(deadline);
        report_exits();
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    if (event.kind == Event::Kind::kExited) children_[event.child].delivered = true;
    return event;
}

void Children::wait_for_activity(Clock::time_point deadline) {
    std::vector<pollfd> fds{{signal_fd_, POLLIN, 0}};
    std::vector<std::pair<std::size_t, int>> owners{{0, 0}};
    bool draining = false;
    for (std::size_t c = 0; c < children_.size(); ++c) {
        draining |= children_[c].exited && !children_[c].reported;
        for (int s = 0; s < 2; ++s) {
            if (children_[c].streams[s].fd < 0) continue;
            fds.push_back({children_[c].streams[s].fd, POLLIN, 0});
            owners.emplace_back(c, s);
        }
    }
    auto wait = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    wait = std::clamp(wait, std::chrono::milliseconds(0),
                      std::chrono::milliseconds(draining ? 20 : 60'000));
    if (::poll(fds.data(), fds.size(), static_cast<int>(wait.count())) <= 0) return;
    for (std::size_t i = 1; i < fds.size(); ++i) {
        if (fds[i].revents != 0) read_stream(owners[i].first, owners[i].second);
    }
    if (fds[0].revents != 0) read_signals();
}

void Children::read_stream(std::size_t child, int which) {
    Stream& stream = children_[child].streams[which];
    const auto emit = [&](std::string text) {
        events_.push_back(Event{.kind = Event::Kind::kLine,
                                .child = child,
                                .is_stderr = which == 1,
                                .text = std::move(text)});
    };
    char buffer[16 * 1024];
    const ssize_t n = ::read(stream.fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) stream.partial.append(buffer, static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t end; (end = stream.partial.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        emit(stream.partial.substr(begin, end - begin));
    }
    stream.partial.erase(0, begin);
    if (!stream.partial.empty() && (n <= 0 || stream.partial.size() >= kLineOctetsMax)) {
        emit(std::exchange(stream.partial, {}));
    }
    if (n <= 0) {
        ::close(stream.fd);
        stream.fd = -1;
    }
}

void Children::read_signals() {
    signalfd_siginfo info{};
    while (::read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        if (info.ssi_signo == SIGCHLD) {
            reap();
        } else {
            events_.push_back(
                Event{.kind = Event::Kind::kSignal, .signal = static_cast<int>(info.ssi_signo)});
        }
    }
}

void Children::reap() {
    for (auto& child : children_) {
        siginfo_t info{};
        if (child.reported || child.exited) continue;
        // WNOWAIT: the zombie keeps the numbers of its process and group from reuse until
        // report_exits().
        if (::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            continue;
        if (info.si_pid != child.pid) continue;
        child.exited = true;
        child.status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
        child.exited_at = Clock::now();
    }
}

void Children::report_exits() {
    for (std::size_t c = 0; c < children_.size(); ++c) {
        Child& child = children_[c];
        if (!child.exited || child.reported) continue;
        const bool open = child.streams[0].fd >= 0 || child.streams[1].fd >= 0;
        if (open && Clock::now() < child.exited_at + kDrainAfterExit) continue;
        ::kill(-child.pid, SIGKILL);  // what it started itself is not left behind
        ::waitpid(child.pid, nullptr, 0);
        tell_janitor('-', child.pid);
        child.reported = true;
        if (child.input >= 0) ::close(std::exchange(child.input, -1));
        events_.push_back(Event{.kind = Event::Kind::kExited, .child = c, .status = child.status});
    }
}

}  // namespace ulc::tools
