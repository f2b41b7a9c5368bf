/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbourhood functions of a module, blocking, non-blocking and persistent. Each describes
 * the two sides of its exchange by a side_t; the neighbours come from the topology. */
#include <stdlib.h>

#include <ulc.h>

#include "coll/mpi/openmpi/glue.h"

#include <ompi/info/info.h>
#include <ompi/mca/topo/topo.h>
#include <ompi/request/request.h>

/* Neighbours in the order in which their messages go: edge i has the block slots[i]. */
typedef struct {
    size_t count;
    int* peers; /* MPI_PROC_NULL: beyond the border of a grid */
    int* slots;
} neighbors_t;

/* A side of an exchange, by the arguments of its MPI function. */
typedef struct {
    const void* memory;
    int count;                           /* unless there are counts */
    const int* counts;                   /* by neighbour */
    const int* displacements;            /* in elements, by neighbour */
    const ptrdiff_t* wide_displacements; /* in bytes, by neighbour */
    ompi_datatype_t* type;               /* unless there are types */
    ompi_datatype_t* const* types;       /* by neighbour */
    int is_same;                         /* one block for all */
} side_t;

static int reserve(neighbors_t* of, int count) {
    of->count = (size_t)count;
    of->peers = calloc((size_t)count + 1, sizeof(int));
    of->slots = calloc((size_t)count + 1, sizeof(int));
    return of->peers != NULL && of->slots != NULL;
}
static void set(neighbors_t* of, int edge, int peer, int slot) {
    of->peers[edge] = peer;
    of->slots[edge] = slot;
}

/* A block that goes down a dimension comes from the neighbour above. In a dimension of one or two
 * both neighbours are one rank, so the first message from it belongs to the upper slot. */
static int grid(ompi_communicator_t* comm, neighbors_t* to, neighbors_t* from) {
    const mca_topo_base_comm_cart_2_2_0_t* cart = comm->c_topo->mtc.cart;
    const int self = ompi_comm_rank(comm);
    if (!reserve(to, 2 * cart->ndims) || !reserve(from, 2 * cart->ndims)) return 0;
    for (int d = 0; d < cart->ndims; ++d) {
        int below = MPI_PROC_NULL;
        int above = MPI_PROC_NULL;
        if (cart->dims[d] > 1)
            comm->c_topo->topo.cart.cart_shift(comm, d, 1, &below, &above);
        else if (cart->periods[d])
            below = above = self;
        set(to, 2 * d, below, 2 * d);
        set(to, 2 * d + 1, above, 2 * d + 1);
        set(from, 2 * d, above, 2 * d + 1);
        set(from, 2 * d + 1, below, 2 * d);
    }
    return 1;
}

static int listed(neighbors_t* of, const int* ranks, int count) {
    if (!reserve(of, count)) return 0;
    for (int i = 0; i < count; ++i)
        set(of, i, ranks[i], i);
    return 1;
}

/* False: no memory. */
static int find_neighbors(ompi_communicator_t* comm, neighbors_t* to, neighbors_t* from) {
    if (OMPI_COMM_IS_CART(comm)) return grid(comm, to, from);
    if (OMPI_COMM_IS_GRAPH(comm)) {
        const mca_topo_base_comm_graph_2_2_0_t* graph = comm->c_topo->mtc.graph;
        const int self = ompi_comm_rank(comm);
        const int first = self > 0 ? graph->index[self - 1] : 0;
        const int count = graph->index[self] - first;
        return listed(to, graph->edges + first, count) && listed(from, graph->edges + first, count);
    }
    const mca_topo_base_comm_dist_graph_2_2_0_t* graph = comm->c_topo->mtc.dist_graph;
    return listed(to, graph->out, graph->outdegree) && listed(from, graph->in, graph->indegree);
}

