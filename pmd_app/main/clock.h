// SPDX-License-Identifier: BSD-3-Clause
// The engine's clock: monotonic nanoseconds, read in user space.
//
// An engine reads it once a round, so its cost is a visible part of an idle round. The time stamp
// counter costs a third of the vDSO's clock_gettime() on the machines tried. It is used if it is
// invariant (Intel SDM vol. 3, 18.17.1), with the frequency that DPDK measured at its start. An
// engine only compares its own readings, so a slow drift against CLOCK_MONOTONIC does no harm. Nor
// does a counter that goes backwards, as after a virtual machine moved to another host: time
// continues from the last reading.
//
// Both the counter and CLOCK_MONOTONIC may stand still while the machine is suspended. The wall
// clock does not, so it is looked at every millisecond, without a system call. Where it is ahead,
// CLOCK_BOOTTIME says whether the machine was suspended or its wall clock was set. Only after a
// suspension does this clock jump, by the time that it missed. To the engine this is an absence
// like any other (jobs/liveness.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "base/clock.h"
#include "base/units.h"

namespace ulc::daemon {

/// Returns the ticks a second of the time stamp counter, measured over ten milliseconds; for a
/// process without DPDK, which measures it at its start. 0: there is none.
[[nodiscard]] inline std::uint64_t measure_tsc_hz() noexcept {
#if defined(__x86_64__)
    struct Instant {
        Nanos at = 0;
        std::uint64_t ticks = 0;
    };
    // Reads both clocks: of several readings it takes the one in which least time passed, since
    // another thread may get the processor in between.
    const auto read_both = [] {
        Instant best;
        Nanos least = kNever;
        for (int n = 0; n < 8; ++n) {
            const Nanos before = monotonic_now();
            const std::uint64_t ticks = __rdtsc();
            const Nanos passed = monotonic_now() - before;
            if (passed >= least) continue;
            least = passed;
            best = {before + passed / 2, ticks};
        }
        return best;
    };
    const Instant first = read_both();
    const timespec length{.tv_sec = 0, .tv_nsec = 10 * kMillisecond};
    nanosleep(&length, nullptr);
    const Instant last = read_both();
    return (last.ticks - first.ticks) * static_cast<std::uint64_t>(kSecond) /
           static_cast<std::uint64_t>(last.at - first.at);
#else
    return 0;
#endif
}

class EngineClock {
public:
    /// `tsc_hz`: ticks a second as measured; 0: unknown, then clock_gettime() is used.
    explicit EngineClock(std::uint64_t tsc_hz) noexcept {
        if (tsc_hz != 0 && tsc_is_invariant())
            nanos_per_tick_ = static_cast<std::uint64_t>((Wide{kSecond} << kShift) / tsc_hz);
        begin(suspended_now());
    }

    EngineClock(const EngineClock& other) noexcept : nanos_per_tick_(other.nanos_per_tick_) {
        begin(suspended_now());
    }
    EngineClock& operator=(const EngineClock& other) noexcept {
        nanos_per_tick_ = other.nanos_per_tick_;
        return *this;
    }

