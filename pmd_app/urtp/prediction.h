// SPDX-License-Identifier: BSD-3-Clause
// The transport's part of a verdict on a short message, in each direction: it stands for all
// conditions but the few that each message of a stream is judged by. predict() makes it. A kept one
// holds while nothing changes the transport but short messages, and on_frame() of a frame of
// acknowledgements (Transport::check_prediction()). The owner forgets it after any other call.
#pragma once

#include <cstdint>

#include "wire/build.h"
#include "wire/short_head.h"

namespace ulc::urtp {

struct Session;
struct RxStream;
struct TxStream;

/// The short frames of a peer's stream.
struct RxPrediction {
    wire::ShortHead head;
    RxStream* rx = nullptr;
    /// Ours to the same peer: the stream of which acknowledgements come along; nullptr: none may.
    TxStream* tx = nullptr;
};

/// The short messages of a stream of ours.
struct TxPrediction {
    wire::Head head;  ///< but flags, length and number
    /// An acknowledgement that goes along grants the whole window, by the default's rules.
    bool whole_credit = false;
    Session* session = nullptr;  ///< the receiver's; nullptr: a group's stream
    TxStream* tx = nullptr;
    Session* theirs = nullptr;  ///< the receiver's with us, if it is of this engine
};

}  // namespace ulc::urtp
