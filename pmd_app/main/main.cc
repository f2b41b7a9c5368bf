// ulc-engine: one node's engine as a daemon. Options from options.def; one line on stdout when ready; SIGTERM or SIGINT ends it in
// order: nobody is taken in any more, what clients sent is delivered, peers are told.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "main/attach_server.h"
#include "main/node.h"
#include "main/options.h"

namespace ulc::daemon {
namespace {

constexpr Nanos kDrainMax = 12 * kSecond;  // a little more than linger_max

sigset_t end_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

/// Runs the engine on a thread of its own until a signal. The calling thread waits for it without a CPU.
void serve(Node& node, AttachServer& server, EngineLoop& loop) {
    std::thread engine([&] {
        const bool cached = dpdk::adopt_thread();
        loop.run(kDrainMax);
        if (cached) dpdk::release_thread();
    });
    std::printf("ulc-engine ready: %s\n", node.ports_as_text().c_str());
    std::fflush(stdout);
    const sigset_t signals = end_signals();
    int signal = 0;
    sigwait(&signals, &signal);
    spdlog::info("ending: {}", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    server.stop();
    loop.stop();
    engine.join();
    if (const std::string carried = node.exceptions_as_text(); !carried.empty())
        spdlog::info("{}", carried);
    if (const std::string lost = node.losses_as_text(); !lost.empty()) spdlog::warn("{}", lost);
}

int run(int argc, char** argv) {
    Options options;
    int status = 0;
    if (!parse_daemon_options(argc, argv, options, status)) return status;
    spdlog::set_default_logger(spdlog::stderr_color_mt("ulc-engine"));
    spdlog::set_level(spdlog::level::from_str(options.log_level));
    // Before any thread exists, so that all of them inherit it and sigwait() alone sees the signals.
    const sigset_t signals = end_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);

    std::string why;
    std::string ports;
    for (const std::string& device : options.devices)
        ports += (ports.empty() ? "" : " ") + device;
    CounterPage counters;
    if (counters.make(ports, why) != Err::kOk) {
        spdlog::error("{}", why);
        return 1;
    }
    NodeOptions node_options = node_options_of(options);
    node_options.engine.wake = wake_futex;
    std::unique_ptr<Node> node;
    std::vector<std::string> notes;
    if (Node::open(node_options, counters.counters(), node, notes, why) != Err::kOk) {
        spdlog::error("{}", why);
        return 1;
    }
    for (const std::string& note : notes)
        spdlog::info("{}", note);
    {
        EngineLoop loop(node->engine(), EngineClock(node->tsc_hz()), node_options.idle);
        AttachServer server(attach_options_of(options), loop, counters);
        if (server.start(why) != Err::kOk) {
            spdlog::error("{}", why);
            return 1;
        }
        serve(*node, server, loop);
    }
    // The engine has drained; ports and DPDK are left to the kernel. DPDK 22.11 takes a memif server's listener away from
    // its own interrupt thread while a peer knocks, which then reads freed memory.
    static const Node* const kept = node.release();
    static_cast<void>(kept);
    return 0;
}

}  // namespace
}  // namespace ulc::daemon

int main(int argc, char** argv) { return ulc::daemon::run(argc, argv); }
