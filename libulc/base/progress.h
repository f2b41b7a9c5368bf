// SPDX-License-Identifier: BSD-3-Clause
// A line of progress for programs that take seconds: bar, count, percentage and time left. It is
// rewritten in place on a terminal; elsewhere nothing is written. tools/shared/progress.py and
// tools/common.sh show the same line.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ulc {

/// Returns seconds for a reader: 0:07, 1:02:03.
[[nodiscard]] inline std::string clock_text(std::uint64_t seconds) {
    const std::uint64_t hours = seconds / 3600;
    const std::uint64_t minutes = seconds / 60 % 60;
    const auto two = [](std::uint64_t n) { return (n < 10 ? ":0" : ":") + std::to_string(n); };
    if (hours == 0) return std::to_string(minutes) + two(seconds % 60);
    return std::to_string(hours) + two(minutes) + two(seconds % 60);
}

/// Returns the line for `done` of `total` after `took` seconds; total 0: unknown.
[[nodiscard]] inline std::string progress_line(std::uint64_t done, std::uint64_t total, double took,
                                               std::string_view what) {
    constexpr std::size_t kBar = 20;  // columns
    constexpr std::size_t kColumns = 79;
    constexpr double kSureAfter = 3;  // seconds after which the time left is an estimate
    std::string text = "  [";
    if (total == 0) {
        text += clock_text(static_cast<std::uint64_t>(took)) + "]";
    } else {
        done = std::min(done, total);
        const double part = static_cast<double>(done) / static_cast<double>(total);
        const auto filled = static_cast<std::size_t>(part * kBar);
        text += std::string(filled, '#') + std::string(kBar - filled, ' ') + "] " +
                std::to_string(done) + "/" + std::to_string(total) + " " +
                std::to_string(static_cast<unsigned>(part * 100)) + " %";
        if (done > 0 && took >= kSureAfter)
            text += ", " + clock_text(static_cast<std::uint64_t>(took / part - took)) + " left";
    }
    if (!what.empty()) text.append(" ").append(what);
    return text.substr(0, kColumns);
}

/// The progress of one piece of work. The line is removed at the end.
class Progress {
public:
    /// `to` must outlive the object. Nothing is shown if it is no terminal.
    Progress(std::FILE* to, bool is_terminal) noexcept : to_(to) {
        const char* const terminal = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe)
        is_shown_ = is_terminal && terminal != nullptr && std::string_view(terminal) != "dumb";
    }
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    [[nodiscard]] bool is_shown() const noexcept { return is_shown_; }
    /// Rewrites the line.
    void show(std::uint64_t done, std::uint64_t total, std::string_view what) {
        if (!is_shown_) return;
        const std::chrono::duration<double> took = Clock::now() - began_;
        write("\r\033[K" + progress_line(done, total, took.count(), what));
        is_there_ = true;
    }
    /// Removes the line, as before a line that stays.
    void clear() {
        if (is_there_) write("\r\033[K");
        is_there_ = false;
    }

private:
    using Clock = std::chrono::steady_clock;

    void write(const std::string& text) {
        std::fputs(text.c_str(), to_);
        std::fflush(to_);
    }

    std::FILE* to_;
    Clock::time_point began_ = Clock::now();
    bool is_shown_ = false;
    bool is_there_ = false;
};

}  // namespace ulc
