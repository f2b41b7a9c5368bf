// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/run/launch.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "base/progress.h"

namespace ulc::tools {
namespace {

constexpr auto kTermWait = std::chrono::seconds(2);
/// An engine that lost its peers first makes sure that they are dead.
constexpr auto kEngineTermWait = std::chrono::seconds(4);
constexpr auto kForever = std::chrono::hours(24 * 365);
constexpr std::size_t kLastLines = 12;
constexpr int kSshFailed = 255;

Clock::time_point after(double seconds) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void say(const std::string& text) { fmt::print(stderr, "ulc run: {}\n", text); }

std::string describe(int status, const MemoryCgroup& memory) {
    if (status <= 128 || status > 128 + SIGRTMAX)
        return fmt::format("exited with status {}", status);
    if (status == 128 + SIGKILL && memory.killed())
        return fmt::format(
            "was ended by the kernel because the memory of its control group is used "
            "up; raise the limit of {}, or start fewer ranks or nodes",
            memory.folder());
    return fmt::format("was ended by signal {} ({})", status - 128, ::strsignal(status - 128));
}

}  // namespace

Launch::Launch(ClusterPlan plan, LaunchOptions options, std::string directory, Children& children)
    : plan_(std::move(plan)),
      options_(options),
      directory_(std::move(directory)),
      children_(children) {}

int Launch::run() {
    if (start_infrastructure() && start_ranks()) supervise();
    signal_ranks(SIGKILL);  // none is left, unless starting failed half-way
    stop_infrastructure();
    for (auto& process : processes_) {
        if (process.log != nullptr) std::fclose(process.log);
    }
    return forced_ != 0 ? forced_ : worst_;
}

bool Launch::start_infrastructure() {
    const auto deadline = after(options_.ready_seconds);
    for (std::size_t i = 0; i < plan_.infrastructure.size(); ++i) {
        if (!start_one(plan_.infrastructure[i], false, static_cast<unsigned>(i))) return false;
        // The first one serves the sockets that the others connect to.
        if (i == 0 && !wait_until_ready(deadline)) return false;
    }
    return wait_until_ready(deadline);
}

bool Launch::start_ranks() {
    for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
        if (!start_one(plan_.ranks[rank], true, static_cast<unsigned>(rank))) return false;
    }
    if (options_.timeout_seconds > 0) deadline_ = after(options_.timeout_seconds);
    return true;
}

bool Launch::start_one(const ChildSpec& spec, bool is_rank, unsigned number) {
    if (options_.verbose) {
        std::string line;
        for (const auto& word : is_rank ? spec.environment : std::vector<std::string>{})
            line += word + " ";
        for (const auto& word : spec.argv)
            line += word + " ";
        say(fmt::format("{}: {}", spec.name, line));
    }
    Process process{.is_rank = is_rank, .number = number};
    std::string error;
    if (!children_.start(spec, &process.child, &error)) {
        say(fmt::format("cannot start {} ({}): {}", spec.name, spec.argv[0], error));
        forced_ = 126;
        return false;
    }
    if (!is_rank) {
        auto file = fmt::format("{}/{}.log", directory_, spec.name);
        std::replace(file.begin() + static_cast<std::ptrdiff_t>(directory_.size()), file.end(), ' ',
                     '-');
        process.log = std::fopen(file.c_str(), "we");
    }
    processes_.push_back(std::move(process));
    return true;
}

bool Launch::wait_until_ready(Clock::time_point deadline) {
    const auto not_ready = [&] {
        return std::find_if(processes_.begin(), processes_.end(),
                            [](const Process& p) { return !p.ready; });
    };
    constexpr auto kShort = std::chrono::seconds(1);  // shorter waits show nothing
    Progress progress(stderr, ::isatty(STDERR_FILENO) != 0);
    const Clock::time_point began = Clock::now();
    while (not_ready() != processes_.end()) {
        const Event event = children_.next(std::min(deadline, Clock::now() + kShort));
        if (event.kind == Event::Kind::kTimeout && Clock::now() < deadline) {
            const auto ready = std::ranges::count_if(processes_, &Process::ready);
            if (Clock::now() - began >= kShort)
                progress.show(static_cast<std::uint64_t>(ready), plan_.infrastructure.size(),
                              "starting engines");
            continue;
        }
        progress.clear();
        if (event.kind == Event::Kind::kLine) on_line(event);
        if (event.kind == Event::Kind::kSignal) forced_ = 128 + event.signal;
        if (event.kind == Event::Kind::kExited) {
            on_infrastructure_exit(processes_[event.child], event.status);
        } else if (event.kind == Event::Kind::kTimeout) {
            const Process& late = *not_ready();
            say(fmt::format("{} was not ready within {} s; its last words:",
                            children_.name(late.child), options_.ready_seconds));
            print_last_lines(late);
            say("too many engines for this machine? use fewer --nodes, or look further with "
                "--verbose");
            forced_ = 1;
        }
        if (forced_ != 0) return false;
    }
    return true;
}

