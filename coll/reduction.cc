// SPDX-License-Identifier: BSD-3-Clause
// Elements are read and written by memcpy of their size, which compilers turn into plain, also
// vector, loads and stores: so no operand needs alignment, and no loop is written twice. Integers
// are added and multiplied as unsigned, so that they wrap. The result of an operator depends only
// on its two operands: the schedule decides the order of a reduction (coll/algorithms/fold.h).
#include "coll/reduction.h"

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace ulc::coll {
namespace {

constexpr std::uint64_t kPieceOctets = 4096;  ///< as many as stay in the first cache

template <typename V>
struct WithIndex {  // as MPI's pair types are laid out: a C struct
    V value;
    int index;
};

/// Type of at least unsigned int, so that a product of narrow ones does not become a signed int.
template <typename T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

struct Sum {
    template <typename T>
    static T of(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
        } else {
            return a + b;
        }
    }
};
struct Product {
    template <typename T>
    static T of(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>) {
            return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
        } else {
            return a * b;
        }
    }
};
struct Least {
    template <typename T>
    static T of(T a, T b) noexcept {
        return b < a ? b : a;
    }
};
struct Greatest {
    template <typename T>
    static T of(T a, T b) noexcept {
        return a < b ? b : a;
    }
};
struct LogicalAnd {
    template <typename T>
    static T of(T a, T b) noexcept {
        return static_cast<T>(static_cast<int>(a != 0) & static_cast<int>(b != 0));
    }
};
struct LogicalOr {
    template <typename T>
    static T of(T a, T b) noexcept {
        return static_cast<T>(static_cast<int>(a != 0) | static_cast<int>(b != 0));
    }
};
struct LogicalXor {
    template <typename T>
    static T of(T a, T b) noexcept {
        return static_cast<T>(static_cast<int>(a != 0) ^ static_cast<int>(b != 0));
    }
};
struct BitAnd {
    template <typename T>
    static T of(T a, T b) noexcept {
        return static_cast<T>(a & b);
    }
};
struct BitOr {
    template <typename T>
    static T of(T a, T b) noexcept {
        return static_cast<T>(a | b);
    }
};
struct BitXor {
    template <typename T>
    static T of(T a, T b) noexcept {
        return static_cast<T>(a ^ b);
    }
};
struct LeastAt {
    template <typename T>
    static T of(T a, T b) noexcept {
        if (a.value < b.value) return a;
        return b.value < a.value || b.index < a.index ? b : a;
    }
};
struct GreatestAt {
    template <typename T>
    static T of(T a, T b) noexcept {
        if (b.value < a.value) return a;
        return a.value < b.value || b.index < a.index ? b : a;
    }
};

template <typename T, typename Operator>
void apply(void*, unsigned char* into, const unsigned char* from, const unsigned char* with,
           std::uint64_t octets) noexcept {
    const std::uint64_t count = octets / sizeof(T);
    // If `into` is an operand, an element is read before it is written, and by no other iteration.
#ifndef __clang__  // which finds it out as it runs
#pragma GCC ivdep
#endif
    for (std::uint64_t i = 0; i < count; ++i) {
        T a;
        T b;
        std::memcpy(&a, from + i * sizeof(T), sizeof(T));
        std::memcpy(&b, with + i * sizeof(T), sizeof(T));
        a = Operator::template of<T>(a, b);
        std::memcpy(into + i * sizeof(T), &a, sizeof(T));
    }
}

template <typename T>
struct Is {
    using Type = T;
};

/// visit(Is<T>) with the C++ type of an element; nullptr: none.
template <typename Visit>
[[nodiscard]] ApplyFn integers(std::uint32_t type, Visit visit) noexcept {
    switch (type) {
        case ULC_INT8:
            return visit(Is<std::int8_t>{});
        case ULC_INT16:
            return visit(Is<std::int16_t>{});
        case ULC_INT32:
            return visit(Is<std::int32_t>{});
        case ULC_INT64:
            return visit(Is<std::int64_t>{});
        case ULC_UINT8:
            return visit(Is<std::uint8_t>{});
        case ULC_UINT16:
            return visit(Is<std::uint16_t>{});
        case ULC_UINT32:
            return visit(Is<std::uint32_t>{});
        case ULC_UINT64:
            return visit(Is<std::uint64_t>{});
        default:
            return nullptr;
    }
}
template <typename Visit>
[[nodiscard]] ApplyFn reals(std::uint32_t type, Visit visit) noexcept {
    switch (type) {
        case ULC_FLOAT:
            return visit(Is<float>{});
        case ULC_DOUBLE:
            return visit(Is<double>{});
        case ULC_LONG_DOUBLE:
            return visit(Is<long double>{});
        default:
            return integers(type, visit);
    }
}
template <typename Visit>
[[nodiscard]] ApplyFn numbers(std::uint32_t type, Visit visit) noexcept {
    switch (type) {
        case ULC_FLOAT_COMPLEX:
            return visit(Is<std::complex<float>>{});
        case ULC_DOUBLE_COMPLEX:
            return visit(Is<std::complex<double>>{});
        case ULC_LONG_DOUBLE_COMPLEX:
            return visit(Is<std::complex<long double>>{});
        default:
            return reals(type, visit);
    }
}
template <typename Visit>
[[nodiscard]] ApplyFn places(std::uint32_t type, Visit visit) noexcept {
    switch (type) {
        case ULC_FLOAT_INT:
            return visit(Is<WithIndex<float>>{});
        case ULC_DOUBLE_INT:
            return visit(Is<WithIndex<double>>{});
        case ULC_LONG_INT:
            return visit(Is<WithIndex<long>>{});
        case ULC_SHORT_INT:
            return visit(Is<WithIndex<short>>{});
        case ULC_2INT:
            return visit(Is<WithIndex<int>>{});
        case ULC_LONG_DOUBLE_INT:
            return visit(Is<WithIndex<long double>>{});
        default:
            return nullptr;
    }
}

