#include "coll/selection.h"

#include <charconv>

#include "base/check.h"

namespace ulc::coll {
namespace {

constexpr std::uint16_t kAnyRanks = UINT16_MAX;
constexpr std::uint64_t kAnyOctets = UINT64_MAX;
/// Long enough that a segment's fixed cost vanishes, short enough that eight of them fit a receiver's memory.
constexpr std::uint64_t kSegmentDefault = 64 * 1024;

// The last line of each operation matches everything. Reasons are figures of a simulated Fast Ethernet switch of 16 ranks
// (docs/BENCHMARKS.md, "Which algorithm").
constexpr Rule kRules[] = {
    {Op::kBarrier, 8, kAnyOctets, "gather_broadcast",
     "a third of the frames: 8 nodes that share two cores take 157 us, dissemination:3 200 (on a "
     "switch 74 and 47)"},
    {Op::kBarrier, kAnyRanks, kAnyOctets, "dissemination:3",
     "60 us, the next best 66; of 64 ranks 90 and 100"},
    {Op::kBroadcast, kAnyRanks, kAnyOctets, "multicast", "each byte is on the wire once"},
    {Op::kGather, kAnyRanks, kAnyOctets, "direct", "the root's port carries all in any case"},
    {Op::kGatherv, kAnyRanks, kAnyOctets, "direct", "the root's port carries all in any case"},
    {Op::kScatter, kAnyRanks, 64, "packed", "8 octets: 32 us, direct 111"},
    {Op::kScatter, kAnyRanks, kAnyOctets, "direct", "256 octets: 408 us, packed 447"},
    {Op::kScatterv, kAnyRanks, kAnyOctets, "direct", "needs no lengths of others"},
    {Op::kAllgather, 4, kAnyOctets, "concurrent:4", "URTP figure 8: k near 4 is best on 4 nodes"},
    {Op::kAllgather, 8, kAnyOctets, "concurrent:2", "k falls as the ranks grow (URTP §4.3)"},
    {Op::kAllgather, kAnyRanks, kAnyOctets, "concurrent:1",
     "bounds what all sources have under way"},
    {Op::kAlltoall, kAnyRanks, 1024, "pairwise:64", "8 octets: 117 us, pairwise:4 124"},
    {Op::kAlltoall, kAnyRanks, kAnyOctets, "pairwise:4",
     "no port is given more than four blocks at a time"},
    {Op::kAlltoallv, kAnyRanks, kAnyOctets, "pairwise:4",
     "no port is given more than four blocks at a time"},
    {Op::kReduce, kAnyRanks, 16384, "binomial", "16 KiB: 6.1 ms, the chain 8.2"},
    {Op::kReduce, kAnyRanks, kAnyOctets, "chain@4096", "64 KiB: 12.5 ms, binomial 22.3"},
    {Op::kAllreduce, kAnyRanks, 1024, "binomial_multicast", "1 KiB: 0.88 ms, pairwise 1.05"},
    {Op::kAllreduce, kAnyRanks, kAnyOctets, "pairwise_multicast:4",
     "4 KiB: 1.1 ms, binomial_multicast 2.5"},
    {Op::kReduceScatter, kAnyRanks, 16384, "pairwise:64", "8 octets each: 117 us, pairwise:4 124"},
    {Op::kReduceScatter, kAnyRanks, kAnyOctets, "pairwise:4",
     "no port is given more than four blocks at a time"},
    {Op::kScan, kAnyRanks, 8192, "doubling", "4 KiB: 2.9 ms, multicast 5.3, the chain 7.2"},
    {Op::kScan, kAnyRanks, kAnyOctets, "chain@4096", "16 KiB: 8.2 ms, doubling 10.1"},
    {Op::kExscan, kAnyRanks, 8192, "doubling", "as scan"},
    {Op::kExscan, kAnyRanks, kAnyOctets, "chain@4096", "as scan"},
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
