/* SPDX-License-Identifier: BSD-3-Clause */
/* The persistent functions of a module. The group is made and the buffers are prepared at the call,
 * which may wait for other members. MPI_Start only runs the operation. Its schedule is made by the
 * first start. */
#include <stdlib.h>

#include <ulc.h>

#include "coll/mpi/openmpi/glue.h"

#include <ompi/info/info.h>
#include <ompi/mca/coll/base/coll_base_util.h>
#include <ompi/request/request.h>

/* Open MPI looks for datatypes and operators in its own request, the first part of ours; but of a
 * request that is not active it holds none. So ours are held here. */
typedef struct {
    ompi_coll_base_nbc_request_t super;
    ulc_mpi_pending pending;
    opal_object_t** held; /* NULL at the end */
} ulc_persistent_t;

static ulc_persistent_t* of_pending(ulc_mpi_pending* pending) {
    return (ulc_persistent_t*)((char*)pending - offsetof(ulc_persistent_t, pending));
}

static void done(ulc_mpi_pending* pending, int error) {
    ompi_request_t* request = &of_pending(pending)->super.super;
    request->req_status.MPI_ERROR = mca_coll_ulc_error(error);
    ompi_request_complete(request, true);
}

static int cancel(ompi_request_t* request, int flag) {
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

static int free_request(ompi_request_t** request) {
    ulc_persistent_t* ours = (ulc_persistent_t*)*request;
    if (!REQUEST_COMPLETE(*request)) return MPI_ERR_REQUEST; /* as MPI says of collectives */
    ulc_mpi_release(&ours->pending);
    OBJ_RELEASE(ours);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int start(size_t count, ompi_request_t** requests) {
    for (size_t i = 0; i < count; ++i) {
        ompi_request_t* request = requests[i];
        request->req_status.MPI_ERROR = MPI_SUCCESS;
        request->req_complete = REQUEST_PENDING;
        request->req_state = OMPI_REQUEST_ACTIVE;
        const int error = ulc_mpi_start(&((ulc_persistent_t*)request)->pending);
        if (error == ULC_OK) continue;
        request->req_complete = REQUEST_COMPLETED;
        request->req_state = OMPI_REQUEST_INACTIVE;
        return mca_coll_ulc_error(error);
    }
    return OMPI_SUCCESS;
}

static void construct(ulc_persistent_t* request) {
    ompi_request_t* base = &request->super.super;
    base->req_type = OMPI_REQUEST_COLL;
    base->req_status._cancelled = 0;
    base->req_start = start;
    base->req_free = free_request;
    base->req_cancel = cancel;
    request->pending.done = done;
    request->pending.is_persistent = 1;
    request->pending.operation = NULL;
    request->held = NULL;
}
static void destruct(ulc_persistent_t* request) {
    for (opal_object_t** held = request->held; held != NULL && *held != NULL; ++held)
        OBJ_RELEASE(*held);
    free(request->held);
    OMPI_REQUEST_FINI(&request->super.super);
}

static OBJ_CLASS_INSTANCE(ulc_persistent_t, ompi_coll_base_nbc_request_t, construct, destruct);

/* An inactive request that can hold `objects`; NULL: no memory. */
static ulc_persistent_t* new_request(ompi_communicator_t* comm, size_t objects) {
    ulc_persistent_t* request = OBJ_NEW(ulc_persistent_t);
    if (request == NULL) return NULL;
    OMPI_REQUEST_INIT(&request->super.super, true);
    request->super.super.req_mpi_object.comm = comm;
    request->super.super.req_status.MPI_ERROR = MPI_SUCCESS;
    request->held = calloc(objects + 1, sizeof *request->held);
    if (request->held != NULL) return request;
    OBJ_RELEASE(request);
    return NULL;
}

/* Holds an object behind those that are held; NULL: none. */
static void hold(ulc_persistent_t* request, opal_object_t* object) {
    opal_object_t** at = request->held;
    if (object == NULL) return;
    while (*at != NULL)
        ++at;
    OBJ_RETAIN(object);
    *at = object;
}

/* Hands a request out if its operation was prepared with ULC_OK. */
static int prepared(int error, ulc_persistent_t* mine, ompi_request_t** request) {
    *request = error == ULC_OK ? &mine->super.super : MPI_REQUEST_NULL;
    if (error != ULC_OK) OBJ_RELEASE(mine);
    return mca_coll_ulc_error(error);
}

ulc_mpi_pending* mca_coll_ulc_persistent(ompi_communicator_t* comm, size_t objects) {
    ulc_persistent_t* request = new_request(comm, objects);
    return request != NULL ? &request->pending : NULL;
}

void mca_coll_ulc_hold_types(ulc_mpi_pending* persistent, int count,
                             ompi_datatype_t* const* types) {
    opal_object_t** at = of_pending(persistent)->held;
    while (*at != NULL)
        ++at;
    for (int i = 0; i < count; ++i) {
        OBJ_RETAIN(types[i]);
        at[i] = (opal_object_t*)types[i];
    }
}

int mca_coll_ulc_prepared(int error, ulc_mpi_pending* pending, ompi_request_t** request) {
    return prepared(error, of_pending(pending), request);
}

static int takes(mca_coll_base_module_t* base, unsigned op, const ulc_mpi_type* type) {
    return mca_coll_ulc_takes(base, op + ULC_MPI_PERSISTENT, type);
}

#define OBJECT(pointer) ((opal_object_t*)(pointer))
/* Prepares `call` with `mine`, which holds two objects. */
#define PREPARE(object, other, ...)                    \
    ulc_persistent_t* mine = new_request(comm, 2);     \
    if (mine == NULL) return OMPI_ERR_OUT_OF_RESOURCE; \
    ulc_mpi_comm* ours = MODULE(base)->comm;           \
    hold(mine, object);                                \
    hold(mine, other);                                 \
    return prepared(__VA_ARGS__, mine, request)

static int barrier_init(ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                        mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_BARRIER, NULL)) return BEFORE(barrier_init, comm, info, request);
    PREPARE(NULL, NULL, ulc_mpi_barrier(ours, &mine->pending));
}

