// SPDX-License-Identifier: BSD-3-Clause
// Writes, reads and atomic operations of one endpoint on memory of others, and of others on the
// memory of its domain (rma_wire.h).
//   initiator.cc       starts operations and completes them
//   target.cc          serves the requests of peers, in ulc_poll()'s wake
//   entries.cc         fi_ops_rma
//   atomic_entries.cc  fi_ops_atomic
//
// An endpoint posts kSlots receives for requests. While a response cannot be sent, no further
// request is served, so what waits is bounded: the rest stays with libulc and its sender.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/uio.h>

#include <cstdint>
#include <unordered_map>

#include "client/ulc.h"
#include "ofi/operation.h"
#include "ofi/peers/strangers.h"
#include "ofi/queues/completions.h"
#include "ofi/rma/refused.h"
#include "ofi/rma/regions.h"
#include "ofi/rma/rma_wire.h"

namespace ulc::ofi {

class Counter;
class Endpoint;

/// One operation, as an entry of libfabric's tables gave it.
struct RmaCall {
    RmaKind kind;
    const iovec* pieces;  ///< local memory that is read or written
    std::size_t count;
    fi_addr_t peer;
    std::uint64_t address;
    std::uint64_t key;
    void* context;
    std::uint64_t flags;  ///< FI_INJECT, FI_REMOTE_CQ_DATA
    std::uint64_t data;
    bool report;
    // Only for atomic operations:
    std::uint8_t datatype = 0;
    std::uint8_t op = 0;
    std::uint64_t length = 0;  ///< bytes of memory at the target
    const unsigned char* operands = nullptr;
    const void* memory = nullptr;  ///< descriptor of the local memory that is filled; or nullptr
};

/// Returns the first descriptor of a list that may be nullptr, as may be its entries.
[[nodiscard]] inline const void* memory_of(void* const* descriptors, std::size_t count) noexcept {
    for (std::size_t i = 0; descriptors != nullptr && i < count; ++i)
        if (descriptors[i] != nullptr) return descriptors[i];
    return nullptr;
}

class Rma {
public:
    explicit Rma(Endpoint& endpoint, bool serves) noexcept : endpoint_(endpoint), serves_(serves) {}
    Rma(const Rma&) = delete;
    Rma& operator=(const Rma&) = delete;

    /// Appends the receives of requests of the job's ranks. Returns 0 or -FI_ENOMEM.
    [[nodiscard]] int defer_slots(OperationList& deferred) noexcept;
    /// Starts to serve strangers.
    void serve_strangers() noexcept;
    [[nodiscard]] ssize_t start(const RmaCall& call) noexcept;
    /// An operation of an RMA kind is out of the list and done.
    void finish(Operation& operation, const ulc_status& status) noexcept;
    /// Sends what libulc did not take before.
    void send_again(Operation& operation) noexcept;
    /// Now and then refuses granted writes whose data do not come.
    void expire_grants() noexcept {
        if (grants_ > 0 && ++rounds_ % kRoundsApart == 0) [[unlikely]]
            refuse_late(now());
    }
    /// Ends the use of a region that is being closed: writes of peers that are still to come are
    /// dropped, and replies to reads go on from copies. Replies that libulc cannot move stay.
    void forget(Region& region) noexcept;
    /// Drops what is still to come for operations that read into that local memory. False: an
    /// engine that is stuck may still write to it.
    [[nodiscard]] bool forget_local(const void* memory) noexcept;
    /// Answers that came, or will come, for memory that was closed.
    [[nodiscard]] std::uint64_t given_back() const noexcept { return given_back_; }
    /// Gives back the memory of the domain that peers' operations use. libulc's endpoints are
    /// closed.
    void end() noexcept;
    /// Binds a counter of FI_READ, FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE.
    void count_by(Counter& counter, std::uint64_t flags) noexcept;
    void detach_counters() noexcept;
    void print_refused(std::uint16_t rank) const noexcept;
    [[nodiscard]] const RefusedAccesses& refused() const noexcept { return refused_; }

private:
    static constexpr unsigned kSlots = 8;
    static constexpr std::uint32_t kRoundsApart = 1024;  ///< calls of expire_grants()

    // --- initiator
    /// Sends the request and posts the receive of its response. Returns the ulc_error.
    [[nodiscard]] int submit(Operation& operation, const RmaCall& call) noexcept;
    [[nodiscard]] int await_response(Operation& operation) noexcept;
    /// Copies what the operation needs of the call. False: no memory.
    [[nodiscard]] bool describe(Operation& operation, const RmaCall& call, Rank to) noexcept;
    void take_response(Operation& operation, const ulc_status& status) noexcept;
    /// One of the things that the operation waits for is done. error: FI_E…, or 0.
    void settle(Operation& operation, int fi_error, int ulc_error) noexcept;
    void send_data(Operation& data) noexcept;

