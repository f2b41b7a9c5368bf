#include "coll/selection.h"

#include <charconv>

#include "base/check.h"

namespace ulc::coll {
namespace {

constexpr std::uint16_t kAnyRanks = UINT16_MAX;
constexpr std::uint64_t kAnyOctets = UINT64_MAX;
/// Long enough that a segment's fixed cost vanishes, short enough that eight of them fit a receiver's memory.
constexpr std::uint64_t kSegmentDefault = 64 * 1024;

// The last line of each operation matches everything.
constexpr Rule kRules[] = {
    {Op::kBarrier, 32, kAnyOctets, "gather_broadcast", "two latencies; few senders hit one port"},
    {Op::kBarrier, kAnyRanks, kAnyOctets, "dissemination",
     "no port takes more than one frame a round"},
    {Op::kBroadcast, kAnyRanks, kAnyOctets, "multicast", "each byte is on the wire once"},
    {Op::kGather, kAnyRanks, kAnyOctets, "direct", "the root's port carries all in any case"},
    {Op::kGatherv, kAnyRanks, kAnyOctets, "direct", "the root's port carries all in any case"},
    {Op::kScatter, kAnyRanks, kAnyOctets, "packed", "fewest frames from the root (URTP §4.4)"},
    {Op::kScatterv, kAnyRanks, kAnyOctets, "direct", "needs no lengths of others"},
    {Op::kAllgather, 4, kAnyOctets, "concurrent:4", "URTP figure 8: k near 4 is best on 4 nodes"},
    {Op::kAllgather, 8, kAnyOctets, "concurrent:2", "k falls as the ranks grow (URTP §4.3)"},
    {Op::kAllgather, kAnyRanks, kAnyOctets, "concurrent:1",
     "bounds what all sources have under way"},
    {Op::kAlltoall, kAnyRanks, 64, "multicast", "ranks frames instead of their square"},
    {Op::kAlltoall, kAnyRanks, kAnyOctets, "pairwise:4", "no port takes more than four blocks"},
    {Op::kAlltoallv, kAnyRanks, kAnyOctets, "pairwise:4", "no port takes more than four blocks"},
    {Op::kReduce, kAnyRanks, 1024, "flat", "one latency"},
    {Op::kReduce, kAnyRanks, 65536, "binomial", "log2(ranks) latencies"},
    {Op::kReduce, kAnyRanks, kAnyOctets, "chain@16384", "each port carries the vector once"},
    {Op::kAllreduce, kAnyRanks, 1024, "multicast", "one latency"},
    {Op::kAllreduce, kAnyRanks, 16384, "binomial_multicast", "log2(ranks) + 1 latencies"},
    {Op::kAllreduce, kAnyRanks, kAnyOctets, "pairwise_multicast:2", "twice the wire"},
    {Op::kReduceScatter, kAnyRanks, 1024, "multicast", "one latency"},
    {Op::kReduceScatter, kAnyRanks, kAnyOctets, "pairwise:4", "each port carries the vector once"},
    {Op::kScan, kAnyRanks, 1024, "multicast", "one latency"},
    {Op::kScan, kAnyRanks, kAnyOctets, "chain@16384", "each port carries the vector once"},
    {Op::kExscan, kAnyRanks, 1024, "multicast", "one latency"},
    {Op::kExscan, kAnyRanks, kAnyOctets, "chain@16384", "each port carries the vector once"},
};

/// The digits of `text` up to its end. False: there are other characters, none, or the value is 0.
template <typename T>
[[nodiscard]] bool parse_positive(std::string_view text, T& out) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && out > 0;
}

}  // namespace

Err parse_choice(Op op, std::string_view text, Choice& out) noexcept {
    out = {.algorithm = nullptr, .segment = kSegmentDefault, .concurrent = 1};
    const std::size_t at = text.find('@');
    if (at != std::string_view::npos) {
        if (!parse_positive(text.substr(at + 1), out.segment)) return Err::kInvalid;
        text = text.substr(0, at);
    }
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos) {
        if (!parse_positive(text.substr(colon + 1), out.concurrent)) return Err::kInvalid;
        text = text.substr(0, colon);
    }
    out.algorithm = find_algorithm(op, text);
    return out.algorithm == nullptr ? Err::kInvalid : Err::kOk;
}

Choice select(Op op, std::uint16_t ranks, std::uint64_t octets) noexcept {
    for (const Rule& rule : kRules) {
        if (rule.op != op || ranks > rule.ranks_max || octets > rule.octets_max) continue;
        Choice choice;
        ULC_CHECK(parse_choice(op, rule.choice, choice) == Err::kOk);
        return choice;
    }
    ULC_CHECK(false && "every operation has a last line that matches");
    return {};
}

std::span<const Rule> rules() noexcept { return kRules; }

}  // namespace ulc::coll
