// SPDX-License-Identifier: BSD-3-Clause
// The control frames of a sender, made when it is their turn (control_queue.h). Each returns
// nullptr if there is no segment.
#pragma once

#include "urtp/context.h"
#include "urtp/sessions.h"

namespace ulc::urtp {

/// Makes a probe to the one destination that lacks something, or to the group.
[[nodiscard]] Segment* make_probe(Context& context, const Sessions& sessions, TxStream& tx,
                                  Nanos now);
/// Makes a request for buffer space for the packets that the stream wants to send.
[[nodiscard]] Segment* make_reserve(Context& context, const Sessions& sessions,
                                    const TxStream& tx) noexcept;
/// Makes a probe to one rank, under that rank's handle: it answers, or its node says that it is
/// gone.
[[nodiscard]] Segment* make_doubt(Context& context, const Sessions& sessions,
                                  Session& session) noexcept;

}  // namespace ulc::urtp
