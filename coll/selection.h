// Which algorithm a call takes. A table (selection.cc), first match wins, so that `ulc tune` can write another;
// a name given by the caller overrides it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "coll/algorithm.h"

namespace ulc::coll {

/// One line: calls of `op` with at most so many ranks and octets take `choice`.
struct Rule {
    Op op;
    std::uint16_t ranks_max;
    std::uint64_t octets_max;
    std::string_view choice;  ///< as parse_choice() reads it
    std::string_view reason;
};

struct Choice {
    const Algorithm* algorithm = nullptr;
    std::uint64_t segment = 0;
    std::uint32_t concurrent = 1;
};

/// "name", "name:k", "name@segment" or "name:k@segment" (decimal; segment in octets). Errors: kInvalid.
[[nodiscard]] Err parse_choice(Op op, std::string_view text, Choice& out) noexcept;

/// The table's choice; every call has one.
[[nodiscard]] Choice select(Op op, std::uint16_t ranks, std::uint64_t octets) noexcept;
[[nodiscard]] std::span<const Rule> rules() noexcept;

}  // namespace ulc::coll
