// SPDX-License-Identifier: BSD-3-Clause
// The text of `ulc top` from two samples.
#include "tools/ulc/watch/top_view.h"

#include <gtest/gtest.h>

namespace ulc::tools {
namespace {

abi::EndpointRow row(std::uint32_t endpoint, std::uint32_t pid) {
    abi::EndpointRow out{};
    out.endpoint = endpoint;
    out.pid = pid;
    out.rank = abi::kNoRowRank;
    out.rtt_rank = out.repairs_rank = out.asks_rank = abi::kNoRowRank;
    return out;
}

TopSample at(double seconds) {
    TopSample out;
    out.seconds = seconds;
    out.engine_pid = 42;
    out.socket = "/run/e";
    return out;
}

bool says(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(TopView, shows_gains_a_second_and_not_sums) {
    TopSample before = at(10);
    TopSample now = at(12);
    before.counters = {
        {"rx_frames", 1000}, {"data_sent", 100}, {"repair_unicast", 5}, {"repair_multicast", 1}};
    now.counters = {
        {"rx_frames", 1500}, {"data_sent", 300}, {"repair_unicast", 9}, {"repair_multicast", 3}};
    const std::string text = top_text(before, now, {});
    EXPECT_TRUE(says(text, "rx 250 frames/s")) << text;
    EXPECT_TRUE(says(text, "repairs 3/s (3.00 % of packets)")) << text;
}

TEST(TopView, sums_all_reasons_to_drop) {
    TopSample before = at(0);
    TopSample now = at(1);
    before.counters = {{"drop_crc", 0}, {"drop_short", 0}, {"dropped_not", 0}};
    now.counters = {{"drop_crc", 3}, {"drop_short", 4}, {"dropped_not", 100}};
    EXPECT_TRUE(says(top_text(before, now, {}), "dropped 7/s"));
}

TEST(TopView, has_a_line_of_frames_that_are_not_taken_or_cannot_be_sent_when_there_are_some) {
    TopSample before = at(0);
    TopSample now = at(2);
    before.counters = {{"tx_unsendable", 1}, {"drop_vlan", 4}, {"drop_too_long", 9}};
    now.counters = before.counters;
    EXPECT_FALSE(says(top_text(before, now, {}), "frames   "));
    now.counters["tx_unsendable"] += 6;
    now.counters["drop_vlan"] += 8;
    const std::string text = top_text(before, now, {});
    EXPECT_TRUE(says(text, "frames   not sendable 3/s, of a VLAN 4/s\n")) << text;
}

TEST(TopView, names_changes_of_an_interface_for_as_long_as_the_engine_runs) {
    TopSample before = at(0);
    TopSample now = at(1);
    EXPECT_FALSE(says(top_text(before, now, {}), "MTU"));
    before.counters = now.counters = {{"mtu_falls", 2}, {"mac_changes", 0}};
    EXPECT_TRUE(says(top_text(before, now, {}), "MTU of an interface fell 2 times, MAC changed 0"));
}

TEST(TopView, counts_cursors_across_their_wrap) {
    TopSample before = at(0);
    TopSample now = at(1);
    before.rows = {row(0x11, 7)};
    now.rows = before.rows;
    before.rows[0].records_taken = UINT32_MAX - 9;
    now.rows[0].records_taken = 23;
    const std::string text = top_text(before, now, {});
    EXPECT_TRUE(says(text, "      33         0")) << text;
}

TEST(TopView, gives_a_restarted_engine_or_a_new_client_no_rate) {
    TopSample before = at(0);
    TopSample now = at(1);
    before.counters = {{"rx_frames", 1000}};
    now.counters = {{"rx_frames", 3}};
    before.rows = {row(0x11, 7)};
    now.rows = {row(0x11, 8)};
    now.rows[0].records_taken = 77;
    EXPECT_FALSE(says(top_text(before, now, {}), "77"));
    now.engine_pid = 43;
    EXPECT_TRUE(says(top_text(before, now, {}), "rx 0 frames/s"));
}

TEST(TopView, sorts_by_each_column_largest_first) {
    TopSample sample = at(1);
    sample.rows = {row(0x11, 100), row(0x12, 200)};
    const auto first = [&](TopOrder order) {
        const std::string text = top_text(sample, sample, {.order = order});
        return text.find("0x11") < text.find("0x12") ? 0x11 : 0x12;
    };
    EXPECT_EQ(first(TopOrder::kRate), 0x11);  // equal: as the engine lists them
    EXPECT_EQ(first(TopOrder::kPid), 0x12);
    for (const auto& [order, member] :
         {std::pair{TopOrder::kUnacked, &abi::EndpointRow::frames_unacked},
          std::pair{TopOrder::kBacklog, &abi::EndpointRow::frames_undelivered},
          std::pair{TopOrder::kUnread, &abi::EndpointRow::records_unread},
          std::pair{TopOrder::kRoundTrip, &abi::EndpointRow::rtt_ns_max}}) {
        sample.rows[1].*member = 5;
        EXPECT_EQ(first(order), 0x12);
        sample.rows[0].*member = 6;
        EXPECT_EQ(first(order), 0x11);
    }
}

TEST(TopView, shows_and_sorts_by_repairs_and_names_who_loses_and_asks) {
    TopSample before = at(0);
    TopSample now = at(2);
    before.rows = {row(0x11, 100), row(0x12, 200)};
    before.rows[1].repairs_sent = UINT32_MAX;
    now.rows = before.rows;
    now.rows[1].repairs_sent = 5;  // 6 in 2 s, across the wrap
    now.rows[1].repairs_rank = 4;
    now.rows[1].requests_received = 16;
    now.rows[1].asks_rank = 5;
    const std::string text = top_text(before, now, {.order = TopOrder::kRepairs});
    EXPECT_TRUE(says(text, "        3     4        8     5\n")) << text;
    EXPECT_TRUE(says(text, "        0     -        0     -\n")) << text;
    EXPECT_LT(text.find("0x12"), text.find("0x11"));
}

TEST(TopView, names_the_slowest_client_by_what_waits_for_it) {
    TopSample sample = at(1);
    sample.rows = {row(0x11, 100), row(0x12, 200), row(0x13, 300)};
    EXPECT_TRUE(says(top_text(sample, sample, {}), "no client lags"));
    sample.rows[0].records_unread = 2;
    sample.rows[1].frames_undelivered = 9;
    EXPECT_TRUE(says(top_text(sample, sample, {}), "client 200: 9 frames wait for it"));
    sample.rows[2].client_blocks = 1;  // outweighs any number
    EXPECT_TRUE(says(top_text(sample, sample, {}), "client 300: "));
    EXPECT_TRUE(says(top_text(sample, sample, {}), "its memory is full"));
}

TEST(TopView, shows_rank_and_round_trip_if_there_are_any) {
    TopSample sample = at(1);
    sample.rows = {row(0x11, 100)};
    EXPECT_FALSE(says(top_text(sample, sample, {}), "3/8"));
    sample.rows[0].rank = 3;
    sample.rows[0].size = 8;
    sample.rows[0].rtt_ns_max = 12'345;
    sample.rows[0].rtt_rank = 6;
    const std::string text = top_text(sample, sample, {});
    EXPECT_TRUE(says(text, "3/8")) << text;
    EXPECT_TRUE(says(text, "12.3     6 ")) << text;
}

TEST(TopView, fits_the_terminal) {
    TopSample sample = at(1);
    for (std::uint32_t i = 0; i < 100; ++i)
        sample.rows.push_back(row(i, i));
    const TopStyle style{.keys = true, .lines_max = 20, .columns_max = 40};
    const std::string text = top_text(sample, sample, style);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 20);
    EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 19) << "an endpoint has two lines";
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        EXPECT_LE(end - begin, 40U);
        begin = end + 1;
    }
    EXPECT_TRUE(says(text, "q quit")) << text;
}

