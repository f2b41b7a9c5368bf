// SPDX-License-Identifier: BSD-3-Clause
// The structs that this library can export and import: a row for each, with its name, its version
// and a digest of its list of fields. Rows register themselves before main().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/fnv.h"

namespace ulc::state {

class Archive;

struct StructRow {
    std::string_view name;
    std::uint16_t version = 0;
    std::uint64_t digest = 0;
};

/// A row in the list of this library's rows.
class Registration {
public:
    explicit Registration(const StructRow& of) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    const StructRow& row;
    const Registration* const next;
    const std::size_t place;  ///< below count()

    /// Returns the last row that was registered.
    [[nodiscard]] static const Registration* last() noexcept;
    /// Returns nullptr if this library has no such struct.
    [[nodiscard]] static const Registration* find(std::string_view name) noexcept;
    [[nodiscard]] static std::size_t count() noexcept;
};

template <const StructRow& kRow>
struct Registered {
    static inline const Registration registration{kRow};
};

template <class... T>
struct Types {};
/// Names the types of members.
template <class... T>
Types<T...> types_of(const T&...);

/// Width and kind of a member, as far as its octets show them.
template <class T>
constexpr std::uint64_t shape_of() noexcept {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
        return sizeof(T) * 4 + (std::is_floating_point_v<T> ? 2 : 0) +
               (std::is_signed_v<T> ? 1 : 0);
    else
        return 0;
}

/// Returns the digest of a list: the text of both halves, and the shapes of the exported members.
template <class... T>
constexpr std::uint64_t digest_of(Types<T...>, std::string_view exported,
                                  std::string_view by_hand) noexcept {
    std::uint64_t hash = kFnvBasis;
    for (const std::string_view text : {exported, std::string_view("|"), by_hand})
        for (const char c : text)
            if (c != ' ') hash = fnv1a(hash, static_cast<unsigned char>(c));
    ((hash = fnv1a(hash, shape_of<T>())), ...);
    return hash;
}

}  // namespace ulc::state

/// Begins a member function `fields(Archive&)` of Type. exported: members that are exported and
/// imported, at least one. by_hand: members that the function treats below this line, or that are
/// no state. Raise the version with every change of the octets. Returns from the function if the
/// archive has failed.
#define ULC_STATE(archive, Type, version, exported, by_hand)                                \
    do {                                                                                    \
        static_assert(std::is_same_v<std::remove_cvref_t<decltype(*this)>, Type>);          \
        ULC_STATE_COUNTED(exported, by_hand)                                                \
        static_cast<void>(sizeof(::ulc::state::types_of by_hand));                          \
        static constexpr ::ulc::state::StructRow kRow{                                      \
            #Type, version,                                                                 \
            ::ulc::state::digest_of(decltype(::ulc::state::types_of exported){}, #exported, \
                                    #by_hand)};                                             \
        if (!(archive).begin(::ulc::state::Registered<kRow>::registration)) return;         \
        (archive).values exported;                                                          \
        if (!(archive).ok()) return;                                                        \
    } while (false)

/// Binds each member to a name, which compiles if there are as many of both, and no name is twice.
#define ULC_STATE_COUNTED(exported, by_hand)                                                 \
    {                                                                                        \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"")        \
            [[maybe_unused]] auto& [ULC_STATE_HEAD exported ULC_STATE_TAIL by_hand] = *this; \
        _Pragma("GCC diagnostic pop")                                                        \
    }
#define ULC_STATE_HEAD(...) __VA_ARGS__
#define ULC_STATE_TAIL(...) __VA_OPT__(, ) __VA_ARGS__
