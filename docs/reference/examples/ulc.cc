// SPDX-License-Identifier: BSD-3-Clause
// The example of ulc.hpp in the reference. The test reference_of_headers compiles it.
#include <array>
#include <cstdio>
#include <span>
#include <ulc.hpp>

// [ulc_cpp]
int main() try {
    ulc::Endpoint ep;
    ep.join();
    std::array<double, 4> numbers{};
    if (ep.rank() == 0) {
        ep.multicast(ep.world(), 7, std::as_bytes(std::span(numbers)));
    } else {
        const ulc::Received got = ep.receive(0, 7, std::as_writable_bytes(std::span(numbers)));
        std::printf("%zu bytes from rank %u\n", got.length, unsigned{got.source});
    }
    ep.leave();
    return 0;
} catch (const ulc::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
// [ulc_cpp]
