// SPDX-License-Identifier: BSD-3-Clause
#include "base/text/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace ulc {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t size;
};

// From the smallest to the largest.
constexpr std::array kTimeUnits{
    Unit{"ns", 1},      Unit{"us", kMicrosecond},  Unit{"ms", kMillisecond},
    Unit{"s", kSecond}, Unit{"min", 60 * kSecond}, Unit{"h", 3600 * kSecond}};
constexpr std::array kRateUnits{Unit{"bit", 1}, Unit{"kbit", 1'000}, Unit{"mbit", 1'000'000},
                                Unit{"gbit", 1'000'000'000}, Unit{"tbit", 1'000'000'000'000}};

struct Amount {
    double number = 0;
    std::string unit;  ///< in lower case, "" if none
};

/// Splits "1.5 Gbit/s" into number and unit. Returns nothing if it does not begin with a number.
std::optional<Amount> split(std::string_view text) {
    Amount amount;
    if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;  // nor "inf", "-1"
    const char* const end = text.data() + text.size();
    const auto [at, error] =
        std::from_chars(text.data(), end, amount.number, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    amount.unit.assign(std::find_if(at, end, [](char c) { return c != ' '; }), end);
    // Bytes a second are no unit here: they would be read as bits.
    if (amount.unit.ends_with("B") || amount.unit.ends_with("B/s")) return std::nullopt;
    std::ranges::transform(amount.unit, amount.unit.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return amount;
}

/// Returns the whole number of the smallest units; nothing: one that no 64 bits take.
std::optional<std::int64_t> product(double number, std::int64_t unit) {
    constexpr double kMost = 9e18;
    const double value = std::round(number * static_cast<double>(unit));
    return value <= kMost ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
}

std::optional<Nanos> time_of(std::string_view text, Nanos usual) {
    const auto amount = split(text);
    if (!amount) return std::nullopt;
    if (amount->unit.empty()) return product(amount->number, usual);
    const std::string_view name = amount->unit == "µs" ? "us" : std::string_view(amount->unit);
    const auto* unit = std::ranges::find(kTimeUnits, name, &Unit::name);
    return unit == kTimeUnits.end() ? std::nullopt : product(amount->number, unit->size);
}

std::optional<std::int64_t> rate_of(std::string_view text) {
    const auto amount = split(text);
    if (!amount) return std::nullopt;
    std::string_view prefix = amount->unit;
    for (const std::string_view end : {"bit/s", "bit", "b/s", "bps"}) {
        if (!prefix.ends_with(end)) continue;
        prefix.remove_suffix(end.size());
        break;
    }
    const auto* unit = std::ranges::find_if(
        kRateUnits, [&](const Unit& u) { return u.name.substr(0, u.name.size() - 3) == prefix; });
    return unit == kRateUnits.end() ? std::nullopt : product(amount->number, unit->size);
}

template <std::size_t N>
std::string text_in(std::int64_t value, const std::array<Unit, N>& units) {
    const Unit* unit = units.data();
    for (const Unit& larger : units)
        if (value % larger.size == 0) unit = &larger;
    return std::to_string(value / unit->size) + " " + std::string(unit->name);
}

/// Returns the name of the unit of numbers without one, which is one of kTimeUnits.
std::string_view name_of(Nanos unit) {
    return std::ranges::find(kTimeUnits, unit, &Unit::size)->name;
}

}  // namespace

std::string text_of_time(Nanos time) { return time == 0 ? "0" : text_in(time, kTimeUnits); }

std::string text_of_rate(std::uint64_t bits_per_second) {
    return bits_per_second == 0 ? "0"
                                : text_in(static_cast<std::int64_t>(bits_per_second), kRateUnits);
}

std::string read_time(std::string_view text, const TimeBounds& bounds, Nanos& out) {
    const auto time = time_of(text, bounds.unit);
    const std::string range = text_of_time(bounds.low) + " to " + text_of_time(bounds.high);
    const std::string name(name_of(bounds.unit));
    if (!time)
        return std::string(text) +
               " is no time; write a number and ns, us, ms, s, min or h, from " + range +
               "; without a unit it is in " + name;
    if (*time < bounds.low || *time > bounds.high) {
        const bool bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
        return std::string(text) + (bare ? " " + name : "") +
               " is out of range; write a time from " + range;
    }
    out = *time;
    return {};
}

std::string replace_time(std::string& text, const TimeBounds& bounds) {
    Nanos time = 0;
    std::string fault = read_time(text, bounds, time);
    if (fault.empty()) text = std::to_string(time);
    return fault;
}

std::string read_rate(std::string_view text, std::uint64_t low, std::uint64_t high,
                      std::uint64_t& out) {
    const auto rate = rate_of(text);
    const std::string range = text_of_rate(low) + " to " + text_of_rate(high);
    if (!rate)
        return std::string(text) +
               " is no rate; write bits a second with a unit, as in 100mbit or 1gbit, from " +
               range;
    if (static_cast<std::uint64_t>(*rate) < low || static_cast<std::uint64_t>(*rate) > high)
        return std::string(text) + " is out of range; write bits a second from " + range +
               ", as in 100mbit";
    out = static_cast<std::uint64_t>(*rate);
    return {};
}

}  // namespace ulc
