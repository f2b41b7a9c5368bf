// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/dsm/memory.h"

#include <express.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "bench/apps/dsm/locks.h"
#include "bench/apps/ranks.h"

namespace ulc::dsm {
namespace {

constexpr std::size_t kPage = 4096;

/// A message as Express carries it: the head, and behind it the page for kCopy and kOwnership.
struct Packet {
    Message head;

    [[nodiscard]] unsigned char* page() { return reinterpret_cast<unsigned char*>(this + 1); }
    [[nodiscard]] const unsigned char* page() const {
        return reinterpret_cast<const unsigned char*>(this + 1);
    }
};

class Memory final : public Surroundings {
public:
    void send(std::uint16_t to, const Message& message) override;
    void protect(std::uint32_t page, Access access) override;
    void install(std::uint32_t page) override;
    void wake(std::uint32_t page) override { express_broadcast(&changed_[page]); }

    bool map(std::size_t bytes);
    bool contains(const void* address) const {
        const auto* at = static_cast<const unsigned char*>(address);
        return at >= seen_ && at < seen_ + pages_ * kPage;
    }
    void fault(const void* address, bool writes, bool knows);
    void release();
    void on_message(std::uint16_t from, const Packet& packet, std::size_t length);

    void* view() { return seen_; }
    Counts counts() const {
        Counts counts = node->counts();
        counts.polled = express_handled(0);
        counts.interrupts = express_handled(1);
        return counts;
    }

    std::unique_ptr<Node> node;
    express_mutex mutex{};  ///< guards the node

private:
    unsigned char* seen_ = nullptr;   ///< by the program, protected
    unsigned char* whole_ = nullptr;  ///< by the server thread
    std::size_t pages_ = 0;
    const Packet* arrived_ = nullptr;
    std::optional<std::uint32_t> held_;       ///< page that came for an access, not made yet
    std::vector<express_condition> changed_;  ///< by page
};

Memory* memory = nullptr;
Locks* locks = nullptr;                           ///< locks that this process is home to
std::map<unsigned, unsigned>* granted = nullptr;  ///< grants that this process has not taken
express_mutex lock_mutex;
express_condition lock_changed;
struct sigaction before_us {};

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "dsm: process %d: %s\n", express_process(), what);
    std::_Exit(1);
}

void send_number(std::uint16_t to, unsigned number, express_handler handler) {
    auto* const message = static_cast<std::uint32_t*>(express_alloc(sizeof(std::uint32_t)));
    if (message == nullptr) fail("memory is exhausted");
    *message = number;
    if (express_send(to, message, handler) != ULC_OK) fail("a process is gone");
}

std::uint32_t number_of(const void* message, std::size_t length) {
    std::uint32_t number = 0;
    if (length != sizeof number) fail("a message has another length than it must have");
    std::memcpy(&number, message, sizeof number);
    return number;
}

// ---------------------------------------------------------------- handlers of messages

void on_packet(std::uint16_t source, const void* message, std::size_t length) {
    if (length < sizeof(Message)) fail("a message is too short");
    memory->on_message(source, *static_cast<const Packet*>(message), length);
}

void on_grant(std::uint16_t, const void* message, std::size_t length) {
    express_lock(&lock_mutex);
    ++(*granted)[number_of(message, length)];
    express_broadcast(&lock_changed);
    express_unlock(&lock_mutex);
}

void on_lock(std::uint16_t source, const void* message, std::size_t length) {
    const std::uint32_t number = number_of(message, length);
    if (locks->ask(source, number)) send_number(source, number, on_grant);
}

void on_unlock(std::uint16_t, const void* message, std::size_t length) {
    const std::uint32_t number = number_of(message, length);
    if (const auto next = locks->give_back(number)) send_number(*next, number, on_grant);
}

constexpr express_handler kHandlers[] = {on_packet, on_grant, on_lock, on_unlock};

// ---------------------------------------------------------------- faults

