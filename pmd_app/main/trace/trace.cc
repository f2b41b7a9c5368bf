// SPDX-License-Identifier: BSD-3-Clause
#include "main/trace/trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/check.h"

namespace ulc::daemon {
namespace {

/// Least time between two looks at the counters while frames pass: a look costs as much as four
/// frames. A rise is recorded that much late at most, or 10 ms late when nothing follows.
constexpr Nanos kEventsApart = 20 * kMicrosecond;

/// Counters whose rise is an event of the timeline.
constexpr Counter kEvents[] = {
    Counter::messages_received, Counter::messages_sent,    Counter::repair_unicast,
    Counter::repair_multicast,  Counter::client_stalled,   Counter::over_frame_share,
    Counter::after_wait,        Counter::tx_ring_full,     Counter::no_segment,
    Counter::drop_no_room,      Counter::held_by_slow,     Counter::held_by_silent,
    Counter::port_missed,       Counter::link_ups,         Counter::link_downs,
    Counter::peers_dead,        Counter::clients_attached, Counter::clients_closed,
    Counter::clients_died,
};
static_assert(std::size(kEvents) <= abi::kTraceCounters);
static_assert(sizeof(abi::TraceRecord) % 64 == 0);

template <std::size_t N>
void copy_name(char (&to)[N], std::string_view name) {
    const std::size_t length = std::min(name.size(), N - 1);
    std::memcpy(to, name.data(), length);
    to[length] = '\0';
}

/// Puts the process's number for "%p"; a further engine of the process gets "NUMBER.1", and so on.
std::string with_pid(std::string path) {
    static std::atomic<unsigned> engines{0};
    const std::size_t at = path.find("%p");
    if (at == std::string::npos) return path;
    const unsigned earlier = engines.fetch_add(1, std::memory_order_relaxed);
    const std::string further = earlier == 0 ? "" : "." + std::to_string(earlier);
    return path.replace(at, 2, std::to_string(getpid()) + further);
}

std::string error_text(const std::string& path) {
    return "--trace: " + path + ": " + std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
}

/// Takes a trace of an earlier engine out of the way. Errors: kInvalid, kSystem.
Err put_aside(const std::string& path, std::string& why) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return Err::kOk;
    std::uint32_t magic = 0;
    struct stat status {};
    const bool is_trace = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                          pread(fd, &magic, sizeof magic, 0) == sizeof magic &&
                          magic == abi::kTraceMagic;
    const bool in_use = is_trace && flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fd >= 0) close(fd);
    if (!is_trace) {
        why = "--trace: " + path + " exists and is not a trace; name another file";
        return Err::kInvalid;
    }
    if (in_use) {
        why = "--trace: another engine writes " + path + "; name another file for each engine";
        return Err::kInvalid;
    }
    if (rename(path.c_str(), (path + ".old").c_str()) == 0) return Err::kOk;
    why = error_text(path + ".old") + "; choose a folder that you may write";
    return Err::kSystem;
}

/// Makes the file with its space reserved, so that a full disk is no fault of a write later.
Err make_file(const std::string& path, std::size_t bytes, int& out, std::string& why) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        why = error_text(path) + "; choose a folder that you may write";
        return Err::kSystem;
    }
    const int status = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    if (status == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        out = fd;
        return Err::kOk;
    }
    if (status != 0) errno = status;
    why = error_text(path) + "; lower --trace-frames, or choose another folder";
    close(fd);
    unlink(path.c_str());
    return status == ENOSPC ? Err::kNoMemory : Err::kSystem;
}

Nanos realtime_now() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<Nanos>(now.tv_sec) * kSecond + now.tv_nsec;
}

}  // namespace

struct Trace::TracedPort {
    Trace& trace;
    Port port;
    std::uint8_t net;
};

