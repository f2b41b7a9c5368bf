// The one entry of libulc-engine.so: an engine inside the application (embedded mode). libulc loads it on demand
// with dlopen, so libulc itself never links DPDK.
#pragma once

#include <cstdint>

#include "abi/endpoint_region.h"

namespace ulc::abi {

struct EmbeddedEngine;  // opaque

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
    /// One round. Returns 1 if something moved, 0 if not, 2 if another thread is in the engine.
    int (*poll)(EmbeddedEngine* engine);
    /// Once for each open(); the last one ends the engine.
    void (*close)(EmbeddedEngine* engine);
};

/// Exported by libulc-engine.so; nullptr when it cannot serve this version.
using EngineEntryFn = const EngineEntry* (*)(std::uint32_t abi_version);
inline constexpr char kEngineEntryName[] = "ulc_engine_entry_v1";

}  // namespace ulc::abi
