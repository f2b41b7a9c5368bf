// SPDX-License-Identifier: BSD-3-Clause
// The functions of gamma.h: checks of callers and arguments.
#include "ports/gamma.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "base/clock.h"
#include "ports/process.h"

unsigned char gamma_active_port = 0;
unsigned char gamma_errno = 0;

namespace {

using ulc::ports::Port;
using ulc::ports::Process;
using ulc::ports::SendMode;

constexpr int kFailed = -1;

/// The only one. Handlers and upcalls may come until the end of the program.
Process& process() {
    static auto* const kept = new Process;
    return *kept;
}

int send(unsigned char port, const void* data, unsigned long len, SendMode mode) {
    Process& own = process();
    if (!own.is_joined() || (data == nullptr && len > 0)) return kFailed;
    return own.send(port, data, len, mode) ? 0 : kFailed;
}

}  // namespace

extern "C" {

int gamma_init(int num_nodes, int argc, char** argv) {
    static std::once_flag once;
    std::call_once(once, [] { std::atexit([] { process().finish(); }); });
    return process().init(num_nodes, argc, argv) ? 0 : kFailed;
}

int gamma_exit() {
    if (!process().is_joined() || !process().is_first() || process().is_serial()) return kFailed;
    return process().exit() ? 0 : kFailed;
}

int gamma_setport(unsigned char port, unsigned char dest_node, unsigned char dest_par_pid,
                  unsigned char dest_port, gamma_handler handler_in, gamma_handler handler_err,
                  void* buffer_in, unsigned long buffer_len) {
    Process& own = process();
    if (!own.is_joined() || port >= GAMMA_RESERVED_FROM) return kFailed;
    Port bound;
    const bool to_other_group = dest_par_pid != own.par_pid() && dest_par_pid != 0;
    bound.sends = dest_node == BROADCAST ||
                  (to_other_group ? dest_node < GAMMA_NODES_MAX : dest_node < own.nodes());
    bound.receives = handler_in != nullptr || handler_err != nullptr || buffer_in != nullptr;
    if (!bound.sends && !bound.receives) return kFailed;
    if (bound.sends && (dest_par_pid == 0 || dest_port >= GAMMA_RESERVED_FROM)) return kFailed;
    if (bound.sends && to_other_group && !own.reach(dest_par_pid, dest_node)) return kFailed;
    bound.group = bound.sends && to_other_group ? dest_par_pid : std::uint8_t{0};
    bound.node = dest_node;
    bound.to = dest_port;
    bound.on_message = handler_in;
    bound.on_error = handler_err;
    bound.buffer = static_cast<unsigned char*>(buffer_in);
    bound.size = buffer_len;
    own.bind(port, bound);
    return 0;
}

int gamma_attach_buffer(unsigned char port, void* buffer_in) {
    if (!process().is_joined()) return kFailed;
    return process().attach(port, buffer_in) ? 0 : kFailed;
}

int gamma_send(unsigned char port, const void* data, unsigned long len) {
    return send(port, data, len, SendMode::kDelivered);
}

int gamma_send_fast(unsigned char port, const void* data, unsigned long len) {
    return send(port, data, len, SendMode::kFast);
}

int gamma_send_flowctl(unsigned char port, const void* data, unsigned long len) {
    return send(port, data, len, SendMode::kTaken);
}

int gamma_signal(unsigned char sem) {
    process().signal(sem);
    return 0;
}

int gamma_sigerr(unsigned char sem) {
    process().signal_error(sem);
    return 0;
}

int gamma_wait(unsigned char sem, unsigned long n) {
    if (!process().is_joined() || process().is_serial()) return kFailed;
    return process().wait(sem, n);
}

int gamma_test(unsigned char sem) { return static_cast<int>(process().value(sem)); }

int gamma_atomic(void (*function)(void)) {
    if (!process().is_joined() || function == nullptr) return kFailed;
    process().run_atomically(function);
    return 0;
}

int gamma_sync() {
    if (!process().is_joined() || process().is_serial()) return kFailed;
    return process().synchronise() ? 0 : kFailed;
}

int gamma_my_par_pid() { return process().par_pid(); }
int gamma_my_node() { return process().node(); }
int gamma_how_many_nodes() { return process().nodes(); }

int gamma_mlock(void* buffer, unsigned long len) {
    if (mlock(buffer, len) != 0) return kFailed;
    // Locked pages may still be those that all zeros share: a write replaces each by a private one.
    const auto page = static_cast<unsigned long>(sysconf(_SC_PAGESIZE));
    auto* bytes = static_cast<volatile unsigned char*>(buffer);
    for (unsigned long at = 0; at < len; at += page)
        bytes[at] = bytes[at];
    return 0;
}

int gamma_munlock(void* buffer, unsigned long len) {
    return munlock(buffer, len) == 0 ? 0 : kFailed;
}

int gamma_munlockall() { return munlockall() == 0 ? 0 : kFailed; }

void gamma_time(time_586 t) {
    const auto now = static_cast<std::uint64_t>(ulc::monotonic_now());
    t[0].hi = static_cast<unsigned long>(now >> 32);
    t[0].lo = static_cast<unsigned long>(now & 0xffff'ffffU);
}

double gamma_time_diff(time_586 b, time_586 a) {
    const auto of = [](const time_586 t) {
        return static_cast<std::int64_t>(std::uint64_t{t[0].hi} << 32 | t[0].lo);
    };
    return static_cast<double>(of(b) - of(a)) / ulc::kMicrosecond;
}

}  // extern "C"
