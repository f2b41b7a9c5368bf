// SPDX-License-Identifier: BSD-3-Clause
// Handlers that do not return, from the words that clients publish. A handler is named after it has
// run for a second. Words that name no handler are ignored, and the clock may wrap.
#include "tools/ulc/watch/handlers.h"

#include <gtest/gtest.h>

#include <vector>

namespace ulc::tools {
namespace {

abi::EndpointRow row(std::uint64_t word, std::uint32_t pid = 12) {
    abi::EndpointRow out{};
    out.endpoint = 0x21;
    out.pid = pid;
    out.rank = 3;
    out.handler = static_cast<std::uint32_t>(word >> 32);
    out.handler_since_ms = static_cast<std::uint32_t>(word);
    return out;
}

TEST(Handlers, names_those_that_have_run_for_a_second) {
    const std::vector rows{row(0), row(abi::handler_word(abi::HandlerKind::kPort, 7, 5001), 13),
                           row(abi::handler_word(abi::HandlerKind::kPort, 8, 5000), 14),
                           row(abi::handler_word(abi::HandlerKind::kExpress, 4095, 1000), 15)};
    const std::vector<RunningHandler> found = long_handlers(rows, 6000);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].pid, 14U);
    EXPECT_EQ(found[0].number, 8U);
    EXPECT_EQ(found[0].ms, 1000U);
    EXPECT_EQ(word_of(found[0].kind), "port");
    EXPECT_EQ(sentence_of(found[0]),
              "process 14 (rank 3, endpoint 0x21): the handler of port 8 has not returned for 1.0 "
              "s; its messages wait; look at it with: gdb -p 14");
    EXPECT_EQ(found[1].number, 4095U);
    EXPECT_EQ(word_of(found[1].kind), "express");
    EXPECT_NE(sentence_of(found[1]).find("message handler number 4095 has not returned for 5.0 s"),
              std::string::npos)
        << sentence_of(found[1]);
}

TEST(Handlers, ignores_words_that_name_no_handler) {
    const std::vector rows{
        row(abi::handler_word(abi::HandlerKind::kPort, 256, 0)),
        row(abi::handler_word(abi::HandlerKind::kExpress, 4096, 0)),
        row(abi::handler_word(abi::HandlerKind{3}, 0, 0)),
        row(abi::handler_word(abi::HandlerKind{255}, 0xffff, 0)),
        row(abi::handler_word(abi::HandlerKind::kNone, 9, 0)),
        row(abi::handler_word(abi::HandlerKind::kPort, 1, 0) | std::uint64_t{1} << 48)};
    EXPECT_TRUE(long_handlers(rows, 1'000'000).empty());
}

TEST(Handlers, survives_the_wrap_of_the_clock_and_instants_to_come) {
    const auto port = [](std::uint32_t since, std::uint32_t now) {
        return handler_of(row(abi::handler_word(abi::HandlerKind::kPort, 1, since)), now).ms;
    };
    EXPECT_EQ(port(UINT32_MAX - 999, 1000), 2000U);
    EXPECT_EQ(port(1000, 997), 0U);
    EXPECT_EQ(port(0, 3'000'000'000), 3'000'000'000U);
}

}  // namespace
}  // namespace ulc::tools
