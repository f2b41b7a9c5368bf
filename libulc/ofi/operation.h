// One send or receive under way, and the pool and list of those of an endpoint.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "client/ulc.h"
#include "ofi/message_header.h"

namespace ulc::ofi {

struct Operation {
    enum class Kind : std::uint8_t {
        kSend,
        kReceive,
        kMultiReceive,  ///< takes messages until its buffer is used up
    };

    ulc_request request;               ///< the first member: of() relies on it
    ulc_piece pieces[ULC_PIECES_MAX];  ///< the header, then the user's
    MessageHeader header;
    Kind kind;
    bool report;  ///< a success is written to the completion queue
    std::uint16_t from;
    unsigned count;        ///< how many pieces there are
    std::uint64_t tag;     ///< libulc's
    std::uint64_t mask;    ///< receives: libulc's
    std::uint64_t flags;   ///< the flags of completions
    std::size_t capacity;  ///< bytes of the user's pieces
    void* context;
    Operation* previous;
    Operation* next;

    /// Returns the operation of a request.
    [[nodiscard]] static Operation& of(ulc_request& request) noexcept {
        return reinterpret_cast<Operation&>(request);
    }
};
static_assert(std::is_standard_layout_v<Operation> && offsetof(Operation, request) == 0);

/// The operations under way, in the order in which they were started. Grows; never shrinks.
class Operations {
public:
    /// Returns an operation that is in no list; nullptr: no memory.
    [[nodiscard]] Operation* allocate() noexcept try {
        if (free_ == nullptr) {
            chunks_.push_back(std::make_unique<Operation[]>(kChunk));
            for (std::size_t i = 0; i < kChunk; ++i)
                release(chunks_.back()[i]);
        }
        Operation* operation = free_;
        free_ = operation->next;
        return operation;
    } catch (...) {
        return nullptr;
    }
    void release(Operation& operation) noexcept {
        operation.next = free_;
        free_ = &operation;
    }

    void append(Operation& operation) noexcept {
        operation.previous = last_;
        operation.next = nullptr;
        (last_ != nullptr ? last_->next : first_) = &operation;
        last_ = &operation;
    }
    void remove(Operation& operation) noexcept {
        (operation.previous != nullptr ? operation.previous->next : first_) = operation.next;
        (operation.next != nullptr ? operation.next->previous : last_) = operation.previous;
    }
    [[nodiscard]] Operation* first() const noexcept { return first_; }

private:
    static constexpr std::size_t kChunk = 64;

    std::vector<std::unique_ptr<Operation[]>> chunks_;
    Operation* free_ = nullptr;
    Operation* first_ = nullptr;
    Operation* last_ = nullptr;
};

}  // namespace ulc::ofi
