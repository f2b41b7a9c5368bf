/* SPDX-License-Identifier: BSD-3-Clause */
/* The non-blocking functions of a module: each passes the call on to ULC with a request, or to what
 * was there before. A non-blocking call cannot make the communicator's group, because it must not
 * wait for the other members: until a blocking one has made it, calls go to what was there. */
#include <ulc.h>

#include "coll/mpi/openmpi/glue.h"

#include <ompi/mca/coll/base/coll_base_util.h>
#include <ompi/request/request.h>

/* Open MPI keeps datatypes and operators of a non-blocking collective in its own request, which is
 * the first part of ours. */
typedef struct {
    ompi_coll_base_nbc_request_t super;
    ulc_mpi_pending pending;
} ulc_request_t;

static ulc_request_t* of_pending(ulc_mpi_pending* pending) {
    return (ulc_request_t*)((char*)pending - offsetof(ulc_request_t, pending));
}

static void done(ulc_mpi_pending* pending, int error) {
    ulc_request_t* request = of_pending(pending);
    request->super.super.req_status.MPI_ERROR = mca_coll_ulc_error(error);
    ompi_request_complete(&request->super.super, true);
}

static int cancel(ompi_request_t* request, int flag) {
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

static int free_request(ompi_request_t** request) {
    if (!REQUEST_COMPLETE(*request)) return MPI_ERR_REQUEST; /* as MPI says of collectives */
    ulc_request_t* ours = (ulc_request_t*)*request;
    OBJ_RELEASE(ours);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void construct(ulc_request_t* request) {
    ompi_request_t* base = &request->super.super;
    base->req_type = OMPI_REQUEST_COLL;
    base->req_status._cancelled = 0;
    base->req_free = free_request;
    base->req_cancel = cancel;
    request->pending.done = done;
    request->pending.is_persistent = 0;
}
static void destruct(ulc_request_t* request) { OMPI_REQUEST_FINI(&request->super.super); }

static OBJ_CLASS_INSTANCE(ulc_request_t, ompi_coll_base_nbc_request_t, construct, destruct);

/* An active request; NULL: no memory. */
static ulc_request_t* new_request(ompi_communicator_t* comm) {
    ulc_request_t* request = OBJ_NEW(ulc_request_t);
    if (request == NULL) return NULL;
    OMPI_REQUEST_INIT(&request->super.super, false);
    request->super.super.req_mpi_object.comm = comm;
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    request->super.super.req_status.MPI_ERROR = MPI_SUCCESS;
    return request;
}

/* Hands a request out if its operation began with ULC_OK. */
static int begun(int error, ulc_request_t* mine, ompi_request_t** request) {
    *request = error == ULC_OK ? &mine->super.super : MPI_REQUEST_NULL;
    if (error != ULC_OK) OBJ_RELEASE(mine);
    return mca_coll_ulc_error(error);
}

ulc_mpi_pending* mca_coll_ulc_request(ompi_communicator_t* comm) {
    ulc_request_t* request = new_request(comm);
    return request != NULL ? &request->pending : NULL;
}

int mca_coll_ulc_begun(int error, ulc_mpi_pending* pending, ompi_request_t** request) {
    return begun(error, of_pending(pending), request);
}

int mca_coll_ulc_takes_yet(mca_coll_base_module_t* base, enum ulc_mpi_op op,
                           const ulc_mpi_type* type) {
    enum ulc_mpi_way way = ulc_mpi_comm_way_yet(MODULE(base)->comm);
    if (way == ULC_MPI_BY_ULC && type != NULL && !ulc_mpi_reducible(type))
        way = ULC_MPI_LARGE_ELEMENT;
    ulc_mpi_count(op + ULC_MPI_BLOCKING_OPS, way);
    return way == ULC_MPI_BY_ULC;
}

static int by_ulc(mca_coll_base_module_t* base, enum ulc_mpi_op op, const ulc_mpi_type* type) {
    return mca_coll_ulc_takes_yet(base, op, type);
}

#define BEGIN(call)                                    \
    ulc_request_t* mine = new_request(comm);           \
    if (mine == NULL) return OMPI_ERR_OUT_OF_RESOURCE; \
    ulc_mpi_comm* const ours = MODULE(base)->comm;     \
    (void)ours;                                        \
    return begun(call, mine, request)

static int ibarrier(ompi_communicator_t* comm, ompi_request_t** request,
                    mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_BARRIER, NULL)) return BEFORE(ibarrier, comm, request);
    BEGIN(ulc_mpi_barrier(ours, &mine->pending));
}

