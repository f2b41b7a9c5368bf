// What an endpoint needs from outside, so that the same object runs over a daemon, an embedded engine, or the
// simulator's engines in one process without a system call.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"

namespace ulc::client {

struct Hooks {
    void* context = nullptr;
    /// One round of an engine in this process; abi::RoundResult. nullptr: the engine runs elsewhere. Called by every
    /// poll().
    int (*progress)(void* context) = nullptr;
    /// Wakes an engine that said it sleeps. nullptr: it never sleeps on its own.
    void (*wake_engine)(void* context) = nullptr;
    /// Blocks while *word == expected, at most `nap`; may return early. nullptr: wait() never sleeps.
    void (*sleep)(void* context, std::atomic<std::uint32_t>& word, std::uint32_t expected,
                  Nanos nap) = nullptr;
    /// Lets others have this processor. nullptr: wait() spins.
    void (*yield)(void* context) = nullptr;
    /// Whether the engine still lives; may make a system call, asked rarely. nullptr: always.
    bool (*engine_alive)(void* context) = nullptr;
    /// Lets the engine interrupt the calling thread by kUpcallSignal (client/upcall.h) for this
    /// endpoint; on = false: not any more. Returns an Err as a number. nullptr: it cannot.
    int (*interrupts)(void* context, bool on) = nullptr;
    /// Takes, in the handler of that signal, what the engine sent with it. False: the engine is
    /// dead. nullptr: it sends nothing.
    bool (*take_interrupt)(void* context) = nullptr;
    /// Says that the thread begins to compute, or polls again; an engine in this process is polled
    /// by its helper meanwhile. nullptr: the engine runs elsewhere.
    void (*computes)(void* context, bool begins) = nullptr;
    /// Monotonic time. nullptr: wait() is not used, and collectives never lose their patience.
    Nanos (*now)(void* context) = nullptr;
    /// Last call: gives back mapping, socket, engine.
    void (*close)(void* context) = nullptr;
};

}  // namespace ulc::client
