// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/queues/completions.h"

#include <sched.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "client/ulc.h"
#include "ofi/endpoint.h"
#include "ofi/fabric.h"
#include "ofi/not_there.h"

namespace ulc::ofi {
namespace {

constexpr NotThere kNotThere;
/// Empty reads between two checks of the clock, which cost as much as a read. Fewer if others wait
/// for the core: an engine among them may hold an awaited message.
constexpr unsigned kReadsPerLook = 64;
constexpr unsigned kReadsPerLookShared = 4;
/// A descriptor wakes its waiter after this time: only a read moves messages.
constexpr long kWakeNanos = 200'000;

std::size_t entry_size(fi_cq_format format) noexcept {
    switch (format) {
        case FI_CQ_FORMAT_CONTEXT:
            return sizeof(fi_cq_entry);
        case FI_CQ_FORMAT_MSG:
            return sizeof(fi_cq_msg_entry);
        case FI_CQ_FORMAT_DATA:
            return sizeof(fi_cq_data_entry);
        default:
            return sizeof(fi_cq_tagged_entry);
    }
}

/// The formats are prefixes of the longest.
static_assert(offsetof(fi_cq_tagged_entry, tag) == sizeof(fi_cq_data_entry));
static_assert(offsetof(fi_cq_data_entry, buf) == sizeof(fi_cq_msg_entry));
static_assert(offsetof(fi_cq_msg_entry, flags) == sizeof(fi_cq_entry));

CompletionQueue& queue_of(fid_cq* cq) noexcept { return *static_cast<CompletionQueue*>(cq); }

ssize_t read_from(fid_cq* cq, void* entries, std::size_t count, fi_addr_t* sources) noexcept {
    CompletionQueue& queue = queue_of(cq);
    {
        const Guard hold(queue.domain.lock);
        const ssize_t got = queue.read(entries, count, sources);
        if (got != -FI_EAGAIN || !queue.is_idle()) return got;
    }
    ::sched_yield();
    const Guard hold(queue.domain.lock);
    queue.yielded();
    return -FI_EAGAIN;
}

ssize_t read(fid_cq* cq, void* entries, std::size_t count) noexcept {
    return read_from(cq, entries, count, nullptr);
}

ssize_t read_error(fid_cq* cq, fi_cq_err_entry* out, std::uint64_t) noexcept {
    CompletionQueue& queue = queue_of(cq);
    const Guard hold(queue.domain.lock);
    return queue.read_error(*out);
}

ssize_t wait_from(fid_cq* cq, void* entries, std::size_t count, fi_addr_t* sources, const void*,
                  int timeout_ms) noexcept {
    CompletionQueue& queue = queue_of(cq);
    const Nanos deadline = timeout_ms < 0 ? kNever : now() + timeout_ms * kMillisecond;
    IdleLadder ladder;
    for (;;) {
        const ssize_t got = read_from(cq, entries, count, sources);
        if (got != -FI_EAGAIN) return got;
        if (queue.signalled.exchange(false)) return -FI_EAGAIN;
        const Nanos at = now();
        if (at >= deadline) return -FI_EAGAIN;
        switch (ladder.idle(at)) {
            case IdleLadder::Step::kSpin:
                break;
            case IdleLadder::Step::kYield:
                ::sched_yield();
                ladder.yielded(at, now());
                break;
            case IdleLadder::Step::kNap: {
                const timespec nap{0,
                                   static_cast<long>(std::min(ladder.next_nap(), deadline - at))};
                ::nanosleep(&nap, nullptr);
                break;
            }
        }
    }
}

ssize_t wait(fid_cq* cq, void* entries, std::size_t count, const void* condition,
             int timeout_ms) noexcept {
    return wait_from(cq, entries, count, nullptr, condition, timeout_ms);
}

int signal(fid_cq* cq) noexcept {
    CompletionQueue& queue = queue_of(cq);
    queue.signalled = true;
    if (queue.timer() >= 0) queue.arm(1);
    return 0;
}

const char* error_text(fid_cq*, int error, const void*, char* out, std::size_t length) noexcept {
    const char* text = ulc_error_text(error);
    if (out != nullptr && length > 0) {
        std::strncpy(out, text, length - 1);
        out[length - 1] = '\0';
    }
    return text;
}

int control(fid* handle, int command, void* argument) noexcept {
    auto& queue = object_of<CompletionQueue, fid_cq>(handle);
    switch (command) {
        case FI_GETWAIT:
            if (queue.timer() < 0) return -FI_ENODATA;
            *static_cast<int*>(argument) = queue.timer();
            return 0;
        case FI_GETWAITOBJ:
            *static_cast<fi_wait_obj*>(argument) = queue.timer() >= 0 ? FI_WAIT_FD : FI_WAIT_UNSPEC;
            return 0;
        default:
            return -FI_ENOSYS;
    }
}

int close_completions(fid* handle) noexcept {
    auto& queue = object_of<CompletionQueue, fid_cq>(handle);
    if (queue.in_use()) return -FI_EBUSY;
    --queue.domain.users;
    delete &queue;
    return 0;
}

fi_ops fid_ops = {sizeof(fi_ops), close_completions, kNotThere, control,
                  kNotThere,      kNotThere,         kNotThere};
fi_ops_cq cq_ops = {sizeof(fi_ops_cq), read,   read_from, read_error, wait,
                    wait_from,         signal, error_text};

}  // namespace

CompletionQueue::~CompletionQueue() {
    if (timer_ >= 0) ::close(timer_);
}

void CompletionQueue::attach(Endpoint& endpoint) {
    if (std::find(endpoints_.begin(), endpoints_.end(), &endpoint) == endpoints_.end())
        endpoints_.push_back(&endpoint);
}

void CompletionQueue::progress() noexcept {
    for (Endpoint* endpoint : endpoints_)
        endpoint->progress();
}

ssize_t CompletionQueue::read(void* entries, std::size_t count, fi_addr_t* sources) noexcept {
    if (completions_.empty()) progress();
    if (completions_.empty()) return errors_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
    empty_reads_ = 0;
    ladder_.busy();
    const std::size_t size = entry_size(format_);
    const std::size_t taken = std::min(count, completions_.size());
    for (std::size_t i = 0; i < taken; ++i) {
        const Completion& done = completions_.front();
        const fi_cq_tagged_entry entry{done.context, done.flags, done.length,
                                       done.buffer,  done.data,  done.tag};
        std::memcpy(static_cast<unsigned char*>(entries) + i * size, &entry, size);
        if (sources != nullptr) sources[i] = done.source;
        completions_.pop_front();
    }
    return static_cast<ssize_t>(taken);
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& out) noexcept {
    if (errors_.empty()) return -FI_EAGAIN;
    fi_cq_err_entry entry = errors_.front();
    errors_.pop_front();
    // Memory for further data of the error stays as the caller has it: there are none.
    entry.err_data = out.err_data;
    out = entry;
    return 1;
}

bool CompletionQueue::is_idle() noexcept {
    const bool shared = ladder_.shares_its_core(looked_at_);
    if (++empty_reads_ % (shared ? kReadsPerLookShared : kReadsPerLook) != 0) return false;
    looked_at_ = now();
    const auto moved = [](const Endpoint* one) { return one->empty_polls() < kReadsPerLook; };
    if (std::any_of(endpoints_.begin(), endpoints_.end(), moved)) ladder_.moved(looked_at_);
    return ladder_.idle(looked_at_) != IdleLadder::Step::kSpin;
}

void CompletionQueue::arm(long nanoseconds) const noexcept {
    itimerspec when{};
    when.it_value.tv_nsec = nanoseconds;
    ::timerfd_settime(timer_, 0, &when, nullptr);
}

int open_completions(fid_domain* domain, fi_cq_attr* attr, fid_cq** out, void* context) noexcept {
    if (attr->flags != 0 || attr->format > FI_CQ_FORMAT_TAGGED) return -FI_ENOSYS;
    int timer = -1;
    switch (attr->wait_obj) {
        case FI_WAIT_NONE:
        case FI_WAIT_UNSPEC:
            break;
        case FI_WAIT_FD:
            timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
            if (timer < 0) return -errno;
            break;
        default:
            return -FI_ENOSYS;
    }
    if (attr->format == FI_CQ_FORMAT_UNSPEC) attr->format = FI_CQ_FORMAT_TAGGED;
    auto& in = *static_cast<Domain*>(domain);
    auto* queue = new (std::nothrow) CompletionQueue(in, attr->format, timer);
    if (queue == nullptr) {
        if (timer >= 0) ::close(timer);
        return -FI_ENOMEM;
    }
    queue->fid = {FI_CLASS_CQ, context, &fid_ops};
    queue->ops = &cq_ops;
    ++in.users;
    *out = queue;
    return 0;
}

int try_wait(fid_fabric*, fid** handles, int count) noexcept {
    for (int i = 0; i < count; ++i) {
        if (handles[i]->fclass != FI_CLASS_CQ) return -FI_ENOSYS;
        auto& queue = object_of<CompletionQueue, fid_cq>(handles[i]);
        const Guard hold(queue.domain.lock);
        if (!queue.has_entries()) queue.progress();
        if (queue.has_entries() || queue.signalled.exchange(false)) return -FI_EAGAIN;
        if (queue.timer() >= 0) queue.arm(kWakeNanos);
    }
    return 0;
}

}  // namespace ulc::ofi
