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
constexpr Nanos kEventsApart = 40 * kMicrosecond;

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
static_assert(kTapBurstMax + abi::kTraceCounters <= abi::kTraceMargin);

constexpr std::size_t kFields = offsetof(abi::TraceRecord, kind);

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

/// The kind of file at a path.
enum class Found : std::uint8_t { kNothing, kOwnTrace, kTraceInUse, kForeign };

/// Looks at a path without following a link. A trace of another user is foreign.
Found look_at(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? Found::kNothing : Found::kForeign;
    std::uint32_t magic = 0;
    struct stat status {};
    const bool is_own_trace =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == abi::kTraceMagic;
    const bool in_use = is_own_trace && flock(fd, LOCK_SH | LOCK_NB) != 0;
    close(fd);
    return in_use ? Found::kTraceInUse : is_own_trace ? Found::kOwnTrace : Found::kForeign;
}

/// Takes a trace of an earlier engine out of the way. Errors: kInvalid, kSystem.
Err put_aside(const std::string& path, std::string& why) {
    const std::string old = path + ".old";
    const Found here = look_at(path);
    if (here == Found::kNothing) return Err::kOk;
    if (here == Found::kForeign) {
        why = "--trace: " + path + " exists and is not a trace of this user; name another file";
        return Err::kInvalid;
    }
    const Found there = look_at(old);
    if (here == Found::kTraceInUse || there == Found::kTraceInUse) {
        why = "--trace: another engine writes " + (here == Found::kTraceInUse ? path : old) +
              "; name another file for each engine";
        return Err::kInvalid;
    }
    if (there == Found::kForeign) {
        why = "--trace: " + old +
              " exists and is not a trace of this user, so the last trace cannot take its place; "
              "move it away, or name another file";
        return Err::kInvalid;
    }
    if (rename(path.c_str(), old.c_str()) == 0) return Err::kOk;
    why = error_text(old) + "; choose a folder that you may write";
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

/// Copies the first bytes of a frame of which `here` are in place, and returns how many. Whole
/// frames are copied by moves of constant length, which may overlap.
[[gnu::always_inline]] inline std::uint16_t copy_front(std::byte* to, const std::byte* from,
                                                       std::uint32_t here) noexcept {
    constexpr std::uint32_t kHalf = 32;
    constexpr std::uint32_t kMost = 64;
    static_assert(2 * kMost >= abi::kTraceFrameBytes);
    if (const std::uint32_t rest = here - kHalf; rest <= kMost - kHalf) [[likely]] {
        std::memcpy(to, from, kHalf);
        std::memcpy(to + rest, from + rest, kHalf);
    } else if (here > kMost) {
        here = std::min<std::uint32_t>(here, abi::kTraceFrameBytes);
        std::memcpy(to, from, kMost);
        std::memcpy(to + here - kMost, from + here - kMost, kMost);
    } else {
        std::memcpy(to, from, here);
    }
    return static_cast<std::uint16_t>(here);
}

Nanos realtime_now() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<Nanos>(now.tv_sec) * kSecond + now.tv_nsec;
}

}  // namespace

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
    header.nanos_per_tick = out->clock_.nanos_per_tick();
    header.realtime_ahead =
        realtime_now() - abi::trace_time(out->clock_.ticks(), header.nanos_per_tick);
    header.magic = abi::kTraceMagic;
    return Err::kOk;
}

Trace::Trace(void* memory, std::size_t bytes, int fd, std::uint64_t tsc_hz) noexcept
    : header_(*static_cast<abi::TraceHeader*>(memory)),
      records_(reinterpret_cast<abi::TraceRecord*>(static_cast<std::byte*>(memory) +
                                                   abi::kTraceHeaderBytes)),
      mask_((bytes - abi::kTraceHeaderBytes) / sizeof(abi::TraceRecord) - 1),
      clock_(tsc_hz),
      ticks_apart_((std::uint64_t{kEventsApart} << 32U) / clock_.nanos_per_tick()),
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

/// Returns the number of the next record. It is read from the file, so that publication is one
/// instruction; any value gives a place in the ring.
inline std::uint64_t Trace::next() const noexcept {
    return header_.produced.load(std::memory_order_relaxed);
}

/// Publishes the records that were written behind the last one.
inline void Trace::publish(std::uint64_t records) noexcept {
    PortTap::add(header_.produced, records);
}

/// Returns the place of record n.
inline abi::TraceRecord& Trace::record_at(std::uint64_t n) const noexcept {
    return records_[n & mask_];
}

/// Writes all but the time of a frame of kShortest bytes, which short messages have: moves of
/// constant places, some of which overlap.
[[gnu::always_inline]] inline void Trace::write_shortest(abi::TraceRecord& record, Source of,
                                                         const std::byte* frame) noexcept {
    constexpr std::size_t kHalf = 32;
    static_assert(kShortest >= kHalf && kShortest <= 2 * kHalf);
    static_assert(offsetof(abi::TraceRecord, kept) == kFields + offsetof(Source, kept) &&
                  offsetof(abi::TraceRecord, amount) == kFields + offsetof(Source, amount) &&
                  offsetof(abi::TraceRecord, bytes) == kFields + sizeof(Source));
    std::memcpy(reinterpret_cast<std::byte*>(&record) + kFields, &of, sizeof of);
    std::memcpy(record.bytes, frame, kHalf);
    std::memcpy(record.bytes + kShortest - kHalf, frame + kShortest - kHalf, kHalf);
}

