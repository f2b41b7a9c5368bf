// SPDX-License-Identifier: BSD-3-Clause
// Tests the loops of reductions: every allowed pair of type and operator against arithmetic written
// out, every other refused, at odd addresses and with any number of elements.
#include <coll.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "coll/reduction.h"

namespace ulc::coll {
namespace {

template <typename T>
const unsigned char* octets_of(const std::vector<T>& values) {
    return reinterpret_cast<const unsigned char*>(values.data());
}

/// Destination of a result.
enum class Into : std::uint8_t { kFirst, kSecond, kApart };
constexpr Into kPlaces[] = {Into::kFirst, Into::kSecond, Into::kApart};

/// Computes a ∘ b elementwise, all at unaligned addresses.
template <typename T>
std::vector<T> applied(std::uint32_t type, std::uint32_t op, const std::vector<T>& a,
                       const std::vector<T>& b, Into place = Into::kFirst) {
    const ApplyFn apply = apply_of(type, op);
    EXPECT_NE(apply, nullptr) << "type " << type << " operator " << op;
    EXPECT_EQ(element_octets(type), sizeof(T));
    const std::size_t octets = a.size() * sizeof(T);
    std::vector<unsigned char> into(octets + 2, 0xee);
    std::vector<unsigned char> first(octets + 3, 0xee);
    std::vector<unsigned char> second(octets + 5, 0xee);
    unsigned char* from = place == Into::kFirst ? into.data() + 1 : first.data() + 3;
    unsigned char* with = place == Into::kSecond ? into.data() + 1 : second.data() + 5;
    std::copy_n(octets_of(a), octets, from);
    std::copy_n(octets_of(b), octets, with);
    apply(nullptr, into.data() + 1, from, with, octets);
    EXPECT_EQ(into.front(), 0xee);
    EXPECT_EQ(into.back(), 0xee);
    std::vector<T> result(a.size());
    if (octets > 0) std::memcpy(result.data(), into.data() + 1, octets);
    return result;
}

template <typename T>
std::vector<T> some(std::size_t count, int seed) {
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i)
        values.push_back(static_cast<T>((static_cast<int>(i) * 37 + seed * 11) % 101 - 50));
    return values;
}

template <typename T, typename Expected>
void expect_all(std::uint32_t type, std::uint32_t op, Expected expected) {
    for (const std::size_t count : {0U, 1U, 3U, 16U, 101U}) {
        const std::vector<T> a = some<T>(count, 1);
        const std::vector<T> b = some<T>(count, 2);
        for (const Into place : kPlaces) {
            const std::vector<T> got = applied(type, op, a, b, place);
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(got[i], expected(a[i], b[i])) << type << ' ' << op << ' ' << i;
        }
    }
}

template <typename T>
void arithmetic(std::uint32_t type) {
    expect_all<T>(type, ULC_SUM, [](T a, T b) { return static_cast<T>(a + b); });
    expect_all<T>(type, ULC_PROD, [](T a, T b) { return static_cast<T>(a * b); });
}
template <typename T>
void order(std::uint32_t type) {
    expect_all<T>(type, ULC_MIN, [](T a, T b) { return std::min(a, b); });
    expect_all<T>(type, ULC_MAX, [](T a, T b) { return std::max(a, b); });
}
template <typename T>
void logic(std::uint32_t type) {
    expect_all<T>(type, ULC_LAND, [](T a, T b) { return static_cast<T>(a && b); });
    expect_all<T>(type, ULC_LOR, [](T a, T b) { return static_cast<T>(a || b); });
    expect_all<T>(type, ULC_LXOR, [](T a, T b) { return static_cast<T>(!a != !b); });
}
template <typename T>
void bits(std::uint32_t type) {
    expect_all<T>(type, ULC_BAND, [](T a, T b) { return static_cast<T>(a & b); });
    expect_all<T>(type, ULC_BOR, [](T a, T b) { return static_cast<T>(a | b); });
    expect_all<T>(type, ULC_BXOR, [](T a, T b) { return static_cast<T>(a ^ b); });
}
template <typename T>
void integer(std::uint32_t type) {
    order<T>(type);
    logic<T>(type);
    bits<T>(type);
    // Wraps. In C++ a sum of int may not overflow, so the expected value is computed as unsigned.
    using U = std::make_unsigned_t<T>;
    expect_all<T>(type, ULC_SUM,
                  [](T a, T b) { return static_cast<T>(static_cast<std::uint64_t>(U(a)) + U(b)); });
    expect_all<T>(type, ULC_PROD,
                  [](T a, T b) { return static_cast<T>(static_cast<std::uint64_t>(U(a)) * U(b)); });
    const T most = std::numeric_limits<T>::max();
    EXPECT_EQ(applied<T>(type, ULC_SUM, {most}, {1}).front(), std::numeric_limits<T>::min());
    EXPECT_EQ(applied<T>(type, ULC_PROD, {most}, {most}).front(), 1);
}

TEST(reduction, integers_of_every_width_wrap_compare_and_combine) {
    integer<std::int8_t>(ULC_INT8);
    integer<std::int16_t>(ULC_INT16);
    integer<std::int32_t>(ULC_INT32);
    integer<std::int64_t>(ULC_INT64);
    integer<std::uint8_t>(ULC_UINT8);
    integer<std::uint16_t>(ULC_UINT16);
    integer<std::uint32_t>(ULC_UINT32);
    integer<std::uint64_t>(ULC_UINT64);
}

TEST(reduction, floating_point_and_complex) {
    arithmetic<float>(ULC_FLOAT);
    arithmetic<double>(ULC_DOUBLE);
    arithmetic<long double>(ULC_LONG_DOUBLE);
    order<float>(ULC_FLOAT);
    order<double>(ULC_DOUBLE);
    order<long double>(ULC_LONG_DOUBLE);
    arithmetic<std::complex<float>>(ULC_FLOAT_COMPLEX);
    arithmetic<std::complex<double>>(ULC_DOUBLE_COMPLEX);
    arithmetic<std::complex<long double>>(ULC_LONG_DOUBLE_COMPLEX);
    using C = std::complex<double>;
    EXPECT_EQ(applied<C>(ULC_DOUBLE_COMPLEX, ULC_PROD, {C(1, 2)}, {C(3, 4)}).front(), C(-5, 10));
}

TEST(reduction, any_true_octet_counts_as_true) {
    bits<std::uint8_t>(ULC_BYTE);
    using Octets = std::vector<std::uint8_t>;
    EXPECT_EQ(applied(ULC_BOOL, ULC_LAND, Octets{0, 7, 128, 1}, Octets{1, 2, 0, 255}),
              (Octets{0, 1, 0, 1}));
    EXPECT_EQ(applied(ULC_BOOL, ULC_LXOR, Octets{0, 7, 128, 0}, Octets{1, 2, 0, 0}),
              (Octets{1, 0, 1, 0}));
}

template <typename V>
struct Place {
    V value;
    int index;
};

template <typename V>
void place(std::uint32_t type) {
    const std::vector<Place<V>> a{{V(3), 7}, {V(-5), 1}, {V(4), 9}, {V(4), 2}};
    const std::vector<Place<V>> b{{V(2), 8}, {V(6), 0}, {V(4), 5}, {V(4), 6}};
    const Place<V> least_wanted[] = {{V(2), 8}, {V(-5), 1}, {V(4), 5}, {V(4), 2}};
    const Place<V> most_wanted[] = {{V(3), 7}, {V(6), 0}, {V(4), 5}, {V(4), 2}};
    for (const Into into : kPlaces) {
        const auto least = applied(type, ULC_MINLOC, a, b, into);
        const auto most = applied(type, ULC_MAXLOC, a, b, into);
        for (std::size_t i = 0; i < a.size(); ++i) {
            EXPECT_EQ(least[i].value, least_wanted[i].value) << type << ' ' << i;
            EXPECT_EQ(least[i].index, least_wanted[i].index) << type << ' ' << i;
            EXPECT_EQ(most[i].value, most_wanted[i].value) << type << ' ' << i;
            EXPECT_EQ(most[i].index, most_wanted[i].index) << type << ' ' << i;
        }
    }
}

TEST(reduction, places_are_the_first_of_equal_values) {
    place<float>(ULC_FLOAT_INT);
    place<double>(ULC_DOUBLE_INT);
    place<long>(ULC_LONG_INT);
    place<short>(ULC_SHORT_INT);
    place<int>(ULC_2INT);
    place<long double>(ULC_LONG_DOUBLE_INT);
}

TEST(reduction, what_mpi_does_not_allow_is_refused) {
    const auto allowed = [](std::uint32_t type, std::uint32_t op) {
        const bool integer = type >= ULC_INT8 && type <= ULC_UINT64;
        const bool real = type >= ULC_FLOAT && type <= ULC_LONG_DOUBLE;
        const bool complex = type >= ULC_FLOAT_COMPLEX && type <= ULC_LONG_DOUBLE_COMPLEX;
        if (op == ULC_SUM || op == ULC_PROD) return integer || real || complex;
        if (op == ULC_MIN || op == ULC_MAX) return integer || real;
        if (op >= ULC_LAND && op <= ULC_LXOR) return integer || type == ULC_BOOL;
        if (op >= ULC_BAND && op <= ULC_BXOR) return integer || type == ULC_BYTE;
        return op <= ULC_MAXLOC && op >= ULC_MINLOC && type >= ULC_FLOAT_INT &&
               type <= ULC_LONG_DOUBLE_INT;
    };
    for (std::uint32_t type = 0; type < 40; ++type) {
        for (std::uint32_t op = 0; op < 20; ++op)
            EXPECT_EQ(apply_of(type, op) != nullptr, allowed(type, op)) << type << ' ' << op;
    }
    EXPECT_EQ(apply_of(ULC_BYTES(8), ULC_SUM), nullptr);
    EXPECT_EQ(ulc_type_bytes(0), 0U);
    EXPECT_EQ(ulc_type_bytes(23), 0U);
    EXPECT_EQ(ulc_type_bytes(ULC_BYTES(0)), 0U);
    EXPECT_EQ(ulc_type_bytes(ULC_BYTES(24)), 24U);
    EXPECT_EQ(ulc_type_bytes(ULC_BYTES(65536)), 65536U);
    EXPECT_EQ(ulc_type_bytes(ULC_BYTES(65537)), 0U);
    EXPECT_EQ(ulc_type_octets(ULC_OCTETS(24)), 24U) << "the former names";
}

TEST(reduction, a_users_operator_hears_of_elements) {
    std::size_t seen = 0;
    ulc_reduction reduction{ULC_BYTES(3), ULC_USER,
                            [](void* context, void* into, const void* from, size_t count) {
                                *static_cast<std::size_t*>(context) += count;
                                static_cast<unsigned char*>(into)[0] =
                                    static_cast<const unsigned char*>(from)[2];
                            },
                            &seen, 0};
    unsigned char into[6] = {};
    const unsigned char from[6] = {1, 2, 3, 4, 5, 6};
    apply_user(&reduction, into, into, from, sizeof into);
    EXPECT_EQ(seen, 2U);
    EXPECT_EQ(into[0], 3);
}

TEST(reduction, equal_operands_that_differ_keep_their_order) {
    for (const Into place : kPlaces) {
        for (const double first : {0.0, -0.0}) {
            const std::vector<double> got =
                applied<double>(ULC_DOUBLE, ULC_MIN, {first}, {-first}, place);
            EXPECT_EQ(std::signbit(got[0]), std::signbit(first));
        }
    }
}

TEST(reduction, a_users_operator_keeps_its_order_even_if_it_commutes) {
    for (const std::uint32_t element : {1U, 3U, 4097U, 65536U}) {
        std::uint64_t seen = 0;
        ulc_reduction keep_first{ULC_BYTES(element), ULC_USER,
                                 [](void* context, void*, const void*, size_t count) {
                                     *static_cast<std::uint64_t*>(context) += count;
                                 },
                                 &seen, 0};
        const std::uint64_t count = 10000 / element + 2;
        const std::vector<unsigned char> first(element * count, 2);
        for (const int commutative : {0, 1}) {  // as far as it can tell the operands apart
            keep_first.commutative = commutative;
            for (const bool apart : {false, true}) {
                std::vector<unsigned char> into(element * count, 1);
                const std::vector<unsigned char> second(into);
                seen = 0;
                apply_user(&keep_first, into.data(), first.data(),
                           apart ? second.data() : into.data(), into.size());
                EXPECT_EQ(into, first) << element;
                EXPECT_EQ(seen, count);
            }
        }
    }
}

// Each operand lies at every address, separate and overlapping. The function sees aligned operands,
// and the result is the same.
TEST(reduction, a_users_operator_gets_aligned_operands) {
    struct Seen {
        std::uint64_t element;
        unsigned misaligned = 0;
        std::uint64_t count = 0;
    };
    constexpr std::size_t kAround = 32;  // before and after each operand, must stay untouched
    for (const std::uint32_t element : {1U, 3U, 16U, 24U, 4097U, 65536U}) {
        const std::uint64_t count = 10'000 / element + 2;
        const std::uint64_t octets = element * count;
        for (const std::size_t shift : {0U, 1U, 8U, 15U}) {
            for (const bool in_place : {false, true}) {
                Seen seen{element};
                const ulc_reduction add{ULC_BYTES(element), ULC_USER,
                                        [](void* context, void* into, const void* from, size_t n) {
                                            auto& s = *static_cast<Seen*>(context);
                                            if (reinterpret_cast<std::uintptr_t>(into) % 16 != 0)
                                                ++s.misaligned;
                                            if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
                                                ++s.misaligned;
                                            s.count += n;
                                            auto* a = static_cast<unsigned char*>(into);
                                            const auto* b = static_cast<const unsigned char*>(from);
                                            for (std::uint64_t i = 0; i < n * s.element; ++i)
                                                a[i] = static_cast<unsigned char>(a[i] + 2 * b[i]);
                                        },
                                        &seen, 0};
                std::vector<unsigned char> memory(3 * (octets + 2 * kAround) + 16, 9);
                unsigned char* at[3];
                for (std::size_t n = 0; n < 3; ++n) {
                    at[n] = memory.data() + kAround + n * (octets + 2 * kAround) + shift * n % 16;
                    for (std::uint64_t i = 0; i < octets; ++i)
                        at[n][i] = static_cast<unsigned char>(i * (n + 3));
                }
                std::vector<unsigned char> expected(memory);
                unsigned char* into = at[in_place ? 1 : 0];
                for (std::uint64_t i = 0; i < octets; ++i)
                    expected[static_cast<std::size_t>(into - memory.data()) + i] =
                        static_cast<unsigned char>(at[1][i] + 2 * at[2][i]);
                apply_user(const_cast<ulc_reduction*>(&add), into, at[1], at[2], octets);
                EXPECT_EQ(seen.misaligned, 0U) << element << " at " << shift;
                EXPECT_EQ(seen.count, count);
                EXPECT_EQ(memory, expected) << element << " at " << shift;
            }
        }
    }
}

}  // namespace
}  // namespace ulc::coll