static ulc_mpi_block block_of(const side_t* side, int slot, const ulc_mpi_type* type) {
    ulc_mpi_block block = {side->memory, (size_t)side->count, *type};
    ptrdiff_t offset = 0;
    if (side->types != NULL) block.type = mca_coll_ulc_type(side->types[slot]);
    if (side->counts != NULL) block.count = (size_t)side->counts[slot];
    if (side->wide_displacements != NULL)
        offset = side->wide_displacements[slot];
    else if (side->displacements != NULL)
        offset = side->displacements[slot] * block.type.extent;
    else if (!side->is_same)
        offset = (ptrdiff_t)slot * side->count * block.type.extent;
    block.memory = (const char*)side->memory + offset;
    return block;
}

/* The blocks of a side, edge by edge, freed by free(); NULL: no memory. */
static ulc_mpi_block* blocks_of(const side_t* side, const neighbors_t* of) {
    ulc_mpi_block* blocks = calloc(of->count + 1, sizeof *blocks);
    ulc_mpi_type type = {0};
    if (side->types == NULL && side->type != NULL) type = mca_coll_ulc_type(side->type);
    for (size_t i = 0; blocks != NULL && i < of->count; ++i)
        if (of->peers[i] >= 0) blocks[i] = block_of(side, of->slots[i], &type);
    return blocks;
}

static void hold_types(ulc_mpi_pending* persistent, const side_t* side, const neighbors_t* of) {
    if (side->types != NULL)
        mca_coll_ulc_hold_types(persistent, (int)of->count, side->types);
    else if (side->type != NULL)
        mca_coll_ulc_hold_types(persistent, 1, &side->type);
}

/* How a call goes on. */
enum form { BLOCKING, NON_BLOCKING, PERSISTENT };

/* Performs, begins or prepares an exchange; returns Open MPI's code. */
static int exchange(enum form form, ompi_communicator_t* comm, mca_coll_base_module_t* base,
                    const side_t* in, const side_t* out, ompi_request_t** request) {
    neighbors_t to = {0};
    neighbors_t from = {0};
    ulc_mpi_block* given = NULL;
    ulc_mpi_block* wanted = NULL;
    ulc_mpi_pending* pending = NULL;
    int error = ULC_ERR_NO_MEMORY;
    if (find_neighbors(comm, &to, &from)) {
        given = blocks_of(in, &to);
        wanted = blocks_of(out, &from);
        if (form == NON_BLOCKING) pending = mca_coll_ulc_request(comm);
        if (form == PERSISTENT) pending = mca_coll_ulc_persistent(comm, to.count + from.count + 2);
    }
    if (form == PERSISTENT && pending != NULL) {
        hold_types(pending, in, &to);
        hold_types(pending, out, &from);
    }
    if (given != NULL && wanted != NULL && (form == BLOCKING || pending != NULL)) {
        const ulc_mpi_edges sent = {to.count, to.peers, given};
        const ulc_mpi_edges received = {from.count, from.peers, wanted};
        error = ulc_mpi_neighbors(MODULE(base)->comm, sent, received, pending);
    }
    free(to.peers);
    free(to.slots);
    free(from.peers);
    free(from.slots);
    free(given);
    free(wanted);
    if (pending == NULL) return mca_coll_ulc_error(error);
    return form == NON_BLOCKING ? mca_coll_ulc_begun(error, pending, request)
                                : mca_coll_ulc_prepared(error, pending, request);
}

