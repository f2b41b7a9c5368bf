/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbourhood collectives, blocking, non-blocking and persistent, on grids whose dimensions have
 * one or two ranks, on graphs with ranks without neighbours, with several edges between two ranks
 * and with edges to oneself; of no bytes, and with types that have gaps. all: also those forms in
 * which Open MPI 4.1 alone swaps the blocks of two neighbours that are one rank.
 *   mpirun -n N neighbours [all] */
#include "tests/process/mpi/check.h"

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_Neighbor_##name##_init
#else
#define INIT(name) MPI_Neighbor_##name##_init
#endif

enum { kEdgesMax = 64, kRounds = 3 };
enum form { kBlocking, kNonBlocking, kPersistent, kForms };

/* A communicator with its edges: slot i of the input comes from slot from_slot[i] of rank from[i];
 * -1: from no rank. */
typedef struct graph {
    const char* name;
    MPI_Comm comm;
    int rank;
    int in;
    int out;
    int from[kEdgesMax];
    int from_slot[kEdgesMax];
} graph;

static int are_all;
static int round_now;
static int value(int from, int slot, int i) {
    return round_now * 100000000 + from * 1000000 + slot * 10000 + i % 9999;
}

/* Ints with a gap behind each. */
static MPI_Datatype gaps_type;

/* One side of an exchange: lengths and places of blocks by slot, in ints. */
typedef struct blocks {
    int counts[kEdgesMax];
    int places[kEdgesMax];
    MPI_Aint bytes[kEdgesMax];
    MPI_Datatype types[kEdgesMax];
    int strides[kEdgesMax];
    int* memory;
    int total;
} blocks;

enum op { kAllgather, kAllgatherv, kAlltoall, kAlltoallv, kAlltoallw, kOps };
static const char* const op_names[] = {"allgather", "allgatherv", "alltoall", "alltoallv",
                                       "alltoallw"};

/* Elements on the edge from a slot of a rank. Those of an allgatherv depend on the rank alone. */
static int length(enum op op, int unit, int from, int slot) {
    if (op == kAllgather || op == kAlltoall) return unit;
    return (from + (op == kAllgatherv ? 0 : slot)) % 3 * unit;
}

/* Lays the blocks out: with uneven lengths from the last slot to the first, an int apart. */
static void lay_out(blocks* b, enum op op, int slots, int stride) {
    b->total = 0;
    for (int k = 0; k < slots; ++k) {
        const int s = op == kAllgather || op == kAlltoall ? k : slots - 1 - k;
        const int own = op == kAlltoallw && s % 2 == 1 ? 3 - stride : stride;
        b->strides[s] = own;
        b->types[s] = own == 2 ? gaps_type : MPI_INT;
        b->places[s] = b->total / stride;
        b->bytes[s] = b->total * (MPI_Aint)sizeof(int);
        b->total += b->counts[s] * own;
        if (op != kAllgather && op != kAlltoall) b->total += 2;
    }
    b->memory = ints((size_t)b->total + 2);
}
static int* at(const blocks* b, enum op op, int slot, int stride, int i) {
    const int first =
        op == kAlltoallw ? (int)(b->bytes[slot] / (MPI_Aint)sizeof(int)) : b->places[slot] * stride;
    return b->memory + first + i * b->strides[slot];
}

static void fill(const graph* g, enum op op, blocks* in, int in_stride, blocks* out) {
    for (int i = 0; i < out->total; ++i)
        out->memory[i] = -7;
    const int slots = op <= kAllgatherv ? 1 : g->out;
    for (int s = 0; s < slots; ++s)
        for (int i = 0; i < in->counts[s]; ++i)
            *at(in, op, s, in_stride, i) = value(g->rank, s, i);
}

