// SPDX-License-Identifier: BSD-3-Clause
// The peers of one endpoint: an fi_addr_t of the address vector ↔ a rank of the endpoint's job,
// or a stranger (strangers.h).
// Every rank of the job opens its endpoints in the same order (job.h).
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "client/ulc.h"
#include "ofi/peers/addresses.h"
#include "ofi/peers/job.h"
#include "ofi/peers/strangers.h"

namespace ulc::ofi {

class Peers {
public:
    /// Starts joining. Does not wait for the other ranks. Returns 0 or -FI_E….
    [[nodiscard]] int join(ulc_endpoint* ep, const AddressVector& addresses);
    /// Returns 0 if messages can be sent and received, -FI_EAGAIN while the job forms, or the
    /// -FI_E… with which it failed. Does not poll.
    [[nodiscard]] int state() noexcept { return formed_ ? 0 : look_at_state(); }
    /// Says goodbye to the others, after all sends were delivered.
    void leave() noexcept;

    /// Sets the rank of a peer. Returns 0, -FI_EAGAIN while a link to it is made, or -FI_E….
    [[nodiscard]] int rank_of(fi_addr_t address, Rank& rank) noexcept {
        if (address < ranks_.size() && ranks_[address] != ULC_RANK_ANY) [[likely]] {
            rank = ranks_[address];
            return 0;
        }
        return learn(address, rank);
    }
    /// True if the engine says that a rank, which rank_of() returned, is near (ulc_near.h).
    [[nodiscard]] bool is_near(Rank rank) const noexcept;
    /// Returns the address of a rank; FI_ADDR_NOTAVAIL: it is not in the address vector.
    [[nodiscard]] fi_addr_t address_of(Rank rank) noexcept;
    /// An address was added to the vector: ours may have to ask its engine (ulc_meeting.h).
    void meet(const Address& peer) const noexcept;
    /// The address was removed from the vector.
    void forget(fi_addr_t address) noexcept;

    [[nodiscard]] Address own_address() const noexcept;
    [[nodiscard]] std::uint16_t own_rank() const noexcept { return job_->rank(); }
    [[nodiscard]] Strangers& strangers() noexcept { return strangers_; }

private:
    void put_meeting(Address& own) const noexcept;
    [[nodiscard]] int look_at_state() noexcept;
    [[nodiscard]] int learn(fi_addr_t address, Rank& rank) noexcept;
    void remember(fi_addr_t address, const Address& peer);

    ulc_endpoint* ep_ = nullptr;
    const Job* job_ = nullptr;
    const AddressVector* addresses_ = nullptr;
    std::uint32_t number_ = 0;  ///< the endpoint's in its process
    bool formed_ = false;
    std::vector<std::uint16_t> ranks_;  ///< by address
    std::vector<fi_addr_t> by_rank_;
    Strangers strangers_;
};

/// Translates a ulc_error into FI_E….
[[nodiscard]] int fi_error_of(int error) noexcept;

}  // namespace ulc::ofi
