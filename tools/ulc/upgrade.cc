// SPDX-License-Identifier: BSD-3-Clause
// ulc upgrade: replaces the core of a running engine while its clients stay attached
// (docs/design/UPGRADE.md).
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "abi/attach.h"
#include "tools/shared/command_line.h"
#include "tools/ulc/commands.h"
#include "tools/ulc/engine_socket.h"
#include "tools/ulc/watch/counter_page.h"

namespace ulc::tools {
namespace {

constexpr int kAnswerSeconds = 30;  ///< loading may read a slow disk; the rest is bounded

struct UpgradeOptions {
    std::string socket;
    std::string library;
    bool evicts = false;
};

/// False: no answer that this version can read; `error` says so.
bool receive_answer(int fd, abi::UpgradeAnswer* answer, std::string* error) {
    std::array<char, sizeof(abi::UpgradeAnswer) + 1> packet{};
    ssize_t n = ::recv(fd, packet.data(), packet.size(), 0);
    // An engine that refused the Hello closed without a look at the request; its answer is there.
    if (n < 0 && errno == ECONNRESET) n = ::recv(fd, packet.data(), packet.size(), 0);
    if (n <= 0) {
        *error = n < 0 && errno == EAGAIN
                     ? fmt::format(
                           "the engine does not answer within {} s; its log says how the "
                           "upgrade ended",
                           kAnswerSeconds)
                     : "the engine is ending, or refused without a reason; see its log";
        return false;
    }
    if (n == static_cast<ssize_t>(sizeof(abi::Offer))) {
        abi::Offer offer{};
        std::memcpy(&offer, packet.data(), sizeof offer);
        offer.text[sizeof offer.text - 1] = '\0';
        *error = offer.text[0] != '\0' ? offer.text : "the engine refused";
        return false;
    }
    std::memcpy(answer, packet.data(), sizeof *answer);
    if (n != static_cast<ssize_t>(sizeof *answer) || answer->magic != abi::kHelloMagic) {
        *error =
            "the answer is not that of a ulc-engine of this version; use the ulc that was "
            "installed with the engine";
        return false;
    }
    answer->build[sizeof answer->build - 1] = '\0';
    answer->text[sizeof answer->text - 1] = '\0';
    return true;
}

void print_steps(const abi::UpgradeAnswer& answer) {
    const auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e6; };
    fmt::print(
        "load {:.3f} ms, create {:.3f} ms, export {:.3f} ms, import {:.3f} ms, switch "
        "{:.3f} ms\n",
        ms(answer.load_ns), ms(answer.create_ns), ms(answer.export_ns), ms(answer.import_ns),
        ms(answer.switch_ns));
    fmt::print("blackout {:.3f} ms: {} endpoints, {} octets, {} frames, {} tries\n",
               ms(answer.blackout_ns), answer.endpoints, answer.state_octets, answer.frames,
               answer.tries);
}

int upgrade(const UpgradeOptions& options) {
    std::string error;
    const std::string socket = counter_socket(options.socket, &error);
    abi::UpgradeRequest request{};
    request.magic = abi::kHelloMagic;
    request.evicts = options.evicts ? 1 : 0;
    std::string file;
    if (!options.library.empty()) file = std::filesystem::absolute(options.library);
    if (file.size() >= sizeof request.file) error = "the path of the library is too long";
    std::copy_n(file.begin(), std::min(file.size(), sizeof request.file - 1), request.file);
    Descriptor fd;
    abi::UpgradeAnswer answer{};
    if (error.empty() &&
        greet_engine(socket, abi::HelloKind::kUpgrade, kAnswerSeconds, &fd, &error)) {
        static_cast<void>(::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL));
        static_cast<void>(receive_answer(fd.get(), &answer, &error));
    }
    if (error.empty() && answer.status != 0)
        error = answer.text[0] != '\0' ? answer.text : "the engine gave no reason; see its log";
    if (!error.empty()) {
        fmt::print(stderr, "ulc upgrade: {}\n", error);
        return 1;
    }
    fmt::print("upgraded to {}\n", answer.build);
    print_steps(answer);
    return 0;
}

}  // namespace

void add_upgrade_command(Command& app, int* exit_code) {
    auto options = std::make_shared<UpgradeOptions>();
    Command command =
        app.add_subcommand("upgrade", "Replace the core of an engine; its clients stay attached");
    command.add_option(
        "--engine", options->socket,
        "Socket of the engine (ULC_ENGINE, else " + std::string(abi::kDefaultSocketPath) + ")");
    command.add_option("--library", options->library,
                       "The new libulc-core.so; the one installed with the engine if left out");
    command.add_flag("--evict", options->evicts,
                     "End clients whose collectives are in the way for a second");
    command.footer("Only root and the engine's user may. A refusal changes nothing.");
    command.callback([=] { *exit_code = upgrade(*options); });
}

}  // namespace ulc::tools
