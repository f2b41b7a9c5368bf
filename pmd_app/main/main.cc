// SPDX-License-Identifier: BSD-3-Clause
// ulc-engine: one node's engine as a daemon. It holds privileges, ports, memory and clients; the
// engine is libulc-core.so. Options from options.def; one line on stdout when ready. SIGTERM or
// SIGINT ends it in order: no client is accepted any more, their messages are delivered, peers are
// notified.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <utility>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/check.h"
#include "main/attach/attach_server.h"
#include "main/core/core.h"
#include "main/node.h"
#include "main/options.h"
#include "main/sandbox/sandbox.h"
#include "main/service/journal.h"
#include "main/service/limited_thread.h"
#include "main/service/service_manager.h"

namespace ulc::daemon {
namespace {

constexpr Nanos kDrainMax = 12 * kSecond;  // a little more than linger_max
constexpr Nanos kLastRound = 3 * kSecond;  // of a thread that has drained, on a busy machine

sigset_t end_signals() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

/// Loads the engine and makes one on the ports of the node.
Err open_core(Node& node, std::unique_ptr<Core>& out, std::string& why) {
    std::shared_ptr<const CoreLibrary> library;
    const std::string file = CoreLibrary::usual_file();
    if (const Err error = CoreLibrary::load(file, CoreFileRule::kAny, library, why);
        error != Err::kOk)
        return error;
    spdlog::debug("engine core {} of {}", library->table().build, file);
    const Err error = Core::create(std::move(library), node.engine_config(), node.ports(), out);
    if (error != Err::kOk) {
        why = "no memory for the engine; lower --endpoints, or free memory";
        return error;
    }
    node.watch(out->counters());
    return Err::kOk;
}

/// Drops privileges when all threads run. Returns false if that is not possible, and --sandbox yes
/// was given.
bool restrict_process(const Options& options, const NodeOptions& node) {
    const SandboxMode mode = options.sandbox == "yes"  ? SandboxMode::kYes
                             : options.sandbox == "no" ? SandboxMode::kNo
                                                       : SandboxMode::kAuto;
    std::string report;
    std::string why;
    SandboxNeeds needs = needs_of(node.eal.devices, options.exception, options.socket_path);
    needs.upgrades = options.upgrade == "yes";
    if (enter_sandbox(mode, needs, report, why) != Err::kOk) {
        spdlog::error("{}", why);
        return false;
    }
    spdlog::info("{}", report);
    return true;
}

/// Sleeps until SIGTERM or SIGINT and returns it. Meanwhile it reports to the watchdog only while
/// the engine's thread runs rounds.
int wait_for_end(const EngineLoop& loop, ServiceManager& service) {
    const sigset_t signals = end_signals();
    if (service.interval() == kNever) {
        int signal = 0;
        sigwait(&signals, &signal);
        return signal;
    }
    const timespec interval{static_cast<time_t>(service.interval() / kSecond),
                            static_cast<long>(service.interval() % kSecond)};
    for (std::uint64_t beats = 0;;) {
        if (const int signal = sigtimedwait(&signals, nullptr, &interval); signal > 0)
            return signal;
        const std::uint64_t now = loop.beats();
        if (std::exchange(beats, now) != now) service.alive();
    }
}

/// Ends both threads. Where one does not end, the process does, and what that thread uses stays.
void end_threads(AttachServer& server, EngineLoop& loop, LimitedThread& engine) {
    const bool server_ends = server.stop();
    loop.stop();
    const bool engine_ends = engine.join(kDrainMax + kLastRound);
    if (!engine_ends)
        spdlog::error(
            "the engine's thread does not end: it is stuck in a round or a call; its peers notice "
            "that by its silence, and the process ends now");
    if (server_ends && engine_ends) return;
    spdlog::default_logger()->flush();
    _exit(1);
}

/// Runs the engine on a separate thread until a signal. The calling thread sleeps meanwhile.
/// Returns false if the engine did not become ready; the log says why.
bool serve(Node& node, AttachServer& server, EngineLoop& loop, ServiceManager& service,
           const std::function<bool()>& restrict_all) {
    LimitedThread engine;
    engine.start([&] {
        const bool cached = dpdk::adopt_thread();
        loop.run(kDrainMax);
        if (cached) dpdk::release_thread();
    });
    const bool ready = restrict_all();
    if (ready) {
        std::printf("ulc-engine ready: %s\n", node.ports_as_text().c_str());
        std::fflush(stdout);
        service.ready(node.ports_as_text());
        const int signal = wait_for_end(loop, service);
        service.stopping();
        spdlog::info("ending: {}", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    }
    end_threads(server, loop, engine);
    if (const std::string carried = node.traffic_as_text(); !carried.empty())
        spdlog::info("{}", carried);
    if (const std::string lost = node.losses_as_text(); !lost.empty()) spdlog::warn("{}", lost);
    return ready;
}

int run(int argc, char** argv) {
    Options options;
    int status = 0;
    if (!parse_daemon_options(argc, argv, options, status)) return status;
    if (auto journal = JournalSink::make(JournalSink::kPath, options.socket_path))
        spdlog::set_default_logger(std::make_shared<spdlog::logger>("ulc-engine", journal));
    else
        spdlog::set_default_logger(spdlog::stderr_color_mt("ulc-engine"));
    spdlog::set_level(spdlog::level::from_str(options.log_level));
    // Before any thread exists, so that all of them inherit it and only sigwait() sees the signals.
    const sigset_t signals = end_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);

    std::string why;
    ServiceManager service(why);
    if (!why.empty()) spdlog::warn("{}", why);
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
    std::unique_ptr<Core> core;
    if (open_core(*node, core, why) != Err::kOk) {
        spdlog::error("{}", why);
        return 1;
    }
    {
        EngineLoop loop(*core, EngineClock(node->tsc_hz()), node_options.idle);
        AttachServer server(attach_options_of(options), loop, counters);
        if (server.start(why) != Err::kOk) {
            spdlog::error("{}", why);
            return 1;
        }
        const auto restrict_all = [&] { return restrict_process(options, node_options); };
        if (!serve(*node, server, loop, service, restrict_all)) status = 1;
    }
    // The engine has drained; ports and DPDK are left to the kernel. DPDK 22.11 removes a memif
    // server's listener from its own interrupt thread while a peer connects, which then reads freed
    // memory.
    static const Node* const kept = node.release();
    static const Core* const kept_core = core.release();
    static_cast<void>(kept);
    static_cast<void>(kept_core);
    return status;
}

}  // namespace
}  // namespace ulc::daemon

int main(int argc, char** argv) { return ulc::daemon::run(argc, argv); }
