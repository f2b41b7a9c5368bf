// SPDX-License-Identifier: BSD-3-Clause
// A collective as data: steps with dependencies, made by pure functions in coll/, run by exec/.
// Plain old data, offsets only, so that a schedule can be in shared memory and be validated like
// any record.
#pragma once

#include <cstdint>

namespace ulc::abi {

enum class StepKind : std::uint8_t {
    kSend = 1,   ///< to `peer`
    kMcast = 2,  ///< to all other members (subset: see Step::subset)
    kRecv = 3,   ///< from `peer`: its next message of this operation, `length` bytes
    kCopy = 4,   ///< local: from (from_buffer, from_offset) to (buffer, offset)
    kReduce =
        5,  ///< local: (buffer, offset) = (from_buffer, from_offset) op (with_buffer, with_offset)
};

/// Returns true for steps that the executing side performs itself, at once.
[[nodiscard]] constexpr bool is_local(StepKind kind) noexcept {
    return kind == StepKind::kCopy || kind == StepKind::kReduce;
}

/// The memory to which an offset refers.
enum class BufferId : std::uint8_t { kInput = 0, kOutput = 1, kScratch = 2 };

struct Step {
    StepKind kind;
    BufferId buffer;
    BufferId from_buffer;
    BufferId with_buffer;
    std::uint16_t peer;  ///< index in the group
    std::uint16_t depends_count;
    std::uint32_t depends_first;  ///< index into Schedule::depends
    std::uint32_t reserved;
    std::uint64_t offset;       ///< bytes into `buffer`
    std::uint64_t from_offset;  ///< bytes into `from_buffer`; kMcast with a subset: the bitmap
    std::uint64_t with_offset;  ///< bytes into `with_buffer`
    std::uint64_t length;       ///< bytes
};
static_assert(sizeof(Step) == 48);

inline constexpr std::uint32_t kStepsMax = 1U << 20;

/// In the tag of an operation's message, unless its sender checks nothing: no other message of the
/// operation follows to the same receiver. So a receiver knows at once that a message is to come
/// for which it has no step, or that none comes for a step.
inline constexpr std::uint64_t kTagLast = 1;

/// A view: its maker owns the arrays. depends[first … first+count) of a step are indices of
/// *earlier* steps, so a schedule cannot be cyclic. Steps without unfinished dependencies may run
/// in any order; kSend, kMcast and kRecv with the same peer start in index order.
struct Schedule {
    const Step* steps;
    const std::uint32_t* depends;
    std::uint32_t step_count;
    std::uint32_t depends_count;
    std::uint64_t scratch_octets;
};

/// Messages of one operation that may pass the engine to the client while a schedule is being
/// submitted (OffloadRequest::seen).
inline constexpr std::uint32_t kOffloadPassedMax = 20;

/// Bits of OffloadRequest::flags; no other may be set.
enum OffloadFlag : std::uint32_t {
    /// The operation sends data that it receives. It is refused if any of its messages went to the
    /// client meanwhile, since those are not in the arena.
    kOffloadPassesOn = 0x01,
};

/// A schedule submitted to the engine (offload), in the tx arena, followed by its steps and its
/// dependencies. It has no reductions and copies nothing, and no step touches memory into which a
/// later one receives: so the engine may put a message there as soon as it comes. Its buffers are
/// in the tx arena.
struct OffloadRequest {
    std::uint32_t step_count;
    std::uint32_t depends_count;
    std::uint32_t input_offset;
    std::uint32_t input_octets;
    std::uint32_t output_offset;
    std::uint32_t output_octets;
    std::uint32_t scratch_offset;
    std::uint32_t scratch_octets;
    std::uint32_t
        seen;  ///< completions taken when the client last looked for messages of this operation
    std::uint32_t flags;  ///< OffloadFlag
    /// Bits of a message's tag that say whether it belongs to this operation
    std::uint64_t tag_mask;
};
static_assert(sizeof(OffloadRequest) == 48);

}  // namespace ulc::abi
