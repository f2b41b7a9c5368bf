// SPDX-License-Identifier: BSD-3-Clause
// A client on a scripted engine, and messages whose bytes show where they belong. Shared by the
// tests of the endpoint.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "tests/unit/client/scripted_engine.h"

namespace ulc::client {

inline constexpr abi::RegionSizes kSmall{64, 64, 64 * 1024, 64 * 1024};

inline std::string pattern(std::size_t octets) {
    std::string text(octets, '\0');
    for (std::size_t i = 0; i < octets; ++i)
        text[i] = static_cast<char>((i * 131 + i / 251) & 0xff);
    return text;
}

struct ClientTest : testing::Test {
    ScriptedEngine engine{kSmall};
    ulc_endpoint* ep = engine.endpoint.get();

    int test(ulc_request& request, ulc_status* status = nullptr) {
        return ulc_test(ep, &request, status);
    }
    /// Takes all chunks of one message and answers each. Returns what the engine read.
    std::string drain_message(ulc_request* request, unsigned* chunks = nullptr) {
        std::string read;
        for (int round = 0; round < 100'000; ++round) {
            while (auto record = engine.take_any()) {
                EXPECT_EQ(record->kind, abi::SubmitKind::kSend);
                const abi::Block& block = record->body.block;
                EXPECT_EQ((record->flags & abi::kSubmitFirst) != 0, read.empty());
                EXPECT_EQ(block.message_offset, read.size());
                read.append(
                    reinterpret_cast<const char*>(engine.region.tx(block.offset, block.length)),
                    block.length);
                if (chunks != nullptr) ++*chunks;
                engine.send_done(record->cookie);
                if ((record->flags & abi::kSubmitLast) != 0) {
                    EXPECT_EQ(read.size(), block.message_length);
                    ep->poll();
                    return read;
                }
            }
            ep->poll();
        }
        ADD_FAILURE() << "the message does not end, state "
                      << (request != nullptr ? test(*request) : 0);
        return read;
    }
};

}  // namespace ulc::client