static void check_all(const graph* g, enum op op, enum form form, blocks* out, int out_stride) {
    int used = 0;
    for (int s = 0; s < g->in; ++s) {
        for (int i = 0; g->from[s] >= 0 && i < out->counts[s]; ++i, ++used) {
            const int from_slot = op <= kAllgatherv ? 0 : g->from_slot[s];
            const int got = *at(out, op, s, out_stride, i);
            CHECK(got == value(g->from[s], from_slot, i), "%s %s form %d slot %d element %d: %d",
                  g->name, op_names[op], (int)form, s, i, got);
        }
    }
    for (int i = 0; i < out->total; ++i)
        used -= out->memory[i] != -7;
    CHECK(used == 0, "%s %s form %d: %d more written", g->name, op_names[op], (int)form, -used);
}

#define CALL(name, ...)                                                \
    do {                                                               \
        if (form == kBlocking) {                                       \
            MPI_Neighbor_##name(__VA_ARGS__, g->comm);                 \
        } else if (form == kNonBlocking) {                             \
            MPI_Ineighbor_##name(__VA_ARGS__, g->comm, &request);      \
        } else {                                                       \
            INIT(name)(__VA_ARGS__, g->comm, MPI_INFO_NULL, &request); \
        }                                                              \
    } while (0)

static void one(const graph* g, enum op op, enum form form, int unit, int gapped) {
    const int in_stride = gapped && g->rank % 2 == 1 ? 2 : 1;
    const int out_stride = gapped && g->rank % 2 == 0 ? 2 : 1;
    const MPI_Datatype in_type = in_stride == 2 ? gaps_type : MPI_INT;
    const MPI_Datatype out_type = out_stride == 2 ? gaps_type : MPI_INT;
    blocks in;
    blocks out;
    MPI_Request request = MPI_REQUEST_NULL;
    const int slots = op <= kAllgatherv ? 1 : g->out;
    for (int s = 0; s < slots; ++s)
        in.counts[s] = length(op, unit, g->rank, s);
    for (int s = 0; s < g->in; ++s)
        out.counts[s] = g->from[s] < 0 ? 0 : length(op, unit, g->from[s], g->from_slot[s]);
    if (op == kAllgather || op == kAlltoall)
        for (int s = 0; s < g->in; ++s)
            out.counts[s] = unit;
    lay_out(&in, op, slots, in_stride);
    lay_out(&out, op, g->in, out_stride);
    const int rounds = form == kPersistent ? kRounds : 1;
    for (round_now = 0; round_now < rounds; ++round_now) {
        fill(g, op, &in, in_stride, &out);
        if (round_now > 0) {
            /* prepared in the first round */
        } else if (op == kAllgather) {
            CALL(allgather, in.memory, unit, in_type, out.memory, unit, out_type);
        } else if (op == kAllgatherv) {
            CALL(allgatherv, in.memory + in.places[0] * in_stride, in.counts[0], in_type,
                 out.memory, out.counts, out.places, out_type);
        } else if (op == kAlltoall) {
            CALL(alltoall, in.memory, unit, in_type, out.memory, unit, out_type);
        } else if (op == kAlltoallv) {
            CALL(alltoallv, in.memory, in.counts, in.places, in_type, out.memory, out.counts,
                 out.places, out_type);
        } else {
            CALL(alltoallw, in.memory, in.counts, in.bytes, in.types, out.memory, out.counts,
                 out.bytes, out.types);
        }
        if (form == kPersistent) MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_all(g, op, form, &out, out_stride);
    }
    if (form == kPersistent) MPI_Request_free(&request);
    round_now = 0;
    free(in.memory);
    free(out.memory);
}

static void all(graph* g, int forms) {
    const int units[] = {0, 1, 700, 20000};
    MPI_Barrier(g->comm);
    for (int u = 0; u < 4; ++u)
        for (int op = 0; op < kOps; ++op)
            for (int form = 0; form < forms; ++form)
                one(g, op, form, units[u], (op + form + u) % 2);
    MPI_Comm_free(&g->comm);
}

