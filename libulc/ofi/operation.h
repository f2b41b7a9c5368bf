// SPDX-License-Identifier: BSD-3-Clause
// One pending send or receive, and the pool and lists of those of an endpoint.
#pragma once

#include <rdma/fabric.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/units.h"
#include "client/ulc.h"
#include "ofi/message_header.h"
#include "ofi/peers/strangers.h"
#include "ofi/pull/pull_wire.h"
#include "ofi/rma/rma_wire.h"

namespace ulc::ofi {

/// A long message between ranks of one node, at the sender and at the receiver (pulls.cc).
struct Pull {
    enum class Stage : std::uint8_t {
        kAnnounced,  ///< sender: the request is the answer's receive
        kReading,    ///< receiver
        kAnswering,  ///< receiver: the answer is to be sent
        kWhole,      ///< the message itself is sent, or received
    };

    PullDescriptor descriptor;  ///< at the sender its own, at the receiver a copy
    PullAnswer answer;
    Stage stage;
    std::uint16_t source;   ///< receiver: libulc's rank
    std::uint64_t address;  ///< address of the sender's descriptor
    std::uint64_t tag;      ///< receiver: libulc's, of the announcement
    std::uint64_t read;     ///< receiver: bytes
};

class Endpoint;
struct Operation;
struct Region;

/// The state of a buffer for many messages (FI_MULTI_RECV).
struct ManyBuffer {
    Endpoint* endpoint;
    Operation* spare;   ///< the next part; nullptr: the buffer takes no more
    std::size_t users;  ///< its receive, until that is over, and its pending parts
};

/// State of operations of the kinds for RMA (rma/).
struct RmaState {
    RmaKind kind;
    RmaResponse response;
    std::uint8_t awaited;  ///< initiator: what has to be done before it completes
    int fi_error;          ///< initiator: the first
    int ulc_error;
    std::uint64_t number;
    std::uint64_t data;  ///< target: completion data
    Region* region;      ///< target: what a long transfer uses
    bool held;           ///< target: counts for its source
    bool refused;        ///< target: the source knows that its data are dropped
    Nanos deadline;      ///< target: when a granted write is refused
    bool given_back;     ///< initiator: its memory was closed, so data that come are dropped
    const void* memory;  ///< initiator: descriptor of the memory that the answer fills; or nullptr
    Operation* other;    ///< kRma: the data to be sent, until then; kRmaData: its kRma
};

struct Operation {
    enum class Kind : std::uint8_t {
        kSend,
        kReceive,
        kMultiReceive,  ///< takes messages until its buffer is used up, each into a part
        kRma,           ///< initiator: waits for the response
        kRmaData,       ///< initiator: the data of a long write
        kRmaServe,      ///< target: receives a request
        kRmaTake,       ///< target: receives the data of a long write
        kRmaReply,      ///< target: sends a response
    };

    ulc_request request;               ///< the first member: of() relies on it
    ulc_piece pieces[ULC_PIECES_MAX];  ///< the header, then the user's
    MessageHeader header;
    Kind kind;
    bool report;           ///< a success is written to the completion queue
    bool waits;            ///< receive from a stranger: not posted (wildcards.cc)
    bool taken;            ///< receive: has a message of a stranger
    Rank peer;             ///< the destination, or the source that a receive names
    ulc_endpoint* ep;      ///< where it was submitted
    unsigned count;        ///< how many pieces there are
    std::uint64_t tag;     ///< libulc's
    std::uint64_t mask;    ///< receives: libulc's
    unsigned level;        ///< sends: flags of ulc_sendv()
    unsigned char* copy;   ///< the payload of an inject; nullptr: the user has it
    Pull* pull;            ///< nullptr: an ordinary message
    ManyBuffer* many;      ///< the buffer of a multi-receive and of its parts, which are receives
    std::uint64_t flags;   ///< the flags of completions
    std::size_t capacity;  ///< bytes of the user's pieces
    void* context;
    Operation* previous;
    Operation* next;
    RmaState rma;

    /// Returns the operation of a request.
    [[nodiscard]] static Operation& of(ulc_request& request) noexcept {
        return reinterpret_cast<Operation&>(request);
    }
};
static_assert(std::is_standard_layout_v<Operation> && offsetof(Operation, request) == 0);

/// A list of operations in the order in which they were appended.
class OperationList {
public:
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] Operation* first() const noexcept { return first_; }
    void append(Operation& operation) noexcept {
        operation.previous = last_;
        operation.next = nullptr;
        (last_ != nullptr ? last_->next : first_) = &operation;
        last_ = &operation;
        ++size_;
    }
    /// The operation must be in this list.
    void remove(Operation& operation) noexcept {
        (operation.previous != nullptr ? operation.previous->next : first_) = operation.next;
        (operation.next != nullptr ? operation.next->previous : last_) = operation.previous;
        --size_;
    }

private:
    Operation* first_ = nullptr;
    Operation* last_ = nullptr;
    std::size_t size_ = 0;
};

/// Memory of operations. Grows; never shrinks.
class OperationPool {
public:
    OperationPool() = default;
    OperationPool(const OperationPool&) = delete;
    OperationPool& operator=(const OperationPool&) = delete;
    /// Also frees what pending operations have.
    ~OperationPool() {
        for (const auto& chunk : chunks_)
            for (std::size_t i = 0; i < kChunk; ++i)
                release(chunk[i]);
    }

    /// Returns an operation that is in no list; nullptr: no memory.
    [[nodiscard]] Operation* allocate() noexcept try {
        if (free_ == nullptr) {
            chunks_.push_back(std::make_unique<Operation[]>(kChunk));
            for (std::size_t i = 0; i < kChunk; ++i)
                release(chunks_.back()[i]);
        }
        Operation* operation = free_;
        free_ = operation->next;
        operation->copy = nullptr;
        operation->pull = nullptr;
        operation->many = nullptr;
        operation->ep = nullptr;
        operation->waits = false;
        operation->taken = false;
        return operation;
    } catch (...) {
        return nullptr;
    }
    void release(Operation& operation) noexcept {
        if (operation.copy != nullptr) delete[] std::exchange(operation.copy, nullptr);
        if (operation.pull != nullptr) end_pull(operation);
        static_cast<void>(leave_buffer(operation));
        operation.next = free_;
        free_ = &operation;
    }

    /// Ends the use of a buffer for many messages. True if that is over with it.
    [[nodiscard]] bool leave_buffer(Operation& operation) noexcept {
        ManyBuffer* many = std::exchange(operation.many, nullptr);
        if (many == nullptr || --many->users > 0) return false;
        if (many->spare != nullptr) release(*many->spare);
        delete many;
        return true;
    }
    /// Makes the operation one of an ordinary message. A later read of the descriptor finds no
    /// token.
    static void end_pull(Operation& operation) noexcept {
        Pull* pull = std::exchange(operation.pull, nullptr);
        pull->descriptor.seal.token.fill(0);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // another process reads it
        delete pull;
    }

private:
    static constexpr std::size_t kChunk = 64;

    std::vector<std::unique_ptr<Operation[]>> chunks_;
    Operation* free_ = nullptr;
};

}  // namespace ulc::ofi