/// True if the access that faulted writes; `knows`: the processor says so.
bool is_write(const void* context, bool& knows) {
#if defined(__x86_64__)
    constexpr greg_t kWrite = 2;  // bit of the page fault's error code
    knows = true;
    return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#else
    static_cast<void>(context);
    knows = false;
    return false;
#endif
}

/// Makes the processor raise SIGTRAP behind the access, or ends the hold before it.
void trap_after_access([[maybe_unused]] void* context, [[maybe_unused]] bool traps) {
#if defined(__x86_64__)
    constexpr greg_t kTrap = 0x100;  // flag of the processor: one instruction
    auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    flags = traps ? flags | kTrap : flags & ~kTrap;
#else
    if (traps) memory->release();
#endif
}

// On the stack of the thread that faults, which may be switched away meanwhile. So the signals are
// not blocked during their handlers.
void on_fault(int, siginfo_t* info, void* context) {
    if (memory == nullptr || !memory->contains(info->si_addr)) {
        sigaction(SIGSEGV, &before_us, nullptr);  // the access faults again
        return;
    }
    const int kept = errno;
    bool knows = false;
    const bool writes = is_write(context, knows);
    memory->fault(info->si_addr, writes, knows);
    trap_after_access(context, true);
    errno = kept;
}

void on_trap(int, siginfo_t*, void* context) {
    const int kept = errno;
    trap_after_access(context, false);
    memory->release();
    errno = kept;
}

void install_handlers() {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    action.sa_sigaction = on_trap;
    sigaction(SIGTRAP, &action, nullptr);
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, &before_us);
}

// ---------------------------------------------------------------- memory

bool Memory::map(std::size_t bytes) {
    pages_ = (bytes + kPage - 1) / kPage;
    const int file = memfd_create("dsm", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(pages_ * kPage)) != 0) return false;
    void* const seen = mmap(nullptr, pages_ * kPage, PROT_NONE, MAP_SHARED, file, 0);
    void* const whole = mmap(nullptr, pages_ * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (seen == MAP_FAILED || whole == MAP_FAILED) return false;
    seen_ = static_cast<unsigned char*>(seen);
    whole_ = static_cast<unsigned char*>(whole);
    changed_.resize(pages_);
    node = std::make_unique<Node>(static_cast<std::uint16_t>(express_process()),
                                  static_cast<std::uint32_t>(pages_), *this);
    return true;
}

void Memory::send(std::uint16_t to, const Message& message) {
    const bool has_page = message.kind == Kind::kCopy || message.kind == Kind::kOwnership;
    auto* const packet =
        static_cast<Packet*>(express_alloc(sizeof(Packet) + (has_page ? kPage : 0)));
    if (packet == nullptr) fail("memory is exhausted");
    packet->head = message;
    if (has_page) std::memcpy(packet->page(), whole_ + message.page * kPage, kPage);
    if (express_send(to, packet, on_packet) != ULC_OK) fail("a process is gone");
}

void Memory::protect(std::uint32_t page, Access access) {
    const int allowed = access == Access::kNone   ? PROT_NONE
                        : access == Access::kRead ? PROT_READ
                                                  : PROT_READ | PROT_WRITE;
    if (mprotect(seen_ + page * kPage, kPage, allowed) != 0) fail("mprotect failed");
}

void Memory::install(std::uint32_t page) {
    std::memcpy(whole_ + page * kPage, arrived_->page(), kPage);
}

void Memory::on_message(std::uint16_t from, const Packet& packet, std::size_t length) {
    const bool has_page = packet.head.kind == Kind::kCopy || packet.head.kind == Kind::kOwnership;
    if (length != sizeof(Packet) + (has_page ? kPage : 0))
        fail("a message has another length than it must have");
    express_lock(&mutex);
    arrived_ = &packet;
    if (!node->on_message(from, packet.head)) fail("a message came that the state does not allow");
    express_unlock(&mutex);
}