static int bcast_init(void* buffer, int count, ompi_datatype_t* type, int root,
                      ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                      mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_BCAST, NULL))
        return BEFORE(bcast_init, buffer, count, type, root, comm, info, request);
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    PREPARE(OBJECT(type), NULL,
            ulc_mpi_bcast(ours, root, buffer, (size_t)count, &of, &mine->pending));
}

static int gather_init(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                       int out_count, ompi_datatype_t* out_type, int root,
                       ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                       mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_GATHER, NULL))
        return BEFORE(gather_init, in, in_count, in_type, out, out_count, out_type, root, comm,
                      info, request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(is_root ? out : MPI_IN_PLACE, out_type);
    PREPARE(OBJECT(IN_PLACE(in) ? NULL : in_type), OBJECT(is_root ? out_type : NULL),
            ulc_mpi_gather(ours, root, IN_PLACE(in), in, (size_t)in_count, &from, out,
                           (size_t)out_count, &to, &mine->pending));
}

static int gatherv_init(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                        const int* counts, const int* displacements, ompi_datatype_t* out_type,
                        int root, ompi_communicator_t* comm, ompi_info_t* info,
                        ompi_request_t** request, mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_GATHERV, NULL))
        return BEFORE(gatherv_init, in, in_count, in_type, out, counts, displacements, out_type,
                      root, comm, info, request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(is_root ? out : MPI_IN_PLACE, out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    PREPARE(OBJECT(IN_PLACE(in) ? NULL : in_type), OBJECT(is_root ? out_type : NULL),
            ulc_mpi_gatherv(ours, root, IN_PLACE(in), in, (size_t)in_count, &from, out, blocks, &to,
                            &mine->pending));
}

static int scatter_init(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                        int out_count, ompi_datatype_t* out_type, int root,
                        ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                        mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_SCATTER, NULL))
        return BEFORE(scatter_init, in, in_count, in_type, out, out_count, out_type, root, comm,
                      info, request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(is_root ? in : MPI_IN_PLACE, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(out, out_type);
    PREPARE(OBJECT(is_root ? in_type : NULL), OBJECT(IN_PLACE(out) ? NULL : out_type),
            ulc_mpi_scatter(ours, root, IN_PLACE(out), in, (size_t)in_count, &from, out,
                            (size_t)out_count, &to, &mine->pending));
}

static int scatterv_init(const void* in, const int* counts, const int* displacements,
                         ompi_datatype_t* in_type, void* out, int out_count,
                         ompi_datatype_t* out_type, int root, ompi_communicator_t* comm,
                         ompi_info_t* info, ompi_request_t** request,
                         mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_SCATTERV, NULL))
        return BEFORE(scatterv_init, in, counts, displacements, in_type, out, out_count, out_type,
                      root, comm, info, request);
    const int is_root = ompi_comm_rank(comm) == root;
    const ulc_mpi_type from = mca_coll_ulc_type_of(is_root ? in : MPI_IN_PLACE, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type_of(out, out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    PREPARE(OBJECT(is_root ? in_type : NULL), OBJECT(IN_PLACE(out) ? NULL : out_type),
            ulc_mpi_scatterv(ours, root, IN_PLACE(out), in, blocks, &from, out, (size_t)out_count,
                             &to, &mine->pending));
}

static int allgather_init(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                          int out_count, ompi_datatype_t* out_type, ompi_communicator_t* comm,
                          ompi_info_t* info, ompi_request_t** request,
                          mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_ALLGATHER, NULL))
        return BEFORE(allgather_init, in, in_count, in_type, out, out_count, out_type, comm, info,
                      request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    PREPARE(OBJECT(IN_PLACE(in) ? NULL : in_type), OBJECT(out_type),
            ulc_mpi_allgather(ours, IN_PLACE(in), in, (size_t)in_count, &from, out,
                              (size_t)out_count, &to, &mine->pending));
}