/* The three forms of a function with the parameters LIST and the arguments GIVEN. */
#define ALL(...) __VA_ARGS__
#define FORMS(op, OP, LIST, GIVEN, SENT, RECEIVED)                                            \
    static int neighbor_##op(LIST, ompi_communicator_t* comm, mca_coll_base_module_t* base) { \
        if (!mca_coll_ulc_takes(base, OP, NULL)) return BEFORE(neighbor_##op, GIVEN, comm);   \
        const side_t sent = SENT;                                                             \
        const side_t received = RECEIVED;                                                     \
        return exchange(BLOCKING, comm, base, &sent, &received, NULL);                        \
    }                                                                                         \
    static int ineighbor_##op(LIST, ompi_communicator_t* comm, ompi_request_t** request,      \
                              mca_coll_base_module_t* base) {                                 \
        if (!mca_coll_ulc_takes_yet(base, OP, NULL))                                          \
            return BEFORE(ineighbor_##op, GIVEN, comm, request);                              \
        const side_t sent = SENT;                                                             \
        const side_t received = RECEIVED;                                                     \
        return exchange(NON_BLOCKING, comm, base, &sent, &received, request);                 \
    }                                                                                         \
    static int neighbor_##op##_init(LIST, ompi_communicator_t* comm, ompi_info_t* info,       \
                                    ompi_request_t** request, mca_coll_base_module_t* base) { \
        if (!mca_coll_ulc_takes(base, OP + ULC_MPI_PERSISTENT, NULL))                         \
            return BEFORE(neighbor_##op##_init, GIVEN, comm, info, request);                  \
        const side_t sent = SENT;                                                             \
        const side_t received = RECEIVED;                                                     \
        return exchange(PERSISTENT, comm, base, &sent, &received, request);                   \
    }
#define SIDE(...) \
    { __VA_ARGS__ }

FORMS(allgather, ULC_MPI_NEIGHBOR_ALLGATHER,
      ALL(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
          ompi_datatype_t* out_type),
      ALL(in, in_count, in_type, out, out_count, out_type),
      SIDE(.memory = in, .count = in_count, .type = in_type, .is_same = 1),
      SIDE(.memory = out, .count = out_count, .type = out_type))
FORMS(allgatherv, ULC_MPI_NEIGHBOR_ALLGATHERV,
      ALL(const void* in, int in_count, ompi_datatype_t* in_type, void* out, const int* counts,
          const int* displacements, ompi_datatype_t* out_type),
      ALL(in, in_count, in_type, out, counts, displacements, out_type),
      SIDE(.memory = in, .count = in_count, .type = in_type, .is_same = 1),
      SIDE(.memory = out, .counts = counts, .displacements = displacements, .type = out_type))
FORMS(alltoall, ULC_MPI_NEIGHBOR_ALLTOALL,
      ALL(const void* in, int in_count, ompi_datatype_t* in_type, void* out, int out_count,
          ompi_datatype_t* out_type),
      ALL(in, in_count, in_type, out, out_count, out_type),
      SIDE(.memory = in, .count = in_count, .type = in_type),
      SIDE(.memory = out, .count = out_count, .type = out_type))
FORMS(alltoallv, ULC_MPI_NEIGHBOR_ALLTOALLV,
      ALL(const void* in, const int* in_counts, const int* in_places, ompi_datatype_t* in_type,
          void* out, const int* out_counts, const int* out_places, ompi_datatype_t* out_type),
      ALL(in, in_counts, in_places, in_type, out, out_counts, out_places, out_type),
      SIDE(.memory = in, .counts = in_counts, .displacements = in_places, .type = in_type),
      SIDE(.memory = out, .counts = out_counts, .displacements = out_places, .type = out_type))
FORMS(alltoallw, ULC_MPI_NEIGHBOR_ALLTOALLW,
      ALL(const void* in, const int* in_counts, const ptrdiff_t* in_places,
          ompi_datatype_t* const* in_types, void* out, const int* out_counts,
          const ptrdiff_t* out_places, ompi_datatype_t* const* out_types),
      ALL(in, in_counts, in_places, in_types, out, out_counts, out_places, out_types),
      SIDE(.memory = in, .counts = in_counts, .wide_displacements = in_places, .types = in_types),
      SIDE(.memory = out, .counts = out_counts, .wide_displacements = out_places,
           .types = out_types))

void mca_coll_ulc_set_neighbors(mca_coll_base_module_t* module) {
#define SET(op) module->coll_##op = op;
    ULC_MPI_NEIGHBOR_FORMS(SET)
#undef SET
}
