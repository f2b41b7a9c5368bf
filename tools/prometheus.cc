#include "tools/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace ulc::tools {
namespace {

/// Counters of base/counters.def that hold a level, not a sum.
constexpr std::array<std::string_view, 2> kLevels{"multicast_addresses",
                                                  "multicast_groups_sharing"};

std::string escaped(std::string_view text, bool quotes) {
    std::string out;
    for (const char letter : text) {
        if (letter == '\\' || (quotes && letter == '"')) out += '\\';
        if (letter == '\n') {
            out += "\\n";
        } else {
            out += letter;
        }
    }
    return out;
}

void append_family(std::string& out, std::string_view name, std::string_view help, bool is_level,
                   std::string_view labels, std::uint64_t value) {
    const std::string_view suffix = is_level ? "" : "_total";
    fmt::format_to(std::back_inserter(out),
                   "# HELP ulc_{0}{1} {2}\n# TYPE ulc_{0}{1} {3}\nulc_{0}{1}{{{4}}} {5}\n", name,
                   suffix, escaped(help, false), is_level ? "gauge" : "counter", labels, value);
}

}  // namespace

std::string prometheus_text(std::string_view engine, unsigned endpoints,
                            std::span<const Metric> metrics) {
    const std::string labels = fmt::format("engine=\"{}\"", escaped(engine, true));
    std::string out;
    for (const Metric& metric : metrics) {
        const bool is_level =
            std::find(kLevels.begin(), kLevels.end(), metric.name) != kLevels.end();
        append_family(out, metric.name, metric.help, is_level, labels, metric.value);
    }
    append_family(out, "endpoints", "endpoints that are open", true, labels, endpoints);
    return out;
}

}  // namespace ulc::tools