void Launch::supervise() {
    while (ranks_running() > 0) {
        const auto limit = std::min(deadline_, Clock::now() + kForever);
        const Event event = children_.next(limit);
        switch (event.kind) {
            case Event::Kind::kLine:
                on_line(event);
                break;
            case Event::Kind::kExited: {
                Process& process = processes_[event.child];
                if (process.is_rank) {
                    on_rank_exit(process, event.status);
                } else {
                    on_infrastructure_exit(process, event.status);
                }
                break;
            }
            case Event::Kind::kSignal:
                on_signal(event.signal);
                break;
            case Event::Kind::kTimeout:
                on_deadline();
                break;
        }
    }
}

void Launch::stop_infrastructure() {
    stopping_ = true;
    auto deadline = Clock::now() + kEngineTermWait;
    int signal = SIGTERM;
    const auto left = [&] {
        return std::any_of(processes_.begin(), processes_.end(), [&](const Process& p) {
            return !p.is_rank && children_.running(p.child);
        });
    };
    for (const auto& p : processes_) {
        if (!p.is_rank) children_.send(p.child, signal);
    }
    while (left()) {
        const Event event = children_.next(deadline);
        if (event.kind == Event::Kind::kLine) on_line(event);
        const bool hurry =
            event.kind == Event::Kind::kTimeout || event.kind == Event::Kind::kSignal;
        if (!hurry) continue;
        if (event.kind == Event::Kind::kTimeout && options_.verbose)
            say("an engine did not end on SIGTERM; killing it");
        signal = SIGKILL;
        deadline = Clock::now() + kTermWait;
        for (const auto& p : processes_)
            children_.send(p.child, signal);
    }
}

void Launch::on_line(const Event& event) {
    Process& process = processes_[event.child];
    if (process.is_rank) {
        std::FILE* out = event.is_stderr ? stderr : stdout;
        if (options_.label) fmt::print(out, "[{}] ", plan_.first_rank + process.number);
        std::fwrite(event.text.data(), 1, event.text.size(), out);
        std::fputc('\n', out);
        std::fflush(out);
        return;
    }
    if (!event.is_stderr && event.text.find("ready") != std::string::npos) process.ready = true;
    if (process.log != nullptr) {
        fmt::print(process.log, "{}\n", event.text);
        std::fflush(process.log);
    }
    if (process.last_lines.size() == kLastLines)
        process.last_lines.erase(process.last_lines.begin());
    process.last_lines.push_back(event.text);
    if (options_.verbose) fmt::print(stderr, "{}: {}\n", children_.name(event.child), event.text);
}

void Launch::on_rank_exit(Process& process, int status) {
    if (status == 0) return;
    if (process.signalled) {
        if (options_.verbose)
            say(fmt::format("{} ended by our signal", children_.name(process.child)));
        return;
    }
    worst_ = std::max(worst_, status);
    say(fmt::format("{} {}", children_.name(process.child), describe(status, memory_)));
    if (status == kSshFailed && !plan_.host_of_rank.empty())
        say(fmt::format(
            "ssh gives that status; does the host answer without a password? ssh {} true",
            plan_.host_of_rank[process.number]));
    if (stage_ == Stage::kRunning && ranks_running() > 0) {
        say(fmt::format("ranks that still run ({}) are ended in {} s", ranks_running(),
                        options_.grace_seconds));
        enter_grace(options_.grace_seconds);
    }
}

void Launch::on_infrastructure_exit(Process& process, int status) {
    if (stopping_) return;
    const std::string& name = children_.name(process.child);
    say(fmt::format("{} {}; its last words:", name, describe(status, memory_)));
    print_last_lines(process);
    say("the whole log: run again with --keep and --verbose; is the machine fit? ulc doctor");
    if (forced_ == 0) forced_ = 1;
    if (stage_ == Stage::kRunning) enter_grace(options_.grace_seconds);
}

void Launch::on_signal(int signal) {
    const bool again = forced_ > 128;
    forced_ = 128 + signal;
    signal_ranks(again ? SIGKILL : signal);
    if (!again) enter_grace(2);
}

void Launch::on_deadline() {
    switch (stage_) {
        case Stage::kRunning:
            say(fmt::format("{} of {} ranks still run after --timeout {} s; ending them",
                            ranks_running(), plan_.ranks.size(), options_.timeout_seconds));
            forced_ = 124;
            [[fallthrough]];
        case Stage::kGrace:
            signal_ranks(SIGTERM);
            stage_ = Stage::kTerminating;
            break;
        case Stage::kTerminating:
        case Stage::kKilling:
            signal_ranks(SIGKILL);
            stage_ = Stage::kKilling;
            break;
    }
    deadline_ = Clock::now() + kTermWait;
}

void Launch::enter_grace(double seconds) {
    stage_ = Stage::kGrace;
    deadline_ = after(seconds);
}

void Launch::signal_ranks(int signal) {
    for (auto& process : processes_) {
        if (!process.is_rank || !children_.running(process.child)) continue;
        process.signalled = true;
        children_.send(process.child, signal);
    }
}

void Launch::print_last_lines(const Process& process) const {
    for (const auto& line : process.last_lines)
        fmt::print(stderr, "    {}\n", line);
    if (process.last_lines.empty()) fmt::print(stderr, "    (none)\n");
}

unsigned Launch::ranks_running() const {
    return static_cast<unsigned>(
        std::count_if(processes_.begin(), processes_.end(),
                      [&](const Process& p) { return p.is_rank && children_.running(p.child); }));
}

}  // namespace ulc::tools
