// SPDX-License-Identifier: BSD-3-Clause
// Seeded pseudo-random numbers (xoshiro256**, Blackman and Vigna 2018; seeded by splitmix64).
// Same seed, same sequence, on every machine. Not for secrets.
#pragma once

#include <bit>
#include <cstdint>

namespace ulc {

class Prng {
public:
    explicit constexpr Prng(std::uint64_t seed) noexcept {
        for (auto& word : state_) {
            seed += 0x9e3779b97f4a7c15U;
            std::uint64_t z = seed;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
            word = z ^ (z >> 31);
        }
    }

    constexpr std::uint64_t next() noexcept {
        const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
        const std::uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    /// Uniform in [0, bound); bound 0 gives 0. Bias below 2^-32 for bounds below 2^32.
    constexpr std::uint64_t below(std::uint64_t bound) noexcept {
        __extension__ using Wide = unsigned __int128;
        return bound == 0 ? 0
                          : static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
    }

    /// True with probability p, clamped to [0, 1].
    constexpr bool chance(double p) noexcept {
        return static_cast<double>(next() >> 11) * 0x1.0p-53 < p;
    }

    /// Writes or reads the sequence's place (state/archive.h).
    template <typename Archive>
    void fields(Archive& archive) {
        archive.values(state_);
        (void)archive.require((state_[0] | state_[1] | state_[2] | state_[3]) != 0,
                              "a generator of random numbers has no state");
    }

private:
    std::uint64_t state_[4]{};
};

}  // namespace ulc
