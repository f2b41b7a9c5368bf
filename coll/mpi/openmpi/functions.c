/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking functions of a module: each asks whether the members agreed on ULC, and passes the
 * call on to it or to what was there before. */
#include <stdlib.h>

#include "coll/mpi/openmpi/glue.h"

#include <ulc.h>

/* The least of the members' values, by the collectives from before. */
static int agree(void* context, int mine) {
    mca_coll_ulc_module_t* module = context;
    int least = -1;
    const int status =
        module->before.coll_allreduce(&mine, &least, 1, &ompi_mpi_int.dt, &ompi_mpi_op_min.op,
                                      module->communicator, module->before.coll_allreduce_module);
    return status == OMPI_SUCCESS ? least : -1;
}

int mca_coll_ulc_takes(mca_coll_base_module_t* base, unsigned op, const ulc_mpi_type* type) {
    enum ulc_mpi_way way = ulc_mpi_comm_way(MODULE(base)->comm, agree, base);
    if (way == ULC_MPI_BY_ULC && type != NULL && !ulc_mpi_reducible(type))
        way = ULC_MPI_LARGE_ELEMENT;
    ulc_mpi_count((enum ulc_mpi_op)op, way);
    return way == ULC_MPI_BY_ULC;
}

static int by_ulc(mca_coll_base_module_t* base, enum ulc_mpi_op op) {
    return mca_coll_ulc_takes(base, op, NULL);
}

static int reduces_by_ulc(mca_coll_base_module_t* base, enum ulc_mpi_op op,
                          const ulc_mpi_type* type) {
    return mca_coll_ulc_takes(base, op, type);
}

int mca_coll_ulc_error(int error) {
    switch (error) {
        case ULC_OK:
            return OMPI_SUCCESS;
        case ULC_ERR_NO_MEMORY:
            return OMPI_ERR_OUT_OF_RESOURCE;
        default:
            return OMPI_ERROR;
    }
}

/* A block a member, at displacements in bytes; freed by free(). NULL: no memory. */
static ulc_mpi_block* typed_blocks(int size, const void* buffer, const int* counts,
                                   const int* displacements, ompi_datatype_t* const* types) {
    ulc_mpi_block* blocks = calloc((size_t)size, sizeof *blocks);
    for (int r = 0; blocks != NULL && !IN_PLACE(buffer) && r < size; ++r) {
        blocks[r].memory = (const char*)buffer + displacements[r];
        blocks[r].count = (size_t)counts[r];
        blocks[r].type = mca_coll_ulc_type(types[r]);
    }
    return blocks;
}

int mca_coll_ulc_alltoallw(ompi_communicator_t* comm, mca_coll_base_module_t* base, const void* in,
                           const int* in_counts, const int* in_displacements,
                           ompi_datatype_t* const* in_types, void* out, const int* out_counts,
                           const int* out_displacements, ompi_datatype_t* const* out_types,
                           ulc_mpi_pending* pending) {
    const int size = ompi_comm_size(comm);
    ulc_mpi_block* from = typed_blocks(size, in, in_counts, in_displacements, in_types);
    ulc_mpi_block* to = typed_blocks(size, out, out_counts, out_displacements, out_types);
    const int error = from != NULL && to != NULL
                          ? ulc_mpi_alltoallw(MODULE(base)->comm, IN_PLACE(in), from, to, pending)
                          : ULC_ERR_NO_MEMORY;
    free(from);
    free(to);
    return error;
}

static int barrier(ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_BARRIER)) return BEFORE(barrier, comm);
    return mca_coll_ulc_error(ulc_mpi_barrier(MODULE(base)->comm, NULL));
}

static int bcast(void* buffer, int count, ompi_datatype_t* type, int root,
                 ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_BCAST)) return BEFORE(bcast, buffer, count, type, root, comm);
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    return mca_coll_ulc_error(
        ulc_mpi_bcast(MODULE(base)->comm, root, buffer, (size_t)count, &ours, NULL));
}

