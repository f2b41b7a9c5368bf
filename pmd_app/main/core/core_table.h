// SPDX-License-Identifier: BSD-3-Clause
// The engine core as a library that a running daemon can replace (docs/design/UPGRADE.md): one
// table of functions, found by name in libulc-core.so. Used by core_library.cc, which fills the
// table, and by core.h, which calls it.
//
//   ulc-engine ── CoreTable ──▶ libulc-core.so: engine/, endpoint/, jobs/, urtp/, wire/
//
// Both sides are C++ of one compiler family and share the structs that cross: EngineConfig, Port,
// Segment and others. `interface` changes with the table, `layout` with the size of a struct that
// crosses; a library with another value of either is refused before a function of it is called.
// No exception crosses. Texts are written into a CoreText (abi/put_text.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "abi/endpoint_region.h"
#include "abi/endpoint_row.h"
#include "abi/region.h"
#include "base/counters.h"
#include "base/fnv.h"
#include "base/units.h"
#include "engine/config.h"
#include "engine/engine.h"
#include "port/port.h"

namespace ulc::daemon {

inline constexpr std::uint32_t kCoreInterface = 4;
inline constexpr char kCoreFile[] = "libulc-core.so";
inline constexpr char kCoreEntry[] = "ulc_core_table";

/// Space for a sentence of the core; terminated.
struct CoreText {
    char* text = nullptr;
    std::uint32_t octets = 0;  ///< 0: no text is wanted
};

/// The mapped memory of one admitted endpoint, and how its client is interrupted.
struct CoreRegion {
    engine::EndpointId endpoint = 0;
    void* memory = nullptr;
    abi::RegionLayout layout{};
    engine::Interrupt interrupt;
};

/// A frame that exported octets name by its place, and the context of its pool.
struct CoreFrame {
    void* frame = nullptr;
    const void* pool = nullptr;
};

/// Exported state. Belongs to the core that made it, until drop_state() or its end.
struct CoreState {
    const std::byte* octets = nullptr;
    std::size_t size = 0;
    const CoreFrame* frames = nullptr;
    std::size_t frame_count = 0;
};

enum class CoreExport : std::uint32_t {
    kDone,
    kBusy,     ///< try again after a round; the text says which endpoint is in the way
    kRefused,  ///< for good
};

/// A core of the library; defined there.
struct CoreObject;

/// Function of the table for a function of the engine that has the same arguments.
template <typename Method>
struct CoreCall;
template <typename Result, typename... Arguments, bool kNoexcept>
struct CoreCall<Result (engine::Engine::*)(Arguments...) noexcept(kNoexcept)> {
    using Function = Result (*)(CoreObject* core, Arguments...);
};
template <typename Result, typename... Arguments, bool kNoexcept>
struct CoreCall<Result (engine::Engine::*)(Arguments...) const noexcept(kNoexcept)> {
    using Function = Result (*)(const CoreObject* core, Arguments...);
};

/// Thread rule: all calls of one core from one thread at a time. Statuses are Err as a number.
struct CoreTable {
    std::uint32_t octets;  ///< size of this table
    std::uint32_t interface;
    std::uint64_t layout;
    const char* build;  ///< for people: version and compiler

    /// nullptr: no memory. counters, wake and ports outlive the core.
    CoreObject* (*create)(const engine::EngineConfig* config, const Port* ports,
                          std::uint32_t port_count);
    /// Gives back all frames that the core holds.
    void (*destroy)(CoreObject* core);

    // --- as engine.h has them
#define ULC_CORE_CALL(name) CoreCall<decltype(&engine::Engine::name)>::Function name;
#define ULC_CORE_ASK(name) ULC_CORE_CALL(name)
#include "main/core/core_calls.def"
#undef ULC_CORE_ASK
#undef ULC_CORE_CALL

    // --- clients
    std::int32_t (*reserve)(CoreObject* core, std::uint32_t net, const engine::Claimant* claimant,
                            engine::EndpointId* out, CoreText why);
    std::int32_t (*admit)(CoreObject* core, engine::EndpointId endpoint, void* region,
                          const abi::RegionLayout* layout);
    void (*set_interrupt)(CoreObject* core, engine::EndpointId endpoint,
                          const engine::Interrupt* interrupt);
    void (*detach)(CoreObject* core, engine::EndpointId endpoint, bool died, Nanos now);
    bool (*detached)(const CoreObject* core, engine::EndpointId endpoint);
    std::size_t (*take_figures)(const CoreObject* core, abi::EndpointRow* out, std::size_t rows);
    /// uid: nullptr: of all users.
    std::size_t (*take_streams)(const CoreObject* core, abi::StreamRow* out, std::size_t rows,
                                const engine::UserId* uid);

    // --- upgrade
    /// Changes nothing that a client or a peer can see.
    CoreExport (*export_state)(CoreObject* core, CoreState* out, CoreText why);
    /// Into a core that has made no round. Takes a reference for each frame that the octets name. A
    /// core that refused is destroyed.
    std::int32_t (*import_state)(CoreObject* core, const CoreState* state,
                                 const CoreRegion* regions, std::size_t region_count, CoreText why);
    void (*drop_state)(CoreObject* core);
    /// Ends the clients that are in the way of an export; `who` names them.
    void (*evict)(CoreObject* core, Nanos now, CoreText who);
};

using CoreEntry = const CoreTable* (*)();

/// A digest of the sizes of all structs that cross, and of the number of counters.
constexpr std::uint64_t core_layout() noexcept {
    std::uint64_t digest = kFnvBasis;
    for (const std::size_t value : {sizeof(CoreTable),
                                    sizeof(CoreText),
                                    sizeof(CoreRegion),
                                    sizeof(CoreFrame),
                                    sizeof(CoreState),
                                    sizeof(engine::EngineConfig),
                                    sizeof(urtp::Params),
                                    sizeof(jobs::JobsConfig),
                                    sizeof(engine::AccountLimits),
                                    sizeof(engine::Claimant),
                                    sizeof(engine::Interrupt),
                                    sizeof(Port),
                                    sizeof(PortInfo),
                                    sizeof(PortCosts),
                                    sizeof(PortTap),
                                    sizeof(Landing),
                                    sizeof(Segment),
                                    sizeof(SegmentPool),
                                    sizeof(abi::RegionLayout),
                                    sizeof(abi::EndpointRow),
                                    sizeof(abi::StreamRow),
                                    kCounterCount,
                                    std::size_t{abi::kAbiVersion}}) {
        digest = fnv1a(digest, value);
    }
    return digest;
}

}  // namespace ulc::daemon
