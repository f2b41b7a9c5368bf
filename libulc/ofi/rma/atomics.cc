// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/rma/atomics.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

namespace ulc::ofi {
namespace {

template <class T>
constexpr bool kIsComplex = !std::is_arithmetic_v<T>;

/// Calls visit with a value of the datatype's type. Returns false if the datatype is not there.
template <class Visit>
bool with_type(std::uint8_t datatype, Visit visit) noexcept {
    switch (datatype) {
        case FI_INT8:
            visit(std::int8_t{});
            return true;
        case FI_UINT8:
            visit(std::uint8_t{});
            return true;
        case FI_INT16:
            visit(std::int16_t{});
            return true;
        case FI_UINT16:
            visit(std::uint16_t{});
            return true;
        case FI_INT32:
            visit(std::int32_t{});
            return true;
        case FI_UINT32:
            visit(std::uint32_t{});
            return true;
        case FI_INT64:
            visit(std::int64_t{});
            return true;
        case FI_UINT64:
            visit(std::uint64_t{});
            return true;
        case FI_FLOAT:
            visit(float{});
            return true;
        case FI_DOUBLE:
            visit(double{});
            return true;
        case FI_LONG_DOUBLE:
            visit(0.0L);
            return true;
        case FI_FLOAT_COMPLEX:
            visit(std::complex<float>{});
            return true;
        case FI_DOUBLE_COMPLEX:
            visit(std::complex<double>{});
            return true;
        case FI_LONG_DOUBLE_COMPLEX:
            visit(std::complex<long double>{});
            return true;
        default:
            return false;
    }
}

/// Returns a sum or product. Integers wrap round.
template <class T>
T sum(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    else
        return a + b;
}
template <class T>
T product(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else
        return a * b;
}

template <class T>
bool compares(std::uint8_t op, T compare, T there) noexcept {
    if (op == FI_CSWAP) return compare == there;
    if (op == FI_CSWAP_NE) return compare != there;
    if constexpr (!kIsComplex<T>) {
        if (op == FI_CSWAP_LE) return compare <= there;
        if (op == FI_CSWAP_LT) return compare < there;
        if (op == FI_CSWAP_GE) return compare >= there;
        if (op == FI_CSWAP_GT) return compare > there;
    }
    return false;
}

/// Returns what is there after the operation.
template <class T>
T changed(std::uint8_t op, T there, T value, T compare) noexcept {
    switch (op) {
        case FI_SUM:
            return sum(there, value);
        case FI_PROD:
            return product(there, value);
        case FI_ATOMIC_READ:
            return there;
        case FI_ATOMIC_WRITE:
            return value;
        default:
            break;
    }
    if constexpr (!kIsComplex<T>) {
        switch (op) {
            case FI_MIN:
                return std::min(there, value);
            case FI_MAX:
                return std::max(there, value);
            case FI_LOR:
                return static_cast<T>(there != T{} || value != T{});
            case FI_LAND:
                return static_cast<T>(there != T{} && value != T{});
            case FI_LXOR:
                return static_cast<T>((there != T{}) != (value != T{}));
            default:
                break;
        }
    }
    if constexpr (std::is_integral_v<T>) {
        switch (op) {
            case FI_BOR:
                return static_cast<T>(there | value);
            case FI_BAND:
                return static_cast<T>(there & value);
            case FI_BXOR:
                return static_cast<T>(there ^ value);
            case FI_MSWAP:
                return static_cast<T>((value & compare) | (there & ~compare));
            default:
                break;
        }
    }
    return compares(op, compare, there) ? value : there;
}

}  // namespace

std::size_t element_bytes(std::uint8_t datatype) noexcept {
    std::size_t bytes = 0;
    static_cast<void>(with_type(datatype, [&](auto zero) { bytes = sizeof zero; }));
    return bytes;
}

bool is_there(RmaKind kind, std::uint8_t datatype, std::uint8_t op) noexcept {
    const bool swaps = op >= FI_CSWAP && op <= FI_MSWAP;
    if (op > FI_MSWAP || swaps != (kind == RmaKind::kCompare)) return false;
    if (op == FI_ATOMIC_READ && kind != RmaKind::kFetch) return false;
    bool there = false;
    static_cast<void>(with_type(datatype, [&](auto zero) {
        using T = decltype(zero);
        const bool of_bits = op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
        const bool of_all = op == FI_SUM || op == FI_PROD || op == FI_ATOMIC_READ ||
                            op == FI_ATOMIC_WRITE || op == FI_CSWAP || op == FI_CSWAP_NE;
        there = of_bits ? std::is_integral_v<T> : of_all || !kIsComplex<T>;
    }));
    return there;
}

std::uint8_t operands_of(RmaKind kind, std::uint8_t op) noexcept {
    if (kind == RmaKind::kCompare) return 2;
    return op == FI_ATOMIC_READ ? 0 : 1;
}

void apply_atomic(std::uint8_t datatype, std::uint8_t op, std::size_t count, unsigned char* target,
                  const unsigned char* operands, unsigned char* old) noexcept {
    const bool swaps = op >= FI_CSWAP;
    static_cast<void>(with_type(datatype, [=](auto zero) {
        using T = decltype(zero);
        for (std::size_t i = 0; i < count; ++i) {
            T there{};
            T value{};
            T compare{};
            std::memcpy(&there, target + i * sizeof(T), sizeof(T));
            if (op != FI_ATOMIC_READ) std::memcpy(&value, operands + i * sizeof(T), sizeof(T));
            if (swaps) std::memcpy(&compare, operands + (count + i) * sizeof(T), sizeof(T));
            if (old != nullptr) std::memcpy(old + i * sizeof(T), &there, sizeof(T));
            const T after = changed(op, there, value, compare);
            std::memcpy(target + i * sizeof(T), &after, sizeof(T));
        }
    }));
}

}  // namespace ulc::ofi