    /// Returns a reading of the counter; 0: there is none.
    [[nodiscard]] static std::uint64_t counter() noexcept {
#if defined(__x86_64__)
        return __rdtsc();
#else
        return 0;
#endif
    }
    /// Returns whether the counter is used.
    [[nodiscard]] bool counts() const noexcept { return nanos_per_tick_ != 0; }
    /// Returns a reading of the counter if it is used, else of clock_gettime(). It may go
    /// backwards. Any thread may call.
    [[nodiscard]] std::uint64_t ticks() const noexcept {
        return counts() ? counter() : static_cast<std::uint64_t>(monotonic_now());
    }
    /// Returns the nanoseconds of one of ticks(), times 2^32.
    [[nodiscard]] std::uint64_t nanos_per_tick() const noexcept {
        return nanos_per_tick_ != 0 ? nanos_per_tick_ : std::uint64_t{1} << kShift;
    }
    /// Returns the time, which never goes backwards. Any thread may call.
    [[nodiscard]] Nanos now() noexcept {
        const auto read_counter = [this] { return reading(); };
        const Nanos time = correct(read_counter);
        if (time < compare_at_.load(std::memory_order_relaxed)) [[likely]]
            return time;
        const Nanos wall = read(CLOCK_REALTIME);
        return compare(time, wall, correct(read_counter), suspended_now);
    }
    /// Compares the clock with the wall clock, which was read between `before` and `after`.
    /// `suspended` returns for how long the machine has been suspended since it started; it is
    /// called where the wall clock is ahead. Returns the time.
    template <typename Suspended>
    [[nodiscard]] Nanos compare(Nanos before, Nanos wall, Nanos after,
                                const Suspended& suspended) noexcept {
        if (comparing_.test_and_set(std::memory_order_acquire)) return after;
        // A thread that loses the processor between two readings sees too little, never too much.
        const Nanos missed = (wall - wall_) - (after - compared_);
        Nanos jump = 0;
        if (wall_ != 0 && missed >= kSuspendMin) {
            const Nanos all = suspended();
            const Nanos asleep = all - std::exchange(suspended_, all);
            if (asleep >= kSuspendMin) jump = std::min(missed, asleep);
        }
        if (jump > 0) ahead_.fetch_add(jump, std::memory_order_relaxed);
        wall_ = wall;
        compared_ = before + jump;
        compare_at_.store(after + jump + kCompareApart, std::memory_order_relaxed);
        comparing_.clear(std::memory_order_release);
        return after + jump;
    }
    /// Returns for how long the machine has been suspended, by `read(clockid_t)`. Another thread
    /// may get the processor between two readings: of several, those that lie closest count.
    template <typename Read>
    [[nodiscard]] static Nanos suspended(const Read& read) noexcept {
        Nanos found = 0;
        Nanos least = kNever;
        for (int n = 0; n < 8 && least > kSuspendMin / 100; ++n) {
            const Nanos before = read(CLOCK_MONOTONIC);
            const Nanos boot = read(CLOCK_BOOTTIME);
            const Nanos passed = read(CLOCK_MONOTONIC) - before;
            if (passed >= least) continue;
            least = passed;
            found = boot - before - passed / 2;
        }
        return found;
    }
    /// Begins with that time of suspensions, which are over.
    void begin(Nanos suspended) noexcept { suspended_ = suspended; }
    /// Returns the time of `reading()`, of a counter which may have gone backwards.
    template <typename Reading>
    [[nodiscard]] Nanos correct(const Reading& reading) noexcept {
        // The order matters. A thread that loses the processor between these lines has an early
        // time of others to compare with, never an early reading.
        const Nanos last = last_.load(std::memory_order_acquire);  // with the release below
        Nanos ahead = ahead_.load(std::memory_order_relaxed);
        Nanos time = reading() + ahead;
        if (time < last) [[unlikely]] {
            // Counters of two cores may differ by less. Another thread may have seen the jump.
            if (last - time > kJump)
                ahead_.compare_exchange_strong(ahead, ahead + last - time,
                                               std::memory_order_relaxed);
            time = last;
        }
        last_.store(time, std::memory_order_release);
        return time;
    }

private:
    static constexpr Nanos kJump = kMillisecond;
    static constexpr Nanos kCompareApart = kMillisecond;
    static constexpr Nanos kSuspendMin = 100 * kMillisecond;
    __extension__ using Wide = unsigned __int128;
    static constexpr unsigned kShift = 32;

    [[nodiscard]] Nanos reading() const noexcept {
#if defined(__x86_64__)
        if (nanos_per_tick_ != 0)
            return static_cast<Nanos>((Wide{__rdtsc()} * nanos_per_tick_) >> kShift);
#endif
        return monotonic_now();
    }
    /// Makes system calls.
    [[nodiscard]] static Nanos suspended_now() noexcept { return suspended(read); }
    [[nodiscard]] static Nanos read(clockid_t clock) noexcept {
        timespec now{};
        clock_gettime(clock, &now);
        return now.tv_sec * kSecond + now.tv_nsec;
    }
    [[nodiscard]] static bool tsc_is_invariant() noexcept {
#if defined(__x86_64__)
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;
        constexpr unsigned kInvariantTsc = 1U << 8;
        return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0;
#else
        return false;
#endif
    }

    std::uint64_t nanos_per_tick_ = 0;  ///< times 2^32
    std::atomic<Nanos> last_{0};
    std::atomic<Nanos> ahead_{0};  ///< time that the counter lost: backwards, or suspended
    std::atomic<Nanos> compare_at_{0};
    std::atomic_flag comparing_ = ATOMIC_FLAG_INIT;  ///< a thread uses the next three
    Nanos wall_ = 0;                                 ///< at the latest comparison; 0: none
    Nanos compared_ = 0;                             ///< this clock's time then
    Nanos suspended_ = 0;                            ///< as last known
};

}  // namespace ulc::daemon
