// SPDX-License-Identifier: BSD-3-Clause
// A short message into the queue of new packets.
#include "urtp/sender/fast.h"

namespace ulc::urtp {

bool Sender::queue_next(const TxPrediction& prediction, const ShortMessage& message,
                        Nanos now) noexcept {
    bool asks = false;
    Segment* segment = make_next(prediction, message, asks, now);
    if (segment != nullptr) retain(*prediction.tx, segment, asks, now);
    return segment != nullptr;
}

}  // namespace ulc::urtp
