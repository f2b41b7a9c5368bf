/* SPDX-License-Identifier: BSD-3-Clause */
/* The large-count forms of MPI 4, and types for which memory and packed form differ in ways that
 * only their construction shows.
 *   mpirun -n N wide */
#include "check.h"

enum { kInts = 700 };

static int rank;
static int size;

static int value(int from, int to, int i) { return from * 100003 + to * 1009 + i; }

/* Blocks by rank in descending order, with a gap of one element behind each. */
typedef struct layout {
    MPI_Count* counts;
    MPI_Aint* places;
    MPI_Count total;
} layout;
static layout layout_of(int unit) {
    layout l = {malloc((size_t)size * sizeof(MPI_Count)), malloc((size_t)size * sizeof(MPI_Aint)),
                0};
    for (int r = size - 1; r >= 0; --r) {
        l.counts[r] = (r + 1) % 3 * unit;
        l.places[r] = (MPI_Aint)l.total;
        l.total += l.counts[r] + 1;
    }
    return l;
}

static void equal_blocks(void) {
    const MPI_Count n = kInts;
    const int root = size - 1;
    int* all = ints((size_t)(n * size));
    int* out = ints((size_t)(n * size));
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < n; ++i)
            all[r * n + i] = value(rank, r, i);
    MPI_Alltoall_c(all, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r)
        CHECK(out[r * n + 9] == value(r, rank, 9), "alltoall, from %d", r);
    MPI_Gather_c(all, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; rank == root && r < size; ++r)
        CHECK(out[r * n + 5] == value(r, 0, 5), "gather, block %d", r);
    MPI_Scatter_c(all, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(out[n - 1] == value(root, rank, (int)n - 1), "scatter");
    MPI_Allgather_c(all, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r)
        CHECK(out[r * n + 3] == value(r, 0, 3), "allgather, block %d", r);
    for (int i = 0; rank != root && i < n; ++i)
        all[i] = -1;
    MPI_Bcast_c(all, n, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(all[n - 1] == value(root, 0, (int)n - 1), "bcast");
    free(all);
    free(out);
}

static void blocks_by_rank(void) {
    const int root = 0;
    layout l = layout_of(100);
    const MPI_Count mine = l.counts[rank];
    int* one = ints((size_t)mine);
    int* all = ints((size_t)l.total);
    for (int i = 0; i < mine; ++i)
        one[i] = value(rank, 7, i);
    MPI_Gatherv_c(one, mine, MPI_INT, all, l.counts, l.places, MPI_INT, root, MPI_COMM_WORLD);
    for (int r = 0; rank == root && r < size; ++r) {
        for (int i = 0; i < l.counts[r]; ++i)
            CHECK(all[l.places[r] + i] == value(r, 7, i), "gatherv, block %d", r);
        CHECK(all[l.places[r] + l.counts[r]] == -7, "behind block %d", r);
    }
    for (int i = 0; rank == root && i < l.total; ++i)
        all[i] *= 2;
    MPI_Scatterv_c(all, l.counts, l.places, MPI_INT, one, mine, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < mine; ++i)
        CHECK(one[i] == 2 * value(rank, 7, i), "scatterv, element %d", i);
    MPI_Allgatherv_c(one, mine, MPI_INT, all, l.counts, l.places, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < l.counts[r]; ++i)
            CHECK(all[l.places[r] + i] == 2 * value(r, 7, i), "allgatherv, block %d", r);
    /* Each rank sends r as many elements as r gets from all others. */
    layout to = layout_of(100);
    to.total = 0;
    for (int r = 0; r < size; ++r) {
        to.counts[r] = mine;
        to.places[r] = (MPI_Aint)to.total;
        to.total += mine;
    }
    int* out = ints((size_t)to.total);
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < l.counts[r]; ++i)
            all[l.places[r] + i] = value(rank, r, i);
    MPI_Alltoallv_c(all, l.counts, l.places, MPI_INT, out, to.counts, to.places, MPI_INT,
                    MPI_COMM_WORLD);
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < mine; ++i)
            CHECK(out[to.places[r] + i] == value(r, rank, i), "alltoallv, from %d", r);
    free(out);
    free(all);
    free(one);
    free(to.counts);
    free(to.places);
    free(l.counts);
    free(l.places);
}

