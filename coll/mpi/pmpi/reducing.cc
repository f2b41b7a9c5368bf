// SPDX-License-Identifier: BSD-3-Clause
// The entries that reduce: each passes the call on to ULC, or to MPICH as it came.
#include <climits>
#include <vector>

#include "coll/mpi/pmpi/mpich.h"

namespace ulc::pmpi {
namespace {

/// Arguments of a reduction that are the same at every member.
struct Reduction {
    bool is_valid;
    ulc_mpi_type type{};
    ulc_mpi_operator op{};

    Reduction(MPI_Comm comm, MPI_Count count, MPI_Datatype of, MPI_Op by)
        : is_valid(has_rank(comm, 0) && count >= 0 && of != MPI_DATATYPE_NULL &&
                   by != MPI_OP_NULL) {
        if (!is_valid) return;
        type = type_of(of);
        op = operator_of(by);
    }
};

template <typename Before, typename Count>
int reduce(Before before, const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op,
           int root, MPI_Comm comm) {
    const Reduction by(comm, count, type, op);
    const Communicator* at =
        taken(comm, ULC_MPI_REDUCE, by.is_valid && has_rank(comm, root), &by.type);
    if (at == nullptr) return before(in, out, count, type, op, root, comm);
    return ended(comm, ulc_mpi_reduce(at->ours, root, in == MPI_IN_PLACE, in, out,
                                      static_cast<std::size_t>(count), &by.type, &by.op, nullptr));
}

template <typename Before, typename Count>
int allreduce(Before before, const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op,
              MPI_Comm comm) {
    const Reduction by(comm, count, type, op);
    const Communicator* at = taken(comm, ULC_MPI_ALLREDUCE, by.is_valid, &by.type);
    if (at == nullptr) return before(in, out, count, type, op, comm);
    return ended(comm,
                 ulc_mpi_allreduce(at->ours, in == MPI_IN_PLACE, in, out,
                                   static_cast<std::size_t>(count), &by.type, &by.op, nullptr));
}

template <typename Before, typename Count>
int reduce_scatter_block(Before before, const void* in, void* out, Count count, MPI_Datatype type,
                         MPI_Op op, MPI_Comm comm) {
    const Reduction by(comm, count, type, op);
    const Communicator* at = taken(comm, ULC_MPI_REDUCE_SCATTER_BLOCK, by.is_valid, &by.type);
    if (at == nullptr) return before(in, out, count, type, op, comm);
    return ended(
        comm, ulc_mpi_reduce_scatter(at->ours, in == MPI_IN_PLACE, in, out, nullptr,
                                     static_cast<std::size_t>(count), &by.type, &by.op, nullptr));
}

/// True if the core can take the counts. Every member gives the same.
template <typename Count>
bool are_narrow(const Count* counts, MPI_Comm comm) {
    int size = 0;
    if (!has_rank(comm, 0)) return false;
    mpich().Comm_size(comm, &size);
    for (int i = 0; i < size; ++i)
        if (counts[i] < 0 || counts[i] > Count{INT_MAX}) return false;
    return true;
}

/// `narrow` has the counts as the core wants them; nullptr: it cannot take them.
template <typename Before, typename Count>
int reduce_scatter(Before before, const void* in, void* out, const Count* counts, const int* narrow,
                   MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    const Reduction by(comm, 0, type, op);
    const Communicator* at =
        taken(comm, ULC_MPI_REDUCE_SCATTER, by.is_valid && narrow != nullptr, &by.type);
    if (at == nullptr) return before(in, out, counts, type, op, comm);
    return ended(comm, ulc_mpi_reduce_scatter(at->ours, in == MPI_IN_PLACE, in, out, narrow, 0,
                                              &by.type, &by.op, nullptr));
}

template <typename Before, typename Count>
int scan(Before before, bool exclusive, const void* in, void* out, Count count, MPI_Datatype type,
         MPI_Op op, MPI_Comm comm) {
    const Reduction by(comm, count, type, op);
    const Communicator* at =
        taken(comm, exclusive ? ULC_MPI_EXSCAN : ULC_MPI_SCAN, by.is_valid, &by.type);
    if (at == nullptr) return before(in, out, count, type, op, comm);
    return ended(comm, ulc_mpi_scan(at->ours, in == MPI_IN_PLACE, exclusive ? 1 : 0, in, out,
                                    static_cast<std::size_t>(count), &by.type, &by.op, nullptr));
}

}  // namespace
}  // namespace ulc::pmpi

using namespace ulc::pmpi;  // NOLINT(google-build-using-namespace): the C entries of this namespace

extern "C" {

// Each operation in both widths: Count is the type of a count.
#define ULC_ENTRIES(suffix, Count)                                                               \
    int MPI_Reduce##suffix(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, \
                           int root, MPI_Comm comm) {                                            \
        return reduce(mpich().Reduce##suffix, in, out, count, type, op, root, comm);             \
    }                                                                                            \
    int MPI_Allreduce##suffix(const void* in, void* out, Count count, MPI_Datatype type,         \
                              MPI_Op op, MPI_Comm comm) {                                        \
        return allreduce(mpich().Allreduce##suffix, in, out, count, type, op, comm);             \
    }                                                                                            \
    int MPI_Reduce_scatter_block##suffix(const void* in, void* out, Count count,                 \
                                         MPI_Datatype type, MPI_Op op, MPI_Comm comm) {          \
        return reduce_scatter_block(mpich().Reduce_scatter_block##suffix, in, out, count, type,  \
                                    op, comm);                                                   \
    }                                                                                            \
    int MPI_Scan##suffix(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op,   \
                         MPI_Comm comm) {                                                        \
        return scan(mpich().Scan##suffix, false, in, out, count, type, op, comm);                \
    }                                                                                            \
    int MPI_Exscan##suffix(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, \
                           MPI_Comm comm) {                                                      \
        return scan(mpich().Exscan##suffix, true, in, out, count, type, op, comm);               \
    }

ULC_ENTRIES(, int)
ULC_ENTRIES(_c, MPI_Count)

int MPI_Reduce_scatter(const void* in, void* out, const int counts[], MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
    return reduce_scatter(mpich().Reduce_scatter, in, out, counts,
                          are_narrow(counts, comm) ? counts : nullptr, type, op, comm);
}

int MPI_Reduce_scatter_c(const void* in, void* out, const MPI_Count counts[], MPI_Datatype type,
                         MPI_Op op, MPI_Comm comm) {
    int size = 0;
    const bool can = are_narrow(counts, comm);
    if (can) mpich().Comm_size(comm, &size);
    const std::vector<int> narrow(counts, counts + size);
    return reduce_scatter(mpich().Reduce_scatter_c, in, out, counts, can ? narrow.data() : nullptr,
                          type, op, comm);
}

}  // extern "C"
