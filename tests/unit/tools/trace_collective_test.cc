// SPDX-License-Identifier: BSD-3-Clause
// The critical path of a collective through a repair, from the traces of three engines whose clocks
// differ. Operations stay apart whose numbers exceed the bits of a tag.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tools/ulc/trace/collective.h"
#include "wire/build.h"

namespace ulc::tools {
namespace {

using abi::TraceKind;

constexpr std::uint32_t kGroup = 0x80000005;

Mac mac_of(unsigned node) { return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(node)}}; }

std::uint64_t tag_of(std::uint64_t number) {
    return std::uint64_t{1} << 63 | std::uint64_t{kGroup & 0x7fffffff} << 31 | number << 19 | 1;
}

struct Sent {
    unsigned rank = 0;
    bool to_group = false;
    std::uint32_t seq = 0;
    std::uint8_t flags = wire::kFlagFirst | wire::kFlagLast;
    std::uint64_t tag = 0;  ///< 0: none
};

class TraceCollective : public testing::Test {
protected:
    static constexpr unsigned kNodes = 3;
    static constexpr Nanos kBehind = 5 * kSecond;  ///< the clock of node 2

    /// A frame leaves its sender and arrives at nodes, in microseconds.
    void out(Nanos at, const Sent& frame) { record(frame.rank, at, TraceKind::kFrameOut, frame); }
    void in(unsigned node, Nanos at, const Sent& frame) {
        record(node, at, TraceKind::kFrameIn, frame);
    }
    Collectives collectives() {
        Collectives all;
        for (unsigned node = 0; node < kNodes; ++node)
            all.add(wire::kEtherTypeDefault, kSecond, records_[node]);
        return all;
    }
    /// The group's last member waits for a repair: ready, two packets to all, done.
    void play(std::uint64_t number, Nanos start, Nanos repair) {
        const Sent ready{.rank = 1, .seq = seq_, .tag = tag_of(number)};
        const Sent first{.rank = 0,
                         .to_group = true,
                         .seq = 2 * seq_,
                         .flags = wire::kFlagFirst,
                         .tag = tag_of(number)};
        const Sent second{
            .rank = 0, .to_group = true, .seq = 2 * seq_ + 1, .flags = wire::kFlagLast};
        const Sent done{.rank = 2, .seq = seq_, .tag = tag_of(number)};
        ++seq_;
        out(start, ready);
        in(0, start + 3, ready);
        out(start + 10, first);
        out(start + 11, second);
        for (const unsigned node : {1U, 2U})
            in(node, start + 13, first);
        in(1, start + 14, second);
        out(start + 11 + repair, second);
        in(2, start + 14 + repair, second);
        out(start + 16 + repair, done);
        in(0, start + 19 + repair, done);
    }

    std::vector<TimedRecord> records_[kNodes];
    std::uint32_t seq_ = 100;

private:
    void record(unsigned node, Nanos at, TraceKind kind, const Sent& sent) {
        std::byte bytes[1514]{};
        const bool is_first = (sent.flags & wire::kFlagFirst) != 0;
        const std::size_t octets = wire::build_data(
            bytes,
            {.destination = mac_of(9),
             .source = mac_of(sent.rank),
             .type = sent.to_group ? wire::FrameType::kMcast : wire::FrameType::kData,
             .flags = static_cast<std::uint8_t>(sent.flags | (sent.tag != 0 ? wire::kFlagTag : 0)),
             .handle = sent.to_group ? kGroup : 7,
             .rank = static_cast<Rank>(sent.rank),
             .seq = Seq{sent.seq}},
            {.tag = sent.tag, .message_length = is_first ? 200U : 0U}, 100);
        TimedRecord one;
        one.at = (at + 1000) * kMicrosecond - (node == 2 ? kBehind : 0);
        one.kind = kind;
        one.amount = static_cast<std::uint32_t>(octets);
        one.kept = static_cast<std::uint16_t>(std::min(octets, abi::kTraceFrameBytes));
        std::memcpy(one.bytes, bytes, one.kept);
        records_[node].push_back(one);
    }
};

TEST_F(TraceCollective, the_path_leads_through_the_repair_and_over_clocks_that_differ) {
    play(7, 0, 29);
    Collectives all = collectives();
    const auto found = all.find();
    ASSERT_EQ(found.size(), 1U);
    const Collective& one = found[0];
    EXPECT_EQ(one.group, kGroup);
    EXPECT_EQ(one.number, 7);
    EXPECT_EQ(one.took, 48 * kMicrosecond);
    EXPECT_EQ(one.frames, 5U);
    EXPECT_EQ(one.repairs, 1U);

    struct Step {
        Nanos at, took;
        bool on_wire;
        std::size_t node;
        unsigned rank;
        Nanos repaired;
        bool operator==(const Step&) const = default;
    };
    const std::vector<Step> expected = {{0, 0, false, 1, 1, 0},  {3, 3, true, 0, 1, 0},
                                        {11, 8, false, 0, 0, 0}, {43, 32, true, 2, 0, 29},
                                        {45, 2, false, 2, 2, 0}, {48, 3, true, 0, 2, 0}};
    std::vector<Step> path;
    for (const PathStep& step : all.path(one))
        path.push_back({step.at / kMicrosecond, step.took / kMicrosecond, step.on_wire, step.node,
                        step.rank, step.repaired / kMicrosecond});
    EXPECT_EQ(path, expected);

    const auto starts = all.starts(one);
    ASSERT_EQ(starts.size(), 3U);
    EXPECT_EQ(starts[0].rank, 1U);
    EXPECT_EQ(starts[2].rank, 2U);
    EXPECT_EQ(starts[2].at, 45 * kMicrosecond);

    const std::string text = text_of(all, one, {"a.trace", "b.trace", "c.trace"});
    for (const char* part :
         {"collective 7 of group 0x80000005: 48.0 µs, 5 frames, 1 of them repairs",
          "arrival skew 45.0 µs: rank 2 was the last to send",
          "+32.0  wire:", "sent again 29.0 µs after the first sending", "(c.trace)"})
        EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST_F(TraceCollective, operations_are_told_apart_beyond_the_bits_of_a_tag) {
    play(4095, 0, 5);
    play(0, 100, 50);
    play(1, 300, 20);
    Collectives all = collectives();
    const auto found = all.find();
    ASSERT_EQ(found.size(), 3U);
    const std::vector<std::int64_t> numbers = {found[0].number, found[1].number, found[2].number};
    EXPECT_EQ(numbers, (std::vector<std::int64_t>{4096, 4097, 4095})) << "longest first";
    EXPECT_EQ(found[0].took, 69 * kMicrosecond);
}

TEST_F(TraceCollective, other_messages_and_lost_traces_make_no_collective) {
    const Sent other{.rank = 1, .seq = 5, .tag = 3};
    out(0, other);
    in(0, 3, other);
    const Sent alone{.rank = 1, .seq = 6, .tag = tag_of(9)};
    out(10, alone);  // the trace of its receiver is not there
    Collectives all = collectives();
    EXPECT_TRUE(all.find().empty());
}

}  // namespace
}  // namespace ulc::tools