Err Trace::open(const TraceOptions& options, std::unique_ptr<Trace>& out, std::string& why) {
    const std::string path = with_pid(options.file);
    const std::uint32_t records =
        std::bit_ceil(std::clamp(options.records, abi::kTraceRecordsMin, abi::kTraceRecordsMax));
    const std::size_t bytes = abi::kTraceHeaderBytes + records * sizeof(abi::TraceRecord);
    if (const Err error = put_aside(path, why); error != Err::kOk) return error;
    int fd = -1;
    if (const Err error = make_file(path, bytes, fd, why); error != Err::kOk) return error;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        why = error_text(path) + "; lower --trace-frames";
        close(fd);
        unlink(path.c_str());
        return Err::kNoMemory;
    }
    out.reset(new Trace(memory, bytes, fd, options.tsc_hz));
    abi::TraceHeader& header = out->header_;
    header.version = abi::kTraceVersion;
    header.records = records;
    header.engine_pid = static_cast<std::uint32_t>(getpid());
    header.ether_type = options.ether_type;
    header.nets = static_cast<std::uint16_t>(std::min(options.nets.size(), abi::kTraceNets));
    for (std::uint16_t n = 0; n < header.nets; ++n)
        copy_name(header.net_names[n], options.nets[n]);
    header.counters = std::size(kEvents);
    for (std::size_t n = 0; n < std::size(kEvents); ++n)
        copy_name(header.counter_names[n], kCounterInfo[static_cast<std::size_t>(kEvents[n])].id);
    header.realtime_ahead = realtime_now() - out->clock_.now();
    header.magic = abi::kTraceMagic;
    return Err::kOk;
}

Trace::Trace(void* memory, std::size_t bytes, int fd, std::uint64_t tsc_hz) noexcept
    : header_(*static_cast<abi::TraceHeader*>(memory)),
      records_(reinterpret_cast<abi::TraceRecord*>(static_cast<std::byte*>(memory) +
                                                   abi::kTraceHeaderBytes)),
      mask_((bytes - abi::kTraceHeaderBytes) / sizeof(abi::TraceRecord) - 1),
      clock_(tsc_hz),
      bytes_(bytes),
      fd_(fd) {}

Trace::~Trace() {
    munmap(&header_, bytes_);
    close(fd_);
}

void Trace::watch(const Counters& counters) noexcept {
    counters_ = &counters;
    for (std::size_t n = 0; n < std::size(kEvents); ++n)
        seen_[n] = counters.get(kEvents[n]);
}

/// Returns the record after the last one; it counts once publish() says so.
abi::TraceRecord& Trace::next() noexcept { return records_[produced_++ & mask_]; }

void Trace::publish(std::uint64_t produced) noexcept {
    produced_ = produced;
    header_.produced.store(produced, std::memory_order_release);
}

void Trace::record_frame(abi::TraceKind kind, std::uint8_t net, const Segment& segment,
                         Nanos now) noexcept {
    abi::TraceRecord& record = next();
    record.at = now;
    record.kind = kind;
    record.source = net;
    record.amount = segment.length;
    // A tail lies elsewhere: it is payload, of which a trace needs little.
    const std::uint32_t there =
        segment.tail == nullptr ? segment.length : segment.length - segment.tail_octets;
    if (there >= abi::kTraceFrameBytes) {
        record.kept = abi::kTraceFrameBytes;
        std::memcpy(record.bytes, segment.frame, abi::kTraceFrameBytes);
    } else {
        record.kept = static_cast<std::uint16_t>(there);
        std::memcpy(record.bytes, segment.frame, there);
    }
}

/// Records events of the last frames, unless it did so a short time ago.
void Trace::look_at_events() noexcept {
    frames_passed_ = false;
    if (passed_at_ - looked_at_ < kEventsApart) return;
    looked_at_ = passed_at_;
    record_events();
}

/// Records each counter that rose since the last look.
void Trace::record_events() noexcept {
    if (counters_ == nullptr) return;
    Nanos now = kNever;
    for (std::size_t n = 0; n < std::size(kEvents); ++n) {
        const std::uint64_t value = counters_->get(kEvents[n]);
        if (value == seen_[n]) [[likely]]
            continue;
        if (now == kNever) now = clock_.now();
        abi::TraceRecord& record = next();
        record.at = now;
        record.kind = abi::TraceKind::kCounter;
        record.source = static_cast<std::uint8_t>(n);
        record.kept = 0;
        record.amount = static_cast<std::uint32_t>(value - seen_[n]);
        seen_[n] = value;
    }
    publish(produced_);
}

