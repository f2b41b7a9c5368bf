// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/watch/prometheus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/coarse_clock.h"
#include "tools/ulc/watch/handlers.h"

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

/// A level or a count of an endpoint.
struct EndpointLevel {
    std::string_view name;
    std::string_view help;
    std::uint32_t abi::EndpointRow::*value;
    double scale = 1;
    bool counts = false;
    /// The peer that it is of; an endpoint without one has no sample.
    std::uint32_t abi::EndpointRow::*peer = nullptr;
};
constexpr std::array kEndpointLevels{
    EndpointLevel{"frames_unacked", "to be sent, or sent and not acknowledged",
                  &abi::EndpointRow::frames_unacked},
    EndpointLevel{"frames_undelivered", "received, and not given to the client",
                  &abi::EndpointRow::frames_undelivered},
    EndpointLevel{"records_unread", "completions that the client has not taken",
                  &abi::EndpointRow::records_unread},
    EndpointLevel{"client_blocks", "1: a message waits for space in the client's memory",
                  &abi::EndpointRow::client_blocks},
    EndpointLevel{"rtt_seconds", "largest smoothed round-trip time to a peer",
                  &abi::EndpointRow::rtt_ns_max, 1e-9},
    EndpointLevel{"repairs_sent_total", "packets repeated, to one peer or to several at once",
                  &abi::EndpointRow::repairs_sent, 1, true},
    EndpointLevel{"requests_received_total", "requests of peers for repairs",
                  &abi::EndpointRow::requests_received, 1, true},
    EndpointLevel{"requests_sent_total", "requests to peers for repairs",
                  &abi::EndpointRow::requests_sent, 1, true},
    EndpointLevel{"repairs_peer", "rank to which most repairs were sent",
                  &abi::EndpointRow::repairs_rank, 1, false, &abi::EndpointRow::repairs_rank},
    EndpointLevel{"repairs_peer_sent", "repairs sent to that rank", &abi::EndpointRow::repairs_max,
                  1, false, &abi::EndpointRow::repairs_rank},
    EndpointLevel{"asks_peer", "rank that sent most requests", &abi::EndpointRow::asks_rank, 1,
                  false, &abi::EndpointRow::asks_rank},
    EndpointLevel{"asks_peer_received", "requests received from that rank",
                  &abi::EndpointRow::asks_max, 1, false, &abi::EndpointRow::asks_rank},
    EndpointLevel{"asked_peer", "rank to which most requests were sent",
                  &abi::EndpointRow::asked_rank, 1, false, &abi::EndpointRow::asked_rank},
    EndpointLevel{"asked_peer_sent", "requests sent to that rank", &abi::EndpointRow::asked_max, 1,
                  false, &abi::EndpointRow::asked_rank},
    EndpointLevel{"rtt_peer", "rank of rtt_seconds", &abi::EndpointRow::rtt_rank, 1, false,
                  &abi::EndpointRow::rtt_rank},
    EndpointLevel{"unacked_peer", "rank that has not acknowledged most packets",
                  &abi::EndpointRow::unacked_rank, 1, false, &abi::EndpointRow::unacked_rank},
    EndpointLevel{"unacked_peer_packets", "packets that this rank has not acknowledged",
                  &abi::EndpointRow::unacked_max, 1, false, &abi::EndpointRow::unacked_rank},
};

void append_endpoints(std::string& out, std::string_view labels,
                      std::span<const abi::EndpointRow> rows, std::uint32_t now_ms) {
    for (const EndpointLevel& level : kEndpointLevels) {
        fmt::format_to(std::back_inserter(out),
                       "# HELP ulc_endpoint_{0} {1}\n# TYPE ulc_endpoint_{0} {2}\n", level.name,
                       level.help, level.counts ? "counter" : "gauge");
        for (const abi::EndpointRow& row : rows) {
            if (level.peer != nullptr && row.*(level.peer) == abi::kNoRowRank) continue;
            fmt::format_to(std::back_inserter(out),
                           "ulc_endpoint_{}{{{},endpoint=\"{:#x}\",pid=\"{}\"}} {}\n", level.name,
                           labels, row.endpoint, row.pid, row.*(level.value) * level.scale);
        }
    }
    out +=
        "# HELP ulc_endpoint_handler_seconds age of the message handler that runs; 0: none does\n"
        "# TYPE ulc_endpoint_handler_seconds gauge\n";
    for (const abi::EndpointRow& row : rows)
        fmt::format_to(std::back_inserter(out),
                       "ulc_endpoint_handler_seconds{{{},endpoint=\"{:#x}\",pid=\"{}\"}} {}\n",
                       labels, row.endpoint, row.pid, handler_of(row, now_ms).ms / 1000.0);
}

}  // namespace

std::string prometheus_text(std::string_view engine, unsigned endpoints,
                            std::span<const Metric> metrics, std::span<const abi::EndpointRow> rows,
                            std::uint32_t now_ms) {
    const std::string labels = fmt::format("engine=\"{}\"", escaped(engine, true));
    std::string out;
    for (const Metric& metric : metrics) {
        const bool is_level =
            std::find(kLevels.begin(), kLevels.end(), metric.name) != kLevels.end();
        append_family(out, metric.name, metric.help, is_level, labels, metric.value);
    }
    append_family(out, "endpoints", "endpoints that are open", true, labels, endpoints);
    if (!rows.empty()) append_endpoints(out, labels, rows, now_ms);
    return out;
}

std::string prometheus_up(std::string_view engine, bool up) {
    std::string out;
    append_family(out, "up", "1: the engine answered", true,
                  fmt::format("engine=\"{}\"", escaped(engine, true)), up ? 1 : 0);
    return out;
}

std::string prometheus_text(std::string_view engine, const CounterPage& page) {
    const std::vector<std::uint64_t> values = page.values();
    std::vector<Metric> metrics;
    for (std::size_t i = 0; i < values.size(); ++i)
        metrics.push_back({page.names()[i], info_of(page.names()[i]).help, values[i]});
    return prometheus_text(engine, page.endpoints(), metrics, page.rows(), coarse_milliseconds());
}

}  // namespace ulc::tools
