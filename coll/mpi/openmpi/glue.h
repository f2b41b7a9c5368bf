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
#define ULC_MPI_CAUGHT(X)   \
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
    X(reduce)               \
    X(allreduce)            \
    X(reduce_scatter)       \
    X(reduce_scatter_block) \
    X(scan)                 \
    X(exscan)

/* One communicator: Open MPI's module, and what was there before. */
typedef struct mca_coll_ulc_module_t {
    mca_coll_base_module_t super;
    ulc_mpi_comm* comm;
    ompi_communicator_t* communicator; /* not owned: it owns this module */
    mca_coll_base_comm_coll_t before;  /* functions, and modules that we hold */
} mca_coll_ulc_module_t;
OBJ_CLASS_DECLARATION(mca_coll_ulc_module_t);

extern const mca_coll_base_component_2_0_0_t mca_coll_ulc_component;

/* The MPI's means, for the core. */
extern const ulc_mpi_hooks mca_coll_ulc_hooks;
ulc_mpi_type mca_coll_ulc_type(ompi_datatype_t* type);
ulc_mpi_operator mca_coll_ulc_operator(ompi_op_t* op);

/* Sets a module's functions. */
void mca_coll_ulc_set_functions(mca_coll_base_module_t* module);

#endif
