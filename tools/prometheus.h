// The counters of an engine in the text format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ulc::tools {

/// One counter as it is shown: name and help of base/counters.def.
struct Metric {
    std::string_view name;
    std::string_view help;
    std::uint64_t value;
};

/// Returns one family for each metric, named ulc_NAME_total, or ulc_NAME for a level that rises and
/// falls; then the number of endpoints. `engine` becomes the label of that name.
[[nodiscard]] std::string prometheus_text(std::string_view engine, unsigned endpoints,
                                          std::span<const Metric> metrics);

}  // namespace ulc::tools
