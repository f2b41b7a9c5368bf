// SPDX-License-Identifier: BSD-3-Clause
// Counts the cache lines of a session that a short message touches on the fast path. The pages of
// the session are protected. Each access faults, is noted, and is done alone: the trap flag stops
// the processor behind it, and the pages are protected again. An instruction that accesses two
// lines at once is noted for the first. The budget in the median:
// two lines of the stream to a peer, and two of the rest of its session. x86-64 alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/units.h"
#include "tests/unit/urtp/world.h"

namespace ulc::urtp {
namespace {

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

using test::World;

constexpr std::size_t kRangesMax = 4;
constexpr std::size_t kLinesMax = 64;

/// Memory of one object, and its lines that were touched.
struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool touched[kLinesMax] = {};
    std::uint16_t first[kLinesMax] = {};  ///< offset of the first access of each line
};

// The handlers use no other memory than this, which lies in no protected page.
Range ranges[kRangesMax];
std::size_t range_count = 0;

void protect(int how) {
    static const auto page = static_cast<std::uintptr_t>(getpagesize());
    for (std::size_t n = 0; n < range_count; ++n) {
        const std::uintptr_t begin = ranges[n].begin & ~(page - 1);
        const std::uintptr_t end = (ranges[n].end + page - 1) & ~(page - 1);
        if (mprotect(reinterpret_cast<void*>(begin), end - begin, how) != 0) _exit(1);
    }
}

constexpr greg_t kTrapFlag = 0x100;

void on_access(int /*signal*/, siginfo_t* info, void* context) {
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (std::size_t n = 0; n < range_count; ++n) {
        Range& range = ranges[n];
        if (at < range.begin || at >= range.end) continue;
        const std::size_t line = at / kCacheLine - range.begin / kCacheLine;
        if (line >= kLinesMax) _exit(1);
        if (!range.touched[line]) range.first[line] = static_cast<std::uint16_t>(at - range.begin);
        range.touched[line] = true;
    }
    protect(PROT_READ | PROT_WRITE);
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
}

void on_step(int /*signal*/, siginfo_t* /*info*/, void* context) {
    protect(PROT_NONE);
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

/// Calls run(), and notes which lines of the objects it touches.
template <typename Run>
void watch(std::initializer_list<std::pair<const void*, std::size_t>> objects, Run run) {
    range_count = 0;
    for (const auto& [memory, octets] : objects) {
        const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        ranges[range_count++] = {begin, begin + octets, {}, {}};
    }
    struct sigaction accesses {};
    struct sigaction steps {};
    struct sigaction accesses_before {};
    struct sigaction steps_before {};
    accesses.sa_sigaction = on_access;
    accesses.sa_flags = SA_SIGINFO;
    steps.sa_sigaction = on_step;
    steps.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &accesses, &accesses_before);
    sigaction(SIGTRAP, &steps, &steps_before);
    protect(PROT_NONE);
    run();
    protect(PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &accesses_before, nullptr);
    sigaction(SIGTRAP, &steps_before, nullptr);
}

std::size_t lines_of(std::size_t range, const char* name, std::string& text) {
    std::size_t count = 0;
    for (std::size_t line = 0; line < kLinesMax; ++line) {
        if (!ranges[range].touched[line]) continue;
        ++count;
        text += " " + std::string(name) + "+" + std::to_string(ranges[range].first[line]);
    }
    return count;
}

/// One end of a ping-pong over the fast path.
struct End {
    Transport& member;
    Session& session;
    TxPrediction next_message;
    RxPrediction next_frame;
};

/// The lines that one half of a message touches.
struct Lines {
    std::size_t session = 0;  ///< those of the peer, and the stream from it
    std::size_t tx = 0;       ///< the stream to it
    std::string text;

