// SPDX-License-Identifier: BSD-3-Clause
// The non-blocking entries: counted, and left to MPICH. Its waits have no way to move our
// operations: a member that stood in MPI_Recv would stop the others.
#include "coll/mpi/pmpi/mpich.h"

using ulc::pmpi::count_left;
using ulc::pmpi::mpich;

extern "C" {

#define ULC_LEFT(name, op, parameters, ...) \
    int MPI_##name parameters {             \
        count_left(ULC_MPI_##op);           \
        return mpich().name(__VA_ARGS__);   \
    }

ULC_LEFT(Ibarrier, BARRIER, (MPI_Comm comm, MPI_Request* request), comm, request)

// Each operation in both widths: Count is the type of a count, Offset that of a displacement.
#define ULC_ENTRIES(suffix, Count, Offset)                                                        \
    ULC_LEFT(                                                                                     \
        Ibcast##suffix, BCAST,                                                                    \
        (void* data, Count n, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request),  \
        data, n, type, root, comm, request)                                                       \
    ULC_LEFT(Igather##suffix, GATHER,                                                             \
             (const void* in, Count n, MPI_Datatype type, void* out, Count to_n, MPI_Datatype to, \
              int root, MPI_Comm comm, MPI_Request* request),                                     \
             in, n, type, out, to_n, to, root, comm, request)                                     \
    ULC_LEFT(Igatherv##suffix, GATHERV,                                                           \
             (const void* in, Count n, MPI_Datatype type, void* out, const Count ns[],            \
              const Offset at[], MPI_Datatype to, int root, MPI_Comm comm, MPI_Request* request), \
             in, n, type, out, ns, at, to, root, comm, request)                                   \
    ULC_LEFT(Iscatter##suffix, SCATTER,                                                           \
             (const void* in, Count n, MPI_Datatype type, void* out, Count to_n, MPI_Datatype to, \
              int root, MPI_Comm comm, MPI_Request* request),                                     \
             in, n, type, out, to_n, to, root, comm, request)                                     \
    ULC_LEFT(Iscatterv##suffix, SCATTERV,                                                         \
             (const void* in, const Count ns[], const Offset at[], MPI_Datatype type, void* out,  \
              Count to_n, MPI_Datatype to, int root, MPI_Comm comm, MPI_Request* request),        \
             in, ns, at, type, out, to_n, to, root, comm, request)                                \
    ULC_LEFT(Iallgather##suffix, ALLGATHER,                                                       \
             (const void* in, Count n, MPI_Datatype type, void* out, Count to_n, MPI_Datatype to, \
              MPI_Comm comm, MPI_Request* request),                                               \
             in, n, type, out, to_n, to, comm, request)                                           \
    ULC_LEFT(Iallgatherv##suffix, ALLGATHERV,                                                     \
             (const void* in, Count n, MPI_Datatype type, void* out, const Count ns[],            \
              const Offset at[], MPI_Datatype to, MPI_Comm comm, MPI_Request* request),           \
             in, n, type, out, ns, at, to, comm, request)                                         \
    ULC_LEFT(Ialltoall##suffix, ALLTOALL,                                                         \
             (const void* in, Count n, MPI_Datatype type, void* out, Count to_n, MPI_Datatype to, \
              MPI_Comm comm, MPI_Request* request),                                               \
             in, n, type, out, to_n, to, comm, request)                                           \
    ULC_LEFT(Ialltoallv##suffix, ALLTOALLV,                                                       \
             (const void* in, const Count ns[], const Offset at[], MPI_Datatype type, void* out,  \
              const Count to_ns[], const Offset to_at[], MPI_Datatype to, MPI_Comm comm,          \
              MPI_Request* request),                                                              \
             in, ns, at, type, out, to_ns, to_at, to, comm, request)                              \
    ULC_LEFT(Ireduce##suffix, REDUCE,                                                             \
             (const void* in, void* out, Count n, MPI_Datatype type, MPI_Op op, int root,         \
              MPI_Comm comm, MPI_Request* request),                                               \
             in, out, n, type, op, root, comm, request)                                           \
    ULC_LEFT(Iallreduce##suffix, ALLREDUCE,                                                       \
             (const void* in, void* out, Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,    \
              MPI_Request* request),                                                              \
             in, out, n, type, op, comm, request)                                                 \
    ULC_LEFT(Ireduce_scatter##suffix, REDUCE_SCATTER,                                             \
             (const void* in, void* out, const Count ns[], MPI_Datatype type, MPI_Op op,          \
              MPI_Comm comm, MPI_Request* request),                                               \
             in, out, ns, type, op, comm, request)                                                \
    ULC_LEFT(Ireduce_scatter_block##suffix, REDUCE_SCATTER_BLOCK,                                 \
             (const void* in, void* out, Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,    \
              MPI_Request* request),                                                              \
             in, out, n, type, op, comm, request)                                                 \
    ULC_LEFT(Iscan##suffix, SCAN,                                                                 \
             (const void* in, void* out, Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,    \
              MPI_Request* request),                                                              \
             in, out, n, type, op, comm, request)                                                 \
    ULC_LEFT(Iexscan##suffix, EXSCAN,                                                             \
             (const void* in, void* out, Count n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,    \
              MPI_Request* request),                                                              \
             in, out, n, type, op, comm, request)

ULC_ENTRIES(, int, int)
ULC_ENTRIES(_c, MPI_Count, MPI_Aint)

}  // extern "C"
