/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the files of Open MPI's side share. */
#ifndef ULC_MPI_OPENMPI_GLUE_H
#define ULC_MPI_OPENMPI_GLUE_H

#include <ompi_config.h>

#include <mpi.h>
#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/coll.h>
#include <ompi/op/op.h>

#include "coll/mpi/core.h"

/* The collectives that ULC catches: name, and its slot in a module. */
#define ULC_MPI_BLOCKING(X) \
    X(barrier)              \
    X(bcast)                \
    X(gather)               \
    X(gatherv)              \
    X(scatter)              \
    X(scatterv)             \
    X(allgather)            \
    X(allgatherv)           \
    X(alltoall)             \
    X(alltoallv)            \
    X(alltoallw)            \
    X(reduce)               \
    X(allreduce)            \
    X(reduce_scatter)       \
    X(reduce_scatter_block) \
    X(scan)                 \
    X(exscan)
#define ULC_MPI_NON_BLOCKING(X) \
    X(ibarrier)                 \
    X(ibcast)                   \
    X(igather)                  \
    X(igatherv)                 \
    X(iscatter)                 \
    X(iscatterv)                \
    X(iallgather)               \
    X(iallgatherv)              \
    X(ialltoall)                \
    X(ialltoallv)               \
    X(ialltoallw)               \
    X(ireduce)                  \
    X(iallreduce)               \
    X(ireduce_scatter)          \
    X(ireduce_scatter_block)    \
    X(iscan)                    \
    X(iexscan)
#define ULC_MPI_CAUGHT(X) ULC_MPI_BLOCKING(X) ULC_MPI_NON_BLOCKING(X)
/* Those that are caught if another module has them too. */
#define ULC_MPI_PERSISTENT_FORMS(X) \
    X(barrier_init)                 \
    X(bcast_init)                   \
    X(gather_init)                  \
    X(gatherv_init)                 \
    X(scatter_init)                 \
    X(scatterv_init)                \
    X(allgather_init)               \
    X(allgatherv_init)              \
    X(alltoall_init)                \
    X(alltoallv_init)               \
    X(alltoallw_init)               \
    X(reduce_init)                  \
    X(allreduce_init)               \
    X(reduce_scatter_init)          \
    X(reduce_scatter_block_init)    \
    X(scan_init)                    \
    X(exscan_init)
#define ULC_MPI_NEIGHBOR_FORMS(X) \
    X(neighbor_allgather)         \
    X(neighbor_allgatherv)        \
    X(neighbor_alltoall)          \
    X(neighbor_alltoallv)         \
    X(neighbor_alltoallw)         \
    X(ineighbor_allgather)        \
    X(ineighbor_allgatherv)       \
    X(ineighbor_alltoall)         \
    X(ineighbor_alltoallv)        \
    X(ineighbor_alltoallw)        \
    X(neighbor_allgather_init)    \
    X(neighbor_allgatherv_init)   \
    X(neighbor_alltoall_init)     \
    X(neighbor_alltoallv_init)    \
    X(neighbor_alltoallw_init)
#define ULC_MPI_CAUGHT_IF_THERE(X) ULC_MPI_PERSISTENT_FORMS(X) ULC_MPI_NEIGHBOR_FORMS(X)

/* One communicator: Open MPI's module, and what was there before. */
typedef struct mca_coll_ulc_module_t {
    mca_coll_base_module_t super;
    ulc_mpi_comm* comm;
    ompi_communicator_t* communicator; /* not owned: it owns this module */
    mca_coll_base_comm_coll_t before;  /* functions, and modules that we hold */
} mca_coll_ulc_module_t;
OBJ_CLASS_DECLARATION(mca_coll_ulc_module_t);

extern const mca_coll_base_component_t mca_coll_ulc_component;

/* The MPI's means, for the core. */
extern const ulc_mpi_hooks mca_coll_ulc_hooks;
ulc_mpi_type mca_coll_ulc_type(ompi_datatype_t* type);
ulc_mpi_operator mca_coll_ulc_operator(ompi_op_t* op);

/* As mca_coll_ulc_type(); no bytes for MPI_IN_PLACE, whose type may be anything. */
ulc_mpi_type mca_coll_ulc_type_of(const void* buffer, ompi_datatype_t* type);
/* ulc_mpi_alltoallw() with the arguments of MPI_Alltoallw. */
int mca_coll_ulc_alltoallw(ompi_communicator_t* comm, mca_coll_base_module_t* base, const void* in,
                           const int* in_counts, const int* in_displacements,
                           ompi_datatype_t* const* in_types, void* out, const int* out_counts,
                           const int* out_displacements, ompi_datatype_t* const* out_types,
                           ulc_mpi_pending* pending);

/* Open MPI's code for a ulc_error. */
int mca_coll_ulc_error(int error);

/* Sets a module's functions. */
void mca_coll_ulc_set_functions(mca_coll_base_module_t* module);
void mca_coll_ulc_set_requests(mca_coll_base_module_t* module);
void mca_coll_ulc_set_persistent(mca_coll_base_module_t* module);
void mca_coll_ulc_set_neighbors(mca_coll_base_module_t* module);

/* True if a call goes by ULC; counted. Collective, makes the group. op: a ulc_mpi_op, or one with
 * ULC_MPI_PERSISTENT. type: of a reduction, of which every member gives the same; else NULL. */
int mca_coll_ulc_takes(mca_coll_base_module_t* base, unsigned op, const ulc_mpi_type* type);

/* As mca_coll_ulc_takes(), for a non-blocking call, which cannot make the group. */
int mca_coll_ulc_takes_yet(mca_coll_base_module_t* base, enum ulc_mpi_op op,
                           const ulc_mpi_type* type);
/* Requests for a non-blocking operation and a persistent one, which holds at most `objects`; NULL:
 * no memory. */
ulc_mpi_pending* mca_coll_ulc_request(ompi_communicator_t* comm);
ulc_mpi_pending* mca_coll_ulc_persistent(ompi_communicator_t* comm, size_t objects);
/* Holds `count` datatypes until the request is freed. */
void mca_coll_ulc_hold_types(ulc_mpi_pending* persistent, int count, ompi_datatype_t* const* types);
/* Hands out the request if its operation began, or was prepared, with ULC_OK; else frees it.
 * Returns Open MPI's code. */
int mca_coll_ulc_begun(int error, ulc_mpi_pending* pending, ompi_request_t** request);
int mca_coll_ulc_prepared(int error, ulc_mpi_pending* pending, ompi_request_t** request);

#define MODULE(base) ((mca_coll_ulc_module_t*)(base))
#define BEFORE(op, ...) \
    MODULE(base)->before.coll_##op(__VA_ARGS__, MODULE(base)->before.coll_##op##_module)
#define IN_PLACE(buffer) ((buffer) == MPI_IN_PLACE)

#endif
