// SPDX-License-Identifier: BSD-3-Clause
// libulc-engine.so: the table of abi/engine_entry.h over an engine inside the application
// (embedded/embedded_engine.h).
#include <memory>
#include <string>
#include <vector>

#include "abi/engine_entry.h"
#include "abi/put_text.h"
#include "main/embedded/registry.h"
#include "main/node.h"
#include "main/options.h"

namespace ulc::daemon {
namespace {

using abi::EmbeddedEngine;

Err make(const char* devices, const char* options, std::unique_ptr<EmbeddedEngine>& out,
         std::string& why) {
    Options parsed;
    if (const Err error = parse_embedded_options(devices, options, parsed, why); error != Err::kOk)
        return error;
    auto engine = std::make_unique<EmbeddedEngine>();
    engine->sizes = region_sizes_of(parsed);
    std::vector<std::string> notes;
    NodeOptions node = node_options_of(parsed);
    // ulc_poll() runs one round, which must see the caller's submissions.
    node.engine.looks_per_round = node.engine.endpoints_max;
    node.takes_secrets = true;
    if (const Err error = Node::open(node, nullptr, engine->node, notes, why); error != Err::kOk)
        return error;
    engine->core =
        std::make_unique<engine::Engine>(engine->node->engine_config(), engine->node->ports());
    engine->node->watch(engine->core->counters());
    engine->clock = EngineClock(engine->node->tsc_hz());
    start(*engine);
    out = std::move(engine);
    return Err::kOk;
}

int open(const char* devices, const char* options, EmbeddedEngine** out, char* text,
         std::uint32_t octets) {
    std::string why;
    const auto how = [&](std::unique_ptr<EmbeddedEngine>& made, std::string& reason) {
        return make(devices, options, made, reason);
    };
    const Err error = EngineRegistry::instance().open(devices, how, out, why);
    if (error != Err::kOk) put_text({text, octets}, why);
    return static_cast<int>(error);
}

int attach_to_net(EmbeddedEngine* engine, const char* net, void** region, abi::RegionLayout* layout,
                  std::uint32_t* endpoint) {
    const auto index = engine->node->net(net);
    if (!index) return static_cast<int>(index.error());
    return attach(*engine, index.value(), region, layout, endpoint);
}

void close(EmbeddedEngine* engine) {
    if (engine != nullptr) EngineRegistry::instance().close(engine);
}

constexpr abi::EngineEntry kEntry{
    abi::kAbiVersion,
    sizeof(abi::EngineEntry),
    open,
    attach_to_net,
    detach,
    poll,
    set_interrupt,
    lend_frames,
    forget_place,
    addresses,
    meet,
    seal,
    computes,
    close,
};

}  // namespace
}  // namespace ulc::daemon

extern "C" __attribute__((visibility("default"))) const ulc::abi::EngineEntry* ulc_engine_entry_v1(
    std::uint32_t abi_version) {
    return abi_version == ulc::abi::kAbiVersion ? &ulc::daemon::kEntry : nullptr;
}
