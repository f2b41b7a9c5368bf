// SPDX-License-Identifier: BSD-3-Clause
// Facts about the next short message of a stream that are known in advance, in each direction. A
// prediction is made where a short message has taken the fast path. It holds while nothing changes
// the transport but the fast path, and on_frame() of a frame of acknowledgements. The owner forgets
// all predictions after any other call. So a prediction stands for all conditions that only the
// general path changes (Transport::check_prediction()).
#pragma once

#include <cstdint>

#include "wire/build.h"
#include "wire/short_head.h"

namespace ulc::urtp {

struct Session;
struct RxStream;
struct TxStream;

/// The next short frame of a peer's stream.
struct RxPrediction {
    wire::ShortHead head;
    RxStream* rx = nullptr;
    /// Ours to the same peer: the stream of which acknowledgements come along; nullptr: none may.
    TxStream* tx = nullptr;
};

/// The next short message of a stream of ours.
struct TxPrediction {
    wire::Head head;  ///< but flags, length and number
    /// An acknowledgement that goes along grants the whole window, by the default's rules.
    bool whole_credit = false;
    Session* session = nullptr;  ///< the receiver's; nullptr: a group's stream
    TxStream* tx = nullptr;
};

}  // namespace ulc::urtp