template <typename Operator>
struct LoopOf {
    template <typename T>
    ApplyFn operator()(Is<T>) const noexcept {
        return apply<T, Operator>;
    }
};

}  // namespace

std::uint32_t element_octets(std::uint32_t type) noexcept {
    if ((type & ULC_BYTES(0U)) != 0) {
        const std::uint32_t octets = type & ~ULC_BYTES(0U);
        return octets <= kElementOctetsMax ? octets : 0;
    }
    if (type == ULC_BOOL || type == ULC_BYTE) return 1;
    std::uint32_t octets = 0;
    const auto size = [&octets]<typename T>(Is<T>) -> ApplyFn {
        octets = sizeof(T);
        return nullptr;
    };
    static_cast<void>(numbers(type, size));
    static_cast<void>(places(type, size));
    return octets;
}

ApplyFn apply_of(std::uint32_t type, std::uint32_t op) noexcept {
    // One byte of no number is a byte like any other, where the operator allows it.
    const std::uint32_t logical = type == ULC_BOOL ? std::uint32_t{ULC_UINT8} : type;
    const std::uint32_t bits = type == ULC_BYTE ? std::uint32_t{ULC_UINT8} : type;
    switch (op) {
        case ULC_SUM:
            return numbers(type, LoopOf<Sum>{});
        case ULC_PROD:
            return numbers(type, LoopOf<Product>{});
        case ULC_MIN:
            return reals(type, LoopOf<Least>{});
        case ULC_MAX:
            return reals(type, LoopOf<Greatest>{});
        case ULC_LAND:
            return integers(logical, LoopOf<LogicalAnd>{});
        case ULC_LOR:
            return integers(logical, LoopOf<LogicalOr>{});
        case ULC_LXOR:
            return integers(logical, LoopOf<LogicalXor>{});
        case ULC_BAND:
            return integers(bits, LoopOf<BitAnd>{});
        case ULC_BOR:
            return integers(bits, LoopOf<BitOr>{});
        case ULC_BXOR:
            return integers(bits, LoopOf<BitXor>{});
        case ULC_MINLOC:
            return places(type, LoopOf<LeastAt>{});
        case ULC_MAXLOC:
            return places(type, LoopOf<GreatestAt>{});
        default:
            return nullptr;
    }
}

namespace {

bool is_aligned(const unsigned char* operand) noexcept {
    return reinterpret_cast<std::uintptr_t>(operand) % kUserAlignment == 0;
}

/// Bytes of a piece: whole elements, and if it is possible a multiple of the alignment, so that
/// the next piece is aligned too.
std::uint64_t piece_of(std::uint64_t element) noexcept {
    const std::uint64_t aligned = std::lcm(element, kUserAlignment);
    const std::uint64_t unit = aligned <= kElementOctetsMax ? aligned : element;
    return std::max(unit, kPieceOctets - kPieceOctets % unit);
}

// A user's function leaves its result in its first operand. So that operand is copied into `into`
// first, a piece at a time; and if the second is there, it is copied aside. This also applies to
// commutative functions: results must be the same to the last bit wherever they are folded, and of
// operands that the function considers equal it may keep the first. An unaligned operand is copied
// aside as well.
[[gnu::noinline]] void apply_in_pieces(const ulc_reduction& reduction, unsigned char* into,
                                       const unsigned char* from, const unsigned char* with,
                                       std::uint64_t octets, std::uint64_t element) noexcept {
    alignas(kUserAlignment) unsigned char aside_into[kElementOctetsMax];
    alignas(kUserAlignment) unsigned char aside_with[kElementOctetsMax];
    const std::uint64_t most = piece_of(element);
    for (std::uint64_t at = 0; at < octets; at += most) {
        const std::uint64_t length = std::min(most, octets - at);
        const unsigned char* second = with + at;
        if (into == with || !is_aligned(second)) {
            std::memcpy(aside_with, second, length);
            second = aside_with;
        }
        unsigned char* first = is_aligned(into + at) ? into + at : aside_into;
        if (first != from + at) std::memcpy(first, from + at, length);
        reduction.function(reduction.context, first, second, length / element);
        if (first == aside_into) std::memcpy(into + at, first, length);
    }
}

}  // namespace

void apply_user(void* context, unsigned char* into, const unsigned char* from,
                const unsigned char* with, std::uint64_t octets) noexcept {
    const auto& reduction = *static_cast<const ulc_reduction*>(context);
    const std::uint64_t element = element_octets(reduction.type);
    if (into == from && is_aligned(into) && is_aligned(with)) {
        reduction.function(reduction.context, into, with, octets / element);
    } else {
        apply_in_pieces(reduction, into, from, with, octets, element);
    }
}

}  // namespace ulc::coll

size_t ulc_type_bytes(uint32_t type) { return ulc::coll::element_octets(type); }
size_t ulc_type_octets(uint32_t type) { return ulc_type_bytes(type); }