Port Trace::wrap(const Port& port) {
    const auto net = static_cast<std::uint8_t>(ports_.size());
    ports_.push_back(std::unique_ptr<TracedPort>(new TracedPort{*this, port, net}));
    // Entries that are empty stay empty: they tell the engine which kind of port it has.
    Port traced = port;
    traced.context = ports_.back().get();
    set_frame_entries(traced);
    set_other_entries(traced);
    return traced;
}

void Trace::set_frame_entries(Port& port) {
    port.rx = [](void* context, Segment** out, std::uint16_t n) {
        auto& [trace, real, net] = *static_cast<TracedPort*>(context);
        if (trace.frames_passed_) trace.look_at_events();
        const std::uint16_t taken = real.rx(real.context, out, std::min(n, std::uint16_t{64}));
        if (taken == 0) return taken;
        const Nanos now = trace.passed_at_ = trace.clock_.now();
        for (std::uint16_t i = 0; i < taken; ++i)
            trace.record_frame(abi::TraceKind::kFrameIn, net, *out[i], now);
        trace.publish(trace.produced_);
        trace.frames_passed_ = true;
        return taken;
    };
    port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
        auto& [trace, real, net] = *static_cast<TracedPort*>(context);
        // Before the port has them: it may free a frame at once.
        const std::uint64_t before = trace.produced_;
        const Nanos now = trace.passed_at_ = trace.clock_.now();
        n = std::min(n, std::uint16_t{64});
        for (std::uint16_t i = 0; i < n; ++i)
            trace.record_frame(abi::TraceKind::kFrameOut, net, *frames[i], now);
        const std::uint16_t taken = real.tx(real.context, frames, n);
        trace.publish(before + taken);
        trace.frames_passed_ = true;
        return taken;
    };
    if (port.rx_landing != nullptr) {
        port.rx_landing = [](void* context, const Landing& landing) {
            auto& [trace, real, net] = *static_cast<TracedPort*>(context);
            if (trace.frames_passed_) trace.look_at_events();
            Segment* const taken = real.rx_landing(real.context, landing);
            if (taken == nullptr) return taken;
            trace.passed_at_ = trace.clock_.now();
            trace.record_frame(abi::TraceKind::kFrameIn, net, *taken, trace.passed_at_);
            trace.publish(trace.produced_);
            trace.frames_passed_ = true;
            return taken;
        };
    }
    if (port.tx_failed != nullptr) {
        port.tx_failed = [](void* context) {
            auto& [trace, real, net] = *static_cast<TracedPort*>(context);
            Segment* const given_up = real.tx_failed(real.context);
            if (given_up == nullptr) return given_up;
            trace.record_frame(abi::TraceKind::kGivenUp, net, *given_up, trace.clock_.now());
            trace.publish(trace.produced_);
            return given_up;
        };
    }
}

void Trace::set_other_entries(Port& port) {
    if (port.tx_pending != nullptr) {
        port.tx_pending = [](void* context) {
            const Port& real = static_cast<TracedPort*>(context)->port;
            return real.tx_pending(real.context);
        };
    }
    if (port.set_multicasts != nullptr) {
        port.set_multicasts = [](void* context, std::span<const Mac> addresses) {
            const Port& real = static_cast<TracedPort*>(context)->port;
            return real.set_multicasts(real.context, addresses);
        };
    }
    if (port.link_up != nullptr) {
        port.link_up = [](void* context) {
            // Once in 10 ms: events of rounds without frames are found here.
            auto& [trace, real, net] = *static_cast<TracedPort*>(context);
            trace.record_events();
            return real.link_up(real.context);
        };
    }
    if (port.addresses != nullptr) {
        port.addresses = [](void* context) {
            const Port& real = static_cast<TracedPort*>(context)->port;
            return real.addresses(real.context);
        };
        port.set_addresses = [](void* context, std::span<const NodeAddress> addresses) {
            const Port& real = static_cast<TracedPort*>(context)->port;
            real.set_addresses(real.context, addresses);
        };
    }
    if (port.missed != nullptr) {
        port.missed = [](void* context) {
            const Port& real = static_cast<TracedPort*>(context)->port;
            return real.missed(real.context);
        };
    }
    if (port.costs != nullptr) {
        port.costs = [](void* context) {
            const Port& real = static_cast<TracedPort*>(context)->port;
            return real.costs(real.context);
        };
    }
}

}  // namespace ulc::daemon