    // --- target
    /// Returns a receive of a request; nullptr: no memory.
    [[nodiscard]] Operation* make_slot(ulc_endpoint* ep) noexcept;
    /// Posts the receive of a request. False: it is released.
    [[nodiscard]] bool post(Operation& slot) noexcept;
    /// Lists a received request for its turn, or drops it.
    void take_request(Operation& slot) noexcept;
    /// Holds a request until earlier ones of its source are there. False: it is dropped.
    [[nodiscard]] bool hold_request(Operation& slot, std::uint16_t gap) noexcept;
    void serve_waiting() noexcept;
    void serve(const RmaRequest& request, unsigned char* behind, ulc_endpoint* ep,
               Rank source) noexcept;
    void serve_atomic(const RmaRequest& request, unsigned char* first,
                      const unsigned char* operands, Region& region, ulc_endpoint* ep,
                      Rank source) noexcept;
    [[nodiscard]] RmaResult start_take(const RmaRequest& request, Region& region,
                                       unsigned char* first, ulc_endpoint* ep,
                                       Rank source) noexcept;
    [[nodiscard]] RmaResult start_give(const RmaRequest& request, Region& region,
                                       unsigned char* first, ulc_endpoint* ep,
                                       Rank source) noexcept;
    void refuse_late(Nanos at) noexcept;
    void take_data(Operation& operation, const ulc_status& status) noexcept;
    void refuse(RmaResult why, std::uint64_t number, ulc_endpoint* ep, Rank source) noexcept;
    /// Responds, now or later.
    void respond(RmaResult result, std::uint64_t number, ulc_endpoint* ep, Rank source,
                 const void* data = nullptr, std::size_t bytes = 0) noexcept;
    void send_reply(Operation& reply) noexcept;
    /// Memory of a region was written or read for a peer.
    void applied(Region& region, bool wrote, bool has_data, std::uint64_t data,
                 std::uint64_t length, Rank source) noexcept;
    /// Marks the region as in use by a long transfer. False: the source has too many.
    [[nodiscard]] bool hold(Region& region, Rank source) noexcept;
    void let_go(Operation& operation) noexcept;
    void leave_region(Operation& operation) noexcept;
    /// Takes a granted write's memory back. The data that come are dropped.
    void withdraw(Operation& take, RmaResult why) noexcept;
    /// Makes a reply send a copy, of at most `budget` bytes.
    void detach_reply(Operation& reply, std::size_t& budget) noexcept;

    /// A rank of the job whose requests came.
    struct Source {
        std::uint16_t expected = 0;  ///< order of the next request
        OperationList held;          ///< later requests
    };

    Endpoint& endpoint_;
    const bool serves_;
    bool serves_strangers_ = false;
    std::uint64_t next_number_ = 0;
    std::size_t under_way_ = 0;                     ///< as initiator
    std::size_t on_links_ = 0;                      ///< those of them to peers on links
    std::unordered_map<Rank, std::uint16_t> sent_;  ///< requests by target
    std::unordered_map<Rank, Source> sources_;
    std::size_t grants_ = 0;  ///< granted writes that are neither over nor withdrawn
    std::uint32_t rounds_ = 0;
    std::size_t stuck_replies_ = 0;  ///< in the endpoint's list of what libulc takes later
    OperationList waiting_;          ///< requests that are to be served
    std::unordered_map<Rank, std::size_t> held_;  ///< long transfers by source
    Counter* read_counter_ = nullptr;
    Counter* write_counter_ = nullptr;
    Counter* remote_read_counter_ = nullptr;
    Counter* remote_write_counter_ = nullptr;
    RefusedAccesses refused_;
    std::uint64_t given_back_ = 0;
};

/// Tells what a peer may do at most with one atomic operation. Returns 0 or -FI_EOPNOTSUPP.
[[nodiscard]] int query_atomic(RmaKind kind, fi_datatype datatype, fi_op op,
                               std::size_t* count) noexcept;
/// fi_query_atomic().
int query_atomic_of_domain(fid_domain* domain, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                           std::uint64_t flags) noexcept;

[[nodiscard]] fi_ops_rma& rma_entries() noexcept;
[[nodiscard]] fi_ops_atomic& atomic_entries() noexcept;

}  // namespace ulc::ofi