static int allgatherv_init(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                           const int* counts, const int* displacements, ompi_datatype_t* out_type,
                           ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                           mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_ALLGATHERV, NULL))
        return BEFORE(allgatherv_init, in, in_count, in_type, out, counts, displacements, out_type,
                      comm, info, request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    const ulc_mpi_blocks blocks = {counts, displacements};
    PREPARE(OBJECT(IN_PLACE(in) ? NULL : in_type), OBJECT(out_type),
            ulc_mpi_allgatherv(ours, IN_PLACE(in), in, (size_t)in_count, &from, out, blocks, &to,
                               &mine->pending));
}

static int alltoall_init(const void* in, int in_count, ompi_datatype_t* in_type, void* out,
                         int out_count, ompi_datatype_t* out_type, ompi_communicator_t* comm,
                         ompi_info_t* info, ompi_request_t** request,
                         mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_ALLTOALL, NULL))
        return BEFORE(alltoall_init, in, in_count, in_type, out, out_count, out_type, comm, info,
                      request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    PREPARE(OBJECT(IN_PLACE(in) ? NULL : in_type), OBJECT(out_type),
            ulc_mpi_alltoall(ours, IN_PLACE(in), in, (size_t)in_count, &from, out,
                             (size_t)out_count, &to, &mine->pending));
}

static int alltoallv_init(const void* in, const int* in_counts, const int* in_displacements,
                          ompi_datatype_t* in_type, void* out, const int* out_counts,
                          const int* out_displacements, ompi_datatype_t* out_type,
                          ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                          mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_ALLTOALLV, NULL))
        return BEFORE(alltoallv_init, in, in_counts, in_displacements, in_type, out, out_counts,
                      out_displacements, out_type, comm, info, request);
    const ulc_mpi_type from = mca_coll_ulc_type_of(in, in_type);
    const ulc_mpi_type to = mca_coll_ulc_type(out_type);
    const ulc_mpi_blocks given = {in_counts, in_displacements};
    const ulc_mpi_blocks wanted = {out_counts, out_displacements};
    PREPARE(
        OBJECT(IN_PLACE(in) ? NULL : in_type), OBJECT(out_type),
        ulc_mpi_alltoallv(ours, IN_PLACE(in), in, given, &from, out, wanted, &to, &mine->pending));
}

