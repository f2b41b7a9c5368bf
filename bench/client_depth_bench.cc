// SPDX-License-Identifier: BSD-3-Clause
// The cost of a message while many receives and many messages of other tags wait. Against a
// scripted engine. Counted in instructions (bench/count_instructions), since a time depends on what
// else uses the caches: a search through a list costs tens of thousands.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/unit/client/fixture.h"

namespace ulc::client {
namespace {

constexpr unsigned kWaiting = 10'000;
constexpr std::uint64_t kOthers = 1'000'000;  ///< tags of what waits
constexpr std::uint16_t kRanks = 3;

void need(bool met, const char* what) {
    if (met) return;
    std::fprintf(stderr, "not met: %s\n", what);
    std::exit(1);
}

/// The names that the receives of the measured messages give.
struct Named {
    const char* name;
    std::uint16_t from;
    std::uint64_t mask;
};

constexpr Named kNamed[] = {{"exact", 1, UINT64_MAX},
                            {"any_source", ULC_RANK_ANY, UINT64_MAX},
                            {"masked", 1, 0xffff'ffff},
                            {"any_source_masked", ULC_RANK_ANY, 0xffff'ffff}};

/// One endpoint, at which kWaiting receives and as many messages of other tags wait.
struct Crowded {
    Crowded() : requests(kWaiting) {
        engine.form(0, kRanks);
        for (unsigned n = 0; n < kWaiting; ++n) {
            // Every fourth receive is from any source; tags differ in their upper bits too.
            const std::uint16_t from =
                n % 4 == 0 ? ULC_RANK_ANY : static_cast<std::uint16_t>(1 + n % 2);
            need(ulc_receive(ep, from, kOthers + n, UINT64_MAX, nullptr, 0, &requests[n]) == ULC_OK,
                 "a receive that waits");
        }
        for (unsigned n = 0; n < kWaiting; ++n)
            deliver(static_cast<std::uint16_t>(1 + n % 2), 2 * kOthers + n, "other");
    }
    void deliver(std::uint16_t source, std::uint64_t tag, const char* text) {
        engine.deliver_inline(source, tag, text);
        need(ep->poll() == 1, "one message came");
    }

    ScriptedEngine engine{kSmall};
    ulc_endpoint* ep = engine.endpoint.get();
    std::vector<ulc_request> requests;
};

/// An iteration is two messages: the receive of one is posted first, the other arrives first.
void message_among_others(benchmark::State& state, const Named& named) {
    Crowded crowded;
    char buffer[8];
    ulc_request request;
    std::uint64_t tag = 0;
    for ([[maybe_unused]] auto _ : state) {
        for (const bool posted_first : {true, false}) {
            if (!posted_first) crowded.deliver(1, tag, "hello");
            need(ulc_receive(crowded.ep, named.from, tag, named.mask, buffer, sizeof buffer,
                             &request) == ULC_OK,
                 "a receive is posted");
            if (posted_first) crowded.deliver(1, tag, "hello");
            need(ulc_test(crowded.ep, &request, nullptr) == ULC_OK, "the message was received");
            ++tag;
        }
    }
}

}  // namespace
}  // namespace ulc::client

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    const char* const iterations = std::getenv("ULC_BENCH_ITERATIONS");
    for (const auto& named : ulc::client::kNamed) {
        auto* const one = benchmark::RegisterBenchmark(
            (std::string("message_among_others/") + named.name + "/").c_str(),
            [&named](benchmark::State& state) { ulc::client::message_among_others(state, named); });
        if (iterations != nullptr) one->Iterations(std::atoi(iterations));
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
