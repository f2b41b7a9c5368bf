// SPDX-License-Identifier: BSD-3-Clause
// Datatypes, operators, packing and progress of MPICH, as the core wants them.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "coll/mpi/pmpi/mpich.h"

namespace ulc::pmpi {
namespace {

/// Returns the type of coll.h that a predefined one is; 0: none. C's pairs of a value and an index
/// are structs with gaps, and ULC's are the same structs. Logical types of Fortran have MPICH's
/// own representation.
// NOLINTNEXTLINE(readability-function-size): a list of cases
std::uint32_t native_type(MPI_Datatype type) {
    switch (type) {
        case MPI_SIGNED_CHAR:
        case MPI_INT8_T:
        case MPI_INTEGER1:
            return ULC_INT8;
        case MPI_UNSIGNED_CHAR:
        case MPI_UINT8_T:
            return ULC_UINT8;
        case MPI_SHORT:
        case MPI_INT16_T:
        case MPI_INTEGER2:
            return ULC_INT16;
        case MPI_UNSIGNED_SHORT:
        case MPI_UINT16_T:
            return ULC_UINT16;
        case MPI_INT:
        case MPI_INT32_T:
        case MPI_INTEGER:
        case MPI_INTEGER4:
            return ULC_INT32;
        case MPI_UNSIGNED:
        case MPI_UINT32_T:
            return ULC_UINT32;
        case MPI_LONG:
        case MPI_LONG_LONG_INT:
        case MPI_INT64_T:
        case MPI_INTEGER8:
        case MPI_AINT:
        case MPI_OFFSET:
        case MPI_COUNT:
            return ULC_INT64;
        case MPI_UNSIGNED_LONG:
        case MPI_UNSIGNED_LONG_LONG:
        case MPI_UINT64_T:
            return ULC_UINT64;
        case MPI_FLOAT:
        case MPI_REAL:
        case MPI_REAL4:
            return ULC_FLOAT;
        case MPI_DOUBLE:
        case MPI_DOUBLE_PRECISION:
        case MPI_REAL8:
            return ULC_DOUBLE;
        case MPI_LONG_DOUBLE:
            return ULC_LONG_DOUBLE;
        case MPI_C_BOOL:
            return ULC_BOOL;
        case MPI_BYTE:
            return ULC_BYTE;
        case MPI_C_FLOAT_COMPLEX:
        case MPI_COMPLEX:
        case MPI_COMPLEX8:
            return ULC_FLOAT_COMPLEX;
        case MPI_C_DOUBLE_COMPLEX:
        case MPI_DOUBLE_COMPLEX:
        case MPI_COMPLEX16:
            return ULC_DOUBLE_COMPLEX;
        case MPI_C_LONG_DOUBLE_COMPLEX:
            return ULC_LONG_DOUBLE_COMPLEX;
        case MPI_FLOAT_INT:
            return ULC_FLOAT_INT;
        case MPI_DOUBLE_INT:
            return ULC_DOUBLE_INT;
        case MPI_LONG_INT:
            return ULC_LONG_INT;
        case MPI_SHORT_INT:
            return ULC_SHORT_INT;
        case MPI_2INT:
            return ULC_2INT;
        case MPI_LONG_DOUBLE_INT:
            return ULC_LONG_DOUBLE_INT;
        default:
            return 0;
    }
}

std::uint32_t native_operator(MPI_Op op) {
    switch (op) {
        case MPI_MAX:
            return ULC_MAX;
        case MPI_MIN:
            return ULC_MIN;
        case MPI_SUM:
            return ULC_SUM;
        case MPI_PROD:
            return ULC_PROD;
        case MPI_LAND:
            return ULC_LAND;
        case MPI_BAND:
            return ULC_BAND;
        case MPI_LOR:
            return ULC_LOR;
        case MPI_BOR:
            return ULC_BOR;
        case MPI_LXOR:
            return ULC_LXOR;
        case MPI_BXOR:
            return ULC_BXOR;
        case MPI_MAXLOC:
            return ULC_MAXLOC;
        case MPI_MINLOC:
            return ULC_MINLOC;
        default:
            return 0;
    }
}

MPI_Datatype handle_of(const ulc_mpi_type& type) {
    return static_cast<MPI_Datatype>(reinterpret_cast<std::intptr_t>(type.handle));
}

/// A datatype's construction: kind, first integers, and the types it is made of.
class Contents {
public:
    explicit Contents(MPI_Datatype type) {
        MPI_Count integers = 0;
        MPI_Count addresses = 0;
        MPI_Count large = 0;
        MPI_Count types = 0;
        const Mpich& mpi = mpich();
        mpi.Type_get_envelope_c(type, &integers, &addresses, &large, &types, &kind_);
        // A type made by a large-count function has no contents in plain integers.
        if (kind_ == MPI_COMBINER_NAMED || large != 0) return;
        integers_.resize(static_cast<std::size_t>(integers));
        addresses_.resize(static_cast<std::size_t>(addresses));
        types_.resize(static_cast<std::size_t>(types));
        mpi.Type_get_contents(type, static_cast<int>(integers), static_cast<int>(addresses),
                              static_cast<int>(types), integers_.data(), addresses_.data(),
                              types_.data());
    }
    ~Contents() {
        for (MPI_Datatype& type : types_)
            if (is_derived(type)) mpich().Type_free(&type);
    }
    Contents(const Contents&) = delete;
    Contents& operator=(const Contents&) = delete;

