// SPDX-License-Identifier: BSD-3-Clause
// ulc top: the endpoints of a running engine, with rates, losses and queues, refreshed.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/programs.h"
#include "tools/ulc/watch/counter_page.h"
#include "tools/ulc/watch/top_view.h"

namespace ulc::tools {
namespace {

struct TopOptions {
    std::string socket;
    std::string order = "rate";
    double interval_seconds = 1;
    bool once = false;
};

volatile sig_atomic_t g_ended_by = 0;  ///< a signal

/// The whole terminal, without echo or cursor. The destructor gives it back as it was. Signals that
/// would end the program end read_key() instead.
class Terminal {
public:
    Terminal() {
        struct sigaction action {};
        action.sa_handler = [](int signal) { g_ended_by = signal; };
        for (std::size_t i = 0; i < std::size(kSignals); ++i)
            ::sigaction(kSignals[i], &action, &old_actions_[i]);
        ::tcgetattr(STDIN_FILENO, &old_);
        termios changed = old_;
        changed.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        changed.c_cc[VSUSP] = _POSIX_VDISABLE;  // a stop would leave the terminal so
        changed.c_cc[VMIN] = 0;
        changed.c_cc[VTIME] = 0;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &changed);
        put("\x1b[?1049h\x1b[?25l");
    }
    ~Terminal() {
        put("\x1b[?25h\x1b[?1049l");
        ::tcsetattr(STDIN_FILENO, TCSANOW, &old_);
        for (std::size_t i = 0; i < std::size(kSignals); ++i)
            ::sigaction(kSignals[i], &old_actions_[i], nullptr);
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    static void show(const std::string& text) {
        std::string lines = "\x1b[H";
        for (const char letter : text)
            letter == '\n' ? lines += "\x1b[K\n" : lines += letter;
        lines.pop_back();  // a line end at the bottom would scroll
        put(lines + "\x1b[J");
    }
    /// Waits for a key. Returns 0 after that time, or when a signal came.
    static char read_key(std::chrono::milliseconds wait) {
        pollfd keyboard{STDIN_FILENO, POLLIN, 0};
        char key = 0;
        if (::poll(&keyboard, 1, static_cast<int>(wait.count())) <= 0) return 0;
        // A terminal that has gone ends the program as its `q`.
        return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
    }

private:
    /// Writes the whole text, though signals interrupt it, unless the terminal has gone.
    static void put(std::string_view text) {
        while (!text.empty()) {
            const ssize_t taken = ::write(STDOUT_FILENO, text.data(), text.size());
            if (taken < 0 && errno != EINTR) return;
            text.remove_prefix(taken > 0 ? static_cast<std::size_t>(taken) : 0);
        }
    }

    static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction old_actions_[std::size(kSignals)]{};
    termios old_{};
};

bool sample(const std::string& socket, TopSample* out, std::string* error) {
    CounterPage page;  // opened again each time, because that refreshes the rows
    if (!page.open(socket, error)) return false;
    const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
    *out = {.seconds = now.count(),
            .engine_pid = page.engine_pid(),
            .socket = socket,
            .ports = page.ports(),
            .counters = {},
            .rows = page.rows()};
    const std::vector<std::uint64_t> values = page.values();
    for (std::size_t i = 0; i < values.size(); ++i)
        out->counters[page.names()[i]] = values[i];
    return true;
}

bool wants_colours() {
    return ::isatty(STDOUT_FILENO) == 1 && environment_of("NO_COLOR").empty() &&
           environment_of("TERM") != "dumb";
}

int fail(const std::string& error) {
    fmt::print(stderr, "ulc top: {}\n", error);
    return 1;
}

int top_once(const std::string& socket, const TopOptions& options, const TopSample& before) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
    TopSample now;
    std::string error;
    if (!sample(socket, &now, &error)) return fail(error);
    fmt::print("{}",
               top_text(before, now,
                        {.order = *order_of_word(options.order), .colours = wants_colours()}));
    return 0;
}

/// Shows samples until a key, a signal or the end of the engine. Returns what ended the engine, or
/// an empty text.
std::string watch(const std::string& socket, const TopOptions& options, TopSample before) {
    using Clock = std::chrono::steady_clock;
    TopStyle style{
        .order = *order_of_word(options.order), .colours = wants_colours(), .keys = true};
    const auto interval = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options.interval_seconds));
    const Terminal terminal;
    TopSample now = before;
    auto due = Clock::now() + interval;
    while (g_ended_by == 0) {
        winsize size{};
        if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
            style.lines_max = size.ws_row;
            style.columns_max = size.ws_col;
        }
        Terminal::show(top_text(before, now, style));
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
        const char key = Terminal::read_key(std::max(left, std::chrono::milliseconds(0)));
        if (key == 'q') return {};
        if (const auto order = order_of_key(key)) style.order = *order;
        if (Clock::now() < due) continue;
        due = Clock::now() + interval;
        before = now;
        std::string error;
        if (!sample(socket, &now, &error)) return error;
    }
    return {};
}

int top(const TopOptions& options) {
    std::string error;
    const std::string socket = counter_socket(options.socket, &error);
    TopSample first;
    if (socket.empty()) return fail(error);
    if (!options.once && (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)) {
        fmt::print(stderr, "ulc top: this is no terminal; add --once for one table\n");
        return 2;
    }
    if (!sample(socket, &first, &error)) return fail(error);
    if (options.once) return top_once(socket, options, first);
    const std::string end = watch(socket, options, std::move(first));
    if (!end.empty()) return fail(end);
    return g_ended_by == 0 ? 0 : 128 + g_ended_by;
}

}  // namespace

void add_top_command(Command& app, int* exit_code) {
    auto options = std::make_shared<TopOptions>();
    auto command = app.add_subcommand("top", "Endpoints, rates, losses and queues of an engine");
    command.add_option("socket", options->socket, "The engine's socket, as of ulc stat");
    command.add_option("--sort", options->order, "Column to sort by: " + order_words())
        .check([](const std::string& word) {
            return order_of_word(word) ? "" : "it is one of: " + order_words();
        });
    command.add_option("--interval", options->interval_seconds, "Time between samples (1s)")
        .time(kSecond, 150 * kMillisecond, 3600 * kSecond);
    command.add_flag("--once", options->once, "Take two samples, print one table and end");
    command.footer("Keys: q quits; r, l, u, b, c, t and p sort. man ulc explains the columns.");
    command.callback([options, exit_code] { *exit_code = top(*options); });
}

}  // namespace ulc::tools
