// SPDX-License-Identifier: BSD-3-Clause
// Parameters of an engine, from params.def: --param NAME=VALUE to checked values. Used by the
// options of the engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace ulc::daemon {

namespace param_type {
using u32 = std::uint32_t;
using nanos = Nanos;
constexpr u32 of_u32(std::uint32_t value) { return value; }
constexpr nanos of_nanos(std::int64_t value) { return value * kMicrosecond; }
}  // namespace param_type

struct EngineParams {
#define ULC_PARAM(name, field, type, default_value, unit, minimum, maximum, meaning) \
    param_type::type field = param_type::of_##type(default_value);
#include "main/params/params.def"
#undef ULC_PARAM
};

/// Sets the parameter that `text` gives a value, as in "ack-delay=300us". Returns an empty string;
/// else a sentence with what is wrong and what to write, and `params` is as before.
[[nodiscard]] std::string set_param(std::string_view text, EngineParams& params);

/// Returns the parameter that replaces this option of release 0.2.0; empty: none does.
[[nodiscard]] std::string param_of_option(std::string_view option);

/// Returns one line for each parameter: name, default, range and meaning.
[[nodiscard]] std::string params_as_text();

}  // namespace ulc::daemon
