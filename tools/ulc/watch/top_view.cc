// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/watch/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace ulc::tools {
namespace {

struct Order {
    TopOrder order;
    char key;
    std::string_view word;
};
constexpr std::array kOrders{
    Order{TopOrder::kRate, 'r', "rate"},       Order{TopOrder::kRepairs, 'l', "repairs"},
    Order{TopOrder::kUnacked, 'u', "unacked"}, Order{TopOrder::kBacklog, 'b', "backlog"},
    Order{TopOrder::kUnread, 'c', "unread"},   Order{TopOrder::kRoundTrip, 't', "rtt"},
    Order{TopOrder::kPid, 'p', "pid"},
};

/// Counters between two samples of one engine.
class Rates {
public:
    Rates(const TopSample& before, const TopSample& now)
        : before_(before), now_(now), seconds_(now.seconds - before.seconds) {}

    [[nodiscard]] bool comparable() const {
        return seconds_ > 0 && before_.engine_pid == now_.engine_pid;
    }
    /// Returns the gain a second of the counter; 0 for one that this engine does not have.
    [[nodiscard]] double of(std::string_view name) const {
        const auto from = before_.counters.find(name);
        const auto to = now_.counters.find(name);
        if (!comparable() || from == before_.counters.end() || to == now_.counters.end()) return 0;
        return static_cast<double>(to->second - from->second) / seconds_;
    }
    /// Returns the sum over the counters whose names begin so.
    [[nodiscard]] double of_all(std::string_view prefix) const {
        double sum = 0;
        for (auto at = now_.counters.lower_bound(prefix);
             at != now_.counters.end() && at->first.starts_with(prefix); ++at)
            sum += of(at->first);
        return sum;
    }
    [[nodiscard]] double of_cursor(std::uint32_t from, std::uint32_t to) const {
        return comparable() ? (to - from) / seconds_ : 0;  // 32 bits, which wrap
    }

private:
    const TopSample& before_;
    const TopSample& now_;
    double seconds_;
};

struct Line {
    abi::EndpointRow row;
    double taken = 0;  ///< a second
    double given = 0;
    double repairs = 0;
    double requests = 0;  ///< received
};

std::vector<Line> lines_of(const TopSample& before, const TopSample& now, const Rates& rates) {
    std::vector<Line> lines;
    for (const abi::EndpointRow& row : now.rows) {
        Line line{row};
        const auto old = std::ranges::find(before.rows, row.endpoint, &abi::EndpointRow::endpoint);
        if (old != before.rows.end() && old->pid == row.pid) {
            line.taken = rates.of_cursor(old->records_taken, row.records_taken);
            line.given = rates.of_cursor(old->records_given, row.records_given);
            line.repairs = rates.of_cursor(old->repairs_sent, row.repairs_sent);
            line.requests = rates.of_cursor(old->requests_received, row.requests_received);
        }
        lines.push_back(line);
    }
    return lines;
}

double weight_of(const Line& line, TopOrder order) {
    switch (order) {
        case TopOrder::kRate:
            return line.taken + line.given;
        case TopOrder::kRepairs:
            return line.repairs + line.requests;
        case TopOrder::kUnacked:
            return line.row.frames_unacked;
        case TopOrder::kBacklog:
            return line.row.frames_undelivered;
        case TopOrder::kUnread:
            return line.row.records_unread;
        case TopOrder::kRoundTrip:
            return line.row.rtt_ns_max;
        case TopOrder::kPid:
            return line.row.pid;
    }
    return 0;
}

/// Returns the endpoint whose client takes its messages most slowly; nullptr: none lags.
const Line* slowest_client(const std::vector<Line>& lines) {
    const auto lag = [](const Line& line) {
        return std::uint64_t{line.row.client_blocks} << 40 |
               (std::uint64_t{line.row.frames_undelivered} + line.row.records_unread);
    };
    const auto most = std::ranges::max_element(lines, {}, lag);
    return most == lines.end() || lag(*most) == 0 ? nullptr : &*most;
}

std::string compact(double value) {
    if (value >= 1e10) return fmt::format("{:.1f}G", value / 1e9);
    if (value >= 1e7) return fmt::format("{:.1f}M", value / 1e6);
    if (value >= 1e5) return fmt::format("{:.1f}k", value / 1e3);
    return fmt::format("{:.0f}", value);
}

std::string rank_of(const abi::EndpointRow& row) {
    return row.rank == abi::kNoRowRank ? "-" : fmt::format("{}/{}", row.rank, row.size);
}

std::string peer_of(std::uint32_t rank) {
    return rank == abi::kNoRowRank ? "-" : std::to_string(rank);
}

class Page {
public:
    explicit Page(const TopStyle& style) : style_(style) {}
    enum class Tone : std::uint8_t { kPlain, kHeading, kAlarm };
    /// Adds a line, and further ones for what is too long: they begin behind its first word.
    void add(std::string text, Tone tone = Tone::kPlain) {
        for (std::size_t end = end_of_line(text); end != std::string::npos;
             end = end_of_line(text)) {
            add_line(text.substr(0, end), tone);
            text.replace(0, std::min(text.find_first_not_of(", ", end), text.size()), kIndent, ' ');
        }
        add_line(std::move(text), tone);
    }
    /// Adds a line that is cut where the terminal ends.
    void add_line(std::string text, Tone tone = Tone::kPlain) {
        if (style_.columns_max != 0 && text.size() > style_.columns_max)
            text.resize(style_.columns_max);
        const bool coloured = style_.colours && tone != Tone::kPlain;
        const std::string_view begin = tone == Tone::kAlarm ? "\x1b[31m" : "\x1b[1m";
        lines_.push_back(coloured ? fmt::format("{}{}\x1b[0m", begin, text) : text);
    }
    [[nodiscard]] bool full(unsigned kept) const {
        return style_.lines_max != 0 && lines_.size() + kept >= style_.lines_max;
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const std::string& line : lines_)
            out += line + "\n";
        return out;
    }

private:
    static constexpr std::size_t kIndent = 9;
    /// Returns where a line that is too long may end, before a comma or a gap; npos: it need not,
    /// or nowhere.
    [[nodiscard]] std::size_t end_of_line(const std::string& text) const {
        const std::size_t most = style_.columns_max;
        if (most <= kIndent || text.size() <= most) return std::string::npos;
        const auto before = [&](std::string_view mark) {
            const std::size_t at = text.rfind(mark, most - 1);
            return at == std::string::npos || at <= kIndent ? 0 : at;
        };
        const std::size_t comma = before(", ");
        const std::size_t end = std::max(comma == 0 ? 0 : comma + 1, before("   "));
        return end == 0 || end > most ? std::string::npos : end;
    }

