// What all members of one collective operation must agree on, in 15 bits that the tags of its messages bear, so that a member finds
// with the first packet that another one gave other arguments, and which.
//
//    14 ── 11    10 ── 8       7 ── 4                3 ── 0
//    kind        root mod 8    type, operator,       length
//                              algorithm
//
// Type and length are hashed: of differing ones, 1 in 16 look alike. (Lengths of messages are compared besides.)
#pragma once

#include <cstdint>

namespace ulc::client {

class Signature {
public:
    static constexpr unsigned kBits = 15;
    static constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;

    /// unlike() of what broken() says.
    static constexpr const char* kToldOf = "found that members gave different arguments";

    /// Unchecked: agrees with every other one.
    constexpr Signature() noexcept = default;
    /// kind: of the operation, 0 … 13.
    constexpr Signature(std::uint32_t kind, std::uint32_t root, std::uint32_t type_and_op,
                        std::uint64_t length) noexcept
        : bits_((kind + 1) << 11 | (root & 7U) << 8 |
                static_cast<std::uint32_t>(spread(type_and_op) >> 60) << 4 |
                static_cast<std::uint32_t>(spread(length) >> 60)) {}
    static constexpr Signature of_tag(std::uint64_t tag) noexcept {
        Signature signature;
        signature.bits_ = static_cast<std::uint32_t>(tag & kMask);
        return signature;
    }
    /// "An operation that began here went wrong": borne by an empty message instead of what was due.
    static constexpr Signature broken() noexcept { return of_tag(std::uint64_t{15} << 11); }

    [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

    /// What another member's says otherwise; nullptr: nothing.
    [[nodiscard]] constexpr const char* unlike(Signature other) const noexcept {
        const std::uint32_t differ = bits_ ^ other.bits_;
        if (differ == 0 || bits_ == 0 || other.bits_ == 0) return nullptr;
        if (other.bits_ == broken().bits_) return kToldOf;
        if (differ >> 11 != 0) return "called another operation";
        if ((differ >> 8 & 7U) != 0) return "gave another root";
        if ((differ & 15U) != 0)
            return "gave another length";  // of which other algorithms may follow
        return "gave another type or operator, or took another algorithm";
    }

private:
    static constexpr std::uint64_t spread(std::uint64_t value) noexcept {
        value = (value ^ value >> 32) * 0x9e3779b97f4a7c15U;
        return (value ^ value >> 29) * 0xbf58476d1ce4e5b9U;
    }
    std::uint32_t bits_ = 0;
};

/// All that members must agree on, for who asks (client/inquiry.h): the signature, which is short, and hashes of the rest.
struct Agreement {
    Signature signature;
    std::uint32_t arguments = 0;  ///< operation, root, type and operator, length
    std::uint32_t algorithm = 0;  ///< with its parameters

    /// As Signature::unlike().
    [[nodiscard]] constexpr const char* unlike(const Agreement& other) const noexcept {
        if (signature.bits() == 0 || other.signature.bits() == 0) return nullptr;
        if (arguments == other.arguments)
            return algorithm != other.algorithm ? "took another algorithm" : nullptr;
        const char* what = signature.unlike(other.signature);
        return what != nullptr ? what : "gave another root, type, operator or length";
    }
};

}  // namespace ulc::client
