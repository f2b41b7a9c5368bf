// SPDX-License-Identifier: BSD-3-Clause
// struct fid_ep of type RDM: one endpoint of libulc.
//   endpoint.cc    life: bind, enable, name, options, close
//   sending.cc     the entries that send
//   receiving.cc   the entries that receive, peek, claim and cancel
//   progress.cc    completes what libulc has done
//   pulls.cc       long messages between ranks of one node
//   rma/           writes, reads and atomic operations
//   wildcards.cc   receives from any source, of the job or a stranger
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sys/uio.h>

#include <climits>
#include <cstdint>
#include <unordered_map>

#include "client/ulc.h"
#include "ofi/domain.h"
#include "ofi/operation.h"
#include "ofi/peers/addresses.h"
#include "ofi/peers/peers.h"
#include "ofi/pull/pull_peers.h"
#include "ofi/queues/completions.h"
#include "ofi/queues/counter.h"
#include "ofi/queues/dropped.h"
#include "ofi/rma/rma.h"

namespace ulc::ofi {

/// Describes a message to send, as an entry of libfabric's tables gave it.
struct Outgoing {
    const iovec* pieces;
    std::size_t count;
    fi_addr_t to;
    std::uint64_t tag;  ///< libulc's
    void* context = nullptr;
    std::uint64_t flags = 0;  ///< FI_INJECT, FI_TRANSMIT_COMPLETE, FI_REMOTE_CQ_DATA
    std::uint64_t data = 0;
    bool report = true;
};

/// A receive, peek or claim, as an entry of libfabric's tables gave it.
struct Incoming {
    const iovec* pieces;
    std::size_t count;
    fi_addr_t from;
    std::uint64_t tag;   ///< libulc's
    std::uint64_t mask;  ///< libulc's
    void* context;
    std::uint64_t flags;  ///< FI_MULTI_RECV, FI_PEEK, FI_CLAIM, FI_DISCARD
    bool report;
};

/// A message that a peek has claimed.
struct Claimed {
    ulc_endpoint* ep;
    ulc_message* message;
    std::uint16_t source;
    std::uint64_t descriptor;  ///< descriptor of an announced message, else 0
};

class Endpoint : public fid_ep {
public:
    Endpoint(Domain& in, const fi_info& info) noexcept;
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    [[nodiscard]] int bind(struct fid& object, std::uint64_t flags);
    [[nodiscard]] int enable();

    [[nodiscard]] ssize_t send(const Outgoing& message) noexcept;
    [[nodiscard]] ssize_t receive(const Incoming& wanted) noexcept;
    [[nodiscard]] ssize_t peek(const Incoming& wanted) noexcept;
    /// Receives or discards what a peek with this context has claimed.
    [[nodiscard]] ssize_t finish_claim(const Incoming& wanted) noexcept;
    [[nodiscard]] ssize_t cancel(void* context) noexcept;

    /// Polls libulc and reports completed operations. True if anything moved.
    bool progress() noexcept;

    /// Returns how many polls in succession have moved nothing, not even a frame.
    [[nodiscard]] unsigned empty_polls() const noexcept {
        return ep_ != nullptr ? ulc_empty_polls(ep_) : UINT_MAX;
    }
    /// True if a success of an operation with these flags is reported.
    [[nodiscard]] bool reports_send(std::uint64_t flags) const noexcept {
        return !select_sends_ || (flags & FI_COMPLETION) != 0;
    }
    [[nodiscard]] bool reports_receive(std::uint64_t flags) const noexcept {
        return !select_receives_ || (flags & FI_COMPLETION) != 0;
    }

    [[nodiscard]] Peers& peers() noexcept { return peers_; }
    /// True if the application asked for this capability.
    [[nodiscard]] bool has(std::uint64_t capability) const noexcept {
        return (caps_ & capability) != 0;
    }
    [[nodiscard]] Rma& remote_memory() noexcept { return rma_; }
    [[nodiscard]] bool is_enabled() const noexcept { return ep_ != nullptr; }
    [[nodiscard]] const DroppedMessages& dropped() const noexcept { return dropped_; }

    Domain& domain;
    std::uint64_t send_flags;     ///< flags of operations that give none
    std::uint64_t receive_flags;  ///< likewise
    std::size_t multi_receive_min = 64;

private:
    friend class Rma;

