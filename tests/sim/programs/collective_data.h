// What a rank gives to a collective operation and what it must then hold, for operations whose octets a test checks. Reductions
// are of any type and operator, with values whose result does not depend on brackets (small whole numbers in floating point), or
// compose functions x ↦ a·x + b of octets, which no two commute, or multiply Gaussian integers, which all do. What an operator gives is
// held by tests/unit/coll/reduction_test.cc.
#pragma once

#include <coll.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "coll/algorithm.h"

namespace ulc::sim {

enum class CollectiveKind : std::uint8_t {
    kBarrier,
    kBroadcast,
    kAllgather,
    kGather,
    kScatter,
    kAlltoall,
    kReduce,
    kAllreduce,
    kReduceScatter,
    kScan,
    kExscan,
};

inline constexpr std::uint8_t kCollectiveKinds = 11;
/// The operation of coll/ with blocks all alike.
[[nodiscard]] coll::Op operation_of(CollectiveKind kind);
/// The kind of an operation; of a gatherv, a gather.
[[nodiscard]] CollectiveKind kind_of(coll::Op op);

struct Operation {
    CollectiveKind kind = CollectiveKind::kBarrier;
    std::string algorithm;   ///< as of coll.h; empty: the library chooses
    std::size_t octets = 0;  ///< of the buffer, or (where there are blocks) of each rank's part
    std::uint16_t root = 0;
    bool in_place = false;
    bool uneven = false;    ///< blocks by rank have about so many octets: the form with a v
    bool user = false;      ///< reductions: an operator of the user; octets are even
    bool commutes = false;  ///< `user`: it does, and says so
    std::uint32_t type =
        ULC_UINT8;  ///< reductions, unless `user`; octets are cut to whole elements
    std::uint32_t op = ULC_SUM;
    /// uneven: this rank takes the block of (alltoall: those from and to) rank `mistaken_about` for so much longer.
    std::ptrdiff_t mistake = 0;
    std::uint16_t mistaken_about = 0;
};

class CollectiveData {
public:
    CollectiveData() = default;
    /// stamp: makes the octets of one operation unlike those of another.
    CollectiveData(const Operation& operation, std::uint16_t rank, std::uint16_t ranks,
                   std::uint64_t stamp);

    /// Starts it; the data stay until it is done.
    [[nodiscard]] int start(ulc_endpoint* ep, ulc_group group, ulc_coll** out);
    /// The first octet of the result that is wrong; empty: none.
    [[nodiscard]] std::string wrong() const;

private:
    using Octets = std::vector<unsigned char>;
    struct Blocks {  ///< by rank
        std::vector<std::size_t> lengths;
        std::vector<std::size_t> offsets;
    };

    [[nodiscard]] bool at_root() const { return rank_ == op_.root; }
    [[nodiscard]] std::size_t length_of(std::uint32_t who) const;
    [[nodiscard]] bool reduces() const { return op_.kind >= CollectiveKind::kReduce; }
    /// Octets of an element of a reduction.
    [[nodiscard]] std::size_t unit() const;
    [[nodiscard]] Octets operand(std::uint16_t rank, std::size_t from, std::size_t octets) const;
    [[nodiscard]] std::size_t exchanged_length(std::uint32_t from, std::uint32_t to) const;
    [[nodiscard]] Blocks laid_out(std::vector<std::size_t> lengths) const;
    void lay_out(bool exchange);
    void give_blocks(Octets& memory, bool exchange) const;
    void expect_blocks(bool exchange);
    void reduction();
    [[nodiscard]] Octets folded(std::uint16_t ranks, std::size_t from, std::size_t octets) const;
    [[nodiscard]] int start_vector(ulc_endpoint* ep, ulc_group group, ulc_coll** out);
    [[nodiscard]] int start_blocks(ulc_endpoint* ep, ulc_group group, ulc_coll** out);

    Operation op_;
    std::uint16_t rank_ = 0;
    std::uint16_t ranks_ = 1;
    std::uint64_t stamp_ = 0;
    Blocks blocks_;
    Blocks given_;  ///< alltoall: what this rank gives, as blocks_ are what it gets; else the same
    Octets input_;
    Octets output_;
    std::vector<int> expected_;  ///< -1: does not matter
};

}  // namespace ulc::sim
