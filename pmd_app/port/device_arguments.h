// SPDX-License-Identifier: BSD-3-Clause
// The arguments of a device string, "name,key=value,…", as --device takes it.
#pragma once

#include <string>
#include <string_view>

namespace ulc::port {

/// Calls set(key, value) for each argument, in order, until one returns why it cannot be set.
/// Returns that; empty: all are set. value is empty if there is no '='.
template <typename Set>
[[nodiscard]] std::string set_arguments(std::string_view device, Set set) {
    for (std::size_t comma = device.find(','); comma != std::string_view::npos;) {
        device.remove_prefix(comma + 1);
        comma = device.find(',');
        const std::string_view argument = device.substr(0, comma);
        const std::size_t equals = argument.find('=');
        const bool has_value = equals != std::string_view::npos;
        std::string wrong = set(argument.substr(0, equals),
                                has_value ? argument.substr(equals + 1) : std::string_view());
        if (!wrong.empty()) return wrong;
    }
    return {};
}

}  // namespace ulc::port