    /// Returns 0 if an operation can be started, -FI_EAGAIN if it has to be deferred, else -FI_E….
    /// Polls while the job forms.
    [[nodiscard]] int ready() noexcept;
    /// Returns 0 if there is a place for another deferred operation, else -FI_EAGAIN.
    [[nodiscard]] int may_defer() const noexcept;
    /// Starts what was deferred, in order, once the job has formed.
    void start_deferred() noexcept;
    /// Hands the operation to libulc. Returns its ulc_error.
    [[nodiscard]] int submit(Operation& operation) noexcept;
    /// Submits an operation that ready() allows, and finishes it if it is done at once. Returns 0
    /// or -FI_E…; then the operation is released.
    [[nodiscard]] ssize_t start(Operation& operation) noexcept;
    [[nodiscard]] ssize_t inject(const Outgoing& message, Rank to) noexcept;
    /// The same of a send that has a completion.
    [[nodiscard]] Operation* describe(const Outgoing& message, Rank to) noexcept;
    /// Puts a send behind the deferred operations. Returns 0 or -FI_E….
    [[nodiscard]] ssize_t defer(const Outgoing& message, Rank to) noexcept;
    /// Sets libulc's source for a receive. Returns 0 or -FI_E….
    [[nodiscard]] int source_of(fi_addr_t from, Rank& out) noexcept;
    /// Returns a tagged receive of any source as described; nullptr: no memory.
    [[nodiscard]] Operation* describe(const Incoming& wanted) noexcept;
    /// Prepares a multi-receive into a buffer at `base`. False: no memory.
    [[nodiscard]] bool make_buffer(Operation& operation, void* base) noexcept;
    /// The ulc_part_giver of multi-receives.
    static void give_part(ulc_request* request, const ulc_status* message, const void* head,
                          std::size_t octets, ulc_part* part) noexcept;
    /// Starts an operation's receive. False: it failed and is reported.
    bool post(Operation& operation) noexcept;
    /// Waits for another message instead of a malformed one. A part has had its message.
    void receive_again(Operation& operation) noexcept;
    /// Ends a receive that has nothing to report but the end of its buffer for many messages.
    void end_silently(Operation& operation) noexcept;
    /// Returns the endpoint of libulc for messages with a peer.
    [[nodiscard]] ulc_endpoint* ep_of(Rank peer) noexcept {
        return is_stranger(peer) ? peers_.strangers().ep() : ep_;
    }
    /// Returns the rank of the source of a message.
    [[nodiscard]] Rank source_in(const ulc_endpoint* ep, std::uint16_t source) const noexcept {
        return ep == ep_ ? Rank{source} : kStranger | source;
    }
    /// True if a receive from this stranger has to wait behind one from any source.
    [[nodiscard]] bool must_wait(const Operation& operation) const noexcept;
    /// Gives a receive that is not posted with the strangers the first message of theirs that it
    /// matches. False: there is none, or a message of the job has matched.
    bool take_of_strangers(Operation& operation) noexcept;
    /// The same of all receives, in the order in which they were posted.
    void match_strangers() noexcept;
    /// Lists a started operation until it is done.
    void keep(Operation& operation) noexcept;
    /// Finishes the operations that are done.
    void harvest() noexcept;
    void harvest_of(ulc_endpoint* ep) noexcept;
    /// Finishes all others, after libulc's endpoint has ended.
    void end_all() noexcept;
    /// The operation is out of the list and done.
    void finish(Operation& operation, const ulc_status& status) noexcept;
    void finish_receive(Operation& operation, const ulc_status& status) noexcept;
    /// Ends an operation that is neither a send nor a receive of one message.
    void finish_other(Operation& operation, const ulc_status& status) noexcept;
    /// Reports a message of `length` bytes, of which the buffer has as many as fit.
    void take_message(Operation& operation, Rank source, std::uint64_t tag,
                      std::size_t length) noexcept;
    void fail(Operation& operation, int fi_error, int ulc_error, std::size_t over) noexcept;
    /// Prints a sentence about the first operation that fails because its peer died: an MPI shows
    /// an error code alone.
    void report_death(const Operation& operation) noexcept;

    /// Makes a send one of a message that the receiver may read, if that pays.
    void offer(Operation& operation) noexcept;
    /// Hands an operation with a pull to libulc. Returns its ulc_error.
    [[nodiscard]] int submit_pull(Operation& operation) noexcept;
    /// Sends the message itself, now or later.
    void send_whole(Operation& operation) noexcept;
    /// Takes the answer to an announcement. False: the message itself is being sent.
    [[nodiscard]] bool take_answer(Operation& operation, const ulc_status& status) noexcept;
    /// Answers an announcement. Returns its ulc_error.
    [[nodiscard]] int answer(std::uint16_t to, std::uint64_t descriptor, std::uint8_t what,
                             const PullToken* token) noexcept;
    /// Starts to read the message whose announcement a receive has matched.
    void start_pull(Operation& operation, const ulc_status& status) noexcept;
    /// Reads and answers. False: there is more to do.
    [[nodiscard]] bool advance_pull(Operation& operation) noexcept;
    void advance_pulls() noexcept;
    /// Sends the messages that others were to read, unasked.
    void end_pulls() noexcept;
    /// The ulc_error_handler: prints a sentence about the first source that has to wait.
    static void tell_of_stopped(void* context, int error, std::uint16_t source,
                                std::uint64_t count);

    const std::uint64_t caps_;
    ulc_endpoint* ep_ = nullptr;
    AddressVector* addresses_ = nullptr;
    CompletionQueue* sends_ = nullptr;
    CompletionQueue* receives_ = nullptr;
    bool select_sends_ = false;
    bool select_receives_ = false;
    Counter* send_counter_ = nullptr;
    Counter* receive_counter_ = nullptr;
    Peers peers_;
    OperationPool pool_;
    OperationList operations_;  ///< in progress
    OperationList deferred_;    ///< to be started when the job has formed
    OperationList pulls_;       ///< receives of messages of this node that are being read
    OperationList stuck_;       ///< sends of such messages and of RMA that libulc takes later
    PullPeers pull_peers_;
    std::unordered_map<void*, Claimed> claimed_;  ///< by context
    bool reported_stopped_ = false;
    bool reported_death_ = false;
    int ended_ = 0;  ///< the ulc_error with which libulc's endpoint ended
    DroppedMessages dropped_;
    Rma rma_;
};

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** out, void* context) noexcept;

/// sending.cc and receiving.cc fill these.
void set_send_entries(fi_ops_msg& messages, fi_ops_tagged& tagged) noexcept;
void set_receive_entries(fi_ops_msg& messages, fi_ops_tagged& tagged) noexcept;

}  // namespace ulc::ofi
