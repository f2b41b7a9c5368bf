// SPDX-License-Identifier: BSD-3-Clause
// Times and rates as people write them, and words that they mistype.
#include "base/text/quantity.h"

#include <gtest/gtest.h>

#include "base/text/nearest.h"

namespace ulc {
namespace {

constexpr TimeBounds kBounds{.unit = kMicrosecond, .low = kMicrosecond, .high = 3600 * kSecond};

Nanos time(const char* text) {
    Nanos out = -1;
    EXPECT_EQ(read_time(text, kBounds, out), "") << text;
    return out;
}

std::string fault_of_time(const char* text) {
    Nanos out = -1;
    std::string fault = read_time(text, kBounds, out);
    EXPECT_EQ(out, -1) << text;
    return fault;
}

std::uint64_t rate(const char* text) {
    std::uint64_t out = 0;
    EXPECT_EQ(read_rate(text, 1'000'000, 1'000'000'000'000, out), "") << text;
    return out;
}

std::string fault_of_rate(const char* text) {
    std::uint64_t out = 0;
    std::string fault = read_rate(text, 1'000'000, 1'000'000'000'000, out);
    EXPECT_EQ(out, 0U) << text;
    return fault;
}

TEST(Quantity, reads_a_time_in_each_unit) {
    EXPECT_EQ(time("1500"), 1500 * kMicrosecond) << "the option's own unit";
    EXPECT_EQ(time("1500ns"), 1500);
    EXPECT_EQ(time("200us"), 200 * kMicrosecond);
    EXPECT_EQ(time("200 µs"), 200 * kMicrosecond);
    EXPECT_EQ(time("1.5ms"), 1500 * kMicrosecond);
    EXPECT_EQ(time("5 s"), 5 * kSecond);
    EXPECT_EQ(time("2min"), 120 * kSecond);
    EXPECT_EQ(time("1H"), 3600 * kSecond);
}

TEST(Quantity, says_what_is_no_time_and_what_is) {
    EXPECT_EQ(
        fault_of_time("5x"),
        "5x is no time; write a number and ns, us, ms, s, min or h, from 1 us to 1 h; without "
        "a unit it is in us");
    EXPECT_EQ(fault_of_time("2h"), "2h is out of range; write a time from 1 us to 1 h");
    EXPECT_EQ(fault_of_time("0"), "0 us is out of range; write a time from 1 us to 1 h");
    for (const char* text : {"", "s", "-5s", "inf", "nan", "1e999", "5sec", "5s5", "0x5us", " 5"})
        EXPECT_NE(fault_of_time(text).find(" is no time"), std::string::npos) << text;
    EXPECT_NE(fault_of_time("99999999999999999999999h").find(" is no time"), std::string::npos);
}

TEST(Quantity, replaces_a_time_by_its_nanoseconds_and_leaves_what_is_none) {
    std::string text = "2us";
    EXPECT_EQ(replace_time(text, kBounds), "");
    EXPECT_EQ(text, "2000");
    text = "soon";
    EXPECT_NE(replace_time(text, kBounds), "");
    EXPECT_EQ(text, "soon");
}

TEST(Quantity, reads_a_rate_in_each_unit) {
    for (const char* text : {"100000000", "100000000bit", "100000kbit", "100mbit", "100Mbit/s",
                             "100 Mb/s", "100Mbps", "100M", "0.1gbit", "0.0001tbit", "100MBIT"})
        EXPECT_EQ(rate(text), 100'000'000U) << text;
    EXPECT_EQ(rate("2.5G"), 2'500'000'000U);
}

TEST(Quantity, says_what_is_no_rate_and_what_is) {
    EXPECT_EQ(fault_of_rate("fast"),
              "fast is no rate; write bits a second with a unit, as in 100mbit or 1gbit, from "
              "1 mbit to 1 tbit");
    EXPECT_EQ(fault_of_rate("100"),
              "100 is out of range; write bits a second from 1 mbit to 1 tbit, as in 100mbit");
    for (const char* text : {"", "100MB/s", "100MB", "100mbyte", "-1gbit", "1gbit2", "inf"})
        EXPECT_NE(fault_of_rate(text).find(" is no rate"), std::string::npos) << text;
}

TEST(Quantity, writes_times_and_rates_in_whole_numbers) {
    EXPECT_EQ(text_of_time(0), "0");
    EXPECT_EQ(text_of_time(1500 * kMicrosecond), "1500 us");
    EXPECT_EQ(text_of_time(600 * kSecond), "10 min");
    EXPECT_EQ(text_of_rate(100'000'000), "100 mbit");
}

TEST(NearestWord, finds_what_was_meant_and_nothing_else) {
    const std::vector<std::string> words{"run", "cluster", "stat", "trace", "upgrade"};
    EXPECT_EQ(nearest_word("rnu", words), "run");
    EXPECT_EQ(nearest_word("stats", words), "stat");
    EXPECT_EQ(nearest_word("clustr", words), "cluster");
    EXPECT_EQ(nearest_word("upgarde", words), "upgrade");
    EXPECT_EQ(nearest_word("build", words), "");
    EXPECT_EQ(nearest_word("", words), "");
}

}  // namespace
}  // namespace ulc
