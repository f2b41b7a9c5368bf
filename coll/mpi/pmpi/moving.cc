// SPDX-License-Identifier: BSD-3-Clause
// The entries that move data: each passes the call on to ULC, or to MPICH as it came. The plain and
// the large-count form of an operation are one template. blocks_of() gives the core counts
// and displacements of either width.
#include "coll/mpi/pmpi/mpich.h"

namespace ulc::pmpi {
namespace {

ulc_mpi_blocks blocks_of(const int* counts, const int* displacements) {
    return {counts, displacements, nullptr, nullptr};
}
ulc_mpi_blocks blocks_of(const MPI_Count* counts, const MPI_Aint* displacements) {
    static_assert(sizeof(MPI_Count) == sizeof(ulc_mpi_wide) &&
                  sizeof(MPI_Aint) == sizeof(ulc_mpi_wide));
    return {nullptr, nullptr, reinterpret_cast<const ulc_mpi_wide*>(counts),
            reinterpret_cast<const ulc_mpi_wide*>(displacements)};
}

bool is_valid(MPI_Count count, MPI_Datatype type) {
    return count >= 0 && type != MPI_DATATYPE_NULL;
}
/// Validates likewise; the arguments have no meaning with MPI_IN_PLACE.
bool is_valid(const void* buffer, MPI_Count count, MPI_Datatype type) {
    return buffer == MPI_IN_PLACE || is_valid(count, type);
}

template <typename Count>
bool has_negative(const Count* counts, int size) {
    for (int i = 0; i < size; ++i)
        if (counts[i] < 0) return true;
    return false;
}

/// Returns the type; one without bytes where the argument has no meaning at this member.
ulc_mpi_type type_if(bool is_used, MPI_Datatype type) {
    return is_used ? type_of(type) : ulc_mpi_type{};
}
ulc_mpi_type type_if(const void* buffer, MPI_Datatype type) {
    return type_if(buffer != MPI_IN_PLACE, type);
}

template <typename Before, typename Count>
int bcast(Before before, void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_BCAST, is_valid(count, type) && has_rank(comm, root));
    if (at == nullptr) return before(buffer, count, type, root, comm);
    const ulc_mpi_type of = type_of(type);
    return ended(
        comm, ulc_mpi_bcast(at->ours, root, buffer, static_cast<std::size_t>(count), &of, nullptr));
}

template <typename Before, typename Count>
int gather(Before before, const void* in, Count in_count, MPI_Datatype in_type, void* out,
           Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_GATHER, is_valid(in, in_count, in_type) && has_rank(comm, root));
    if (at == nullptr) return before(in, in_count, in_type, out, out_count, out_type, root, comm);
    const ulc_mpi_type from = type_if(in, in_type);
    const ulc_mpi_type to = type_if(at->rank == root, out_type);
    return ended(comm, ulc_mpi_gather(at->ours, root, in == MPI_IN_PLACE, in,
                                      static_cast<std::size_t>(in_count), &from, out,
                                      static_cast<std::size_t>(out_count), &to, nullptr));
}

template <typename Before, typename Count, typename Offset>
int gatherv(Before before, const void* in, Count in_count, MPI_Datatype in_type, void* out,
            const Count* counts, const Offset* displacements, MPI_Datatype out_type, int root,
            MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_GATHERV, is_valid(in, in_count, in_type) && has_rank(comm, root));
    if (at == nullptr || (at->rank == root && has_negative(counts, at->size)))
        return before(in, in_count, in_type, out, counts, displacements, out_type, root, comm);
    const ulc_mpi_type from = type_if(in, in_type);
    const ulc_mpi_type to = type_if(at->rank == root, out_type);
    return ended(comm, ulc_mpi_gatherv(at->ours, root, in == MPI_IN_PLACE, in,
                                       static_cast<std::size_t>(in_count), &from, out,
                                       blocks_of(counts, displacements), &to, nullptr));
}