    [[nodiscard]] int kind() const { return kind_; }
    [[nodiscard]] int integer(std::size_t i) const { return integers_.at(i); }
    /// The one type that it is made of; MPI_DATATYPE_NULL: none, or several.
    [[nodiscard]] MPI_Datatype element() const {
        return types_.size() == 1 ? types_[0] : MPI_DATATYPE_NULL;
    }

private:
    /// True if the program made the type; those of MPI must not be freed.
    static bool is_derived(MPI_Datatype type) {
        MPI_Count unused = 0;
        int kind = MPI_COMBINER_NAMED;
        mpich().Type_get_envelope_c(type, &unused, &unused, &unused, &unused, &kind);
        return kind != MPI_COMBINER_NAMED && kind != MPI_COMBINER_F90_REAL &&
               kind != MPI_COMBINER_F90_COMPLEX && kind != MPI_COMBINER_F90_INTEGER;
    }

    int kind_ = MPI_COMBINER_NAMED;
    std::vector<int> integers_;
    std::vector<MPI_Aint> addresses_;
    std::vector<MPI_Datatype> types_;
};

/// True if one element without gap is in memory in the order in which it is packed. A type for
/// which its construction does not show this is packed.
bool lies_in_order(MPI_Datatype type) {
    const Contents contents(type);
    if (contents.kind() == MPI_COMBINER_NAMED) return true;
    const MPI_Datatype element = contents.element();
    if (element == MPI_DATATYPE_NULL) return false;
    switch (contents.kind()) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED: {
            const ulc_mpi_type of = type_of(element);
            return of.size == of.true_extent && lies_in_order(element);
        }
        case MPI_COMBINER_CONTIGUOUS:
            return type_of(element).tight != 0;
        case MPI_COMBINER_VECTOR:  // count, length of a block, stride
            return type_of(element).tight != 0 &&
                   (contents.integer(0) == 1 || contents.integer(1) == contents.integer(2));
        default:
            return false;
    }
}

int is_contiguous(const ulc_mpi_type* type, std::size_t count) {
    if (type->tight != 0 || count == 0) return 1;
    return count == 1 && type->size == type->true_extent && lies_in_order(handle_of(*type));
}

/// Elements at an address, as MPICH packs them. MPI_BOTTOM, which is the null pointer, is refused
/// there: such elements become one of a type that is placed relative to another address.
class Packable {
public:
    Packable(const ulc_mpi_type& type, std::size_t count, const void* memory)
        : memory_(reinterpret_cast<std::uintptr_t>(memory)),
          count_(static_cast<MPI_Count>(count)),
          type_(handle_of(type)) {
        static unsigned char base;
        if (memory != nullptr) return;
        memory_ = reinterpret_cast<std::uintptr_t>(&base);
        const auto from_base = static_cast<MPI_Count>(std::uintptr_t{0} - memory_);
        mpich().Type_create_hindexed_c(1, &count_, &from_base, type_, &moved_);
        mpich().Type_commit(&moved_);
        type_ = moved_;
        count_ = 1;
    }
    ~Packable() {
        if (moved_ != MPI_DATATYPE_NULL) mpich().Type_free(&moved_);
    }
    Packable(const Packable&) = delete;
    Packable& operator=(const Packable&) = delete;

    [[nodiscard]] void* memory() const { return reinterpret_cast<void*>(memory_); }
    [[nodiscard]] MPI_Count count() const { return count_; }
    [[nodiscard]] MPI_Datatype type() const { return type_; }

private:
    std::uintptr_t memory_;
    MPI_Count count_;
    MPI_Datatype type_;
    MPI_Datatype moved_ = MPI_DATATYPE_NULL;
};

int pack(const ulc_mpi_type* type, std::size_t count, const void* memory, void* packed) {
    MPI_Count at = 0;
    const auto bytes = static_cast<MPI_Count>(type->size * count);
    const Packable in(*type, count, memory);
    const int status =
        mpich().Pack_c(in.memory(), in.count(), in.type(), packed, bytes, &at, MPI_COMM_SELF);
    return status == MPI_SUCCESS && at == bytes ? 0 : -1;
}

int unpack(const ulc_mpi_type* type, std::size_t count, void* memory, const void* packed) {
    MPI_Count at = 0;
    const auto bytes = static_cast<MPI_Count>(type->size * count);
    const Packable out(*type, count, memory);
    const int status =
        mpich().Unpack_c(packed, bytes, &at, out.memory(), out.count(), out.type(), MPI_COMM_SELF);
    return status == MPI_SUCCESS && at == bytes ? 0 : -1;
}

/// Packs or unpacks whole elements. The element at the border of two pieces waits in `carried_`.
class Stream {
public:
    Stream(const ulc_mpi_type& type, const void* memory, bool packs)
        : type_(type),
          memory_(reinterpret_cast<std::uintptr_t>(memory)),
          packs_(packs),
          carried_(new (std::nothrow) unsigned char[type.size]) {}
    [[nodiscard]] bool is_ready() const { return carried_ != nullptr; }