static void grid(const char* name, int dimensions, const int* sizes, const int* periods) {
    graph g = {.name = name};
    int is_twice = 0;
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, periods, 0, &g.comm);
    if (g.comm == MPI_COMM_NULL) return;
    MPI_Comm_rank(g.comm, &g.rank);
    g.in = g.out = 2 * dimensions;
    for (int d = 0; d < dimensions; ++d) {
        MPI_Cart_shift(g.comm, d, 1, &g.from[2 * d], &g.from[2 * d + 1]);
        is_twice |= periods[d] && sizes[d] <= 2;
        for (int side = 0; side < 2; ++side) {
            /* The lower neighbour sends upwards, and the upper one downwards. */
            g.from_slot[2 * d + side] = 2 * d + 1 - side;
            if (g.from[2 * d + side] == MPI_PROC_NULL) g.from[2 * d + side] = -1;
        }
    }
    all(&g, is_twice && !are_all ? 1 : kForms);
}

/* The destinations of a rank. */
typedef int (*list)(int rank, int size, int* to);

static int star(int rank, int size, int* to) {
    int count = 0;
    for (int r = 1; rank == 0 && r < size; ++r)
        to[count++] = r;
    if (rank == size - 1 && size > 1) to[count++] = 0;
    return count;
}
/* Two edges to the next rank, one to oneself between them, and one to rank 0. */
static int multiple(int rank, int size, int* to) {
    to[0] = (rank + 1) % size;
    to[1] = rank;
    to[2] = (rank + 1) % size;
    to[3] = 0;
    to[4] = rank;
    return rank == 1 ? 5 : 4;
}
/* To all lower ranks, so that the first one sends nothing. */
static int downwards(int rank, int size, int* to) {
    (void)size;
    for (int r = 0; r < rank; ++r)
        to[r] = rank - 1 - r;
    return rank;
}

static void distributed(const char* name, list destinations) {
    graph g = {.name = name};
    int to[kEdgesMax];
    int other[kEdgesMax];
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    g.out = destinations(g.rank, size, to);
    for (int r = size - 1; r >= 0; --r) {
        const int count = destinations(r, size, other);
        for (int s = 0; s < count; ++s) {
            if (other[s] != g.rank) continue;
            g.from[g.in] = r;
            g.from_slot[g.in++] = s;
        }
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g.in, g.from, MPI_UNWEIGHTED, g.out, to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g.comm);
    all(&g, kForms);
}

/* A chain of ranks, each linked with the next one. */
static void chain(void) {
    graph g = {.name = "chain"};
    int index[kEdgesMax];
    int edges[2 * kEdgesMax];
    int size;
    int total = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 0; r < size; ++r) {
        for (int side = 1; side >= -1; side -= 2) {
            if (r + side < 0 || r + side >= size) continue;
            edges[total++] = r + side;
            if (r != g.rank) continue;
            g.from[g.in] = r + side;
            /* The first of its neighbours, unless it has an upper one and this one is lower. */
            g.from_slot[g.in++] = side == 1 && r + 1 < size - 1 ? 1 : 0;
        }
        index[r] = total;
    }
    g.out = g.in;
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &g.comm);
    all(&g, kForms);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    are_all = argc > 1 && strcmp(argv[1], "all") == 0;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps_type);
    MPI_Type_commit(&gaps_type);
    MPI_Barrier(MPI_COMM_WORLD);
    const int open[] = {0, 0, 0};
    const int closed[] = {1, 1, 1};
    const int line[] = {size, 1};
    const int pairs[] = {size / 2, 2};
    grid("open line", 2, line, open);
    grid("closed line", 2, line, closed);
    if (size >= 2) grid("closed pairs", 2, pairs, closed);
    if (size >= 2) grid("open pairs", 2, pairs, open);
    distributed("star", star);
    distributed("multiple", multiple);
    distributed("downwards", downwards);
    chain();
    MPI_Type_free(&gaps_type);
    return finish();
}