    [[nodiscard]] std::size_t count() const noexcept { return session + tx; }
};

template <typename Run>
Lines lines_touched(bool watched, const End& end, Run run) {
    if (!watched) return run(), Lines{};
    watch({{&end.session, sizeof end.session}, {end.session.tx.get(), sizeof(TxStream)}}, run);
    Lines out;
    out.session = lines_of(0, "session", out.text);
    out.tx = lines_of(1, "tx", out.text);
    return out;
}

constexpr char kPayload[] = "8 octets";
constexpr int kBefore = 1000;  ///< until congestion control has opened the window
constexpr int kMessages = 65;

/// The lines that each half of some messages touches.
struct Halves {
    std::vector<Lines> sending;
    std::vector<Lines> receiving;
};

void count_one(World& world, bool watched, const End& from, const End& to, Halves& out) {
    world.now += kMicrosecond;
    const ShortMessage message{from.session.rank, 8, kPayload, 0, true};
    Segment* frame = nullptr;
    out.sending.push_back(lines_touched(watched, from, [&] {
        frame = from.member.transmit_next(from.next_message, message, world.now);
    }));
    ASSERT_NE(frame, nullptr);
    world.now += kMicrosecond;
    bool taken = false;
    out.receiving.push_back(lines_touched(watched, to, [&] {
        wire::ShortBody body;
        taken = to.next_frame.head.matches(frame->frame) &&
                to.member.is_next(to.next_frame, frame->frame, frame->length, body);
        if (taken) (void)to.member.take_next(to.next_frame, body, world.now);
    }));
    ASSERT_TRUE(taken);
    world.pool.table().drop(frame);
}

/// Holds the median to two lines of each object. More are touched now and then, as when a round
/// trip is measured: once in TxStream::kSampleEvery messages.
void expect_few(const char* half, std::vector<Lines> all) {
    std::ranges::sort(all, {}, &Lines::count);
    const Lines& usual = all[all.size() / 2];
    std::printf("%s: %zu cache lines,%s (at most %zu)\n", half, usual.count(), usual.text.c_str(),
                all.back().count());
    EXPECT_GT(usual.session, 0U);
    EXPECT_GT(usual.tx, 0U);
    EXPECT_LE(usual.session, 2U) << half;
    EXPECT_LE(usual.tx, 2U) << half;
}

End end_of(World& world, Rank rank, const std::byte* frame) {
    Session& session = *world.members[rank]->find_session(static_cast<StreamId>(1 - rank));
    End end{*world.members[rank], session, world.members[rank]->predict(session), {}};
    EXPECT_TRUE(world.members[rank]->predict(frame, end.next_frame));
    return end;
}

TEST(UrtpCacheLines, of_a_session_are_few_on_the_fast_path) {
    World world(2);
    world.takes_at_once = true;
    std::byte frames[2][128];
    for (Rank from : {0, 1}) {
        ASSERT_EQ(world.send(from, static_cast<StreamId>(1 - from), kPayload), Admission::kYes);
        world.run_for(kMillisecond);
        const StreamId to = static_cast<StreamId>(1 - from);
        Segment* frame = world.members[from]->transmit_next(
            world.members[from]->predict(*world.members[from]->find_session(to)),
            {to, 8, kPayload, 0, true}, world.now);
        ASSERT_NE(frame, nullptr);
        copy_frame(frames[from], *frame);
        wire::FrameView view;
        ASSERT_EQ(wire::parse(frame->frame, frame->length, wire::kEtherTypeDefault, view),
                  Counter::kCount);
        world.members[1 - from]->on_frame(view, frame, world.now);
        (void)world.receive(static_cast<Rank>(1 - from), from);
        world.run_for(kMillisecond);
    }
    End ends[] = {end_of(world, 0, frames[1]), end_of(world, 1, frames[0])};
    Halves before;
    Halves halves;
    for (int n = 0; n < kBefore + kMessages; ++n) {
        const bool watched = n >= kBefore;
        for (int from : {0, 1})
            ASSERT_NO_FATAL_FAILURE(
                count_one(world, watched, ends[from], ends[1 - from], watched ? halves : before));
    }
    expect_few("sending", std::move(halves.sending));
    expect_few("receiving", std::move(halves.receiving));
}

#endif

}  // namespace
}  // namespace ulc::urtp