static int alltoallw_init(const void* in, const int* in_counts, const int* in_displacements,
                          ompi_datatype_t* const* in_types, void* out, const int* out_counts,
                          const int* out_displacements, ompi_datatype_t* const* out_types,
                          ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                          mca_coll_base_module_t* base) {
    if (!takes(base, ULC_MPI_ALLTOALLW, NULL))
        return BEFORE(alltoallw_init, in, in_counts, in_displacements, in_types, out, out_counts,
                      out_displacements, out_types, comm, info, request);
    const int size = ompi_comm_size(comm);
    ulc_persistent_t* mine = new_request(comm, 2 * (size_t)size);
    if (mine == NULL) return OMPI_ERR_OUT_OF_RESOURCE;
    mca_coll_ulc_hold_types(&mine->pending, IN_PLACE(in) ? 0 : size, in_types);
    mca_coll_ulc_hold_types(&mine->pending, size, out_types);
    return prepared(
        mca_coll_ulc_alltoallw(comm, base, in, in_counts, in_displacements, in_types, out,
                               out_counts, out_displacements, out_types, &mine->pending),
        mine, request);
}

static int reduce_init(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                       int root, ompi_communicator_t* comm, ompi_info_t* info,
                       ompi_request_t** request, mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!takes(base, ULC_MPI_REDUCE, &of))
        return BEFORE(reduce_init, in, out, count, type, op, root, comm, info, request);
    PREPARE(
        OBJECT(type), OBJECT(op),
        ulc_mpi_reduce(ours, root, IN_PLACE(in), in, out, (size_t)count, &of, &by, &mine->pending));
}

static int allreduce_init(const void* in, void* out, int count, ompi_datatype_t* type,
                          ompi_op_t* op, ompi_communicator_t* comm, ompi_info_t* info,
                          ompi_request_t** request, mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!takes(base, ULC_MPI_ALLREDUCE, &of))
        return BEFORE(allreduce_init, in, out, count, type, op, comm, info, request);
    PREPARE(
        OBJECT(type), OBJECT(op),
        ulc_mpi_allreduce(ours, IN_PLACE(in), in, out, (size_t)count, &of, &by, &mine->pending));
}

static int reduce_scatter_init(const void* in, void* out, const int* counts, ompi_datatype_t* type,
                               ompi_op_t* op, ompi_communicator_t* comm, ompi_info_t* info,
                               ompi_request_t** request, mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!takes(base, ULC_MPI_REDUCE_SCATTER, &of))
        return BEFORE(reduce_scatter_init, in, out, counts, type, op, comm, info, request);
    PREPARE(
        OBJECT(type), OBJECT(op),
        ulc_mpi_reduce_scatter(ours, IN_PLACE(in), in, out, counts, 0, &of, &by, &mine->pending));
}

static int reduce_scatter_block_init(const void* in, void* out, int count, ompi_datatype_t* type,
                                     ompi_op_t* op, ompi_communicator_t* comm, ompi_info_t* info,
                                     ompi_request_t** request, mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!takes(base, ULC_MPI_REDUCE_SCATTER_BLOCK, &of))
        return BEFORE(reduce_scatter_block_init, in, out, count, type, op, comm, info, request);
    PREPARE(OBJECT(type), OBJECT(op),
            ulc_mpi_reduce_scatter(ours, IN_PLACE(in), in, out, NULL, (size_t)count, &of, &by,
                                   &mine->pending));
}

static int scan_init(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                     ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                     mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!takes(base, ULC_MPI_SCAN, &of))
        return BEFORE(scan_init, in, out, count, type, op, comm, info, request);
    PREPARE(OBJECT(type), OBJECT(op),
            ulc_mpi_scan(ours, IN_PLACE(in), 0, in, out, (size_t)count, &of, &by, &mine->pending));
}

static int exscan_init(const void* in, void* out, int count, ompi_datatype_t* type, ompi_op_t* op,
                       ompi_communicator_t* comm, ompi_info_t* info, ompi_request_t** request,
                       mca_coll_base_module_t* base) {
    const ulc_mpi_type of = mca_coll_ulc_type(type);
    const ulc_mpi_operator by = mca_coll_ulc_operator(op);
    if (!takes(base, ULC_MPI_EXSCAN, &of))
        return BEFORE(exscan_init, in, out, count, type, op, comm, info, request);
    PREPARE(OBJECT(type), OBJECT(op),
            ulc_mpi_scan(ours, IN_PLACE(in), 1, in, out, (size_t)count, &of, &by, &mine->pending));
}

void mca_coll_ulc_set_persistent(mca_coll_base_module_t* module) {
#define SET(op) module->coll_##op = op;
    ULC_MPI_PERSISTENT_FORMS(SET)
#undef SET
}
