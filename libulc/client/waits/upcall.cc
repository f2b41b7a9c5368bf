// SPDX-License-Identifier: BSD-3-Clause
// Upcalls: the signal, the thread's list of endpoints that it concerns, and the promise of each.
#include "client/waits/upcall.h"

#include <link.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "abi/slot_ring.h"
#include "base/error.h"
#include "client/endpoint.h"

namespace ulc::client {
namespace {

thread_local Upcall* first_of_thread = nullptr;
/// The handler of the signal before ours; written once, before the signal can come.
struct sigaction before_us {};

constexpr long kRepeatFirst = 20 * kMicrosecond;
constexpr unsigned kRepeatDoublings = 6;  ///< at most

/// The code of the library that holds malloc(); empty if that is the program itself.
struct Code {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};
Code allocator;  // as before_us

int find_allocator(dl_phdr_info* object, std::size_t, void*) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(&std::malloc);
    if (object->dlpi_name == nullptr || *object->dlpi_name == '\0') return 0;
    for (int n = 0; n < object->dlpi_phnum; ++n) {
        const ElfW(Phdr)& part = object->dlpi_phdr[n];
        const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type != PT_LOAD || wanted < begin || wanted - begin >= part.p_memsz) continue;
        allocator = {begin, begin + part.p_memsz};
        return 1;
    }
    return 0;
}

/// Place of the thread that the signal has interrupted.
struct Interrupted {
    std::uintptr_t at = 0;  ///< the next instruction
    std::uintptr_t result = 0;
    std::uintptr_t call = 0;  ///< number of the system call, if at_system_call
    bool after_system_call = false;
    bool at_system_call = false;  ///< the next instruction makes it, or makes it again
};

Interrupted interrupted(const void* where) {
    const auto& registers = static_cast<const ucontext_t*>(where)->uc_mcontext;
    Interrupted found;
#if defined(__x86_64__)
    constexpr unsigned char kSystemCall[] = {0x0f, 0x05};
    found.at = static_cast<std::uintptr_t>(registers.gregs[REG_RIP]);
    found.result = static_cast<std::uintptr_t>(registers.gregs[REG_RAX]);
    found.call = found.result;
#elif defined(__aarch64__)
    constexpr unsigned char kSystemCall[] = {0x01, 0x00, 0x00, 0xd4};
    found.at = static_cast<std::uintptr_t>(registers.pc);
    found.result = static_cast<std::uintptr_t>(registers.regs[0]);
    found.call = static_cast<std::uintptr_t>(registers.regs[8]);
#else
#error "upcalls need the program counter of a signal's context"
#endif
    const auto is_call = [&](std::uintptr_t at) {
        return at >= allocator.begin && at + sizeof kSystemCall <= allocator.end &&
               std::memcmp(reinterpret_cast<const void*>(at), kSystemCall, sizeof kSystemCall) == 0;
    };
    found.after_system_call = is_call(found.at - sizeof kSystemCall);
    found.at_system_call = is_call(found.at);
    return found;
}

/// System calls that may wait without a time limit, and that the C library's malloc() never makes.
constexpr long kWaits[] = {SYS_read,     SYS_readv,   SYS_pread64, SYS_write,  SYS_writev,
                           SYS_recvfrom, SYS_recvmsg, SYS_sendto,  SYS_accept, SYS_accept4,
                           SYS_connect,  SYS_wait4,   SYS_waitid,  SYS_flock};

// SA_RESTART repeats all system calls but those that sleep: nanosleep, poll, select, waits with a
// time limit. malloc() makes none of these, so a thread whose system call the signal has ended
// holds no lock of it. Nor does a thread that is about to repeat a read.
bool was_in_allocator(const void* where) {
    const Interrupted found = interrupted(where);
    const bool has_slept =
        found.after_system_call && found.result == static_cast<std::uintptr_t>(-EINTR);
    const bool waits =
        found.at_system_call &&
        std::ranges::find(kWaits, static_cast<long>(found.call)) != std::ranges::end(kWaits);
    return found.at >= allocator.begin && found.at < allocator.end && !has_slept && !waits;
}

/// Holds the signal back while the thread's list changes.
class SignalHeld {
public:
    SignalHeld() {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, kUpcallSignal);
        pthread_sigmask(SIG_BLOCK, &set, &before_);
    }
    ~SignalHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalHeld(const SignalHeld&) = delete;
    SignalHeld& operator=(const SignalHeld&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

void Upcall::install() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        sigemptyset(&action.sa_mask);
        sigaction(kUpcallSignal, nullptr, &before_us);
        dl_iterate_phdr(find_allocator, nullptr);
        sigaction(kUpcallSignal, &action, nullptr);
    });
}

Upcall::Upcall(ulc_endpoint& endpoint, ulc_upcall_handler handler, void* context)
    : endpoint_(endpoint), handler_(handler), context_(context), thread_(gettid()) {
    install();
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kUpcallSignal;
    event._sigev_un._tid = thread_;
    has_timer_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    const SignalHeld held;
    next_ = first_of_thread;
    first_of_thread = this;
}

Upcall::~Upcall() {
    const SignalHeld held;
    if (has_timer_) timer_delete(timer_);
    for (Upcall** at = &first_of_thread; *at != nullptr; at = &(*at)->next_) {
        if (*at != this) continue;
        *at = next_;
        return;
    }
}

void Upcall::run() const { handler_(&endpoint_, context_); }

void Upcall::interrupt(pid_t thread) {
    static_cast<void>(syscall(SYS_tgkill, getpid(), thread, kUpcallSignal));
}

void Upcall::repeat_later() {
    const long delay = kRepeatFirst << std::min(repeats_++, kRepeatDoublings);
    const itimerspec when{{0, 0}, {0, delay}};
    timer_settime(timer_, 0, &when, nullptr);
}