static int ibcast(void* buffer, int count, ompi_datatype_t* type, int root,
                  ompi_communicator_t* comm, ompi_request_t** request,
                  mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_BCAST, NULL))
        return BEFORE(ibcast, buffer, count, type, root, comm, request);
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    BEGIN(ulc_mpi_bcast(ours, root, buffer, (size_t)count, &of, &mine->pending));
}

static int igather(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
                   ompi_datatype_t* out_type, int root, ompi_communicator_t* comm,
                   ompi_request_t** request, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_GATHER, NULL))
        return BEFORE(igather, in, in_count, in_type, out, out_count, out_type, root, comm,
                      request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(is_root ? out : MPI_IN_PLACE, out_type);
    BEGIN(ulc_mpi_gather(ours, root, IN_PLACE(in), in, (size_t)in_count, &from, out,
                         (size_t)out_count, &to, &mine->pending));
}

static int igatherv(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                    const int* counts, const int* displacements, ompi_datatype_t* out_type,
                    int root, ompi_communicator_t* comm, ompi_request_t** request,
                    mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_GATHERV, NULL))
        return BEFORE(igatherv, in, in_count, in_type, out, counts, displacements, out_type, root,
                      comm, request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(is_root ? out : MPI_IN_PLACE, out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    BEGIN(ulc_mpi_gatherv(ours, root, IN_PLACE(in), in, (size_t)in_count, &from, out, blocks, &to,
                          &mine->pending));
}

static int iscatter(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                    int out_count, ompi_datatype_t* out_type, int root, ompi_communicator_t* comm,
                    ompi_request_t** request, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_SCATTER, NULL))
        return BEFORE(iscatter, in, in_count, in_type, out, out_count, out_type, root, comm,
                      request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(is_root ? in : MPI_IN_PLACE, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(out, out_type);
    BEGIN(ulc_mpi_scatter(ours, root, IN_PLACE(out), in, (size_t)in_count, &from, out,
                          (size_t)out_count, &to, &mine->pending));
}

static int iscatterv(const void* in, const int* counts, const int* displacements,
                     ompi_datatype_t* in_type, void* out, int out_count, ompi_datatype_t* out_type,
                     int root, ompi_communicator_t* comm, ompi_request_t** request,
                     mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_SCATTERV, NULL))
        return BEFORE(iscatterv, in, counts, displacements, in_type, out, out_count, out_type, root,
                      comm, request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(is_root ? in : MPI_IN_PLACE, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(out, out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    BEGIN(ulc_mpi_scatterv(ours, root, IN_PLACE(out), in, blocks, &from, out, (size_t)out_count,
                           &to, &mine->pending));
}

static int iallgather(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                      int out_count, ompi_datatype_t* out_type, ompi_communicator_t* comm,
                      ompi_request_t** request, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLGATHER, NULL))
        return BEFORE(iallgather, in, in_count, in_type, out, out_count, out_type, comm, request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    BEGIN(ulc_mpi_allgather(ours, IN_PLACE(in), in, (size_t)in_count, &from, out, (size_t)out_count,
                            &to, &mine->pending));
}

static int iallgatherv(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                       const int* counts, const int* displacements, ompi_datatype_t* out_type,
                       ompi_communicator_t* comm, ompi_request_t** request,
                       mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLGATHERV, NULL))
        return BEFORE(iallgatherv, in, in_count, in_type, out, counts, displacements, out_type,
                      comm, request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    BEGIN(ulc_mpi_allgatherv(ours, IN_PLACE(in), in, (size_t)in_count, &from, out, blocks, &to,
                             &mine->pending));
}

static int ialltoall(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                     int out_count, ompi_datatype_t* out_type, ompi_communicator_t* comm,
                     ompi_request_t** request, mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLTOALL, NULL))
        return BEFORE(ialltoall, in, in_count, in_type, out, out_count, out_type, comm, request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    BEGIN(ulc_mpi_alltoall(ours, IN_PLACE(in), in, (size_t)in_count, &from, out, (size_t)out_count,
                           &to, &mine->pending));
}

