// SPDX-License-Identifier: BSD-3-Clause
// Error codes and Result: errors are values, listed by each function that returns them.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace ulc {

enum class [[nodiscard]] Err : std::int32_t{
    kOk = 0,
#define ULC_ERROR(name, c_name, number, text) name = number,
#include "base/errors.def"
#undef ULC_ERROR
};

/// The text of an error; static storage. Unknown numbers give "unknown error".
[[nodiscard]] constexpr std::string_view text_of(Err error) noexcept {
    switch (error) {
        case Err::kOk:
            return "ok";
#define ULC_ERROR(name, c_name, number, text) \
    case Err::name:                           \
        return text;
#include "base/errors.def"
#undef ULC_ERROR
    }
    return "unknown error";
}

/// A value or an error. Asking for the one that is not there is a broken invariant.
template <typename T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Err error) : state_(std::in_place_index<1>, error) { ULC_CHECK(error != Err::kOk); }

    [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    [[nodiscard]] Err error() const noexcept { return ok() ? Err::kOk : std::get<1>(state_); }
    [[nodiscard]] T& value() {
        ULC_CHECK(ok());
        return std::get<0>(state_);
    }
    [[nodiscard]] const T& value() const {
        ULC_CHECK(ok());
        return std::get<0>(state_);
    }

private:
    std::variant<T, Err> state_;
};

}  // namespace ulc
