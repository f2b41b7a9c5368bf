// SPDX-License-Identifier: BSD-3-Clause
#include "coll/operation.h"

#include <algorithm>
#include <memory>
#include <new>

#include "base/error.h"
#include "client/error_text.h"
#include "client/ulc_internal.h"
#include "coll/agreement.h"
#include "coll/reduction.h"
#include "coll/selection.h"

namespace ulc::coll {
namespace {

using client::set_last_error;

/// Use that an operation makes of its buffers.
enum class Part : std::uint8_t {
    kNone,
    kOwn,     ///< one block
    kWhole,   ///< the vector
    kBlocks,  ///< one block a rank
};
struct Use {
    Part part;
    bool only_root;
};
struct Uses {
    Use input;
    Use output;
    bool rooted;
};

[[nodiscard]] constexpr Uses uses_of(Op op) noexcept {
    switch (op) {
        case Op::kBarrier:
            return {{Part::kNone, false}, {Part::kNone, false}, false};
        case Op::kBroadcast:
            return {{Part::kNone, false}, {Part::kWhole, false}, true};
        case Op::kGather:
        case Op::kGatherv:
            return {{Part::kOwn, false}, {Part::kBlocks, true}, true};
        case Op::kScatter:
        case Op::kScatterv:
            return {{Part::kBlocks, true}, {Part::kOwn, false}, true};
        case Op::kAllgather:
            return {{Part::kOwn, false}, {Part::kBlocks, false}, false};
        case Op::kAlltoall:
        case Op::kAlltoallv:
            return {{Part::kBlocks, false}, {Part::kBlocks, false}, false};
        case Op::kReduce:
            return {{Part::kWhole, false}, {Part::kWhole, true}, true};
        case Op::kReduceScatter:
            return {{Part::kBlocks, false}, {Part::kOwn, false}, false};
        case Op::kAllreduce:
        case Op::kScan:
        case Op::kExscan:
            return {{Part::kWhole, false}, {Part::kWhole, false}, false};
    }
    return {};
}

/// Turns arguments into a Call with its memory. Every function returns ULC_OK or the error, whose
/// text is set.
class Judge {
public:
    explicit Judge(const Arguments& arguments)
        : given_(arguments), name_(name_of(arguments.op).data()), uses_(uses_of(arguments.op)) {}

    [[nodiscard]] int judge() {
        int error = membership();
        if (error == ULC_OK) error = reduction();
        if (error == ULC_OK)
            error = blocks(given_.in, uses_.input, in_, call.in, memory.input_octets);
        if (error == ULC_OK)
            error = blocks(given_.out, uses_.output, out_, call.out, memory.output_octets);
        if (error == ULC_OK) error = place();
        return error == ULC_OK ? algorithm() : error;
    }

    /// Arguments that every member must have given alike.
    [[nodiscard]] client::RunIdentity identity() const {
        const Blocks& blocks = call.op == Op::kAllgather ? call.out : call.in;
        return {name_,
                agreement_of(call, *chosen, given_.reduction, given_.uneven ? &blocks : nullptr)};
    }

    Call call;
    client::RunMemory memory;
    const Algorithm* chosen = nullptr;

private:
    [[nodiscard]] int membership() {
        if (given_.ep == nullptr || given_.operation == nullptr) {
            set_last_error("%s: the endpoint or the place for the operation is NULL", name_);
            return ULC_ERR_INVALID;
        }
        call.op = given_.op;
        call.root = given_.root;
        call.early = given_.offload && ulc_internal_offloads(given_.ep) != 0;
        call.rank = ulc_group_index(given_.ep, given_.group);
        call.ranks = ulc_group_size(given_.ep, given_.group);
        if (call.rank == ULC_RANK_ANY || call.ranks == 0) {
            if (const int state = ulc_job_state(given_.ep); state != ULC_OK)
                return state == ULC_ERR_AGAIN ? ULC_ERR_NOT_FORMED : state;
            set_last_error(
                "%s: this rank is no member of group 0x%08x, or has freed it; create the group "
                "first",
                name_, given_.group);
            return ULC_ERR_INVALID;
        }
        if (uses_.rooted && call.root >= call.ranks) {
            set_last_error("%s: root %u is not in the group of %u; give the index of a member",
                           name_, unsigned{call.root}, unsigned{call.ranks});
            return ULC_ERR_INVALID;
        }
        return ULC_OK;
    }

