// SPDX-License-Identifier: BSD-3-Clause
// The operations that reduce. Types and operators that ULC knows are reduced by its own loops; all
// others by the MPI's reduction, element by element of the packed form.
//
// The MPI computes inout = in ∘ inout, ULC wants into = into ∘ from. So a copy of `from` is reduced
// into by `into`, and copied back: right for operators that do not commute too. Operands lie at
// multiples of 16 bytes, as compiled user functions may expect of their types.
#include <coll.h>

#include <algorithm>
#include <cstring>

#include "coll/mpi/buffers.h"
#include "coll/mpi/operation.h"

namespace ulc::mpi {
namespace {

constexpr std::size_t kElementMax = 65536;
constexpr std::size_t kBatchBytes = 65536;
constexpr std::size_t kAlignment = 16;

[[nodiscard]] ulc_endpoint* ep() { return session().endpoint(); }

[[nodiscard]] bool is_between(std::uint32_t value, std::uint32_t least, std::uint32_t most) {
    return value >= least && value <= most;
}

/// True if ULC defines the operator for the type.
[[nodiscard]] bool is_native(const ulc_mpi_type& type, const ulc_mpi_operator& op) {
    if (type.native == 0 || op.native == 0) return false;
    if (type.native <= ULC_UINT64) return op.native <= ULC_BXOR;
    if (type.native <= ULC_LONG_DOUBLE) return op.native <= ULC_MAX;
    if (type.native == ULC_BOOL) return is_between(op.native, ULC_LAND, ULC_LXOR);
    if (type.native == ULC_BYTE) return is_between(op.native, ULC_BAND, ULC_BXOR);
    if (type.native <= ULC_LONG_DOUBLE_COMPLEX) return op.native <= ULC_PROD;
    return is_between(op.native, ULC_MINLOC, ULC_MAXLOC);
}

/// Memory for some elements as the MPI's reduction wants them.
class Operand {
public:
    [[nodiscard]] bool reserve(const ulc_mpi_type& type, std::size_t elements) {
        const auto extent = static_cast<std::size_t>(std::max<std::ptrdiff_t>(type.extent, 0));
        const auto before = static_cast<std::size_t>(std::max<std::ptrdiff_t>(-type.true_lb, 0));
        const auto behind = static_cast<std::size_t>(std::max<std::ptrdiff_t>(type.true_lb, 0));
        memory_.reset(new (std::nothrow) unsigned char[before + behind + type.true_extent +
                                                       extent * elements + 2 * kAlignment]);
        if (memory_ == nullptr) return false;
        const auto at = reinterpret_cast<std::uintptr_t>(memory_.get()) + before;
        element_ = moved(memory_.get(), static_cast<std::ptrdiff_t>(
                                            before + (kAlignment - at % kAlignment) % kAlignment));
        return true;
    }
    /// The address of the first element.
    [[nodiscard]] unsigned char* element() { return element_; }

private:
    std::unique_ptr<unsigned char[]> memory_;
    unsigned char* element_ = nullptr;
};

/// One reduction: ULC's arguments for it, and the bridge to the MPI's operator.
class Reduction {
public:
    Reduction(const ulc_mpi_type& type, const ulc_mpi_operator& op) : type_(type), op_(op) {}
    Reduction(const Reduction&) = delete;
    Reduction& operator=(const Reduction&) = delete;

