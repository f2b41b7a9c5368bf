// SPDX-License-Identifier: BSD-3-Clause
// A client notices that its engine's process is gone: by beats that stand still, and then by asking
// the kernel, which it never does while the engine beats (Endpoint::look_at_engine).
#include <gtest/gtest.h>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

/// A time that passes with each look at it, and an engine's process that lives or not.
struct Machine {
    Nanos now = kSecond;
    bool alive = true;
    unsigned asked = 0;
    unsigned clock_reads = 0;

    Hooks hooks() {
        Hooks hooks;
        hooks.context = this;
        hooks.now = [](void* context) {
            ++static_cast<Machine*>(context)->clock_reads;
            return static_cast<Machine*>(context)->now;
        };
        hooks.engine_alive = [](void* context) {
            ++static_cast<Machine*>(context)->asked;
            return static_cast<Machine*>(context)->alive;
        };
        hooks.yield = [](void* context) { static_cast<Machine*>(context)->now += kMicrosecond; };
        hooks.sleep = [](void* context, std::atomic<std::uint32_t>&, std::uint32_t, Nanos nap) {
            static_cast<Machine*>(context)->now += nap;
        };
        return hooks;
    }
};

struct ClientOfOne {
    Machine machine;
    ScriptedEngine engine{kSmall, {}, machine.hooks()};
    ulc_endpoint* ep = engine.endpoint.get();
    std::uint32_t beats = 0;

    /// Polls every `apart` for `time`, while the engine beats each millisecond, if at all. The time
    /// at which the endpoint ended; 0: it has not.
    Nanos poll_for(Nanos time, Nanos apart, bool with_beats) {
        const Nanos begin = machine.now;
        for (Nanos beat_at = begin; machine.now - begin < time; machine.now += apart) {
            if (with_beats && machine.now >= beat_at) {
                beat_at = machine.now + kMillisecond;
                engine.region.control().engine_beats.store(++beats);
            }
            if (ulc_poll(ep) == -ULC_ERR_NO_ENGINE) return machine.now - begin;
        }
        return 0;
    }
};

struct EngineDeath : testing::Test, ClientOfOne {};

TEST_F(EngineDeath, is_never_asked_about_while_the_engine_beats) {
    for (const Nanos apart : {Nanos{20}, kMicrosecond, kMillisecond})
        EXPECT_EQ(poll_for(50 * kMillisecond, apart, true), 0);
    EXPECT_EQ(machine.asked, 0U);
}

TEST_F(EngineDeath, is_heard_soon_however_often_the_client_polls) {
    for (const Nanos apart : {Nanos{20}, kMicrosecond, 50 * kMicrosecond, kMillisecond}) {
        ClientOfOne one;
        EXPECT_EQ(one.poll_for(50 * kMillisecond, apart, true), 0);
        one.machine.alive = false;
        const Nanos heard = one.poll_for(kSecond, apart, false);
        EXPECT_GT(heard, 2 * kMillisecond);
        EXPECT_LE(heard, 10 * kMillisecond) << "polls " << apart << " ns apart";
        EXPECT_EQ(ulc_job_state(one.ep), ULC_ERR_NO_ENGINE);
    }
}

TEST_F(EngineDeath, is_not_assumed_of_one_that_only_stands_still) {
    EXPECT_EQ(poll_for(10 * kMillisecond, kMicrosecond, true), 0);
    EXPECT_EQ(poll_for(200 * kMillisecond, kMicrosecond, false), 0);
    EXPECT_GE(machine.asked, 30U);
    EXPECT_LE(machine.asked, 50U) << "a system call every 4 ms, no more";
    const unsigned before = machine.asked;
    EXPECT_EQ(poll_for(50 * kMillisecond, kMicrosecond, true), 0);
    EXPECT_EQ(machine.asked, before);
}

TEST_F(EngineDeath, costs_one_look_at_the_clock_in_many_polls) {
    EXPECT_EQ(poll_for(10 * kMillisecond, 20, true), 0);
    const unsigned before = machine.clock_reads;
    EXPECT_EQ(poll_for(10 * kMillisecond, 20, true), 0);  // 500,000 polls
    EXPECT_LE(machine.clock_reads - before, 500U);
}

TEST_F(EngineDeath, is_heard_in_a_wait_that_yields_and_sleeps) {
    machine.alive = false;
    const Nanos begin = machine.now;
    EXPECT_EQ(ulc_wait(ep, kSecond), ULC_ERR_NO_ENGINE);
    EXPECT_LE(machine.now - begin, 15 * kMillisecond);
}

TEST_F(EngineDeath, lets_the_client_take_what_the_engine_had_delivered) {
    engine.form(0, 2);
    engine.deliver_inline(1, 7, "last words");
    machine.alive = false;
    char words[16];
    ulc_request request;
    ASSERT_EQ(ulc_receive(ep, 1, 7, UINT64_MAX, words, sizeof words, &request), ULC_OK);
    machine.now += kSecond;
    EXPECT_EQ(ulc_wait_for(ep, &request, nullptr, kSecond), ULC_OK);
    EXPECT_EQ(std::string(words, 10), "last words");
    EXPECT_EQ(ulc_wait(ep, kSecond), ULC_ERR_NO_ENGINE);
}

}  // namespace
}  // namespace ulc::client
