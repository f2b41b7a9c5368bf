// SPDX-License-Identifier: BSD-3-Clause
// The arguments on which all members of one collective operation must agree, in 19 bits of the tags
// of its messages. So a member finds with the first packet that another one gave other arguments,
// and which.
//
//    18 ── 15    14 ── 12      11 ── 4                  3 ── 1    0
//    kind        root mod 8    type and operator, or    length    this message is the last
//                              length, + algorithm                (abi::kTagLast)
//
// Members with one algorithm never look alike with other types or operators. Algorithms are hashed:
// of different ones, 1 in 256 look alike. So are lengths: 1 in 8, without a reduction 1 in 2048.
// But each message's own length is also compared, and whether it is the last from that member, so
// that two lengths never pass for one.
#pragma once

#include <cstdint>

#include "abi/schedule.h"

namespace ulc::client {

class Signature {
public:
    static constexpr unsigned kBits = 19;
    static constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;

    /// Result of unlike() for a broken() signature.
    static constexpr const char* kToldOf = "found that members gave different arguments";

    /// Unchecked: agrees with every other one.
    constexpr Signature() noexcept = default;
    /// `kind`: that of the operation, 0 … 13. `reduction`: a byte for type and operator, or more of
    /// the length.
    constexpr Signature(std::uint32_t kind, std::uint32_t root, std::uint8_t reduction,
                        std::uint32_t algorithm, std::uint64_t length) noexcept
        : bits_((kind + 1) << kKindAt | (root & 7U) << kRootAt |
                ((reduction + highest(8, algorithm)) & 0xffU) << kReductionAt |
                highest(3, length) << kLengthAt) {}
    static constexpr Signature of_tag(std::uint64_t tag) noexcept {
        Signature signature;
        signature.bits_ = static_cast<std::uint32_t>(tag & kMask & ~abi::kTagLast);
        return signature;
    }
    /// Returns the signature for "an operation that began here failed": an empty message has it
    /// instead of the message that was due.
    static constexpr Signature broken() noexcept { return of_tag(std::uint64_t{15} << kKindAt); }

    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

    /// Describes the first mismatch with `other`; nullptr if compatible.
    [[nodiscard]] constexpr const char* unlike(Signature other) const noexcept {
        const std::uint32_t differ = bits_ ^ other.bits_;
        if (differ == 0 || bits_ == 0 || other.bits_ == 0) return nullptr;
        if (other.bits_ == broken().bits_) return kToldOf;
        if (differ >> kKindAt != 0) return "called another operation";
        if ((differ >> kRootAt & 7U) != 0) return "gave another root";
        if ((differ >> kLengthAt & 7U) != 0)
            return "gave another length";  // may be followed by other algorithms
        return "gave another type, operator or length, or took another algorithm";
    }

    /// Returns that number of the highest bits, at most 32, of a hash.
    static constexpr std::uint32_t highest(unsigned bits, std::uint64_t value) noexcept {
        value = (value ^ value >> 32) * 0x9e3779b97f4a7c15U;
        value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9U;
        return static_cast<std::uint32_t>(value >> (64 - bits));
    }

private:
    static constexpr unsigned kKindAt = 15;
    static constexpr unsigned kRootAt = 12;
    static constexpr unsigned kReductionAt = 4;
    static constexpr unsigned kLengthAt = 1;

    std::uint32_t bits_ = 0;
};

/// Everything on which members must agree, for a member that asks (client/groups/inquiry.h): the
/// signature, which is short, and hashes of the rest.
struct Agreement {
    Signature signature;
    std::uint32_t arguments = 0;  ///< operation, root, type and operator, length
    std::uint32_t algorithm = 0;  ///< with its parameters, and whether a user's operator commutes

    /// Describes the first mismatch, like Signature::unlike().
    [[nodiscard]] constexpr const char* unlike(const Agreement& other) const noexcept {
        if (signature.bits() == 0 || other.signature.bits() == 0) return nullptr;
        if (arguments == other.arguments)
            return algorithm != other.algorithm ? "took another algorithm" : nullptr;
        const char* what = signature.unlike(other.signature);
        return what != nullptr ? what : "gave another root, type, operator or length";
    }
};

}  // namespace ulc::client
