// SPDX-License-Identifier: BSD-3-Clause
#include "main/core/upgrader.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "abi/put_text.h"
#include "base/clock.h"
#include "main/engine_loop.h"

namespace ulc::daemon {
namespace {

constexpr Nanos kBlackoutMax = 250 * kMillisecond;
constexpr Nanos kBusyMax = kSecond;  ///< how long a collective may be in the way
constexpr std::chrono::milliseconds kTryAgain{1};
constexpr int kRequestSeconds = 5;
constexpr Nanos kEndMax = 2 * EngineCalls::kCallMax + 10 * kSecond;  ///< a call, and loading

/// False: the client is gone, silent or of another version.
bool receive_request(int socket, std::string& file, bool& evicts) {
    const timeval limit{.tv_sec = kRequestSeconds, .tv_usec = 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const int flags = fcntl(socket, F_GETFL);
    fcntl(socket, F_SETFL, flags & ~O_NONBLOCK);
    abi::UpgradeRequest request{};
    if (recv(socket, &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request) ||
        request.magic != abi::kHelloMagic)
        return false;
    file.assign(request.file, strnlen(request.file, sizeof request.file));
    evicts = request.evicts == 1;
    return true;
}

void send_answer(int socket, Err error, const UpgradeFigures& figures, const std::string& build,
                 const std::string& why) {
    abi::UpgradeAnswer answer{};
    answer.magic = abi::kHelloMagic;
    answer.status = static_cast<std::int32_t>(error);
    const auto number = [](Nanos time) { return static_cast<std::uint64_t>(time); };
    answer.load_ns = number(figures.load);
    answer.create_ns = number(figures.create);
    answer.export_ns = number(figures.exporting);
    answer.import_ns = number(figures.importing);
    answer.switch_ns = number(figures.switching);
    answer.blackout_ns = number(figures.blackout);
    answer.state_octets = figures.octets;
    answer.frames = figures.frames;
    answer.tries = figures.tries;
    answer.endpoints = figures.endpoints;
    put_text(answer.build, build);
    put_text(answer.text, why);
    static_cast<void>(send(socket, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace

bool Upgrader::begin(int socket, std::string& why) {
    // One that has answered only ends.
    if (busy_.load(std::memory_order_acquire) || !thread_.join(kEndMax)) {
        why = "another upgrade is under way; try again when it has ended";
        return false;
    }
    if (socket_ >= 0) close(socket_);
    socket_ = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (socket_ < 0) {
        why = "the engine has no file descriptor left; raise its limit (ulimit -n)";
        return false;
    }
    busy_.store(true, std::memory_order_relaxed);
    try {
        thread_.start([this] { thread(); });
    } catch (const std::system_error&) {
        close(std::exchange(socket_, -1));
        busy_.store(false, std::memory_order_relaxed);
        why = "the engine can make no thread; raise the limit of its processes (ulimit -u)";
        return false;
    }
    return true;
}

bool Upgrader::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    if (!thread_.joinable()) return true;
    if (busy_.load(std::memory_order_acquire)) shutdown(socket_, SHUT_RD);  // ends a recv()
    if (!thread_.join(kEndMax)) {
        spdlog::error("the thread of an upgrade does not end");
        return false;
    }
    close(std::exchange(socket_, -1));
    return true;
}

void Upgrader::thread() {
    std::string file;
    bool evicts = false;
    if (receive_request(socket_, file, evicts)) {
        if (file.empty()) file = CoreLibrary::usual_file();
        UpgradeFigures figures;
        std::string build;
        std::string why;
        const Err error = upgrade(file, evicts, figures, build, why);
        if (error == Err::kOk) {
            spdlog::info("upgraded to core {}: {} endpoints, {} octets, {} us without a round",
                         build, figures.endpoints, figures.octets, figures.blackout / kMicrosecond);
        } else {
            spdlog::warn("not upgraded: {}", why);
        }
        send_answer(socket_, error, figures, build, why);
    }
    shutdown(socket_, SHUT_RDWR);  // begin() or the end of this object closes it
    busy_.store(false, std::memory_order_release);
}

Err Upgrader::upgrade(const std::string& file, bool evicts, UpgradeFigures& figures,
                      std::string& build, std::string& why) {
    if (file.front() != '/') {
        why = fmt::format("{} is no absolute path; name the library by one", file);
        return Err::kInvalid;
    }
    const Nanos begun = monotonic_now();
    std::shared_ptr<const CoreLibrary> library;
    if (const Err e = CoreLibrary::load(file, CoreFileRule::kOwned, library, why); e != Err::kOk)
        return e;
    build = library->table().build;
    const Nanos loaded = monotonic_now();
    const auto attempt = std::make_shared<Attempt>();
    attempt->figures.load = loaded - begun;
    Err error = make(attempt, library);
    const Nanos created = monotonic_now() - loaded;
    if (error == Err::kOk) {
        error = replace(attempt, evicts, why);
    } else if (error == Err::kNoMemory) {
        why = "no memory for a second engine core; free some, or restart the engine";
    }
    if (error == Err::kClosed) {
        why = "the engine is stopping, or its thread is stuck; start the new one after it";
    } else {
        figures = attempt->figures;
        figures.create = created;
    }
    discard(attempt);
    return error;
}

Err Upgrader::make(const std::shared_ptr<Attempt>& attempt,
                   std::shared_ptr<const CoreLibrary> library) {
    const auto error = std::make_shared<Err>(Err::kOk);
    const bool ran = loop_.calls().run([attempt, error, library](const Core& core, Nanos) {
        *error = core.make_next(library, attempt->next);
    });
    return ran ? *error : Err::kClosed;
}

// Frames go back to pools that the engine's thread uses. If that has ended, this thread may. A call
// that this thread has abandoned owns the attempt too, and destroys the core after its return.
void Upgrader::discard(const std::shared_ptr<Attempt>& attempt) {
    if (loop_.calls().run([attempt](Core&, Nanos) { attempt->next.destroy(); })) return;
    if (!loop_.calls().closed() && attempt.use_count() == 1) attempt->next.abandon();
}

// A collective that the engine carries out is not exported; it may end soon. Its client may also
// see to it that it never does.
Err Upgrader::replace(const std::shared_ptr<Attempt>& attempt, bool evicts, std::string& why) {
    Nanos give_up = monotonic_now() + kBusyMax;
    for (;;) {
        const bool ran = loop_.calls().run([attempt](Core& core, Nanos) {
            attempt->result =
                core.replace_by(attempt->next, kBlackoutMax, attempt->figures, attempt->why);
        });
        if (!ran) return Err::kClosed;
        if (attempt->result == CoreExport::kDone) return Err::kOk;
        why = attempt->why;
        if (attempt->result == CoreExport::kRefused) return Err::kUnsupported;
        const bool late = monotonic_now() >= give_up;
        if (stopping_.load(std::memory_order_relaxed) || (late && !evicts)) {
            why += "; try again when it has ended, or end that process by ulc upgrade --evict";
            return Err::kTimeout;
        }
        if (late) {
            const auto who = std::make_shared<std::string>();
            if (!loop_.calls().run([who](Core& core, Nanos now) { *who = core.evict(now); }))
                return Err::kClosed;
            spdlog::warn("ended for the upgrade: {}", *who);
            evicts = false;
            give_up += kBusyMax;
        }
        std::this_thread::sleep_for(kTryAgain);
    }
}

}  // namespace ulc::daemon
