// SPDX-License-Identifier: BSD-3-Clause
// ulc exporter: the counters of an engine for Prometheus, over HTTP.
#include <fmt/format.h>

#include <csignal>

#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/watch/counter_page.h"
#include "tools/ulc/watch/http_server.h"
#include "tools/ulc/watch/prometheus.h"

namespace ulc::tools {
namespace {

struct ExporterOptions {
    std::string socket;
    std::string listen = "127.0.0.1:9418";
};

volatile std::sig_atomic_t g_stop = 0;

/// Makes the page of one engine, which may be absent for a while.
class EnginePage {
public:
    explicit EnginePage(std::string socket) : socket_(std::move(socket)) {}

    std::string text() {
        CounterPage page;
        std::string error;
        const bool up = page.open(socket_, &error);
        // One line for each change.
        if (error != told_)
            fmt::print(stderr, "ulc exporter: {}\n", up ? "the engine is up" : error);
        told_ = error;
        return prometheus_up(socket_, up) + (up ? prometheus_text(socket_, page) : "");
    }

private:
    std::string socket_;
    std::string told_;
};

int exporter(const ExporterOptions& options) {
    HttpServer server;
    std::string error;
    const std::string socket = counter_socket(options.socket, &error);
    if (socket.empty() || !server.open(options.listen, &error)) {
        fmt::print(stderr, "ulc exporter: {}\n", error);
        return 1;
    }
    sigset_t ends;
    sigset_t waiting;
    ::sigemptyset(&ends);
    struct sigaction action {};
    action.sa_handler = [](int signal) { g_stop = signal; };
    for (const int signal : {SIGINT, SIGTERM}) {
        ::sigaddset(&ends, signal);
        ::sigaction(signal, &action, nullptr);
    }
    ::sigprocmask(SIG_BLOCK, &ends, &waiting);
    fmt::print("ulc exporter ready: http://{}/metrics\n", server.address());
    std::fflush(stdout);
    EnginePage page(socket);
    server.serve([&] { return page.text(); }, &g_stop, waiting);
    return g_stop == SIGTERM ? 0 : 128 + g_stop;  // a service manager ends it so
}

}  // namespace

void add_exporter_command(Command& app, int* exit_code) {
    auto options = std::make_shared<ExporterOptions>();
    auto command = app.add_subcommand("exporter", "Serve an engine's counters to Prometheus");
    command.add_option("socket", options->socket, "The engine's socket, as of ulc stat");
    command.add_option("--listen", options->listen,
                       "Address and port to serve at (127.0.0.1:9418); port 0: any free one");
    command.footer("Serves /metrics over HTTP, without encryption: keep it on the loopback.");
    command.callback([options, exit_code] { *exit_code = exporter(*options); });
}

}  // namespace ulc::tools
