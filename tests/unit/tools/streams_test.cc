// SPDX-License-Identifier: BSD-3-Clause
// The page of streams: pages that are refused, the table and the peers that it names.
#include "tools/ulc/watch/streams.h"

#include <gtest/gtest.h>

#include <cstring>

#include "abi/attach.h"

namespace ulc::tools {
namespace {

abi::StreamRow row(std::uint32_t peer) {
    abi::StreamRow out{};
    out.endpoint = 0x11;
    out.pid = 7;
    out.rank = 3;
    out.peer = peer;
    return out;
}

std::vector<unsigned char> page_of(const std::vector<abi::StreamRow>& rows) {
    abi::StreamPageHeader header{};
    header.magic = abi::kStreamPageMagic;
    header.version = abi::kStreamPageVersion;
    header.count = header.all = static_cast<std::uint32_t>(rows.size());
    header.engine_pid = 42;
    std::vector<unsigned char> out(sizeof header + rows.size() * sizeof(abi::StreamRow));
    std::memcpy(out.data(), &header, sizeof header);
    if (!rows.empty())
        std::memcpy(out.data() + sizeof header, rows.data(), out.size() - sizeof header);
    return out;
}

abi::StreamPageHeader& header_of(std::vector<unsigned char>& page) {
    return *reinterpret_cast<abi::StreamPageHeader*>(page.data());
}

/// Returns why the page is refused; empty: it is not.
std::string refusal(const std::vector<unsigned char>& page) {
    StreamPage out;
    std::string error;
    const bool taken = parse_streams(page, &out, &error);
    EXPECT_EQ(taken, error.empty());
    return error;
}

bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(Streams, are_taken_from_a_page) {
    StreamPage out;
    std::string error;
    ASSERT_TRUE(parse_streams(page_of({row(1), row(2)}), &out, &error)) << error;
    EXPECT_EQ(out.engine_pid, 42U);
    ASSERT_EQ(out.rows.size(), 2U);
    EXPECT_EQ(out.rows[1].peer, 2U);
    EXPECT_EQ(refusal(page_of({})), "");
}

TEST(Streams, of_a_damaged_page_are_refused) {
    std::vector<unsigned char> page = page_of({row(1), row(2)});
    EXPECT_TRUE(says(refusal({}), "malformed"));
    EXPECT_TRUE(says(refusal({page.begin(), page.begin() + 12}), "malformed"));
    EXPECT_TRUE(says(refusal({page.begin(), page.end() - 1}), "malformed"));
    header_of(page).count = 3;
    header_of(page).all = 3;
    EXPECT_TRUE(says(refusal(page), "malformed"));
    header_of(page).count = UINT32_MAX;
    header_of(page).all = UINT32_MAX;
    EXPECT_TRUE(says(refusal(page), "malformed"));
    header_of(page).count = 2;
    header_of(page).all = 1;
    EXPECT_TRUE(says(refusal(page), "malformed"));
    header_of(page).all = 2;
    EXPECT_EQ(refusal(page), "");
    header_of(page).version = 9;
    EXPECT_TRUE(says(refusal(page), "has version 9, this ulc reads version 1; use the ulc"));
    header_of(page).magic = 0;
    EXPECT_TRUE(says(refusal(page), "malformed"));
}

TEST(Streams, are_shown_with_the_peers_that_stand_out) {
    StreamPage page;
    page.all = 3;
    page.rows = {row(0), row(1), row(2)};
    page.rows[1].repairs_sent = 21;
    page.rows[2].requests_received = 22;
    page.rows[0].requests_sent = 23;
    page.rows[2].rtt_ns = 12'345;
    page.rows[0].unacked = 25;
    page.rows[0].state = static_cast<std::uint32_t>(abi::StreamState::kGone);
    page.rows[1].state = 77;
    const std::string text = streams_text(page);
    EXPECT_TRUE(says(text, "      0x11        7     3     1 unknown        21         0         0"))
        << text;
    EXPECT_TRUE(says(text, "     2    open         0        22         0      12.3        0\n"));
    EXPECT_TRUE(says(text, "     0    gone")) << text;
    EXPECT_TRUE(says(text, "loses most: peer 1 of endpoint 0x11, 21 packets repeated\n"));
    EXPECT_TRUE(says(text, " asks most: peer 2 of endpoint 0x11, 22 requests\n"));
    EXPECT_TRUE(says(text, "is asked most: peer 0 of endpoint 0x11, 23 requests\n"));
    EXPECT_TRUE(says(text, "slowest: peer 2 of endpoint 0x11, 12345 ns there and back\n"));
    EXPECT_TRUE(says(text, "least: peer 0 of endpoint 0x11, 25 packets unacknowledged\n"));
    EXPECT_FALSE(says(text, "left out"));
}

TEST(Streams, that_are_left_out_are_counted_and_none_is_said) {
    StreamPage page;
    EXPECT_TRUE(says(streams_text(page), "no endpoint of this user"));
    page.rows = {row(1)};
    page.all = 9;
    const std::string text = streams_text(page);
    EXPECT_TRUE(says(text, "(8 more are left out)"));
    EXPECT_FALSE(says(text, "most")) << "all figures are 0";
}

TEST(Streams, of_a_link_have_no_rank) {
    StreamPage page;
    page.all = 2;
    page.rows = {row(1), row(2)};
    page.rows[0].rank = abi::kNoRowRank;
    page.rows[1].rtt_ns = 99;
    EXPECT_TRUE(says(streams_text(page), "        7     -     1"));
    const std::string json = streams_json(page);
    EXPECT_TRUE(says(json, "\"streams_in_all\":2"));
    EXPECT_TRUE(says(json, "\"rtt_ns\":99"));
    EXPECT_EQ(json.find("\"rank\":3"), json.rfind("\"rank\":"));
}

}  // namespace
}  // namespace ulc::tools