template <typename Before, typename Count>
int scatter(Before before, const void* in, Count in_count, MPI_Datatype in_type, void* out,
            Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_SCATTER, is_valid(out, out_count, out_type) && has_rank(comm, root));
    if (at == nullptr) return before(in, in_count, in_type, out, out_count, out_type, root, comm);
    const ulc_mpi_type from = type_if(at->rank == root, in_type);
    const ulc_mpi_type to = type_if(out, out_type);
    return ended(comm, ulc_mpi_scatter(at->ours, root, out == MPI_IN_PLACE, in,
                                       static_cast<std::size_t>(in_count), &from, out,
                                       static_cast<std::size_t>(out_count), &to, nullptr));
}

template <typename Before, typename Count, typename Offset>
int scatterv(Before before, const void* in, const Count* counts, const Offset* displacements,
             MPI_Datatype in_type, void* out, Count out_count, MPI_Datatype out_type, int root,
             MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_SCATTERV, is_valid(out, out_count, out_type) && has_rank(comm, root));
    if (at == nullptr || (at->rank == root && has_negative(counts, at->size)))
        return before(in, counts, displacements, in_type, out, out_count, out_type, root, comm);
    const ulc_mpi_type from = type_if(at->rank == root, in_type);
    const ulc_mpi_type to = type_if(out, out_type);
    return ended(comm, ulc_mpi_scatterv(at->ours, root, out == MPI_IN_PLACE, in,
                                        blocks_of(counts, displacements), &from, out,
                                        static_cast<std::size_t>(out_count), &to, nullptr));
}

/// MPI_Allgather and MPI_Alltoall, which have the same arguments.
template <typename Before, typename Count>
int to_all(decltype(ulc_mpi_allgather) carry, ulc_mpi_op op, Before before, const void* in,
           Count in_count, MPI_Datatype in_type, void* out, Count out_count, MPI_Datatype out_type,
           MPI_Comm comm) {
    const Communicator* at =
        taken(comm, op, is_valid(in, in_count, in_type) && is_valid(out_count, out_type));
    if (at == nullptr) return before(in, in_count, in_type, out, out_count, out_type, comm);
    const ulc_mpi_type from = type_if(in, in_type);
    const ulc_mpi_type to = type_of(out_type);
    return ended(comm, carry(at->ours, in == MPI_IN_PLACE, in, static_cast<std::size_t>(in_count),
                             &from, out, static_cast<std::size_t>(out_count), &to, nullptr));
}

template <typename Before, typename Count, typename Offset>
int allgatherv(Before before, const void* in, Count in_count, MPI_Datatype in_type, void* out,
               const Count* counts, const Offset* displacements, MPI_Datatype out_type,
               MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_ALLGATHERV, is_valid(in, in_count, in_type) && is_valid(0, out_type));
    if (at == nullptr || has_negative(counts, at->size))
        return before(in, in_count, in_type, out, counts, displacements, out_type, comm);
    const ulc_mpi_type from = type_if(in, in_type);
    const ulc_mpi_type to = type_of(out_type);
    return ended(comm, ulc_mpi_allgatherv(at->ours, in == MPI_IN_PLACE, in,
                                          static_cast<std::size_t>(in_count), &from, out,
                                          blocks_of(counts, displacements), &to, nullptr));
}

template <typename Before, typename Count, typename Offset>
int alltoallv(Before before, const void* in, const Count* in_counts, const Offset* in_places,
              MPI_Datatype in_type, void* out, const Count* out_counts, const Offset* out_places,
              MPI_Datatype out_type, MPI_Comm comm) {
    const Communicator* at =
        taken(comm, ULC_MPI_ALLTOALLV, is_valid(in, 0, in_type) && is_valid(0, out_type));
    if (at == nullptr || has_negative(out_counts, at->size) ||
        (in != MPI_IN_PLACE && has_negative(in_counts, at->size)))
        return before(in, in_counts, in_places, in_type, out, out_counts, out_places, out_type,
                      comm);
    const ulc_mpi_type from = type_if(in, in_type);
    const ulc_mpi_type to = type_of(out_type);
    return ended(
        comm, ulc_mpi_alltoallv(at->ours, in == MPI_IN_PLACE, in, blocks_of(in_counts, in_places),
                                &from, out, blocks_of(out_counts, out_places), &to, nullptr));
}

}  // namespace
}  // namespace ulc::pmpi