static int ialltoallv(const void* in, const int* in_counts, const int* in_displacements,
                      ompi_datatype_t* in_type, void* out, const int* out_counts,
                      const int* out_displacements, ompi_datatype_t* out_type,
                      ompi_communicator_t* comm, ompi_request_t** request,
                      mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLTOALLV, NULL))
        return BEFORE(ialltoallv, in, in_counts, in_displacements, in_type, out, out_counts,
                      out_displacements, out_type, comm, request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    const ulc_mpi_blocks given = {in_counts, in_displacements};
    const ulc_mpi_blocks wanted = {out_counts, out_displacements};
    BEGIN(
        ulc_mpi_alltoallv(ours, IN_PLACE(in), in, given, &from, out, wanted, &to, &mine->pending));
}

static int ialltoallw(const void* in, const int* in_counts, const int* in_displacements,
                      ompi_datatype_t* const* in_types, void* out, const int* out_counts,
                      const int* out_displacements, ompi_datatype_t* const* out_types,
                      ompi_communicator_t* comm, ompi_request_t** request,
                      mca_coll_base_module_t* base) {
    if (!by_ulc(base, ULC_MPI_ALLTOALLW, NULL))
        return BEFORE(ialltoallw, in, in_counts, in_displacements, in_types, out, out_counts,
                      out_displacements, out_types, comm, request);
    BEGIN(mca_coll_ulc_alltoallw(comm, base, in, in_counts, in_displacements, in_types, out,
                                 out_counts, out_displacements, out_types, &mine->pending));
}

static int ireduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                   int root, ompi_communicator_t* comm, ompi_request_t** request,
                   mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!by_ulc(base, ULC_MPI_REDUCE, &of))
        return BEFORE(ireduce, in, out, count, type, op, root, comm, request);
    BEGIN(
        ulc_mpi_reduce(ours, root, IN_PLACE(in), in, out, (size_t)count, &of, &by, &mine->pending));
}

static int iallreduce(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                      ompi_communicator_t* comm, ompi_request_t** request,
                      mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!by_ulc(base, ULC_MPI_ALLREDUCE, &of))
        return BEFORE(iallreduce, in, out, count, type, op, comm, request);
    BEGIN(ulc_mpi_allreduce(ours, IN_PLACE(in), in, out, (size_t)count, &of, &by, &mine->pending));
}

static int ireduce_scatter(const void* in, void* out, const int* counts, ompi_datatype_t* type,
                           ompi_op_t* op, ompi_communicator_t* comm, ompi_request_t** request,
                           mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!by_ulc(base, ULC_MPI_REDUCE_SCATTER, &of))
        return BEFORE(ireduce_scatter, in, out, counts, type, op, comm, request);
    BEGIN(ulc_mpi_reduce_scatter(ours, IN_PLACE(in), in, out, counts, 0, &of, &by, &mine->pending));
}

static int ireduce_scatter_block(const void* in, void* out, int count, ompi_datatype_t* type,
                                 ompi_op_t* op, ompi_communicator_t* comm, ompi_request_t** request,
                                 mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!by_ulc(base, ULC_MPI_REDUCE_SCATTER_BLOCK, &of))
        return BEFORE(ireduce_scatter_block, in, out, count, type, op, comm, request);
    BEGIN(ulc_mpi_reduce_scatter(ours, IN_PLACE(in), in, out, NULL, (size_t)count, &of, &by,
                                 &mine->pending));
}

static int iscan(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                 ompi_communicator_t* comm, ompi_request_t** request,
                 mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!by_ulc(base, ULC_MPI_SCAN, &of))
        return BEFORE(iscan, in, out, count, type, op, comm, request);
    BEGIN(ulc_mpi_scan(ours, IN_PLACE(in), 0, in, out, (size_t)count, &of, &by, &mine->pending));
}

static int iexscan(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                   ompi_communicator_t* comm, ompi_request_t** request,
                   mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!by_ulc(base, ULC_MPI_EXSCAN, &of))
        return BEFORE(iexscan, in, out, count, type, op, comm, request);
    BEGIN(ulc_mpi_scan(ours, IN_PLACE(in), 1, in, out, (size_t)count, &of, &by, &mine->pending));
}

void mca_coll_ulc_set_requests(mca_coll_base_module_t* module) {
#define SET(op) module->coll_##op = op;
    ULC_MPI_NON_BLOCKING(SET)
#undef SET
}
