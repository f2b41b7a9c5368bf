// SPDX-License-Identifier: BSD-3-Clause
// This file writes frames of a trace as pcapng, which Wireshark and tshark read
// (draft-ietf-opsawg-pcapng). Times are nanoseconds of the wall clock.
#pragma once

#include <string>
#include <vector>

#include "abi/trace_ring.h"
#include "tools/ulc/trace/trace_file.h"

namespace ulc::tools {

/// Returns the head of a capture: a section, and an interface for each net.
[[nodiscard]] std::string pcapng_head(const TraceFile& trace);
/// Returns the block of a frame; empty for a record that is no frame.
[[nodiscard]] std::string pcapng_block(const TraceFile& trace, const TimedRecord& record);

}  // namespace ulc::tools
