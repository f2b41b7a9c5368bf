// The one entry of libulc-engine.so: an engine inside the application (embedded mode). libulc loads it on demand
// with dlopen, so libulc itself never links DPDK.
#pragma once

#include <cstdint>

#include "abi/endpoint_region.h"
#include "abi/placement.h"

namespace ulc::abi {

struct EmbeddedEngine;  // opaque

/// What a round of it was.
enum RoundResult : int {
    kRoundIdle = 0,
    kRoundMoved = 1,      ///< something moved
    kRoundElsewhere = 2,  ///< another thread is in the engine
    kRoundOwes =
        4,  ///< added to the first two: frames of the caller's endpoint wait for the next one, such as acknowledgements
};

/// All functions return 0 or an Err number. Thread rules: any function from any thread;
/// poll takes the engine if it is free, else returns at once.
struct EngineEntry {
    std::uint32_t abi_version;
    std::uint32_t entry_octets;  ///< sizeof(EngineEntry)
    /// options: as on ulc-engine's command line, separated by blanks; devices: vdev strings such as
    /// "net_memif0,role=client,socket=PATH", one for each net, separated by ';'. An engine that this process has opened on
    /// the same devices is shared, its options stay. error_text: filled with a sentence on failure.
    int (*open)(const char* devices, const char* options, EmbeddedEngine** out, char* error_text,
                std::uint32_t error_octets);
    /// A new endpoint on the net of that name ("": the first); *region stays mapped until detach. The caller is trusted
    /// (same process). kInvalid: no such net.
    int (*attach)(EmbeddedEngine* engine, const char* net, void** region, RegionLayout* layout,
                  std::uint32_t* endpoint);
    int (*detach)(EmbeddedEngine* engine, std::uint32_t endpoint);
    /// One round; a RoundResult. placer: asked in this round about messages to that endpoint, whose thread calls; nullptr:
    /// nobody is.
    int (*poll)(EmbeddedEngine* engine, std::uint32_t endpoint, const Placer* placer);
    /// interrupt: called after something was published for the endpoint while its client computed
    /// (ClientState), by the thread that runs the round. It must not block. nullptr: none; not
    /// called any more once this returns.
    int (*set_interrupt)(EmbeddedEngine* engine, std::uint32_t endpoint,
                         void (*interrupt)(void* context), void* context);
    /// One endpoint's client begins to compute (1), or polls again (0). The helper polls while one
    /// computes.
    void (*computes)(EmbeddedEngine* engine, int begins);
    /// Once for each open(); the last one ends the engine.
    void (*close)(EmbeddedEngine* engine);
};

/// Exported by libulc-engine.so; nullptr when it cannot serve this version.
using EngineEntryFn = const EngineEntry* (*)(std::uint32_t abi_version);
inline constexpr char kEngineEntryName[] = "ulc_engine_entry_v1";

}  // namespace ulc::abi
