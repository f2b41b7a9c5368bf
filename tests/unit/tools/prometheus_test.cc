// SPDX-License-Identifier: BSD-3-Clause
// The text format of Prometheus: families, levels and escapes.
#include "tools/ulc/watch/prometheus.h"

#include <gtest/gtest.h>

#include <array>

#include "base/counters.h"

namespace ulc::tools {
namespace {

TEST(Prometheus, shows_a_counter_with_its_help_type_and_engine) {
    const std::array metrics{Metric{"rx_frames", "received from the port", 18446744073709551615U}};
    EXPECT_EQ(prometheus_text("/run/ulc/engine.sock", 3, metrics),
              "# HELP ulc_rx_frames_total received from the port\n"
              "# TYPE ulc_rx_frames_total counter\n"
              "ulc_rx_frames_total{engine=\"/run/ulc/engine.sock\"} 18446744073709551615\n"
              "# HELP ulc_endpoints endpoints that are open\n"
              "# TYPE ulc_endpoints gauge\n"
              "ulc_endpoints{engine=\"/run/ulc/engine.sock\"} 3\n");
}

TEST(Prometheus, shows_a_level_as_a_gauge) {
    const std::array metrics{Metric{"multicast_addresses", "that ports pass now", 7}};
    const std::string text = prometheus_text("e", 0, metrics);
    EXPECT_NE(text.find("# TYPE ulc_multicast_addresses gauge\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("ulc_multicast_addresses_total"), std::string::npos) << text;
}

TEST(Prometheus, shows_each_level_of_each_endpoint) {
    std::array<abi::EndpointRow, 2> rows{};
    rows[0].endpoint = 0x11;
    rows[0].pid = 7;
    rows[0].frames_unacked = 3;
    rows[1].endpoint = 0x12;
    rows[1].rtt_ns_max = 2500;
    rows[1].handler = 1U << 24 | 7;  // port 7
    rows[1].handler_since_ms = 1000;
    rows[0].repairs_rank = rows[0].asks_rank = rows[0].asked_rank = abi::kNoRowRank;
    rows[0].rtt_rank = rows[0].unacked_rank = abi::kNoRowRank;
    rows[0].repairs_sent = UINT32_MAX;
    rows[1].repairs_rank = 9;
    rows[1].repairs_max = 8;
    const std::string text = prometheus_text("e", 2, {}, rows, 3500);
    EXPECT_NE(text.find("# TYPE ulc_endpoint_repairs_sent_total counter\n"
                        "ulc_endpoint_repairs_sent_total{engine=\"e\",endpoint=\"0x11\",pid=\"7\"} "
                        "4294967295\n"),
              std::string::npos)
        << text;
    // A rank is a value and no label; an endpoint without one has no sample.
    EXPECT_NE(text.find("# TYPE ulc_endpoint_repairs_peer gauge\n"
                        "ulc_endpoint_repairs_peer{engine=\"e\",endpoint=\"0x12\",pid=\"0\"} 9\n"
                        "# HELP"),
              std::string::npos)
        << text;
    EXPECT_NE(
        text.find("ulc_endpoint_repairs_peer_sent{engine=\"e\",endpoint=\"0x12\",pid=\"0\"} 8\n"),
        std::string::npos)
        << text;
    EXPECT_NE(
        text.find("ulc_endpoint_handler_seconds{engine=\"e\",endpoint=\"0x11\",pid=\"7\"} 0\n"
                  "ulc_endpoint_handler_seconds{engine=\"e\",endpoint=\"0x12\",pid=\"0\"} 2.5\n"),
        std::string::npos)
        << text;
    EXPECT_NE(
        text.find("# TYPE ulc_endpoint_frames_unacked gauge\n"
                  "ulc_endpoint_frames_unacked{engine=\"e\",endpoint=\"0x11\",pid=\"7\"} 3\n"
                  "ulc_endpoint_frames_unacked{engine=\"e\",endpoint=\"0x12\",pid=\"0\"} 0\n"),
        std::string::npos)
        << text;
    EXPECT_NE(
        text.find("ulc_endpoint_rtt_seconds{engine=\"e\",endpoint=\"0x12\",pid=\"0\"} 2.5e-06\n"),
        std::string::npos)
        << text;
}

TEST(Prometheus, escapes_what_would_end_a_label_or_a_line) {
    const std::array metrics{Metric{"naps", "one \\ two\nthree \"four\"", 1}};
    const std::string text = prometheus_text("a\"b\\c\nd", 0, metrics);
    EXPECT_NE(text.find("# HELP ulc_naps_total one \\\\ two\\nthree \"four\"\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("ulc_naps_total{engine=\"a\\\"b\\\\c\\nd\"} 1\n"), std::string::npos)
        << text;
}

TEST(Prometheus, has_a_legal_name_for_each_counter) {
    for (const CounterInfo& info : kCounterInfo)
        for (const char letter : info.id)
            EXPECT_TRUE((letter >= 'a' && letter <= 'z') || letter == '_') << info.id;
}

}  // namespace
}  // namespace ulc::tools
