// SPDX-License-Identifier: BSD-3-Clause
// Routes DPDK's log to us: complete lines go to a sink (stderr by default), and the last few
// warnings are kept so that a start-up error can quote them. Lines come from any thread, never from
// a burst function.
#pragma once

#include <string>

namespace ulc::dpdk {

/// Takes one line without its newline.
using LogSink = void (*)(void* context, const char* line);

/// Routes DPDK's log; call before start_eal(). nullptr: lines go to stderr as "dpdk: …".
void route_log(LogSink sink, void* context);

/// Keeps lines from the sink (they are still remembered): for a call that is expected to fail.
void mute_log(bool mute);

/// Returns the lines remembered since the last call, joined by "; ", and forgets them.
[[nodiscard]] std::string take_recent_log();

}  // namespace ulc::dpdk
