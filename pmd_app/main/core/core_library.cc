// SPDX-License-Identifier: BSD-3-Clause
// libulc-core.so: the table of core_table.h over engine::Engine. Nothing else of the library is
// visible. Built with the same objects as the embedded engine, which calls Engine directly.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/put_text.h"
#include "base/state/archive.h"
#include "main/core/core_table.h"

namespace ulc::daemon {

struct CoreObject {
    CoreObject(const engine::EngineConfig& config, std::span<const Port> ports)
        : engine(config, ports) {}
    engine::Engine engine;
    state::Image image;             ///< exported, until drop_state()
    std::vector<CoreFrame> frames;  ///< the list of the image
};

namespace {

void write_text(CoreText to, std::string_view text) noexcept {
    put_text({to.text, to.octets}, text);
}

CoreObject* create(const engine::EngineConfig* config, const Port* ports,
                   std::uint32_t port_count) {
    try {
        return new CoreObject(*config, {ports, port_count});
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void destroy(CoreObject* core) { delete core; }

std::int32_t reserve(CoreObject* core, std::uint32_t net, const engine::Claimant* claimant,
                     engine::EndpointId* out, CoreText why) {
    std::string text;
    const auto endpoint = core->engine.reserve(net, *claimant, &text);
    if (endpoint.ok()) {
        *out = endpoint.value();
        return 0;
    }
    write_text(why, text);
    return static_cast<std::int32_t>(endpoint.error());
}

std::int32_t admit(CoreObject* core, engine::EndpointId endpoint, void* region,
                   const abi::RegionLayout* layout) {
    return static_cast<std::int32_t>(core->engine.admit(endpoint, region, *layout));
}

void set_interrupt(CoreObject* core, engine::EndpointId endpoint,
                   const engine::Interrupt* interrupt) {
    core->engine.set_interrupt(endpoint, *interrupt);
}

void detach(CoreObject* core, engine::EndpointId endpoint, bool died, Nanos now) {
    core->engine.detach(endpoint,
                        died ? engine::DetachReason::kDied : engine::DetachReason::kClosed, now);
}

bool detached(const CoreObject* core, engine::EndpointId endpoint) {
    return core->engine.detached(endpoint);
}

std::size_t take_figures(const CoreObject* core, abi::EndpointRow* out, std::size_t rows) {
    try {
        return core->engine.take_figures({out, rows});
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

std::size_t take_streams(const CoreObject* core, abi::StreamRow* out, std::size_t rows,
                         const engine::UserId* uid) {
    try {
        return core->engine.take_streams({out, rows}, uid);
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

// Whatever is in the way of an export is a collective that an engine carries out, which ends.
CoreExport export_state(CoreObject* core, CoreState* out, CoreText why) {
    try {
        state::Exporter exporter(core->image.octets.capacity());
        core->engine.export_state(exporter);
        if (!exporter.ok()) {
            write_text(why, exporter.why());
            return CoreExport::kBusy;
        }
        core->image = exporter.finish();
    } catch (const std::bad_alloc&) {
        write_text(why, "no memory for the state of the engine; free some, or restart the engine");
        return CoreExport::kRefused;
    }
    static_assert(sizeof(CoreFrame) == sizeof(state::FrameName));
    out->octets = core->image.octets.data();
    out->size = core->image.octets.size();
    core->frames.clear();
    for (const state::FrameName& name : core->image.frames)
        core->frames.push_back({name.frame, name.pool});
    out->frames = core->frames.data();
    out->frame_count = core->frames.size();
    return CoreExport::kDone;
}

struct CoreRegions {
    const CoreRegion* first;
    std::size_t count;
};

engine::Mapping find_region(void* context, engine::EndpointId endpoint) {
    const auto& regions = *static_cast<const CoreRegions*>(context);
    const std::span all(regions.first, regions.count);
    const auto found = std::ranges::find(all, endpoint, &CoreRegion::endpoint);
    if (found == all.end()) return {};
    return {found->memory, found->layout, found->interrupt};
}

std::int32_t import_state(CoreObject* core, const CoreState* state, const CoreRegion* regions,
                          std::size_t region_count, CoreText why) {
    try {
        std::vector<state::FrameName> frames;
        for (const CoreFrame& frame : std::span(state->frames, state->frame_count))
            frames.push_back({frame.frame, frame.pool});
        state::Importer importer({state->octets, state->size}, frames);
        CoreRegions all{regions, region_count};
        core->engine.import_state(importer, {find_region, &all});
        if (importer.finish()) return static_cast<std::int32_t>(Err::kOk);
        write_text(why, "the new library refuses the engine's state: " + importer.why() +
                            "; restart the engine instead (docs/guide/UPGRADING.md)");
        return static_cast<std::int32_t>(Err::kUnsupported);
    } catch (const std::bad_alloc&) {
        write_text(why, "no memory for the state of the engine; free some, or restart the engine");
        return static_cast<std::int32_t>(Err::kNoMemory);
    }
}

void drop_state(CoreObject* core) {
    core->image = {};
    core->frames = {};
}

void evict(CoreObject* core, Nanos now, CoreText who) {
    try {
        write_text(who, core->engine.evict(now));
    } catch (const std::bad_alloc&) {
        write_text(who, "clients that cannot be named, for lack of memory");
    }
}

constexpr CoreTable kTable{
    .octets = sizeof(CoreTable),
    .interface = kCoreInterface,
    .layout = core_layout(),
    .build = ULC_VERSION " (" __VERSION__ ")",
    .create = create,
    .destroy = destroy,
#define ULC_CORE_CALL(name) \
    .name = [](auto* core, auto... arguments) { return core->engine.name(arguments...); },
#define ULC_CORE_ASK(name) ULC_CORE_CALL(name)
#include "main/core/core_calls.def"
#undef ULC_CORE_ASK
#undef ULC_CORE_CALL
    .reserve = reserve,
    .admit = admit,
    .set_interrupt = set_interrupt,
    .detach = detach,
    .detached = detached,
    .take_figures = take_figures,
    .take_streams = take_streams,
    .export_state = export_state,
    .import_state = import_state,
    .drop_state = drop_state,
    .evict = evict,
};

}  // namespace
}  // namespace ulc::daemon

extern "C" __attribute__((visibility("default"))) const ulc::daemon::CoreTable* ulc_core_table() {
    return &ulc::daemon::kTable;
}
