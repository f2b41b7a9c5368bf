// SPDX-License-Identifier: BSD-3-Clause
// Ids of announcements: an answer to a message that is over does nothing to a later one, also
// across the wrap of the 12 bits of generation (outbox_announced.cc).
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/client/rendezvous/fixture.h"

namespace ulc::client {
namespace {

constexpr std::uint32_t kGenerations = 1U << 12;

// M-8
TEST_F(ClientRendezvous, ids_repeat_only_after_all_generations_of_an_entry) {
    const std::string text = pattern(10'000);
    std::set<std::uint32_t> given;
    std::uint32_t first_id = 0;
    std::uint32_t late_id = 0;
    std::uint64_t dropped = 0;
    for (std::uint32_t n = 0; n <= kGenerations; ++n) {
        ulc_request request;
        ASSERT_EQ(ulc_send(ep, 1, kTag, text.data(), text.size(), &request), ULC_OK);
        std::string first;
        const std::uint32_t id = announced(first).id;
        if (n == 0) first_id = id;
        if (n == kGenerations) {
            EXPECT_EQ(id, first_id) << "one entry serves all: each message is over before the next";
            return;
        }
        ASSERT_TRUE(given.insert(id).second) << "message " << n;
        if (n > 0) {
            ask(1, late_id, text.size());
            ASSERT_EQ(ep->messages().control_dropped(), ++dropped) << "message " << n;
            ASSERT_EQ(test(request), ULC_ERR_AGAIN) << "a late answer asks for another message";
        }
        ask(1, id, text.size());
        std::uint64_t tag = 0;
        while (first.size() < text.size())
            first += taken(tag);
        ep->poll();
        ASSERT_EQ(first, text);
        ASSERT_EQ(test(request), ULC_OK);
        late_id = id;
    }
}

}  // namespace
}  // namespace ulc::client
