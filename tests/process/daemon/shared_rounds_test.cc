// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of one process share its engine. While one of them lets the engine ask where its
// messages go, the polls of the others take no round in its stead.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "abi/engine_entry.h"
#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

abi::Place no_place(void* /*context*/, const abi::Beginning& /*message*/) { return {}; }

const abi::EngineEntry* entry() {
    void* library = dlopen("libulc-engine.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* get = reinterpret_cast<abi::EngineEntryFn>(dlsym(library, abi::kEngineEntryName));
    return get != nullptr ? get(abi::kAbiVersion) : nullptr;
}

/// Runs in a child process, which may open an engine.
void check(const std::string& device) {
    const abi::EngineEntry* engines = entry();
    ASSERT_TRUE(engines != nullptr);
    abi::EmbeddedEngine* engine = nullptr;
    char text[400] = "";
    ASSERT_TRUE(engines->open(device.c_str(), "--hugepages never", &engine, text, sizeof text) ==
                0);
    std::uint32_t endpoints[3] = {};
    for (std::uint32_t& endpoint : endpoints) {
        void* region = nullptr;
        abi::RegionLayout layout;
        ASSERT_TRUE(engines->attach(engine, "", &region, &layout, &endpoint) == 0);
    }
    const auto [placing, second, third] = endpoints;
    const abi::Placer placer{nullptr, no_place, no_place};
    const auto takes_round = [&](std::uint32_t endpoint, const abi::Placer* asked) {
        return engines->poll(engine, endpoint, asked) != abi::kRoundElsewhere;
    };
    // Polls until one takes a round. The engine's helper thread may be in the engine meanwhile.
    const auto polls = [&](std::uint32_t endpoint, const abi::Placer* asked) {
        unsigned count = 1;
        while (count < 1'000'000 && !takes_round(endpoint, asked))
            ++count;
        return count;
    };

    for (int n = 0; n < 100; ++n) {
        static_cast<void>(polls(placing, &placer));
        ASSERT_TRUE(!takes_round(second, nullptr) && !takes_round(third, nullptr));
    }
    // Each of them leaves one round. One that polls alone takes the third at the latest.
    unsigned alone = UINT32_MAX;
    unsigned own = UINT32_MAX;
    for (int n = 0; n < 20; ++n) {
        static_cast<void>(polls(placing, &placer));
        own = std::min(own, polls(placing, nullptr));
        alone = std::min(alone, polls(second, nullptr));
    }
    ASSERT_TRUE(own == 1);
    ASSERT_TRUE(alone == 3);

    for (const std::uint32_t endpoint : endpoints)
        ASSERT_TRUE(engines->detach(engine, endpoint) == 0);
    engines->close(engine);
}

TEST(SharedRounds, who_can_be_asked_for_places_takes_them) {
    Scratch scratch;
    Process child = run_child([&] {
        check("shm,path=" + (scratch / "wire") + ",stations=2,station=0");
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(child.wait(), 0);
}

}  // namespace
}  // namespace ulc::test