static int gather(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
                  ompi_datatype_t* out_type, int root, ompi_communicator_t* comm,
                  mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_GATHER))
        return BEFORE(gather, in, in_count, in_type, out, out_count, out_type, root, comm);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type to = mca_coll_ulc_type_of(is_root ? out : MPI_IN_PLACE, out_type);
    return mca_coll_ulc_error(ulc_mpi_gather(MODULE(base)->comm, root, IN_PLACE(in), in,
                                             (size_t)in_count, &from, out, (size_t)out_count, &to,
                                             NULL));
}

static int gatherv(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                   const int* counts, const int* displacements, ompi_datatype_t* out_type, int root,
                   ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_GATHERV))
        return BEFORE(gatherv, in, in_count, in_type, out, counts, displacements, out_type, root,
                      comm);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type to = mca_coll_ulc_type_of(is_root ? out : MPI_IN_PLACE, out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    return mca_coll_ulc_error(ulc_mpi_gatherv(MODULE(base)->comm, root, IN_PLACE(in), in,
                                              (size_t)in_count, &from, out, blocks, &to, NULL));
}

static int scatter(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
                   ompi_datatype_t* out_type, int root, ompi_communicator_t* comm,
                   mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_SCATTER))
        return BEFORE(scatter, in, in_count, in_type, out, out_count, out_type, root, comm);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(is_root ? in : MPI_IN_PLACE, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(out, out_type);
    return mca_coll_ulc_error(ulc_mpi_scatter(MODULE(base)->comm, root, IN_PLACE(out), in,
                                              (size_t)in_count, &from, out, (size_t)out_count, &to,
                                              NULL));
}

static int scatterv(const void* in, const int* counts, const int* displacements,
                    ompi_datatype_t* in_type, void* out, int out_count, ompi_datatype_t* out_type,
                    int root, ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_SCATTERV))
        return BEFORE(scatterv, in, counts, displacements, in_type, out, out_count, out_type, root,
                      comm);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(is_root ? in : MPI_IN_PLACE, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(out, out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    return mca_coll_ulc_error(ulc_mpi_scatterv(MODULE(base)->comm, root, IN_PLACE(out), in, blocks,
                                               &from, out, (size_t)out_count, &to, NULL));
}

static int allgather(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                     int out_count, ompi_datatype_t* out_type, ompi_communicator_t* comm,
                     mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLGATHER))
        return BEFORE(allgather, in, in_count, in_type, out, out_count, out_type, comm);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    return mca_coll_ulc_error(ulc_mpi_allgather(MODULE(base)->comm, IN_PLACE(in), in,
                                                (size_t)in_count, &from, out, (size_t)out_count,
                                                &to, NULL));
}

static int allgatherv(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                      const int* counts, const int* displacements, ompi_datatype_t* out_type,
                      ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLGATHERV))
        return BEFORE(allgatherv, in, in_count, in_type, out, counts, displacements, out_type,
                      comm);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    return mca_coll_ulc_error(ulc_mpi_allgatherv(MODULE(base)->comm, IN_PLACE(in), in,
                                                 (size_t)in_count, &from, out, blocks, &to, NULL));
}

static int alltoall(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                    int out_count, ompi_datatype_t* out_type, ompi_communicator_t* comm,
                    mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLTOALL))
        return BEFORE(alltoall, in, in_count, in_type, out, out_count, out_type, comm);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    return mca_coll_ulc_error(ulc_mpi_alltoall(MODULE(base)->comm, IN_PLACE(in), in,
                                               (size_t)in_count, &from, out, (size_t)out_count, &to,
                                               NULL));
}

