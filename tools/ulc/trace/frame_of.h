// SPDX-License-Identifier: BSD-3-Clause
// The frame of a trace's record, which has only the first octets.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "tools/ulc/trace/trace_file.h"
#include "wire/parse.h"

namespace ulc::tools {

/// Parses the frame of a record. The view refers to `space`, where octets that the record lacks are
/// zero; a CRC is not checked. Returns false if it is no frame of ULC.
[[nodiscard]] bool frame_of(std::uint16_t ether_type, const TimedRecord& record,
                            std::vector<std::byte>& space, wire::FrameView& out);

/// True if the frame has a number in a stream.
[[nodiscard]] bool is_data(const wire::FrameView& frame);

/// Returns the six octets of an address as a number.
[[nodiscard]] std::uint64_t number_of(const Mac& mac);

}  // namespace ulc::tools
