// SPDX-License-Identifier: BSD-3-Clause
// This file reads times and rates with their units, as people write them in options and files.
// Used by every command line and by the engine's configuration.
//
//   times   200us, 1.5 s, 2min, 1h         units ns, us, µs, ms, s, min, h
//   rates   100mbit, 1gbit, 2.5 Gbit/s     units bit, kbit, mbit, gbit, tbit, with or without /s;
//                                          the letter alone, as in 100M, too
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace ulc {

/// A time of the command line: what may be written, and the unit of a number without one.
struct TimeBounds {
    Nanos unit = kMicrosecond;
    Nanos low = 0;
    Nanos high = 0;
};

/// Reads a time. Returns an empty string and sets `out`; else returns what is wrong and what to
/// write, without the option's name.
[[nodiscard]] std::string read_time(std::string_view text, const TimeBounds& bounds, Nanos& out);

/// Reads a rate in bits a second, from `low` to `high`. Returns as read_time() does.
[[nodiscard]] std::string read_rate(std::string_view text, std::uint64_t low, std::uint64_t high,
                                    std::uint64_t& out);

/// Reads a time and replaces `text` by its nanoseconds. Returns as read_time() does.
[[nodiscard]] std::string replace_time(std::string& text, const TimeBounds& bounds);

/// Returns the time in the largest unit in which it is a whole number: "2 s", "1500 us".
[[nodiscard]] std::string text_of_time(Nanos time);

/// Returns the rate in the largest unit in which it is a whole number: "100 mbit".
[[nodiscard]] std::string text_of_rate(std::uint64_t bits_per_second);

}  // namespace ulc
