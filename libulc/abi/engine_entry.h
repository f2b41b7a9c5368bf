// SPDX-License-Identifier: BSD-3-Clause
// The one entry of libulc-engine.so: an engine inside the application (embedded mode). libulc loads
// it on demand with dlopen, so libulc itself never links DPDK.
#pragma once

#include <cstdint>

#include "abi/endpoint_region.h"
#include "abi/placement.h"

namespace ulc::abi {

struct EmbeddedEngine;  // opaque

/// Result of a round of the engine.
enum RoundResult : int {
    kRoundIdle = 0,
    kRoundMoved = 1,      ///< something moved
    kRoundElsewhere = 2,  ///< another thread, or endpoint of this process, takes the rounds
    /// Added to the first two: frames of the caller's endpoint are pending for the next round,
    /// such as acknowledgements
    kRoundOwes = 4,
};

/// All functions return 0 or an Err number. Threads: any thread may call any function; poll takes
/// the engine if it is free, else returns at once. Others wait for a round of another thread, but
/// not longer than 5 s: kTimeout.
struct EngineEntry {
    std::uint32_t abi_version;
    std::uint32_t entry_octets;  ///< sizeof(EngineEntry)
    /// Opens an engine. `options`: as on ulc-engine's command line, separated by blanks. `devices`:
    /// vdev strings such as "net_memif0,role=client,socket=PATH", one for each net, separated by
    /// ';'. An engine that this process has opened on the same devices is shared, with its options
    /// unchanged. `error_text`: filled with a sentence on failure.
    int (*open)(const char* devices, const char* options, EmbeddedEngine** out, char* error_text,
                std::uint32_t error_octets);
    /// Makes a new endpoint on the net of that name ("": the first); *region stays mapped until
    /// detach. The caller is trusted (same process). kInvalid: no such net.
    int (*attach)(EmbeddedEngine* engine, const char* net, void** region, RegionLayout* layout,
                  std::uint32_t* endpoint);
    /// Delivers what is pending, at most 12 s: kTimeout.
    int (*detach)(EmbeddedEngine* engine, std::uint32_t endpoint);
    /// Runs one round; returns a RoundResult. `placer`: asked in this round about messages to that
    /// endpoint, whose thread calls; nullptr: no placer is asked.
    int (*poll)(EmbeddedEngine* engine, std::uint32_t endpoint, const Placer* placer);
    /// Sets a function that is called after something was published for the endpoint while its
    /// client computed (ClientState), by the thread that runs the round. It must not block.
    /// nullptr: none; it is not called any more once this returns.
    int (*set_interrupt)(EmbeddedEngine* engine, std::uint32_t endpoint,
                         void (*interrupt)(void* context), void* context);
    /// Lets the endpoint's client get messages of one packet as frames (kCompleteFrame), or not any
    /// more (0).
    int (*lend_frames)(EmbeddedEngine* engine, std::uint32_t endpoint, int lend);
    /// Ends the use of memory that the endpoint's placer named for a message of `source` that is
    /// still arriving: nothing is written there after this returns 0, and the message has no
    /// completion. kAgain: no message is arriving there, so its completion was written.
    int (*forget_place)(EmbeddedEngine* engine, std::uint32_t endpoint, std::uint16_t source,
                        const Place* place);
    /// Writes where engines of other nodes can ask for this one, "10.0.0.5:4001,…"; "" if its wires
    /// need no such word. kInvalid: it is longer than the text.
    int (*addresses)(EmbeddedEngine* engine, char* text, std::uint32_t octets);
    /// Asks for nodes where addresses() of another engine says. kInvalid: it says no such thing.
    int (*meet)(EmbeddedEngine* engine, const char* addresses);
    /// Lets sealed wires reach the nodes that know the nonce of a job, 16 octets. nullptr: a job or
    /// links without one. kInvalid: a wire is sealed, and no key is known. kLimit: it has 16 keys.
    int (*seal)(EmbeddedEngine* engine, const unsigned char* nonce);
    /// Notes that one endpoint's client begins to compute (1), or polls again (0). The helper polls
    /// while one computes.
    void (*computes)(EmbeddedEngine* engine, int begins);
    /// Call once for each open(); the last one delivers what is pending, at most 12 s, and ends the
    /// engine.
    void (*close)(EmbeddedEngine* engine);
};

/// Exported by libulc-engine.so; returns nullptr if it cannot serve this version.
using EngineEntryFn = const EngineEntry* (*)(std::uint32_t abi_version);
/// Octets that addresses() needs at most.
inline constexpr std::uint32_t kMeetingOctets = 256;
inline constexpr char kEngineEntryName[] = "ulc_engine_entry_v1";

}  // namespace ulc::abi