/// Writes a record of a frame as number n.
inline void Trace::write_frame(std::uint64_t n, Source of, const Segment& segment,
                               std::uint64_t ticks) noexcept {
    abi::TraceRecord& record = record_at(n);
    const std::uint32_t length = segment.length;
    if (length == kShortest && segment.tail == nullptr) [[likely]] {
        record.ticks = ticks;
        write_shortest(record, of, segment.frame);
        return;
    }
    // A tail lies elsewhere: it is payload, of which a trace needs little.
    const std::uint32_t here = segment.tail == nullptr ? length : length - segment.tail_octets;
    const std::byte* const frame = segment.frame;
    record.ticks = ticks;
    record.kind = of.kind;
    record.source = of.net;
    record.amount = length;
    record.kept = copy_front(record.bytes, frame, here);
}

/// Writes the record of a burst of one frame, the most frequent one, and publishes it or not.
/// False: nothing was done, since a look at the counters is due. It has neither calls nor loops,
/// so that it saves no registers.
template <bool publishes>
inline bool Trace::write_one(Source of, Segment* const* frames) noexcept {
    const std::uint64_t ticks = EngineClock::counter();
    if (ticks >= look_at_) return false;
    // Before the records, whose address is at hand.
    abi::TraceHeader& header = *reinterpret_cast<abi::TraceHeader*>(
        reinterpret_cast<std::byte*>(records_) - abi::kTraceHeaderBytes);
    write_frame(header.produced.load(std::memory_order_relaxed), of, *frames[0], ticks);
    if constexpr (publishes) PortTap::add(header.produced, 1);
    return true;
}

/// Writes records of a burst behind the last one, at one time. Records counters first, if a look at
/// them is due.
[[gnu::noinline]] void Trace::write_burst(Source of, Segment* const* frames,
                                          std::uint16_t n) noexcept {
    const std::uint64_t ticks = clock_.ticks();
    if (ticks - looked_at_ >= ticks_apart_) record_events(ticks);
    for (std::uint16_t i = 0; i < n; ++i)
        write_frame(next() + i, of, *frames[i], ticks);
}

/// Records each counter that rose since the last look.
void Trace::record_events(std::uint64_t ticks) noexcept {
    looked_at_ = ticks;
    if (clock_.counts()) look_at_ = ticks + ticks_apart_;
    if (counters_ == nullptr) return;
    std::uint64_t records = 0;
    for (std::size_t n = 0; n < std::size(kEvents); ++n) {
        const std::uint64_t value = counters_->get(kEvents[n]);
        if (value == seen_[n]) [[likely]]
            continue;
        abi::TraceRecord& record = record_at(next() + records++);
        record.ticks = ticks;
        record.kind = abi::TraceKind::kCounter;
        record.source = static_cast<std::uint8_t>(n);
        record.kept = 0;
        record.amount = static_cast<std::uint32_t>(value - seen_[n]);
        seen_[n] = value;
    }
    publish(records);
}

[[gnu::noinline]] void Trace::receive_burst(Source of, Segment* const* frames,
                                            std::uint16_t n) noexcept {
    write_burst(of, frames, n);
    publish(n);
}

void Trace::watch_port(Port& port) {
    const auto net = static_cast<std::uint8_t>(ports_.size());
    ports_.push_back(std::unique_ptr<Tapped>(new Tapped{*this,
                                                        {abi::TraceKind::kFrameIn, net},
                                                        {abi::TraceKind::kFrameOut, net},
                                                        {abi::TraceKind::kGivenUp, net},
                                                        {}}));
    PortTap& tap = ports_.back()->tap;
    tap.context = ports_.back().get();
    tap.on_received = [](void* context, Segment* const* frames, std::uint16_t n) {
        const Tapped& tapped = *static_cast<Tapped*>(context);
        if (n != 1) return tapped.trace.receive_burst(tapped.in, frames, n);
        if (!tapped.trace.write_one<true>(tapped.in, frames)) [[unlikely]]
            tapped.trace.receive_burst(tapped.in, frames, 1);
    };
    tap.on_offered = [](void* context, Segment* const* frames, std::uint16_t n) {
        const Tapped& tapped = *static_cast<Tapped*>(context);
        if (n != 1) return tapped.trace.write_burst(tapped.out, frames, n);
        if (!tapped.trace.write_one<false>(tapped.out, frames)) [[unlikely]]
            tapped.trace.write_burst(tapped.out, frames, 1);
    };
    tap.taken = &header_.produced;
    tap.on_failed = [](void* context, const Segment& frame) {
        const Tapped& tapped = *static_cast<Tapped*>(context);
        tapped.trace.write_frame(tapped.trace.next(), tapped.failed, frame,
                                 tapped.trace.clock_.ticks());
        tapped.trace.publish(1);
    };
    tap.on_link_look = [](void* context) {
        // Events of rounds without frames are found here.
        Trace& trace = static_cast<Tapped*>(context)->trace;
        trace.record_events(trace.clock_.ticks());
    };
    port.tap = &tap;
}

}  // namespace ulc::daemon
