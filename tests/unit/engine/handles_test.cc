// SPDX-License-Identifier: BSD-3-Clause
// Handles of endpoints: an old handle names no endpoint, also across the wrap of its 19 bits of
// generation (wire/ids.h).
#include <gtest/gtest.h>

#include <vector>

#include "engine/engine.h"
#include "tests/fuzz/heap_pool.h"

namespace ulc::engine {
namespace {

constexpr std::uint32_t kGenerations = 1U << (31 - kHandleIndexBits);

Port silent_port(fuzz::HeapPool& pool) {
    Port port;
    port.info.mac = Mac{{2, 0, 0, 0, 0, 1}};
    port.info.tx_ring_frames = 64;
    port.pool = pool.table();
    port.rx = [](void*, Segment**, std::uint16_t) -> std::uint16_t { return 0; };
    port.tx = [](void*, Segment* const*, std::uint16_t) -> std::uint16_t { return 0; };
    port.tx_pending = [](void*) { return 0U; };
    port.link_up = [](void*) { return true; };
    return port;
}

// H-2, H-3
TEST(Handles, of_one_entry_repeat_only_after_all_others_were_given) {
    fuzz::HeapPool pool(1600, 64);
    const Port port = silent_port(pool);
    EngineConfig config;
    config.endpoints_max = 1;
    config.pending_sends = 8;
    Engine engine(config, std::span<const Port>(&port, 1));
    std::vector<bool> given(kGenerations);
    EndpointId first = 0;
    EndpointId last = 0;
    for (std::uint32_t n = 0; n < kGenerations - 1; ++n) {
        const Result<EndpointId> id = engine.reserve(0);
        ASSERT_TRUE(id.ok());
        if (n == 0) first = id.value();
        const std::uint32_t generation = id.value() >> kHandleIndexBits;
        ASSERT_NE(id.value(), 0U) << "names no endpoint";
        ASSERT_LT(generation, kGenerations) << "bit 31 tells groups";
        ASSERT_FALSE(given[generation]) << "after " << n;
        given[generation] = true;
        if (last != 0) {
            engine.detach(last, DetachReason::kDied, 0);
            ASSERT_FALSE(engine.detached(id.value())) << "an old handle ends another's endpoint";
            ASSERT_TRUE(engine.detached(last));
        }
        engine.detach(id.value(), DetachReason::kDied, 0);
        last = id.value();
    }
    EXPECT_FALSE(given[0]) << "generation 0 of entry 0 is handle 0";
    EXPECT_EQ(engine.reserve(0).value(), first);
}

}  // namespace
}  // namespace ulc::engine
