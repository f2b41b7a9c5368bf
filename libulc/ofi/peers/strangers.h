// SPDX-License-Identifier: BSD-3-Clause
// Peers of an endpoint that are not in its job, by links: processes that MPI_Comm_spawn() starts
// or MPI_Comm_connect() joins. A second endpoint of libulc is open for these links.
//
//   fi_addr_t ──link() at its first use──▶ kLinking ──▶ kLinked ──forget()──▶ gone
//                                              └──▶ kFailed, until the address is removed
//
// A peer that links to this endpoint first gets its fi_addr_t when this side uses the address.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "client/ulc.h"
#include "ofi/peers/job.h"

namespace ulc::ofi {

/// A rank of the job, ULC_RANK_ANY, or kStranger and the number of a link.
using Rank = std::uint32_t;
inline constexpr Rank kStranger = 1U << 16;

/// An engine has at least 512 endpoints by default, of which a user holds 448 at most. A rank may
/// have three: one in its job, one for links, and that of coll/mpi. Two such jobs fit.
inline constexpr unsigned kRanksHereMax = 64;
/// The reason why an address without a link cannot be reached, and what to do.
inline constexpr char kNoLinks[] =
    "its endpoint is in another job, and there are no links between the two; start at most 64 "
    "ranks of a job on a node, or let MPI use TCP: unset OMPI_MCA_pml OMPI_MCA_mtl";
static_assert(kRanksHereMax == 64, "the sentence above says 64");

[[nodiscard]] constexpr bool is_stranger(Rank rank) noexcept { return (rank & kStranger) != 0; }
/// Returns the number by which libulc knows the peer.
[[nodiscard]] constexpr std::uint16_t number_of(Rank rank) noexcept {
    return static_cast<std::uint16_t>(rank);
}

class Strangers {
public:
    Strangers() = default;
    Strangers(const Strangers&) = delete;
    Strangers& operator=(const Strangers&) = delete;

    /// Opens the endpoint for links. If it cannot be opened, there are no strangers. There are none
    /// either if more than kRanksHereMax ranks of the job are on this machine.
    void open(unsigned ranks_here) noexcept;
    /// Delivers pending sends, and closes the endpoint.
    void close() noexcept;
    /// Returns the endpoint for links; nullptr: there is none.
    [[nodiscard]] ulc_endpoint* ep() const noexcept { return ep_; }
    /// True if a link was made or begun.
    [[nodiscard]] bool in_use() const noexcept { return in_use_; }
    /// Writes the own address for links; zeros: there is none.
    void put_address(unsigned char* out) const noexcept;

    /// Sets the rank of a peer with this address. Returns 0, -FI_EAGAIN while the link is made, or
    /// -FI_E…. May throw std::bad_alloc.
    [[nodiscard]] int rank_of(fi_addr_t address, const Address& peer, Rank& rank);
    /// Returns the address of a link's number; FI_ADDR_NOTAVAIL: it is not known.
    [[nodiscard]] fi_addr_t address_of(Rank rank) const noexcept;
    /// Ends the link to an address.
    void forget(fi_addr_t address) noexcept;
    /// Polls if links are in use, else now and then. Returns true if something came.
    bool poll() noexcept;

private:
    enum class State : std::uint8_t { kLinking, kLinked, kFailed };
    struct Link {
        ulc_request request;
        State state;
        int error;  ///< kFailed: the ulc_error
        std::uint16_t number;
    };

    void settle(Link& link) noexcept;
    /// Begins the end of a forgotten link. Returns false if that must be tried again.
    [[nodiscard]] bool end(Link& link) noexcept;

    ulc_endpoint* ep_ = nullptr;
    bool in_use_ = false;
    bool told_ = false;      ///< a sentence said that there are no links
    bool prepared_ = false;  ///< links to peers of this node may have rings
    unsigned skipped_ = 0;
    std::unordered_map<fi_addr_t, std::unique_ptr<Link>> links_;
    std::vector<std::unique_ptr<Link>> ending_;               ///< forgotten, not ended yet
    std::unordered_map<std::uint16_t, fi_addr_t> addresses_;  ///< by number
};

}  // namespace ulc::ofi