    [[nodiscard]] bool prepare() {
        native_ = is_native(type_, op_);
        if (native_) return true;
        const auto span = std::max<std::size_t>(
            {type_.size, type_.true_extent,
             static_cast<std::size_t>(std::max<std::ptrdiff_t>(type_.extent, 0)), 1});
        // An extent below the true one makes elements overlap: one at a time.
        batch_ = type_.extent < static_cast<std::ptrdiff_t>(type_.true_extent)
                     ? 1
                     : std::max<std::size_t>(kBatchBytes / span, 1);
        return in_.reserve(type_, batch_) && inout_.reserve(type_, batch_);
    }
    [[nodiscard]] bool native() const { return native_; }
    [[nodiscard]] ulc_reduction ours() {
        if (native_) return {type_.native, op_.native, nullptr, nullptr, 0};
        return {ULC_BYTES(static_cast<std::uint32_t>(type_.size)), ULC_USER, apply, this,
                op_.commutes};
    }

private:
    static void apply(void* context, void* into, const void* from, std::size_t count) {
        auto& self = *static_cast<Reduction*>(context);
        auto* to = static_cast<unsigned char*>(into);
        const auto* other = static_cast<const unsigned char*>(from);
        for (std::size_t done = 0; done < count;) {
            const std::size_t n = std::min(self.batch_, count - done);
            self.fold(to + done * self.type_.size, other + done * self.type_.size, n);
            done += n;
        }
    }
    void fold(unsigned char* into, const unsigned char* from, std::size_t n) {
        const ulc_mpi_hooks& mpi = session().hooks();
        if (type_.tight) {
            unsigned char* in = in_.element() + type_.true_lb;
            unsigned char* inout = inout_.element() + type_.true_lb;
            std::memcpy(in, into, n * type_.size);
            std::memcpy(inout, from, n * type_.size);
            mpi.reduce(&op_, &type_, in_.element(), inout_.element(), n);
            std::memcpy(into, inout, n * type_.size);
            return;
        }
        // Packing and unpacking elements that were packed before cannot fail.
        static_cast<void>(mpi.unpack(&type_, n, in_.element(), into));
        static_cast<void>(mpi.unpack(&type_, n, inout_.element(), from));
        mpi.reduce(&op_, &type_, in_.element(), inout_.element(), n);
        static_cast<void>(mpi.pack(&type_, n, inout_.element(), into));
    }

    ulc_mpi_type type_;
    ulc_mpi_operator op_;
    bool native_ = false;
    std::size_t batch_ = 1;
    Operand in_;
    Operand inout_;
};

/// The two buffers of a reduction at this member.
struct Sides {
    Buffer in;
    Buffer out;
    bool in_place = false;

    /// input_count: elements that this member gives; output_count: that it gets, 0: none.
    [[nodiscard]] bool take(const Reduction& reduction, const ulc_mpi_type& type,
                            bool given_in_place, const void* input, std::size_t input_count,
                            void* output, std::size_t output_count) {
        in_place = given_in_place;
        if (reduction.native()) {  // such types are reduced as they lie, with their gaps
            in.take_plain(in_place ? nullptr : input);
            out.take_plain(output_count == 0 && !in_place ? nullptr : output);
            return true;
        }
        if (in_place && (type.tight || session().hooks().contiguous(&type, input_count) != 0))
            return out.take(type, output, input_count, false);
        const bool from_output = in_place;
        in_place = false;
        return in.take(type, from_output ? output : input, input_count, true) &&
               (output_count == 0 || out.take(type, output, output_count, false));
    }
    [[nodiscard]] bool refill() { return in.refill(); }
    [[nodiscard]] const void* input() { return in_place ? nullptr : in.data(); }
};

/// A pending reduction at this member.
struct Work {
    std::unique_ptr<Reduction> reduction;
    Sides sides;

    [[nodiscard]] bool refill() { return sides.refill(); }
    /// Takes the buffers like Sides::take(). False: no memory.
    [[nodiscard]] bool prepare(const ulc_mpi_type& type, const ulc_mpi_operator& op, bool in_place,
                               const void* input, std::size_t input_count, void* output,
                               std::size_t output_count) {
        reduction.reset(new (std::nothrow) Reduction(type, op));
        return reduction != nullptr && reduction->prepare() &&
               sides.take(*reduction, type, in_place, input, input_count, output, output_count);
    }
};

}  // namespace
}  // namespace ulc::mpi

using namespace ulc::mpi;  // NOLINT(google-build-using-namespace): the C entries of this namespace