    [[nodiscard]] int reduction() {
        const ulc_reduction* r = given_.reduction;
        if (r == nullptr) return ULC_OK;
        call.grain = element_octets(r->type);
        if (call.grain == 0) {
            set_last_error("%s: there is no type %u; see ulc_type in coll.h", name_, r->type);
            return ULC_ERR_INVALID;
        }
        if (r->op == ULC_USER) {
            call.commutative = r->commutative != 0;
            if (r->function != nullptr) return ULC_OK;
            set_last_error("%s: ULC_USER without a function; set that of the ulc_reduction", name_);
            return ULC_ERR_INVALID;
        }
        if (apply_of(r->type, r->op) != nullptr) return ULC_OK;
        set_last_error("%s: operator %u is not defined for type %u; see ulc_operator in coll.h",
                       name_, r->op, r->type);
        return ULC_ERR_INVALID;
    }

    [[nodiscard]] bool takes_part(const Use& use) const {
        return use.part != Part::kNone && (!use.only_root || call.rank == call.root);
    }

    [[nodiscard]] int too_long() const {
        set_last_error("%s: the lengths of %u ranks exceed the address space", name_,
                       unsigned{call.ranks});
        return ULC_ERR_LIMIT;
    }

    /// Bytes of `count` elements.
    [[nodiscard]] bool scaled(std::size_t count, std::size_t& octets) const {
        return !__builtin_mul_overflow(count, std::size_t{call.grain}, &octets);
    }

    /// The layout of a buffer and how far it reaches. own: keeps lengths and offsets in bytes.
    [[nodiscard]] int blocks(const GivenBlocks& given, const Use& use,
                             std::vector<std::size_t>& own, Blocks& layout, std::uint64_t& reach) {
        std::size_t one = 0;
        if (!scaled(given_.count, one)) return too_long();
        if (use.part != Part::kBlocks) {
            call.octets = std::max<std::uint64_t>(call.octets, use.part == Part::kNone ? 0 : one);
            reach = takes_part(use) ? one : 0;
            return ULC_OK;
        }
        layout.each = one;
        if (!takes_part(use)) return ULC_OK;
        if (!given_.uneven) {
            std::size_t whole = 0;
            if (__builtin_mul_overflow(one, std::size_t{call.ranks}, &whole)) return too_long();
            reach = whole;
            call.octets = std::max<std::uint64_t>(call.octets, one);
            return ULC_OK;
        }
        if (given.lengths == nullptr) {
            set_last_error("%s: the lengths by rank are NULL", name_);
            return ULC_ERR_INVALID;
        }
        own.resize(std::size_t{2} * call.ranks);
        std::size_t behind = 0;
        for (std::uint16_t rank = 0; rank < call.ranks; ++rank) {
            std::size_t& length = own[rank];
            std::size_t& offset = own[call.ranks + rank];
            if (!scaled(given.lengths[rank], length)) return too_long();
            if (given.offsets == nullptr) {
                offset = behind;
            } else if (!scaled(given.offsets[rank], offset)) {
                return too_long();
            }
            if (length == 0) {  // lies nowhere
                offset = 0;
                continue;
            }
            if (__builtin_add_overflow(offset, length, &behind)) return too_long();
            reach = std::max<std::uint64_t>(reach, behind);
        }
        layout.lengths = own.data();
        layout.offsets = own.data() + call.ranks;
        return ULC_OK;
    }

    /// Place of the data, and whether they are in place.
    [[nodiscard]] int place() {
        if (given_.uneven) own_length();
        if (given_.op == Op::kReduceScatter) {
            call.octets = memory.input_octets;
            memory.output_octets = call.in.length(call.rank);
        }
        memory.input = given_.input;
        memory.output = given_.output;
        const bool scatters = given_.op == Op::kScatter || given_.op == Op::kScatterv;
        // Rooted operations have an in-place form at the root alone.
        if (given_.op != Op::kBroadcast && (!uses_.rooted || call.rank == call.root))
            call.in_place = (scatters ? given_.output : given_.input) == nullptr;
        if (call.in_place && scatters) memory.output_octets = 0;
        if (call.in_place && !scatters) {
            // A reduce_scatter in place has all blocks where the result will be.
            if (given_.op == Op::kReduceScatter) memory.output_octets = memory.input_octets;
            memory.input_octets = 0;
        }
        if (memory.input_octets > 0 && memory.input == nullptr) return null_buffer("input");
        if (memory.output_octets > 0 && memory.output == nullptr) return null_buffer("output");
        return ULC_OK;
    }

