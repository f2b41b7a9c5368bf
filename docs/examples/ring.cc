// SPDX-License-Identifier: BSD-3-Clause
// Each rank adds its number to a message that goes round the ring; rank 0 prints the sum.
//
//     c++ -std=c++20 ring.cc $(pkg-config --cflags --libs libulc) -o ring
//     ulc run -n 4 ./ring
#include <cstdint>
#include <cstdio>
#include <span>
#include <ulc.hpp>

int main() try {
    ulc::Endpoint ep;
    ep.join();
    const std::uint16_t right = (ep.rank() + 1) % ep.size();
    const std::uint16_t left = (ep.rank() + ep.size() - 1) % ep.size();

    std::int64_t total[1] = {0};
    const auto bytes = std::as_writable_bytes(std::span(total));
    if (ep.rank() > 0) ep.receive(left, 1, bytes);
    total[0] += ep.rank();
    ep.send(right, 1, bytes);
    if (ep.rank() == 0) {
        ep.receive(left, 1, bytes);
        std::printf("the ranks 0 to %d add up to %lld\n", ep.size() - 1,
                    static_cast<long long>(total[0]));
    }
    ep.leave();
} catch (const ulc::Error& error) {
    std::fprintf(stderr, "ring: %s\n", error.what());
    return 1;
}
