// SPDX-License-Identifier: BSD-3-Clause
// The services that an endpoint needs from outside, so that the same object runs over a daemon, an
// embedded engine, or the simulator's engines in one process without a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "abi/placement.h"
#include "base/units.h"

namespace ulc::client {

struct Hooks {
    void* context = nullptr;
    /// Runs one round of an embedded engine; returns abi::RoundResult. nullptr: the engine runs
    /// elsewhere. Called by every poll().
    int (*progress)(void* context) = nullptr;
    /// Wakes an engine that announced its sleep. nullptr: it never sleeps on its own.
    void (*wake_engine)(void* context) = nullptr;
    /// Blocks while *word == expected, at most `nap`; may return early. nullptr: wait() never
    /// sleeps.
    void (*sleep)(void* context, std::atomic<std::uint32_t>& word, std::uint32_t expected,
                  Nanos nap) = nullptr;
    /// Yields this processor. nullptr: wait() spins.
    void (*yield)(void* context) = nullptr;
    /// Returns true if the engine lives; may make a system call, asked rarely. nullptr: always.
    bool (*engine_alive)(void* context) = nullptr;
    /// Lets the engine interrupt the calling thread by kUpcallSignal (waits/upcall.h) for this
    /// endpoint; on = false: not any more. Returns an Err as a number. nullptr: it cannot.
    int (*interrupts)(void* context, bool on) = nullptr;
    /// Takes, in the handler of that signal, the data that the engine sent with it. Returns false
    /// if the engine is dead. nullptr: it sends nothing.
    bool (*take_interrupt)(void* context) = nullptr;
    /// Lets the engine hand over messages of one packet as frames, or not any more. Returns 0 or an
    /// Err number. nullptr: it cannot.
    int (*lend_frames)(void* context, bool lend) = nullptr;
    /// Ends the use of a place that the placer named for a message of `source` that is arriving.
    /// Returns 0: nothing is written there any more. kAgain: its completion was written. kTimeout:
    /// the engine is stuck, and still has the place. nullptr: the engine asks no placer.
    int (*forget_place)(void* context, std::uint16_t source, const abi::Place& place) = nullptr;
    /// Writes where engines of other nodes can ask for this one, in abi::kMeetingOctets at most; ""
    /// if its wires need no such word. Returns 0 or an Err number. nullptr: the same as "".
    int (*addresses)(void* context, char* text, std::uint32_t octets) = nullptr;
    /// Lets the engine ask for nodes at such addresses. Returns 0 or an Err number. nullptr: it
    /// finds them itself.
    int (*meet)(void* context, const char* addresses) = nullptr;
    /// Lets sealed wires of the engine reach the nodes that know this nonce of 16 octets. nullptr:
    /// there is none. Returns 0 or an Err number; kInvalid: a wire is sealed, and no key is known.
    /// nullptr: the engine has its keys.
    int (*seal)(void* context, const unsigned char* nonce) = nullptr;
    /// Notes that the thread begins to compute, or polls again; its helper polls an embedded engine
    /// meanwhile. nullptr: the engine runs elsewhere.
    void (*computes)(void* context, bool begins) = nullptr;
    /// Monotonic time. nullptr: wait() is not used, and collectives have no timeout.
    Nanos (*now)(void* context) = nullptr;
    /// Last call: releases mapping, socket, engine.
    void (*close)(void* context) = nullptr;
};

}  // namespace ulc::client
