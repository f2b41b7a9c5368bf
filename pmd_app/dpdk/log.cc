// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/log.h"

#include <cstdio>
#include <deque>
#include <mutex>

#include <rte_log.h>

namespace ulc::dpdk {
namespace {

constexpr std::size_t kRecentLinesMax = 4;

/// DPDK has one log a process, so this is the process's too.
struct LogState {
    std::mutex mutex;
    LogSink sink = nullptr;
    void* context = nullptr;
    bool muted = false;
    std::string line;  ///< not ended yet
    std::deque<std::string> recent;
    FILE* stream = nullptr;
};

LogState& state() {
    static LogState* const log =
        new LogState;  // never destroyed: DPDK's threads may still log at exit
    return *log;
}

void line_done(LogState& log) {
    if (log.line.empty()) return;
    if (!log.muted) {
        if (log.sink != nullptr) {
            log.sink(log.context, log.line.c_str());
        } else {
            std::fprintf(stderr, "dpdk: %s\n", log.line.c_str());
        }
    }
    log.recent.push_back(std::move(log.line));
    if (log.recent.size() > kRecentLinesMax) log.recent.pop_front();
    log.line.clear();
}

ssize_t write_lines(void* cookie, const char* data, std::size_t size) {
    auto& log = *static_cast<LogState*>(cookie);
    const std::lock_guard lock(log.mutex);
    for (std::size_t i = 0; i < size; ++i) {
        if (data[i] == '\n') {
            line_done(log);
        } else {
            log.line.push_back(data[i]);
        }
    }
    return static_cast<ssize_t>(size);
}

}  // namespace

void route_log(LogSink sink, void* context) {
    LogState& log = state();
    {
        const std::lock_guard lock(log.mutex);
        log.sink = sink;
        log.context = context;
    }
    if (log.stream != nullptr) return;
    cookie_io_functions_t functions{};
    functions.write = write_lines;
    log.stream = fopencookie(&log, "w", functions);
    if (log.stream == nullptr) return;  // DPDK then keeps its own stream
    setvbuf(log.stream, nullptr, _IOLBF, 512);
    rte_openlog_stream(log.stream);
}

void mute_log(bool mute) {
    LogState& log = state();
    const std::lock_guard lock(log.mutex);
    log.muted = mute;
}

std::string take_recent_log() {
    LogState& log = state();
    const std::lock_guard lock(log.mutex);
    std::string joined;
    for (const std::string& line : log.recent) {
        if (!joined.empty()) joined += "; ";
        joined += line;
    }
    log.recent.clear();
    return joined;
}

}  // namespace ulc::dpdk
