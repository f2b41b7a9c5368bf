// SPDX-License-Identifier: BSD-3-Clause
// The counters of an engine in the text format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "abi/endpoint_row.h"
#include "tools/ulc/watch/counter_page.h"

namespace ulc::tools {

/// One counter as it is shown: name and help of base/counters.def.
struct Metric {
    std::string_view name;
    std::string_view help;
    std::uint64_t value;
};

/// Returns one family for each metric, named ulc_NAME_total, or ulc_NAME for a level that rises and
/// falls; then the number of endpoints; then, for each level of an endpoint, a family
/// ulc_endpoint_NAME, unless there are no rows. `engine` becomes the label of that name. `now_ms`:
/// as coarse_milliseconds().
[[nodiscard]] std::string prometheus_text(std::string_view engine, unsigned endpoints,
                                          std::span<const Metric> metrics,
                                          std::span<const abi::EndpointRow> rows = {},
                                          std::uint32_t now_ms = 0);

/// Returns the family ulc_up: 1 if the engine answered, else 0.
[[nodiscard]] std::string prometheus_up(std::string_view engine, bool up);

/// Returns prometheus_text() of a page that was opened at the socket `engine`.
[[nodiscard]] std::string prometheus_text(std::string_view engine, const CounterPage& page);

}  // namespace ulc::tools
