// SPDX-License-Identifier: BSD-3-Clause
// A short message into the queue of new packets.
#include "urtp/sender/fast.h"

namespace ulc::urtp {

bool Sender::send_short(const ShortMessage& message, Nanos now) noexcept {
    Session* session = message.stream < sessions_.size() ? sessions_.find(message.stream) : nullptr;
    TxStream* tx = session != nullptr ? session->tx.get() : nullptr;
    if (tx == nullptr || !admits_short(*tx, now)) return false;
    Segment* segment = context_.pool.get();
    if (segment == nullptr) return false;
    const bool asks = tx->asks();
    build_short(predict(*session), message, asks, *segment, now);
    retain(*tx, segment, asks, now);
    return true;
}

}  // namespace ulc::urtp
