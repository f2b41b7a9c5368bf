// SPDX-License-Identifier: BSD-3-Clause
// Declarations that the files of the PMPI library share: the functions of the MPICH below, and the
// communicators that ULC knows. The library has no undefined symbol of an MPI, so a program that
// uses none can load it too (LD_PRELOAD lasts for all programs of a shell).
#pragma once

#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <coll.h>

#include "coll/mpi/core.h"

/* Operations that have a large-count form, and the other functions that are called. */
#define ULC_PMPI_WIDE(X)     \
    X(Bcast)                 \
    X(Gather)                \
    X(Gatherv)               \
    X(Scatter)               \
    X(Scatterv)              \
    X(Allgather)             \
    X(Allgatherv)            \
    X(Alltoall)              \
    X(Alltoallv)             \
    X(Reduce)                \
    X(Allreduce)             \
    X(Reduce_scatter)        \
    X(Reduce_scatter_block)  \
    X(Scan)                  \
    X(Exscan)                \
    X(Ibcast)                \
    X(Igather)               \
    X(Igatherv)              \
    X(Iscatter)              \
    X(Iscatterv)             \
    X(Iallgather)            \
    X(Iallgatherv)           \
    X(Ialltoall)             \
    X(Ialltoallv)            \
    X(Ireduce)               \
    X(Iallreduce)            \
    X(Ireduce_scatter)       \
    X(Ireduce_scatter_block) \
    X(Iscan)                 \
    X(Iexscan)
#define ULC_PMPI_PLAIN(X)     \
    X(Init)                   \
    X(Init_thread)            \
    X(Finalize)               \
    X(Get_library_version)    \
    X(Barrier)                \
    X(Ibarrier)               \
    X(Grequest_start)         \
    X(Grequest_complete)      \
    X(Request_get_status)     \
    X(Wait)                   \
    X(Comm_rank)              \
    X(Comm_size)              \
    X(Comm_free)              \
    X(Comm_group)             \
    X(Comm_test_inter)        \
    X(Comm_create_keyval)     \
    X(Comm_free_keyval)       \
    X(Comm_get_attr)          \
    X(Comm_set_attr)          \
    X(Comm_call_errhandler)   \
    X(Group_free)             \
    X(Group_translate_ranks)  \
    X(Op_commutative)         \
    X(Reduce_local)           \
    X(Pack_c)                 \
    X(Unpack_c)               \
    X(Type_size_c)            \
    X(Type_get_extent_c)      \
    X(Type_get_true_extent_c) \
    X(Type_get_envelope_c)    \
    X(Type_get_contents)      \
    X(Type_create_hindexed_c) \
    X(Type_commit)            \
    X(Type_free)

namespace ulc::pmpi {

/// The functions of MPICH under their PMPI names.
struct Mpich {
#define ULC_DECLARE(name) decltype(&PMPI_##name) name;
#define ULC_DECLARE_WIDE(name) ULC_DECLARE(name) ULC_DECLARE(name##_c)
    ULC_PMPI_WIDE(ULC_DECLARE_WIDE)
    ULC_PMPI_PLAIN(ULC_DECLARE)
#undef ULC_DECLARE_WIDE
#undef ULC_DECLARE
};

/// Returns the MPICH of this process. Ends the process with one sentence if it has none.
[[nodiscard]] const Mpich& mpich();

/// A communicator of MPICH as ULC knows it; an attribute of the communicator.
struct Communicator {
    ulc_mpi_comm* ours;  ///< nullptr: never for ULC
    int rank;
    int size;
    std::uint32_t number;  ///< at rank 0, and if `ours` is not nullptr: of its key (numbers.h)
};

/// Returns the communicator if ULC takes the operation, nullptr if MPICH does; counts which. The
/// first call on a communicator is collective. valid: the arguments that MPICH would refuse are
/// not among these. type: the datatype of a reduction, else nullptr.
[[nodiscard]] Communicator* taken(MPI_Comm comm, ulc_mpi_op op, bool valid,
                                  const ulc_mpi_type* type = nullptr);

/// Counts a non-blocking call for the account.
void count_left(ulc_mpi_op op);

/// True if `root` is a rank of the communicator.
[[nodiscard]] bool has_rank(MPI_Comm comm, int root);

/// Returns MPI's code for a ulc_error; calls the communicator's error handler for a failure.
[[nodiscard]] int ended(MPI_Comm comm, int error);

[[nodiscard]] ulc_mpi_type type_of(MPI_Datatype type);
[[nodiscard]] ulc_mpi_operator operator_of(MPI_Op op);
/// The functions of MPICH that the core calls.
extern const ulc_mpi_hooks hooks;
/// A request that never completes while the job lasts: asking for it makes MPICH move its messages.
extern MPI_Request pending;

}  // namespace ulc::pmpi
