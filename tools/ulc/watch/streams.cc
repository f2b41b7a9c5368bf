// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/watch/streams.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "abi/attach.h"
#include "tools/ulc/engine_socket.h"

namespace ulc::tools {
namespace {

constexpr std::size_t kPageMax =
    sizeof(abi::StreamPageHeader) + abi::kStreamRowsMax * sizeof(abi::StreamRow);

std::string_view state_of(const abi::StreamRow& row) {
    switch (static_cast<abi::StreamState>(row.state)) {
        case abi::StreamState::kOpen:
            return "open";
        case abi::StreamState::kLocal:
            return "local";
        case abi::StreamState::kGone:
            return "gone";
    }
    return "unknown";
}

std::string rank_of(const abi::StreamRow& row) {
    return row.rank == abi::kNoRowRank ? "-" : std::to_string(row.rank);
}

/// Appends a line about the row that has most of a figure, unless all have none.
void append_most(std::string& out, std::span<const abi::StreamRow> rows, std::string_view what,
                 std::uint32_t abi::StreamRow::*figure, std::string_view unit) {
    const auto most = std::ranges::max_element(rows, {}, figure);
    if (most == rows.end() || (*most).*figure == 0) return;
    fmt::format_to(std::back_inserter(out), "{:>18}: peer {} of endpoint {:#x}, {} {}\n", what,
                   most->peer, most->endpoint, (*most).*figure, unit);
}

}  // namespace

bool read_streams(const std::string& socket, StreamPage* out, std::string* error) {
    Descriptor memory;
    if (!ask_for_page(socket, abi::HelloKind::kStreams, &memory, error)) return false;
    struct stat info {};
    std::vector<unsigned char> page;
    if (::fstat(memory.get(), &info) == 0 && info.st_size > 0)
        page.resize(std::min(static_cast<std::size_t>(info.st_size), kPageMax + 1));
    const ssize_t n = ::pread(memory.get(), page.data(), page.size(), 0);
    page.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return parse_streams(page, out, error);
}

bool parse_streams(std::span<const unsigned char> page, StreamPage* out, std::string* error) {
    abi::StreamPageHeader header{};
    std::ranges::copy(page.first(std::min(page.size(), sizeof header)),
                      reinterpret_cast<unsigned char*>(&header));
    if (header.magic == abi::kStreamPageMagic && header.version != abi::kStreamPageVersion) {
        *error = fmt::format(
            "the engine's page of streams has version {}, this ulc reads version {}; use the ulc "
            "that was installed with the engine",
            header.version, abi::kStreamPageVersion);
        return false;
    }
    if (header.magic != abi::kStreamPageMagic || header.count > abi::kStreamRowsMax ||
        header.all < header.count ||
        page.size() != sizeof header + header.count * sizeof(abi::StreamRow)) {
        *error = "the engine's page of streams is malformed; restart that engine";
        return false;
    }
    out->engine_pid = header.engine_pid;
    out->all = header.all;
    out->rows.resize(header.count);
    if (header.count > 0)
        std::memcpy(out->rows.data(), page.data() + sizeof header, page.size() - sizeof header);
    return true;
}

std::string streams_text(const StreamPage& page) {
    std::string out = fmt::format("{:>10} {:>8} {:>5} {:>5} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}\n",
                                  "ENDPOINT", "PID", "RANK", "PEER", "STATE", "REPAIRS", "ASKED-BY",
                                  "ASKED", "RTT-us", "UNACKED");
    for (const abi::StreamRow& row : page.rows)
        fmt::format_to(std::back_inserter(out),
                       "{:>#10x} {:>8} {:>5} {:>5} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8}\n",
                       row.endpoint, row.pid, rank_of(row), row.peer, state_of(row),
                       row.repairs_sent, row.requests_received, row.requests_sent,
                       row.rtt_ns == 0 ? "-" : fmt::format("{:.1f}", row.rtt_ns / 1e3),
                       row.unacked);
    if (page.rows.empty()) out += "no endpoint of this user has heard from a peer or sent to one\n";
    if (page.all > page.rows.size())
        fmt::format_to(std::back_inserter(out), "({} more are left out)\n",
                       page.all - page.rows.size());
    using Row = abi::StreamRow;
    append_most(out, page.rows, "loses most", &Row::repairs_sent, "packets repeated");
    append_most(out, page.rows, "asks most", &Row::requests_received, "requests");
    append_most(out, page.rows, "is asked most", &Row::requests_sent, "requests");
    append_most(out, page.rows, "slowest", &Row::rtt_ns, "ns there and back");
    append_most(out, page.rows, "acknowledges least", &Row::unacked, "packets unacknowledged");
    return out;
}

std::string streams_json(const StreamPage& page) {
    nlohmann::json out{{"engine_pid", page.engine_pid}, {"streams_in_all", page.all}};
    out["streams"] = nlohmann::json::array();
    for (const abi::StreamRow& row : page.rows) {
        nlohmann::json stream{{"endpoint", row.endpoint},
                              {"pid", row.pid},
                              {"uid", row.uid},
                              {"net", row.net},
                              {"peer", row.peer},
                              {"state", state_of(row)},
                              {"repairs_sent", row.repairs_sent},
                              {"requests_received", row.requests_received},
                              {"requests_sent", row.requests_sent},
                              {"unacked", row.unacked}};
        if (row.rank != abi::kNoRowRank) stream["rank"] = row.rank;
        if (row.rtt_ns != 0) stream["rtt_ns"] = row.rtt_ns;
        out["streams"].push_back(std::move(stream));
    }
    return out.dump() + "\n";
}

}  // namespace ulc::tools