    /// call.octets where blocks have lengths of their own.
    void own_length() {
        const bool at_root = call.rank == call.root;
        if (call.op == Op::kAllgather || (at_root && call.op == Op::kGatherv)) {
            call.octets = memory.input_octets = call.out.length(call.rank);
        } else if (at_root && call.op == Op::kScatterv) {
            call.octets = memory.output_octets = call.in.length(call.rank);
        }
    }

    [[nodiscard]] int null_buffer(const char* which) const {
        set_last_error("%s: the %s is NULL but %llu octets are wanted there", name_, which,
                       static_cast<unsigned long long>(which[0] == 'i' ? memory.input_octets
                                                                       : memory.output_octets));
        return ULC_ERR_INVALID;
    }

    /// Returns the requested algorithm, or the table's, which may depend only on data that every
    /// rank knows.
    [[nodiscard]] int algorithm() {
        const bool alike =
            call.op != Op::kGatherv && call.op != Op::kScatterv && call.op != Op::kAlltoallv;
        std::uint64_t octets = alike ? call.octets : 0;
        if (call.op == Op::kAllgather && given_.uneven) octets = memory.output_octets / call.ranks;
        if (call.op == Op::kReduceScatter) octets = call.octets / call.ranks;
        Choice choice;
        if (given_.algorithm == nullptr) {
            if (const int error = select(given_.ep, given_.group, call.op, octets, choice);
                error != ULC_OK)
                return error;
        } else if (parse_choice(call.op, given_.algorithm, choice) != Err::kOk) {
            set_last_error("%s: there is no algorithm \"%s\" for this operation; see coll.h", name_,
                           given_.algorithm);
            return ULC_ERR_INVALID;
        }
        call.segment = choice.segment;
        call.concurrent = choice.concurrent;
        chosen = choice.algorithm;
        return ULC_OK;
    }

    const Arguments& given_;
    const char* name_;  ///< name_of() gives literals, so it is terminated
    Uses uses_;
    std::vector<std::size_t> in_;
    std::vector<std::size_t> out_;
};

[[nodiscard]] int run(const Arguments& arguments) {
    Judge judge(arguments);
    if (const int error = judge.judge(); error != ULC_OK) return error;
    auto operation = std::make_unique<ulc_coll>();
    operation->ep = arguments.ep;
    operation->group = arguments.group;
    operation->offload = judge.call.early;
    judge.chosen->make(judge.call, operation->plan);
    client::RunMemory& memory = operation->memory = judge.memory;
    if (arguments.reduction != nullptr) {
        operation->reduction = *arguments.reduction;
        const bool user = operation->reduction.op == ULC_USER;
        memory.reduce.apply =
            user ? apply_user : apply_of(operation->reduction.type, operation->reduction.op);
        memory.reduce.context = &operation->reduction;
        memory.reduce.grain = judge.call.grain;
    }
    operation->identity = judge.identity();
    const int error = operation->start();
    if (error == ULC_OK) *arguments.operation = operation.release();
    return error;
}

}  // namespace

Situation situation(ulc_endpoint* ep, ulc_group group, Op op, std::uint64_t octets) {
    Situation at;
    at.op = op;
    at.medium = static_cast<Medium>(ulc_internal_medium(ep));
    at.per_node = ulc_internal_per_node(ep, group);
    at.ranks = ulc_group_size(ep, group);
    at.octets = octets;
    return at;
}

int select(ulc_endpoint* ep, ulc_group group, Op op, std::uint64_t octets, Choice& out,
           const Rule** rule) {
    const Selection& chosen = selection();
    if (!chosen.mistake().empty()) {
        set_last_error("%s", chosen.mistake().c_str());
        return ULC_ERR_INVALID;
    }
    out = chosen.find(situation(ep, group, op, octets), rule);
    return ULC_OK;
}

int start(const Arguments& arguments) noexcept {
    try {
        return run(arguments);
    } catch (const std::bad_alloc&) {
        set_last_error("%s: no memory for the schedule", name_of(arguments.op).data());
        return ULC_ERR_NO_MEMORY;
    }
}

}  // namespace ulc::coll
