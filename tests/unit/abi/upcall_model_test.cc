// SPDX-License-Identifier: BSD-3-Clause
// Exhaustive model check of how a client is notified (C in abi/slot_ring.h): the client sleeps,
// computes or polls as it likes, and the engine publishes.
//
// Both sides' stores go through store buffers that a fence drains (x86-TSO); the engine's exchange
// drains its own. Every interleaving of steps and of buffer drains is explored. Property: when the
// engine has nothing left to do, no client that sleeps or computes has a record that it has not
// seen. Weaker protocols must be refuted, else the checker proves nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#include "abi/endpoint_region.h"

namespace ulc::abi {
namespace {

constexpr std::uint8_t kRecords = 3;
constexpr auto kPolling = static_cast<std::uint8_t>(ClientState::kPolling);
constexpr auto kAsleep = static_cast<std::uint8_t>(ClientState::kAsleep);
constexpr auto kComputing = static_cast<std::uint8_t>(ClientState::kComputing);

enum class Protocol {
    kCorrect,
    kNoFenceInEngine,
    kNoFenceInClient,
    kNoSecondLook,
    kNotifiesByWhatItLoaded,  // a load and a store in place of the exchange
};

enum class Engine : std::uint8_t { kPublish, kFence, kLoad, kTake, kNotify, kDone };
enum class Client : std::uint8_t { kPoll, kFence, kLook, kRests };

struct State {
    Engine engine = Engine::kPublish;
    std::uint8_t published = 0;  // by the engine, in its buffer or in memory
    std::uint8_t records = 0;    // in memory
    std::uint8_t loaded = 0;     // of the state word
    Client client = Client::kPoll;
    std::uint8_t rest = kAsleep;  // how the client is about to rest, or rests
    std::uint8_t seen = 0;        // records
    std::uint8_t state = kPolling;
    std::uint8_t stored = kPolling;  // the client's store of the state word
    bool buffered = false;           // it is not in memory yet
    std::uint8_t sequence = 0;       // the futex word
    std::uint8_t expected = 0;       // by the sleeper
    bool signal = false;             // an upcall has been made

    bool operator==(const State&) const = default;
};

std::string key_of(const State& state) {
    const std::uint8_t fields[] = {static_cast<std::uint8_t>(state.engine),
                                   state.published,
                                   state.records,
                                   state.loaded,
                                   static_cast<std::uint8_t>(state.client),
                                   state.rest,
                                   state.seen,
                                   state.state,
                                   state.stored,
                                   state.buffered,
                                   state.sequence,
                                   state.expected,
                                   state.signal};
    return {reinterpret_cast<const char*>(fields), sizeof fields};
}

void drain(State& state) {
    if (state.buffered) state.state = state.stored;
    state.buffered = false;
}

void store(State& state, std::uint8_t word) {
    drain(state);  // one entry is enough: order within a buffer is kept
    state.stored = word;
    state.buffered = true;
}

bool rests_for_ever(const State& state) {
    if (state.client != Client::kRests) return false;
    return state.rest == kComputing ? !state.signal : state.sequence == state.expected;
}

std::vector<State> engine_steps(const State& now, Protocol protocol) {
    State next = now;
    switch (now.engine) {
        case Engine::kPublish:
            if (now.published == kRecords) {
                next.engine = Engine::kDone;
            } else {
                ++next.published;
                next.engine = Engine::kFence;
            }
            break;
        case Engine::kFence:
            if (protocol != Protocol::kNoFenceInEngine) next.records = next.published;
            next.engine = Engine::kLoad;
            break;
        case Engine::kLoad:
            next.loaded = now.state;
            next.engine = now.state == kPolling ? Engine::kPublish : Engine::kTake;
            break;
        case Engine::kTake:
            if (protocol != Protocol::kNotifiesByWhatItLoaded) {
                next.records = next.published;
                next.loaded = now.state;
            }
            next.state = kPolling;
            next.engine = next.loaded == kPolling ? Engine::kPublish : Engine::kNotify;
            break;
        case Engine::kNotify:
            if (now.loaded == kComputing) next.signal = true;
            if (now.loaded == kAsleep) ++next.sequence;
            next.engine = Engine::kPublish;
            break;
        case Engine::kDone:
            return {};
    }
    return {next};
}

std::vector<State> client_steps(const State& now, Protocol protocol) {
    State next = now;
    switch (now.client) {
        case Client::kPoll: {
            next.seen = now.records;
            // An upcall that came while the client polls calls no handler.
            next.signal = false;
            std::vector<State> steps;
            for (const std::uint8_t rest : {kAsleep, kComputing}) {
                State step = next;
                step.rest = rest;
                step.expected = step.sequence;
                store(step, rest);
                step.client = Client::kFence;
                steps.push_back(step);
            }
            return steps;
        }
        case Client::kFence:
            if (protocol != Protocol::kNoFenceInClient) drain(next);
            next.client = Client::kLook;
            return {next};
        case Client::kLook: {
            const bool found = protocol != Protocol::kNoSecondLook && now.records != now.seen;
            if (found) store(next, kPolling);
            next.client = found ? Client::kPoll : Client::kRests;
            return {next};
        }
        case Client::kRests:
            // Woken or interrupted; or it ends its rest by itself, as after a time limit.
            store(next, kPolling);
            next.client = Client::kPoll;
            return {next};
    }
    return {};
}

struct Outcome {
    std::size_t states = 0;
    std::size_t lost = 0;
};

Outcome explore(Protocol protocol) {
    Outcome outcome;
    std::unordered_set<std::string> known;
    std::vector<State> open{State{}};
    known.insert(key_of(open.front()));
    while (!open.empty()) {
        const State state = open.back();
        open.pop_back();
        ++outcome.states;
        std::vector<State> steps = engine_steps(state, protocol);
        if (state.records != state.published) {
            steps.push_back(state);
            steps.back().records = state.published;
        }
        if (state.buffered) {
            steps.push_back(state);
            drain(steps.back());
        }
        const bool settled =
            state.engine == Engine::kDone && state.records == state.published && !state.buffered;
        if (settled && rests_for_ever(state) && state.seen != state.records) ++outcome.lost;
        const std::vector<State> more = client_steps(state, protocol);
        steps.insert(steps.end(), more.begin(), more.end());
        for (const State& step : steps)
            if (known.insert(key_of(step)).second) open.push_back(step);
    }
    return outcome;
}

TEST(UpcallModel, no_client_rests_while_a_record_waits) {
    const Outcome outcome = explore(Protocol::kCorrect);
    EXPECT_GT(outcome.states, 1000U);
    EXPECT_EQ(outcome.lost, 0U);
}

TEST(UpcallModel, each_weaker_protocol_loses_a_notification) {
    EXPECT_GT(explore(Protocol::kNoFenceInEngine).lost, 0U);
    EXPECT_GT(explore(Protocol::kNoFenceInClient).lost, 0U);
    EXPECT_GT(explore(Protocol::kNoSecondLook).lost, 0U);
    EXPECT_GT(explore(Protocol::kNotifiesByWhatItLoaded).lost, 0U);
}

}  // namespace
}  // namespace ulc::abi
