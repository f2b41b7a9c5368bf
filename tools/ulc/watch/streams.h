// SPDX-License-Identifier: BSD-3-Clause
// This file shows the repairs between each endpoint and each of its peers. Used by `ulc stat`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "abi/endpoint_row.h"

namespace ulc::tools {

/// Streams of an engine at one moment.
struct StreamPage {
    unsigned engine_pid = 0;
    std::uint32_t all = 0;  ///< rows that there are, of which `rows` has the first
    std::vector<abi::StreamRow> rows;
};

/// Asks the engine at the socket for the streams of this user's endpoints; root gets all. False:
/// `error` names the fault and what to do.
[[nodiscard]] bool read_streams(const std::string& socket, StreamPage* out, std::string* error);

/// Checks the bytes of a page (abi/attach.h). False: `error` names the fault and what to do.
[[nodiscard]] bool parse_streams(std::span<const unsigned char> page, StreamPage* out,
                                 std::string* error);

/// Returns a table, each line with a line end, and below it the peers that stand out.
[[nodiscard]] std::string streams_text(const StreamPage& page);

/// Returns one JSON object in one line, with a line end.
[[nodiscard]] std::string streams_json(const StreamPage& page);

}  // namespace ulc::tools
