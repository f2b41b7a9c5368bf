// SPDX-License-Identifier: BSD-3-Clause
// Trees over positions 0 … ranks−1 with position 0 on top. A subtree is a range of positions that
// begins with its top, so folding the own operand and then the children's in order keeps the order
// of positions, and so does passing blocks on.
//
//   binomial   the parent of v is v without its lowest set bit        log2(ranks) deep
//   chain      the parent of v is v − 1                               a pipeline: one in, one out
//   flat       the parent of all is 0
#pragma once

#include <cstdint>
#include <vector>

namespace ulc::coll {

enum class Shape : std::uint8_t { kFlat, kBinomial, kChain };

struct Place {
    std::uint32_t parent = 0;  ///< the top's is itself
    std::uint32_t end = 0;     ///< one past the last position of the subtree
    std::vector<std::uint32_t>
        children;  ///< ascending; the subtree of each ends where the next begins

    [[nodiscard]] std::uint32_t child_end(std::size_t i) const noexcept {
        return i + 1 < children.size() ? children[i + 1] : end;
    }
};

[[nodiscard]] inline Place place_in(Shape shape, std::uint32_t position, std::uint32_t ranks) {
    Place place{.end = ranks};
    if (shape == Shape::kBinomial) {
        std::uint32_t bit = 1;
        for (; bit < ranks && (position & bit) == 0; bit *= 2)
            if (position + bit < ranks) place.children.push_back(position + bit);
        if (position != 0) {
            place.parent = position - bit;
            place.end = position + bit < ranks ? position + bit : ranks;
        }
    } else if (shape == Shape::kChain) {
        place.parent = position == 0 ? 0 : position - 1;
        if (position + 1 < ranks) place.children.push_back(position + 1);
    } else if (position == 0) {
        for (std::uint32_t child = 1; child < ranks; ++child)
            place.children.push_back(child);
    } else {
        place.end = position + 1;
    }
    return place;
}

/// The rank at a position, when the top is `top`.
[[nodiscard]] inline std::uint16_t rank_at(std::uint32_t position, std::uint32_t top,
                                           std::uint32_t ranks) noexcept {
    return static_cast<std::uint16_t>((position + top) % ranks);
}
[[nodiscard]] inline std::uint32_t position_of(std::uint32_t rank, std::uint32_t top,
                                               std::uint32_t ranks) noexcept {
    return (rank + ranks - top) % ranks;
}

}  // namespace ulc::coll