extern "C" {

int ulc_mpi_reducible(const ulc_mpi_type* type) { return type->size <= kElementMax; }

int ulc_mpi_reduce(ulc_mpi_comm* comm, int root, int in_place, const void* input, void* output,
                   size_t count, const ulc_mpi_type* type, const ulc_mpi_operator* op,
                   ulc_mpi_pending* pending) {
    if (count * type->size == 0) return perform_nothing(pending);
    const bool is_root = comm->self == root;
    Work work;
    if (!work.prepare(*type, *op, is_root && in_place, input, count, output, is_root ? count : 0))
        return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Reduce", pending, std::move(work),
        [=](Work& given, ulc_coll** operation) {
            return ulc_reduce_start(ep(), group, static_cast<uint16_t>(root), given.sides.input(),
                                    given.sides.out.data(), count, given.reduction->ours(), nullptr,
                                    operation);
        },
        [=](Work& given) { return given.sides.out.give_back(); });
}

int ulc_mpi_allreduce(ulc_mpi_comm* comm, int in_place, const void* input, void* output,
                      size_t count, const ulc_mpi_type* type, const ulc_mpi_operator* op,
                      ulc_mpi_pending* pending) {
    if (count * type->size == 0) return perform_nothing(pending);
    Work work;
    if (!work.prepare(*type, *op, in_place != 0, input, count, output, count))
        return ULC_ERR_NO_MEMORY;
    const ulc_group group = comm->group;
    return perform(
        *comm, "MPI_Allreduce", pending, std::move(work),
        [=](Work& given, ulc_coll** operation) {
            return ulc_allreduce_start(ep(), group, given.sides.input(), given.sides.out.data(),
                                       count, given.reduction->ours(), nullptr, operation);
        },
        [=](Work& given) { return given.sides.out.give_back(); });
}

int ulc_mpi_reduce_scatter(ulc_mpi_comm* comm, int in_place, const void* input, void* output,
                           const int* counts, size_t count, const ulc_mpi_type* type,
                           const ulc_mpi_operator* op, ulc_mpi_pending* pending) {
    const std::uint16_t self = comm->self;
    std::vector<std::size_t> elements(comm->count, count);
    std::size_t total = 0;
    for (std::size_t r = 0; r < elements.size(); ++r) {
        if (counts != nullptr) elements[r] = static_cast<std::size_t>(counts[r]);
        total += elements[r];
    }
    if (total * type->size == 0) return perform_nothing(pending);
    Work work;
    if (!work.prepare(*type, *op, in_place != 0, input, total, output, elements[self]))
        return ULC_ERR_NO_MEMORY;
    const char* name = counts != nullptr ? "MPI_Reduce_scatter" : "MPI_Reduce_scatter_block";
    const ulc_group group = comm->group;
    return perform(
        *comm, name, pending, std::move(work),
        [=, counted = std::move(elements)](Work& given, ulc_coll** operation) {
            return counts != nullptr
                       ? ulc_reduce_scatter_start(ep(), group, given.sides.input(),
                                                  given.sides.out.data(), counted.data(),
                                                  given.reduction->ours(), nullptr, operation)
                       : ulc_reduce_scatter_block_start(
                             ep(), group, given.sides.input(), given.sides.out.data(), count,
                             given.reduction->ours(), nullptr, operation);
        },
        [=](Work& given) { return given.sides.out.give_back(); });
}

int ulc_mpi_scan(ulc_mpi_comm* comm, int in_place, int exclusive, const void* input, void* output,
                 size_t count, const ulc_mpi_type* type, const ulc_mpi_operator* op,
                 ulc_mpi_pending* pending) {
    if (count * type->size == 0) return perform_nothing(pending);
    const bool first = comm->self == 0;
    Work work;
    if (!work.prepare(*type, *op, in_place != 0, input, count, output, count))
        return ULC_ERR_NO_MEMORY;
    // Exscan leaves the first member's result as it was.
    const bool nothing_came = exclusive && first;
    const ulc_group group = comm->group;
    return perform(
        *comm, exclusive ? "MPI_Exscan" : "MPI_Scan", pending, std::move(work),
        [=](Work& given, ulc_coll** operation) {
            const auto start = exclusive != 0 ? ulc_exscan_start : ulc_scan_start;
            return start(ep(), group, given.sides.input(), given.sides.out.data(), count,
                         given.reduction->ours(), nullptr, operation);
        },
        [=](Work& given) { return nothing_came || given.sides.out.give_back(); });
}

}  // extern "C"
