// SPDX-License-Identifier: BSD-3-Clause
#include "main/params/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <vector>

#include "base/text/nearest.h"
#include "base/text/quantity.h"

namespace ulc::daemon {
namespace {

/// A row of params.def. One of the two members is set.
struct Param {
    std::string_view name;
    const char* unit;
    std::int64_t minimum;
    std::int64_t maximum;
    const char* meaning;
    std::uint32_t EngineParams::*number = nullptr;
    Nanos EngineParams::*nanos = nullptr;

    constexpr Param(std::string_view called, std::uint32_t EngineParams::*field, const char* in,
                    std::int64_t low, std::int64_t high, const char* means)
        : name(called), unit(in), minimum(low), maximum(high), meaning(means), number(field) {}
    constexpr Param(std::string_view called, Nanos EngineParams::*field, const char*,
                    std::int64_t low, std::int64_t high, const char* means)
        : name(called),
          unit("TIME"),
          minimum(low * kMicrosecond),
          maximum(high * kMicrosecond),
          meaning(means),
          nanos(field) {}

    [[nodiscard]] std::string range() const {
        return nanos != nullptr ? text_of_time(minimum) + " to " + text_of_time(maximum)
                                : fmt::format("{} to {}", minimum, maximum);
    }
};

constexpr std::array kParams{
#define ULC_PARAM(name, field, type, default_value, unit, minimum, maximum, meaning) \
    Param{name, &EngineParams::field, unit, minimum, maximum, meaning},
#include "main/params/params.def"
#undef ULC_PARAM
};

/// Sets a number. Returns as set_param() does, without the name.
std::string set_number(std::string_view text, const Param& param, EngineParams& params) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (at != end || error == std::errc::invalid_argument)
        return fmt::format("{} is no number; write {} from {}", text, param.unit, param.range());
    if (error != std::errc() || value < param.minimum || value > param.maximum)
        return fmt::format("{} is out of range; write {} from {}", text, param.unit, param.range());
    params.*param.number = static_cast<std::uint32_t>(value);
    return {};
}

}  // namespace

std::string set_param(std::string_view text, EngineParams& params) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const auto* param = std::ranges::find(kParams, name, &Param::name);
    if (param == kParams.end()) {
        std::vector<std::string> names;
        for (const Param& each : kParams)
            names.emplace_back(each.name);
        const std::string near = nearest_word(name, names);
        return fmt::format("--param: there is no parameter {};{} --help-params lists all", name,
                           near.empty() ? "" : fmt::format(" did you mean {}?", near));
    }
    if (equals == std::string_view::npos)
        return fmt::format("--param {0}: there is no value; write {0}={1}, from {2}", name,
                           param->unit, param->range());
    const std::string_view value = text.substr(equals + 1);
    const std::string fault =
        param->nanos != nullptr
            ? read_time(value, {kMicrosecond, param->minimum, param->maximum}, params.*param->nanos)
            : set_number(value, *param, params);
    return fault.empty() ? fault : fmt::format("--param {}: {}", name, fault);
}

std::string param_of_option(std::string_view option) {
    const std::string_view name = option == "hold-told" ? "hold-limit" : option;
    return std::ranges::find(kParams, name, &Param::name) == kParams.end() ? "" : std::string(name);
}

std::string params_as_text() {
    const EngineParams usual;
    std::string out = "--param NAME=VALUE; may be repeated:\n";
    for (const Param& each : kParams) {
        const std::string value = each.nanos != nullptr ? text_of_time(usual.*each.nanos)
                                                        : std::to_string(usual.*each.number);
        const std::string unit = each.nanos != nullptr ? "" : fmt::format(" {}", each.unit);
        out += fmt::format("  {:<14} {} [{}{}; {}]\n", each.name, each.meaning, value, unit,
                           each.range());
    }
    return out;
}

}  // namespace ulc::daemon
