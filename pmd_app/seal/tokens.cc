// SPDX-License-Identifier: BSD-3-Clause
#include "seal/tokens.h"

#include <sodium.h>

namespace ulc::seal {
namespace {

constexpr std::uint64_t kNumberBits = 0xff;  ///< bits of a series' token that say its number

}  // namespace

std::uint64_t Seed::hash(Kind kind, std::uint64_t number) const noexcept {
    static_assert(sizeof words_ == crypto_shorthash_KEYBYTES);
    static_assert(crypto_shorthash_BYTES == sizeof(std::uint64_t));
    const std::uint64_t input[] = {static_cast<std::uint64_t>(kind), number};
    std::uint64_t output = 0;
    (void)crypto_shorthash(reinterpret_cast<unsigned char*>(&output),
                           reinterpret_cast<const unsigned char*>(input), sizeof input,
                           reinterpret_cast<const unsigned char*>(words_));
    return output;
}

Seed Seed::of(std::uint64_t part) const noexcept {
    return {hash(Kind::kPart, 2 * part), hash(Kind::kPart, 2 * part + 1)};
}

std::uint64_t Seed::number(std::uint64_t use) const noexcept { return hash(Kind::kUse, use); }

std::uint64_t Tokens::next() noexcept {
    std::uint64_t token = 0;
    while (token == 0)
        token = seed_.hash(Seed::Kind::kToken, count_++);
    return token;
}

std::uint64_t Tokens::below(std::uint64_t bound) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
}

Seed Tokens::next_seed() noexcept {
    const std::uint64_t first = next();
    return {first, next()};
}

std::uint64_t TokenSeries::at(std::uint64_t number) const noexcept {
    const std::uint64_t hash = seed_.hash(Seed::Kind::kSeries, number);
    const std::uint64_t token = (hash & ~kNumberBits) | (number & kNumberBits);
    return token == 0 ? kNumberBits + 1 : token;
}

bool TokenSeries::is_recent(std::uint64_t token, std::uint64_t newest,
                            std::uint64_t most) const noexcept {
    const std::uint64_t back = (newest - token) & kNumberBits;
    return back < most && back <= newest && token == at(newest - back);
}

}  // namespace ulc::seal