// A page that came stays until the access has been made, whatever messages the thread finds on its
// way there. Else two processes could take it from each other without end. The access that faults
// next shows that an earlier one is over, or touches two pages, and then must not wait with the
// first.
void Memory::fault(const void* address, bool writes, bool knows) {
    const auto page = static_cast<std::uint32_t>(
        static_cast<std::size_t>(static_cast<const unsigned char*>(address) - seen_) / kPage);
    express_lock(&mutex);
    if (held_ && held_ != page) node->resume(*held_);
    if (!knows) writes = node->allows(page, false);  // a read was allowed
    while (!node->allows(page, writes)) {
        node->fault(page, writes);
        if (!node->allows(page, writes)) express_wait(&changed_[page], &mutex);
    }
    held_ = page;
    express_unlock(&mutex);
}

void Memory::release() {
    express_lock(&mutex);
    if (held_) node->resume(*held_);
    held_.reset();
    express_unlock(&mutex);
}

}  // namespace

void* start(std::size_t bytes) {
    if (express_init(kHandlers, sizeof kHandlers / sizeof *kHandlers) != ULC_OK) return nullptr;
    locks = new Locks;
    granted = new std::map<unsigned, unsigned>;
    memory = new Memory;
    if (processes() > kProcessesMax || !memory->map(bytes)) {
        std::fprintf(stderr, "dsm: at most %u processes, and %zu bytes of memory\n", kProcessesMax,
                     bytes);
        return nullptr;
    }
    install_handlers();
    return barrier() ? memory->view() : nullptr;
}

bool stop() {
    if (!barrier()) return false;
    sigaction(SIGSEGV, &before_us, nullptr);
    return express_exit() == ULC_OK;
}

void poll_only() { static_cast<void>(express_let_interrupt(0)); }

unsigned process() { return static_cast<unsigned>(express_process()); }
unsigned processes() { return static_cast<unsigned>(express_processes()); }
bool barrier() { return express_sync() == ULC_OK; }

void lock(unsigned number) {
    send_number(static_cast<std::uint16_t>(number % processes()), number, on_lock);
    express_lock(&lock_mutex);
    while ((*granted)[number] == 0)
        express_wait(&lock_changed, &lock_mutex);
    --(*granted)[number];
    express_unlock(&lock_mutex);
}

void unlock(unsigned number) {
    send_number(static_cast<std::uint16_t>(number % processes()), number, on_unlock);
}

std::optional<Report> measure(void* pages, unsigned steps,
                              const std::function<void(unsigned)>& step) {
    if (!barrier()) return std::nullopt;
    Report own;
    own.counts.add(memory->counts(), -1);
    const bench::Stopwatch watch;
    for (unsigned n = 0; n < steps; ++n) {
        step(n);
        if (!barrier()) return std::nullopt;
    }
    own.seconds = watch.stop().whole;
    own.counts.add(memory->counts());

    auto* const at = static_cast<char*>(pages);
    std::memcpy(at + process() * kPage, &own, sizeof own);
    if (!barrier()) return std::nullopt;
    Report all;
    for (unsigned n = 0; n < processes(); ++n) {
        Report one;
        std::memcpy(&one, at + n * kPage, sizeof one);
        all.counts.add(one.counts);
        all.seconds = std::max(all.seconds, one.seconds);
    }
    return all;
}

void print(const Counts& sum, const char* unit, double units, double polled_in_paper) {
    const auto mean = [&](std::uint64_t count) { return static_cast<double>(count) / units; };
    std::printf(
        "%s: %.1f read faults, %.1f write faults, %.1f messages, %.1f of them "
        "pages, %.1f forwarded\n",
        unit, mean(sum.read_faults), mean(sum.write_faults), mean(sum.messages),
        mean(sum.pages_sent), mean(sum.forwarded));
    const std::uint64_t handled = sum.polled + sum.interrupts;
    if (handled == 0) return;
    std::printf("messages polled: %.1f %% (paper: %.0f), the others interrupted a thread\n",
                100 * static_cast<double>(sum.polled) / static_cast<double>(handled),
                polled_in_paper);
}

}  // namespace ulc::dsm
