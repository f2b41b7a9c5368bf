// SPDX-License-Identifier: BSD-3-Clause
// Clients that connected and say nothing (main/attach/silent_clients.h): one too many ends the
// oldest of them, and none that has spoken.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "main/attach/silent_clients.h"

namespace ulc::daemon {
namespace {

using Silent = SilentClients<int>;
constexpr std::size_t kMax = Silent::kMax;

TEST(SilentClients, one_too_many_ends_the_oldest) {
    Silent silent;
    std::array<int, 3 * kMax> clients{};
    for (std::size_t n = 0; n < clients.size(); ++n)
        EXPECT_EQ(silent.add(clients[n]), n < kMax ? nullptr : &clients[n - kMax]) << n;
}

TEST(SilentClients, one_that_has_spoken_is_not_ended) {
    Silent silent;
    std::array<int, kMax + 2> clients{};
    for (std::size_t n = 0; n < kMax; ++n)
        EXPECT_EQ(silent.add(clients[n]), nullptr) << n;
    silent.remove(clients[0]);
    silent.remove(clients[0]);
    EXPECT_EQ(silent.add(clients[kMax]), nullptr) << "a place became free";
    EXPECT_EQ(silent.add(clients[kMax + 1]), &clients[1]);
}

TEST(SilentClients, any_number_that_speak_is_let_in) {
    Silent silent;
    std::array<int, 10 * kMax> clients{};
    for (int& client : clients) {
        EXPECT_EQ(silent.add(client), nullptr);
        silent.remove(client);
    }
}

}  // namespace
}  // namespace ulc::daemon