using namespace ulc::pmpi;  // NOLINT(google-build-using-namespace): the C entries of this namespace

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
    const Communicator* at = taken(comm, ULC_MPI_BARRIER, true);
    if (at == nullptr) return mpich().Barrier(comm);
    return ended(comm, ulc_mpi_barrier(at->ours, nullptr));
}

// Each operation in both widths: Count is the type of a count, Offset that of a displacement.
#define ULC_ENTRIES(suffix, Count, Offset)                                                         \
    int MPI_Bcast##suffix(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) { \
        return bcast(mpich().Bcast##suffix, buffer, count, type, root, comm);                      \
    }                                                                                              \
    int MPI_Gather##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,        \
                           Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {      \
        return gather(mpich().Gather##suffix, in, in_count, in_type, out, out_count, out_type,     \
                      root, comm);                                                                 \
    }                                                                                              \
    int MPI_Gatherv##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,       \
                            const Count counts[], const Offset displacements[],                    \
                            MPI_Datatype out_type, int root, MPI_Comm comm) {                      \
        return gatherv(mpich().Gatherv##suffix, in, in_count, in_type, out, counts, displacements, \
                       out_type, root, comm);                                                      \
    }                                                                                              \
    int MPI_Scatter##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,       \
                            Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {     \
        return scatter(mpich().Scatter##suffix, in, in_count, in_type, out, out_count, out_type,   \
                       root, comm);                                                                \
    }                                                                                              \
    int MPI_Scatterv##suffix(const void* in, const Count counts[], const Offset displacements[],   \
                             MPI_Datatype in_type, void* out, Count out_count,                     \
                             MPI_Datatype out_type, int root, MPI_Comm comm) {                     \
        return scatterv(mpich().Scatterv##suffix, in, counts, displacements, in_type, out,         \
                        out_count, out_type, root, comm);                                          \
    }                                                                                              \
    int MPI_Allgather##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,     \
                              Count out_count, MPI_Datatype out_type, MPI_Comm comm) {             \
        return to_all(ulc_mpi_allgather, ULC_MPI_ALLGATHER, mpich().Allgather##suffix, in,         \
                      in_count, in_type, out, out_count, out_type, comm);                          \
    }                                                                                              \
    int MPI_Allgatherv##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,    \
                               const Count counts[], const Offset displacements[],                 \
                               MPI_Datatype out_type, MPI_Comm comm) {                             \
        return allgatherv(mpich().Allgatherv##suffix, in, in_count, in_type, out, counts,          \
                          displacements, out_type, comm);                                          \
    }                                                                                              \
    int MPI_Alltoall##suffix(const void* in, Count in_count, MPI_Datatype in_type, void* out,      \
                             Count out_count, MPI_Datatype out_type, MPI_Comm comm) {              \
        return to_all(ulc_mpi_alltoall, ULC_MPI_ALLTOALL, mpich().Alltoall##suffix, in, in_count,  \
                      in_type, out, out_count, out_type, comm);                                    \
    }                                                                                              \
    int MPI_Alltoallv##suffix(const void* in, const Count in_counts[], const Offset in_places[],   \
                              MPI_Datatype in_type, void* out, const Count out_counts[],           \
                              const Offset out_places[], MPI_Datatype out_type, MPI_Comm comm) {   \
        return alltoallv(mpich().Alltoallv##suffix, in, in_counts, in_places, in_type, out,        \
                         out_counts, out_places, out_type, comm);                                  \
    }

ULC_ENTRIES(, int, int)
ULC_ENTRIES(_c, MPI_Count, MPI_Aint)

}  // extern "C"
