// SPDX-License-Identifier: BSD-3-Clause
// Numbers that a peer sees, and that others must not predict: tokens of questions, ids of links,
// nonces, first numbers of streams, names. Used by engine/, jobs/, port/ and udp/.
//
//   Seed ──SipHash-2-4──▶ Tokens: one number after another
//     │                   TokenSeries: the number of a place, found again by its last octet
//     └──▶ Seeds of parts, and numbers for keyed tables
//
// A number shows neither the seed nor any other number (SipHash). base/prng.h does not hold that:
// four of its outputs show all later ones. Sans-IO: the kernel's random bits are an argument. One
// thread.
#pragma once

#include <cstdint>

namespace ulc::seal {

/// Holds 128 secret bits: of the kernel in an engine, of a number in a simulation.
class Seed {
public:
    constexpr Seed() noexcept = default;
    /// For simulations and tests.
    constexpr Seed(std::uint64_t number) noexcept : words_{number, 0} {}
    constexpr Seed(std::uint64_t first, std::uint64_t second) noexcept : words_{first, second} {}

    /// Returns the seed of a part. It does not show this one, or that of another part.
    [[nodiscard]] Seed of(std::uint64_t part) const noexcept;
    /// Returns a number for one use.
    [[nodiscard]] std::uint64_t number(std::uint64_t use) const noexcept;
    [[nodiscard]] constexpr bool is_zero() const noexcept { return (words_[0] | words_[1]) == 0; }

    /// Writes or reads the seed (state/archive.h).
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(words_);
    }

private:
    friend class Tokens;
    friend class TokenSeries;
    /// Kinds of numbers, so that no two of a seed have the same input.
    enum class Kind : std::uint64_t { kPart, kUse, kToken, kSeries };
    [[nodiscard]] std::uint64_t hash(Kind kind, std::uint64_t number) const noexcept;

    std::uint64_t words_[2]{};
};

/// Makes one number after another.
class Tokens {
public:
    explicit constexpr Tokens(const Seed& seed) noexcept : seed_(seed) {}

    /// Returns 64 bits, never 0.
    [[nodiscard]] std::uint64_t next() noexcept;
    /// Returns a number in [0, bound); bound 0 gives 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;
    /// Returns the seed of a part that begins now.
    [[nodiscard]] Seed next_seed() noexcept;

    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(seed_, count_);
    }

private:
    Seed seed_;
    std::uint64_t count_ = 0;  ///< numbers that were made
};

/// Makes the tokens of numbered questions. A token ends with the last octet of its number and has
/// 56 further bits, so one hash tells whether it is among the latest.
class TokenSeries {
public:
    constexpr TokenSeries() noexcept = default;
    explicit constexpr TokenSeries(const Seed& seed) noexcept : seed_(seed) {}

    /// Returns the token of a question, never 0.
    [[nodiscard]] std::uint64_t at(std::uint64_t number) const noexcept;
    /// Returns whether the token is that of the newest question or of the most - 1 before it.
    /// most: at most 256.
    [[nodiscard]] bool is_recent(std::uint64_t token, std::uint64_t newest,
                                 std::uint64_t most) const noexcept;

    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(seed_);
    }

private:
    Seed seed_;
};

}  // namespace ulc::seal
