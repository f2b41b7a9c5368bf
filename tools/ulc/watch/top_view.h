// SPDX-License-Identifier: BSD-3-Clause
// This file turns two samples of an engine into the text of `ulc top`. It reads no clock and no
// terminal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/endpoint_row.h"

namespace ulc::tools {

/// All that is known of an engine at one moment.
struct TopSample {
    double seconds = 0;  ///< by a steady clock
    unsigned engine_pid = 0;
    std::string socket;
    std::string ports;
    std::map<std::string, std::uint64_t, std::less<>> counters;
    std::vector<abi::EndpointRow> rows;
};

/// A column that endpoints may be sorted by, largest first.
enum class TopOrder : std::uint8_t {
    kRate,
    kRepairs,
    kUnacked,
    kBacklog,
    kUnread,
    kRoundTrip,
    kPid,
};

/// Returns the order of a key on the keyboard, which is also a word for --sort; nothing: no order.
[[nodiscard]] std::optional<TopOrder> order_of_key(char key) noexcept;
[[nodiscard]] std::optional<TopOrder> order_of_word(std::string_view word) noexcept;
/// Returns the words of --sort, as "rate, unacked, …".
[[nodiscard]] std::string order_words();

struct TopStyle {
    TopOrder order = TopOrder::kRate;
    bool colours = false;
    bool keys = false;         ///< a last line names the keys
    unsigned lines_max = 0;    ///< 0: any number
    unsigned columns_max = 0;  ///< 0: any number
};

/// Returns lines with line ends. Rates are those between the samples. Samples of two different
/// engines, as after a restart, have the rate 0.
[[nodiscard]] std::string top_text(const TopSample& before, const TopSample& now,
                                   const TopStyle& style);

}  // namespace ulc::tools