void Upcall::on_signal(int number, siginfo_t* info, void* where) {
    const int kept = errno;
    const bool later = was_in_allocator(where);
    for (Upcall* upcall = first_of_thread; upcall != nullptr; upcall = upcall->next_) {
        if (later) {
            if (upcall->endpoint_.interrupts.computes()) upcall->repeat_later();
        } else {
            upcall->repeats_ = 0;
            upcall->endpoint_.interrupts.on_signal();
        }
    }
    if ((before_us.sa_flags & SA_SIGINFO) != 0) {
        before_us.sa_sigaction(number, info, where);
    } else if (before_us.sa_handler != SIG_DFL && before_us.sa_handler != SIG_IGN) {
        before_us.sa_handler(number);
    }
    errno = kept;
}

Interrupts::~Interrupts() {
    static_cast<void>(promise(true));
    upcall_.reset();  // before the data that its signal handler uses
}

int Interrupts::set_handler(ulc_upcall_handler handler, void* context) {
    const Hooks& hooks = endpoint_.hooks();
    if (const int ended = endpoint_.ended(); ended != 0 && handler != nullptr) return -ended;
    if (hooks.interrupts == nullptr) return ULC_ERR_UNSUPPORTED;
    static_cast<void>(promise(true));
    if (upcall_ != nullptr) static_cast<void>(hooks.interrupts(hooks.context, false));
    upcall_.reset();
    if (handler == nullptr) return ULC_OK;
    upcall_.reset(new (std::nothrow) Upcall(endpoint_, handler, context));
    if (upcall_ == nullptr) return ULC_ERR_NO_MEMORY;
    if (!upcall_->ok()) {
        upcall_.reset();
        return ULC_ERR_SYSTEM;
    }
    const int error = hooks.interrupts(hooks.context, true);
    if (error != 0) upcall_.reset();
    return error;
}

void Interrupts::arm(bool armed) noexcept {
    abi::EndpointControl& control = endpoint_.region().control();
    if (armed) {
        abi::client_going_to_compute(control);
    } else {
        abi::client_polls(control);
    }
    const Hooks& hooks = endpoint_.hooks();
    if (hooks.computes != nullptr) hooks.computes(hooks.context, armed);
}

// free_ is the right to use the endpoint while its thread computes. The one that takes it from true
// to false has it: this thread's signal handler, this thread again, or a thread that borrows.
//
// No upcall is lost. A signal that finds free_ false sets missed_ and looks at free_ again. The one
// that gives up the right sets free_ and then looks at missed_. Both orders are sequentially
// consistent, so one of the two sees the other's store. Events from before the upcall was armed are
// found by the look between arming and giving up the right: no other thread moves the cursor then.
int Interrupts::promise(bool polls) noexcept {
    if (polls) {
        const Hooks& hooks = endpoint_.hooks();
        polls_on_ = true;
        while (computing_.load(std::memory_order_relaxed) && !free_.exchange(false)) {
            if (hooks.yield != nullptr) hooks.yield(hooks.context);  // it is borrowed
        }
        if (computing_.exchange(false, std::memory_order_relaxed)) arm(false);
        return ULC_OK;
    }
    if (upcall_ == nullptr) return ULC_ERR_INVALID;
    if (computing_.load(std::memory_order_relaxed)) return ULC_OK;
    endpoint_.waiter.before_leaving(false);
    if (const int ended = endpoint_.ended(); ended != 0) return -ended;
    if (endpoint_.has_news()) return ULC_ERR_AGAIN;
    missed_.store(false);
    computing_.store(true, std::memory_order_relaxed);
    arm(true);
    bool again = endpoint_.has_news();
    if (!again) {
        free_.store(true);
        again = missed_.load() && free_.exchange(false);
    }
    if (!again) return ULC_OK;
    computing_.store(false, std::memory_order_relaxed);
    arm(false);
    return ULC_ERR_AGAIN;
}

bool Interrupts::borrow() noexcept {
    if (!free_.exchange(false)) return false;
    arm(false);
    return true;
}

void Interrupts::give_back(bool interrupt) noexcept {
    endpoint_.waiter.before_leaving(false);
    arm(true);
    const pid_t thread = upcall_->thread();
    const bool wanted = interrupt || endpoint_.ended() != 0 || endpoint_.has_news();
    free_.store(true);
    if (!wanted && !missed_.load()) return;
    missed_.store(true);
    Upcall::interrupt(thread);
}

// In the signal handler of the endpoint's thread. The signal may be of another endpoint, or of an
// upcall that was made before the thread promised to poll again: then nothing is done.
void Interrupts::on_signal() {
    const Hooks& hooks = endpoint_.hooks();
    const bool alive = hooks.take_interrupt == nullptr || hooks.take_interrupt(hooks.context);
    if (!computing_.load(std::memory_order_relaxed)) return;
    const auto armed = static_cast<std::uint32_t>(abi::ClientState::kComputing);
    const abi::EndpointControl& control = endpoint_.region().control();
    const bool is_armed = control.client_state.load(std::memory_order_acquire) == armed;
    if (alive && is_armed && !missed_.load()) return;
    while (!free_.exchange(false)) {
        missed_.store(true);
        if (!free_.load()) return;
    }
    for (;;) {
        computing_.store(false, std::memory_order_relaxed);
        arm(false);
        const int events = endpoint_.poll();
        if (events == 0) endpoint_.end_if_closed();
        if (!alive && events <= 0) endpoint_.end(ULC_ERR_NO_ENGINE);
        polls_on_ = false;
        upcall_->run();
        if (events < 0 || polls_on_ || promise(false) != ULC_ERR_AGAIN) return;
    }
}

}  // namespace ulc::client