    const TopStyle& style_;
    std::vector<std::string> lines_;
};

/// Adds a line if frames came that are not for this node, or left it that cannot be sent.
void add_strays(Page& page, const Rates& rates) {
    struct Reason {
        const char* counter;
        const char* words;
    };
    constexpr Reason kReasons[] = {{"tx_unsendable", "not sendable"},
                                   {"drop_too_long", "too long"},
                                   {"drop_vlan", "of a VLAN"},
                                   {"drop_other_station", "for others"},
                                   {"port_errors", "damaged"}};
    std::string text;
    for (const Reason& reason : kReasons)
        if (const double rate = rates.of(reason.counter); rate > 0)
            text += fmt::format("{}{} {}/s", text.empty() ? "frames   " : ", ", reason.words,
                                compact(rate));
    if (!text.empty()) page.add(text, Page::Tone::kAlarm);
}

/// Adds a line if the interface under a port has changed since the engine began.
void add_interface(Page& page, const TopSample& now) {
    const auto total = [&](std::string_view name) {
        const auto at = now.counters.find(name);
        return at == now.counters.end() ? std::uint64_t{0} : at->second;
    };
    const std::uint64_t falls = total("mtu_falls");
    const std::uint64_t changes = total("mac_changes");
    if (falls + changes == 0) return;
    page.add(fmt::format("changed  MTU of an interface fell {} times, MAC changed {} times: see "
                         "the log",
                         falls, changes),
             Page::Tone::kAlarm);
}

void add_engine(Page& page, const TopSample& now, const Rates& rates) {
    page.add(fmt::format("engine {} at {}: {} endpoint{}, ports {}", now.engine_pid, now.socket,
                         now.rows.size(), now.rows.size() == 1 ? "" : "s",
                         now.ports.empty() ? "none" : now.ports),
             Page::Tone::kHeading);
    page.add(fmt::format("wire     rx {} frames/s, {} bytes/s   tx {} frames/s, {} bytes/s",
                         compact(rates.of("rx_frames")), compact(rates.of("rx_bytes")),
                         compact(rates.of("tx_frames")), compact(rates.of("tx_bytes"))));
    page.add(fmt::format("messages sent {}/s, received {}/s   within this node {}/s",
                         compact(rates.of("messages_sent")), compact(rates.of("messages_received")),
                         compact(rates.of("passed_messages") + rates.of("loopback_frames"))));
    const double repairs = rates.of("repair_unicast") + rates.of("repair_multicast");
    const double sent = rates.of("data_sent");
    const double missed = rates.of("port_missed");
    page.add(
        fmt::format("losses   repairs {}/s ({:.2f} % of packets), requests {}/s, missed by the "
                    "port {}/s, dropped {}/s",
                    compact(repairs), sent > 0 ? 100 * repairs / sent : 0,
                    compact(rates.of("req_sent")), compact(missed), compact(rates.of_all("drop_"))),
        missed > 0 ? Page::Tone::kAlarm : Page::Tone::kPlain);
    add_strays(page, rates);
    add_interface(page, now);
    const double rounds = rates.of("rounds");
    page.add(
        fmt::format("engine   {} rounds/s, {:.1f} % busy, {} naps/s   stalled by clients {}/s, "
                    "held up by slow members {}/s",
                    compact(rounds), rounds > 0 ? 100 * rates.of("rounds_busy") / rounds : 0,
                    compact(rates.of("naps")), compact(rates.of("client_stalled")),
                    compact(rates.of("held_by_slow") + rates.of("held_by_silent"))));
}