static int alltoallv(const void* in, const int* in_counts, const int* in_displacements,
                     ompi_datatype_t* in_type, void* out, const int* out_counts,
                     const int* out_displacements, ompi_datatype_t* out_type,
                     ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLTOALLV))
        return BEFORE(alltoallv, in, in_counts, in_displacements, in_type, out, out_counts,
                      out_displacements, out_type, comm);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    const ulc_mpi_blocks given = {in_counts, in_displacements};
    const ulc_mpi_blocks wanted = {out_counts, out_displacements};
    return mca_coll_ulc_error(ulc_mpi_alltoallv(MODULE(base)->comm, IN_PLACE(in), in, given, &from,
                                                out, wanted, &to, NULL));
}

static int alltoallw(const void* in, const int* in_counts, const int* in_displacements,
                     ompi_datatype_t* const* in_types, void* out, const int* out_counts,
                     const int* out_displacements, ompi_datatype_t* const* out_types,
                     ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLTOALLW))
        return BEFORE(alltoallw, in, in_counts, in_displacements, in_types, out, out_counts,
                      out_displacements, out_types, comm);
    return mca_coll_ulc_error(mca_coll_ulc_alltoallw(comm, base, in, in_counts, in_displacements,
                                                     in_types, out, out_counts, out_displacements,
                                                     out_types, NULL));
}

static int reduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                  int root, ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!reduces_by_ulc(base, ULC_MPI_REDUCE, &ours))
        return BEFORE(reduce, in, out, count, type, op, root, comm);
    return mca_coll_ulc_error(ulc_mpi_reduce(MODULE(base)->comm, root, IN_PLACE(in), in, out,
                                             (size_t)count, &ours, &by, NULL));
}

static int allreduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                     ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!reduces_by_ulc(base, ULC_MPI_ALLREDUCE, &ours))
        return BEFORE(allreduce, in, out, count, type, op, comm);
    return mca_coll_ulc_error(ulc_mpi_allreduce(MODULE(base)->comm, IN_PLACE(in), in, out,
                                                (size_t)count, &ours, &by, NULL));
}

static int reduce_scatter(const void* in, void* out, const int* counts, ompi_datatype_t* type,
                          ompi_op_t* op, ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!reduces_by_ulc(base, ULC_MPI_REDUCE_SCATTER, &ours))
        return BEFORE(reduce_scatter, in, out, counts, type, op, comm);
    return mca_coll_ulc_error(ulc_mpi_reduce_scatter(MODULE(base)->comm, IN_PLACE(in), in, out,
                                                     counts, 0, &ours, &by, NULL));
}

static int reduce_scatter_block(const void* in, void* out, int count, ompi_datatype_t* type,
                                ompi_op_t* op, ompi_communicator_t* comm,
                                mca_coll_base_module_t* base) {
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!reduces_by_ulc(base, ULC_MPI_REDUCE_SCATTER_BLOCK, &ours))
        return BEFORE(reduce_scatter_block, in, out, count, type, op, comm);
    return mca_coll_ulc_error(ulc_mpi_reduce_scatter(MODULE(base)->comm, IN_PLACE(in), in, out,
                                                     NULL, (size_t)count, &ours, &by, NULL));
}

static int scan(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!reduces_by_ulc(base, ULC_MPI_SCAN, &ours))
        return BEFORE(scan, in, out, count, type, op, comm);
    return mca_coll_ulc_error(ulc_mpi_scan(MODULE(base)->comm, IN_PLACE(in), 0, in, out,
                                           (size_t)count, &ours, &by, NULL));
}

static int exscan(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                  ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    const ulc_mpi_type ours = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!reduces_by_ulc(base, ULC_MPI_EXSCAN, &ours))
        return BEFORE(exscan, in, out, count, type, op, comm);
    return mca_coll_ulc_error(ulc_mpi_scan(MODULE(base)->comm, IN_PLACE(in), 1, in, out,
                                           (size_t)count, &ours, &by, NULL));
}

void mca_coll_ulc_set_functions(mca_coll_base_module_t* module) {
#define SET(op) module->coll_##op = op;
    ULC_MPI_BLOCKING(SET)
#undef SET
    mca_coll_ulc_set_requests(module);
    mca_coll_ulc_set_persistent(module);
    mca_coll_ulc_set_neighbors(module);
}