    [[nodiscard]] int move(unsigned char* packed, std::size_t bytes) {
        while (bytes > 0) {
            std::size_t n = 0;
            if (at_ == 0 && bytes >= type_.size) {
                const std::size_t elements = bytes / type_.size;
                n = elements * type_.size;
                if (move_elements(elements, packed) != 0) return -1;
            } else {
                n = std::min(bytes, type_.size - at_);
                if (carry(packed, n) != 0) return -1;
            }
            packed += n;
            bytes -= n;
        }
        return 0;
    }

private:
    int move_elements(std::size_t elements, unsigned char* packed) {
        void* memory = reinterpret_cast<void*>(memory_);
        memory_ += elements * static_cast<std::uintptr_t>(type_.extent);
        return packs_ ? pack(&type_, elements, memory, packed)
                      : unpack(&type_, elements, memory, packed);
    }
    int carry(unsigned char* packed, std::size_t n) {
        if (packs_ && at_ == 0 && move_elements(1, carried_.get()) != 0) return -1;
        if (packs_)
            std::memcpy(packed, carried_.get() + at_, n);
        else
            std::memcpy(carried_.get() + at_, packed, n);
        at_ += n;
        if (at_ < type_.size) return 0;
        at_ = 0;
        return packs_ ? 0 : move_elements(1, carried_.get());
    }

    ulc_mpi_type type_;
    std::uintptr_t memory_;  ///< the next element
    bool packs_;
    std::size_t at_ = 0;  ///< bytes of the carried element that have moved
    std::unique_ptr<unsigned char[]> carried_;
};

void* open_stream(const ulc_mpi_type* type, std::size_t, const void* memory, int packs) {
    auto stream = std::unique_ptr<Stream>(new (std::nothrow) Stream(*type, memory, packs != 0));
    return stream != nullptr && stream->is_ready() ? stream.release() : nullptr;
}
int move_stream(void* stream, void* packed, std::size_t bytes) {
    return static_cast<Stream*>(stream)->move(static_cast<unsigned char*>(packed), bytes);
}
void close_stream(void* stream) { delete static_cast<Stream*>(stream); }

void reduce(const ulc_mpi_operator* op, const ulc_mpi_type* type, void* in, void* inout,
            std::size_t count) {
    const auto theirs = static_cast<MPI_Op>(reinterpret_cast<std::intptr_t>(op->handle));
    mpich().Reduce_local(in, inout, static_cast<int>(count), handle_of(*type), theirs);
}

/// Makes MPICH move its messages. MPI_Iprobe on a communicator of one rank would not.
void progress() {
    int completed = 0;
    mpich().Request_get_status(pending, &completed, MPI_STATUS_IGNORE);
}

}  // namespace

const ulc_mpi_hooks hooks = {is_contiguous, pack,         unpack, open_stream,
                             move_stream,   close_stream, reduce, progress};

ulc_mpi_type type_of(MPI_Datatype type) {
    ulc_mpi_type ours{};
    MPI_Count size = 0;
    MPI_Count lb = 0;
    MPI_Count extent = 0;
    MPI_Count true_lb = 0;
    MPI_Count true_extent = 0;
    const Mpich& mpi = mpich();
    mpi.Type_size_c(type, &size);
    mpi.Type_get_extent_c(type, &lb, &extent);
    mpi.Type_get_true_extent_c(type, &true_lb, &true_extent);
    ours.handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(type));
    ours.size = static_cast<std::size_t>(size);
    ours.extent = extent;
    ours.true_lb = true_lb;
    ours.true_extent = static_cast<std::size_t>(true_extent);
    ours.native = native_type(type);
    if (ours.native != 0 && static_cast<MPI_Count>(ulc_type_bytes(ours.native)) != extent)
        ours.native = 0;
    ours.tight = size == extent && size == true_extent && (ours.native != 0 || lies_in_order(type));
    return ours;
}

ulc_mpi_operator operator_of(MPI_Op op) {
    ulc_mpi_operator ours{};
    ours.handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(op));
    ours.native = native_operator(op);
    ours.commutes = 1;
    if (ours.native == 0) mpich().Op_commutative(op, &ours.commutes);
    return ours;
}

}  // namespace ulc::pmpi
