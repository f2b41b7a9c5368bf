// SPDX-License-Identifier: BSD-3-Clause
// The input of a rank to a collective operation, and the result that it must then hold, for
// operations whose bytes a test checks. Reductions have any type and operator. Their values give a
// result that does not depend on brackets (small whole numbers in floating point), or compose
// functions x ↦ a·x + b of bytes, no two of which commute, or multiply Gaussian integers, which all
// do. tests/unit/coll/reduction_test.cc tests the results of the operators.
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
/// Returns the operation of coll/ with equal blocks.
[[nodiscard]] coll::Op operation_of(CollectiveKind kind);
/// Returns the kind of an operation; a gather for a gatherv.
[[nodiscard]] CollectiveKind kind_of(coll::Op op);

struct Operation {
    CollectiveKind kind = CollectiveKind::kBarrier;
    std::string algorithm;   ///< as in coll.h; empty: the library chooses
    std::size_t octets = 0;  ///< size of the buffer, or of each rank's part if there are blocks
    std::uint16_t root = 0;
    bool in_place = false;
    bool uneven = false;    ///< blocks by rank have about that many bytes: the form with a v
    bool user = false;      ///< reductions: an operator of the user; the number of bytes is even
    bool commutes = false;  ///< `user`: it commutes, and declares so
    std::uint32_t type =
        ULC_UINT8;  ///< reductions, unless `user`; lengths are cut to whole elements
    std::uint32_t op = ULC_SUM;
    /// `uneven`: this rank assumes that the block of (alltoall: those from and to) rank
    /// `mistaken_about` is longer by this.
    std::ptrdiff_t mistake = 0;
    std::uint16_t mistaken_about = 0;
};

class CollectiveData {
public:
    CollectiveData() = default;
    /// `stamp`: makes the data of one operation different from those of another.
    CollectiveData(const Operation& operation, std::uint16_t rank, std::uint16_t ranks,
                   std::uint64_t stamp);

    /// Starts the operation; the data stay until it is done.
    [[nodiscard]] int start(ulc_endpoint* ep, ulc_group group, ulc_coll** out);
    /// Returns the first wrong byte of the result; empty if there is none.
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
    /// Returns the bytes of an element of a reduction.
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
    /// Alltoall: the blocks that this rank gives, as blocks_ are those that it gets; else the same
    Blocks given_;
    Octets input_;
    Octets output_;
    std::vector<int> expected_;  ///< -1: does not matter
};

}  // namespace ulc::sim
