// SPDX-License-Identifier: BSD-3-Clause
// This file finds handlers of messages (libgamma, libexpress) that have not returned for long, in
// the endpoints of an engine. Pure. Used by `ulc stat` and `ulc exporter`.
//
// A client publishes its handler itself. A false word misnames that client alone; one that names no
// possible handler counts as none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/client_notes.h"
#include "abi/endpoint_row.h"

namespace ulc::tools {

inline constexpr std::uint32_t kLongHandlerMs = 1000;

struct RunningHandler {
    std::uint32_t endpoint = 0;
    std::uint32_t pid = 0;
    std::uint32_t rank = abi::kNoRowRank;
    abi::HandlerKind kind = abi::HandlerKind::kNone;
    std::uint16_t number = 0;
    std::uint32_t ms = 0;  ///< since it was called
};

/// Returns the handler that runs in the client of a row; kind kNone if there is none. `now_ms`: as
/// coarse_milliseconds().
[[nodiscard]] RunningHandler handler_of(const abi::EndpointRow& row, std::uint32_t now_ms) noexcept;

/// Returns the handlers of all rows that have run for kLongHandlerMs or longer.
[[nodiscard]] std::vector<RunningHandler> long_handlers(std::span<const abi::EndpointRow> rows,
                                                        std::uint32_t now_ms);

/// Returns "port" (libgamma) or "express".
[[nodiscard]] std::string_view word_of(abi::HandlerKind kind) noexcept;

/// Returns one sentence without a line end.
[[nodiscard]] std::string sentence_of(const RunningHandler& handler);

}  // namespace ulc::tools