static void reductions(void) {
    const int all = size * (size - 1) / 2;
    int* in = ints((size_t)(kInts * size));
    int* out = ints((size_t)(kInts * size));
    MPI_Count* counts = malloc((size_t)size * sizeof *counts);
    for (int i = 0; i < kInts * size; ++i)
        in[i] = rank + i;
    for (int r = 0; r < size; ++r)
        counts[r] = kInts;
    MPI_Reduce_c(in, out, kInts, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) CHECK(out[4] == all + 4 * size, "reduce: %d", out[4]);
    MPI_Allreduce_c(in, out, kInts, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(out[4] == size + 3, "allreduce: %d", out[4]);
    MPI_Reduce_scatter_c(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out[4] == all + size * (rank * kInts + 4), "reduce_scatter: %d", out[4]);
    MPI_Reduce_scatter_block_c(in, out, kInts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out[4] == all + size * (rank * kInts + 4), "reduce_scatter_block: %d", out[4]);
    MPI_Scan_c(in, out, kInts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(out[4] == rank * (rank + 1) / 2 + 4 * (rank + 1), "scan: %d", out[4]);
    MPI_Exscan_c(in, out, kInts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank > 0) CHECK(out[4] == rank * (rank - 1) / 2 + 4 * rank, "exscan: %d", out[4]);
    free(counts);
    free(out);
    free(in);
}

/* Rank 0 gives plain ints, the others take them by a type. `at`: where int i of a pair lies. */
static void broadcast_pairs(MPI_Datatype type, const int at[2], const char* what) {
    int* data = ints((size_t)(4 * kInts));
    for (int i = 0; rank == 0 && i < 2 * kInts; ++i)
        data[i] = 100 + i;
    if (rank == 0)
        MPI_Bcast(data, 2 * kInts, MPI_INT, 0, MPI_COMM_WORLD);
    else
        MPI_Bcast(data, kInts, type, 0, MPI_COMM_WORLD);
    MPI_Aint lb;
    MPI_Aint extent;
    MPI_Type_get_extent(type, &lb, &extent);
    const int step = (int)extent / (int)sizeof(int);
    for (int i = 0; rank != 0 && i < 2 * kInts; ++i) {
        const int got = data[i / 2 * step + at[i % 2]];
        CHECK(got == 100 + i, "%s, int %d: %d", what, i, got);
    }
    free(data);
}

static void types(void) {
    const int lengths[2] = {1, 1};
    const int swapped_places[2] = {1, 0};
    const int as_packed[2] = {0, 1};
    const int with_gap[2] = {0, 2};
    MPI_Datatype type;
    MPI_Datatype inner;
    /* No gap, and the second int first. */
    MPI_Type_indexed(2, lengths, swapped_places, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast_pairs(type, swapped_places, "swapped");
    MPI_Type_free(&type);
    MPI_Type_indexed(2, lengths, swapped_places, MPI_INT, &inner);
    MPI_Type_dup(inner, &type);
    MPI_Type_commit(&type); /* as `inner` is not */
    broadcast_pairs(type, swapped_places, "swapped dup");
    MPI_Type_free(&type);
    MPI_Type_contiguous(1, inner, &type);
    MPI_Type_commit(&type);
    broadcast_pairs(type, swapped_places, "contiguous of swapped");
    MPI_Type_free(&type);
    MPI_Type_free(&inner);
    MPI_Type_vector(2, 1, 1, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast_pairs(type, as_packed, "vector without gaps");
    MPI_Type_free(&type);
    MPI_Type_vector_c(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast_pairs(type, with_gap, "large-count vector");
    MPI_Type_free(&type);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    equal_blocks();
    blocks_by_rank();
    reductions();
    types();
    return finish();
}
