// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mpi/operation.h"

#include "coll/coll_for_mpi.h"

namespace ulc::mpi {

void Operation::drop_kept() {
    // After ulc_close() an operation must not be freed any more.
    if (kept_ != nullptr && session().endpoint() != nullptr) ulc_coll_free(kept_);
    kept_ = nullptr;
}

bool Operation::rewind() {
    begun_ = ended_ = 0;
    pieces_ = given_pieces_;
    failure_ = ULC_OK;
    return refill();
}

/// Starts the next piece; the only one of a persistent operation is kept for its next start.
int Operation::start_next(ulc_coll** out) {
    if (kept_ != nullptr) {
        *out = kept_;
        return ulc_coll_start_again(kept_);
    }
    const int state = start(begun_, out);
    if (state == ULC_OK && is_persistent() && given_pieces_ == 1) {
        kept_ = *out;
        ulc_coll_keep(kept_);
    }
    return state;
}

/// Starts the pieces that may start. Returns false if a piece could not, see failure_.
bool Operation::start_pieces() {
    while (begun_ < pieces_ && begun_ - ended_ < kSlots) {
        const int state = start_next(&colls_[begun_ % kSlots]);
        // A group has a limit of pending operations, which falls.
        if (state == ULC_ERR_LIMIT && comm_->under_way > 0) return true;
        if (state != ULC_OK) {
            failure_ = state;
            return false;
        }
        ++comm_->under_way;
        if (++begun_ == pieces_) ++comm_->started;
    }
    return true;
}

int Operation::step() {
    ulc_endpoint* ep = session().endpoint();
    if (ep == nullptr) return ULC_ERR_CLOSED;
    if (begun_ < pieces_ && failure_ == ULC_OK) {
        if (comm_->started != ticket_) return ULC_ERR_AGAIN;  // earlier operations come first
        if (!start_pieces()) {
            pieces_ = begun_;  // the rest never starts
            ++comm_->started;
        }
    }
    for (std::size_t piece = ended_; piece < begun_; ++piece) {
        ulc_coll*& coll = colls_[piece % kSlots];
        if (coll == nullptr) continue;
        const int state = ulc_coll_test(ep, coll);
        if (state == ULC_ERR_AGAIN) continue;
        coll = nullptr;
        --comm_->under_way;
        if (state != ULC_OK && failure_ == ULC_OK) failure_ = state;
    }
    while (is_under_way() && colls_[ended_ % kSlots] == nullptr) {
        if (failure_ == ULC_OK && !take_result(ended_)) failure_ = ULC_ERR_NO_MEMORY;
        ++ended_;
    }
    if (is_under_way()) return ULC_ERR_AGAIN;
    if (failure_ != ULC_OK && begun_ < pieces_) {
        pieces_ = begun_;
        ++comm_->started;
    }
    if (failure_ != ULC_OK) return failure_;
    return ended_ == pieces_ ? int{ULC_OK} : int{ULC_ERR_AGAIN};
}

}  // namespace ulc::mpi