TEST(TopView, shows_each_column_and_value_on_a_terminal_of_80_by_24) {
    TopSample before = at(1);
    before.rows = {row(0xfedcba98, 4194304), row(0x12, 7)};
    TopSample now = before;
    now.seconds = 2;
    abi::EndpointRow& busy = now.rows[0];
    busy.uid = 1000;
    busy.rank = 511;
    busy.size = 512;
    busy.rtt_ns_max = 99'999'900;
    busy.rtt_rank = 510;
    busy.repairs_sent = 123;
    busy.repairs_rank = 509;
    busy.requests_received = 45;
    busy.asks_rank = 508;
    now.counters = {{"held_by_slow", 7'000'000}, {"client_stalled", 8'000'000}};
    before.counters = {{"held_by_slow", 0}, {"client_stalled", 0}};
    const std::string text =
        top_text(before, now, {.keys = true, .lines_max = 24, .columns_max = 80});
    for (const char* part :
         {" RTT-us  PEER REPAIR/s LOSES  ASKED/s  ASKS\n",
          " 99999.9   510      123   509       45   508\n", "0xfedcba98 4194304   1000  511/512 ",
          "missed by the port 0/s", "dropped 0/s\n", "stalled by clients 8000.0k/s",
          "held up by slow members 7000.0k/s\n", "p pid\n"})
        EXPECT_TRUE(says(text, part)) << part << "\n" << text;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 24);
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
        EXPECT_LE(text.find('\n', begin) - begin, 80U) << text;
}

TEST(TopView, colours_only_when_asked) {
    TopSample sample = at(1);
    EXPECT_FALSE(says(top_text(sample, sample, {}), "\x1b"));
    EXPECT_TRUE(says(top_text(sample, sample, {.colours = true}), "\x1b[1m"));
}

TEST(TopView, knows_each_order_by_word_and_key) {
    EXPECT_EQ(order_of_word("rtt"), TopOrder::kRoundTrip);
    EXPECT_EQ(order_of_key('t'), TopOrder::kRoundTrip);
    EXPECT_FALSE(order_of_word("colour").has_value());
    EXPECT_FALSE(order_of_key('q').has_value());
    EXPECT_TRUE(says(order_words(), "backlog"));
}

}  // namespace
}  // namespace ulc::tools