void add_slowest(Page& page, const std::vector<Line>& lines) {
    const Line* slowest = slowest_client(lines);
    if (slowest == nullptr) {
        page.add("slowest  no client lags");
        return;
    }
    const abi::EndpointRow& row = slowest->row;
    page.add(fmt::format("slowest  client {}: {} frames wait for it, {} completions unread{}",
                         row.pid, row.frames_undelivered, row.records_unread,
                         row.client_blocks != 0 ? ", its memory is full" : ""),
             row.client_blocks != 0 ? Page::Tone::kAlarm : Page::Tone::kPlain);
}

// The columns of an endpoint itself, 80 in all, and those about its peers. They are one line where
// the terminal is wide enough, else two.
constexpr std::string_view kOwn = "{:>10} {:>7} {:>6} {:>8} {:>9} {:>9} {:>8} {:>8} {:>7}";
constexpr std::string_view kPeers = "{:>9} {:>5} {:>8} {:>5} {:>8} {:>5}";

/// Returns an endpoint, or the heading, as one line or two.
std::vector<std::string> joined(std::string own, const std::string& peers, const TopStyle& style) {
    if (style.columns_max == 0 || own.size() + 1 + peers.size() <= style.columns_max)
        return {own + " " + peers};
    return {std::move(own), fmt::format("{:>10} {}", "", peers)};
}

std::vector<std::string> heading(const TopStyle& style) {
    return joined(fmt::format(kOwn, "ENDPOINT", "PID", "UID", "RANK", "TAKEN/s", "GIVEN/s",
                              "UNACKED", "BACKLOG", "UNREAD"),
                  fmt::format(kPeers, "RTT-us", "PEER", "REPAIR/s", "LOSES", "ASKED/s", "ASKS"),
                  style);
}

std::vector<std::string> text_of(const Line& line, const TopStyle& style) {
    const abi::EndpointRow& row = line.row;
    const bool measured = row.rtt_rank != abi::kNoRowRank;
    return joined(
        fmt::format(kOwn, fmt::format("{:#x}", row.endpoint), row.pid, row.uid, rank_of(row),
                    compact(line.taken), compact(line.given), row.frames_unacked,
                    row.frames_undelivered, row.records_unread),
        fmt::format(kPeers, measured ? fmt::format("{:.1f}", row.rtt_ns_max / 1e3) : "-",
                    peer_of(row.rtt_rank), compact(line.repairs), peer_of(row.repairs_rank),
                    compact(line.requests), peer_of(row.asks_rank)),
        style);
}

}  // namespace

std::optional<TopOrder> order_of_key(char key) noexcept {
    const auto* found = std::ranges::find(kOrders, key, &Order::key);
    return found == kOrders.end() ? std::nullopt : std::optional(found->order);
}

std::optional<TopOrder> order_of_word(std::string_view word) noexcept {
    const auto* found = std::ranges::find(kOrders, word, &Order::word);
    return found == kOrders.end() ? std::nullopt : std::optional(found->order);
}

std::string order_words() {
    std::string out;
    for (const Order& order : kOrders)
        out += (out.empty() ? "" : ", ") + std::string(order.word);
    return out;
}

std::string top_text(const TopSample& before, const TopSample& now, const TopStyle& style) {
    const Rates rates(before, now);
    std::vector<Line> lines = lines_of(before, now, rates);
    std::ranges::stable_sort(lines, std::ranges::greater{},
                             [&](const Line& line) { return weight_of(line, style.order); });
    Page page(style);
    add_engine(page, now, rates);
    add_slowest(page, lines);
    page.add("");
    for (const std::string& text : heading(style))
        page.add_line(text, Page::Tone::kHeading);
    for (const Line& line : lines) {
        const std::vector<std::string> texts = text_of(line, style);
        if (page.full(static_cast<unsigned>(texts.size()) - 1 + (style.keys ? 1 : 0))) break;
        for (const std::string& text : texts)
            page.add_line(text,
                          line.row.client_blocks != 0 ? Page::Tone::kAlarm : Page::Tone::kPlain);
    }
    if (style.keys)
        page.add_line(
            "q quit  sort: r rate  l repairs  u unacked  b backlog  c unread  t rtt  p pid");
    return page.text();
}

}  // namespace ulc::tools
