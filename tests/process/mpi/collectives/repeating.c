/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent collectives: each operation started several times with other data, all at once by
 * MPI_Startall, in place, of no bytes, with types that have gaps at odd ranks only.
 * early: types and operators are freed before the first start and communicators before the last,
 * which Open MPI alone does not survive.
 *   mpirun -n N repeating [early] */
#include "tests/process/mpi/check.h"

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define FORM(name) MPIX_##name##_init
#else
#define FORM(name) MPI_##name##_init
#endif

enum { kRounds = 4, kForms = 17 };

static int rank;
static int size;
static int early;

/* Element i of the block that a rank gives another in a round. */
static int block(int round, int from, int to, int i) {
    return round * 1000000 + from * 10000 + to * 100 + i % 100;
}

static void wait_all(int count, MPI_Request* requests) {
    int done = 0;
    while (!done)
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i)
        CHECK(requests[i] != MPI_REQUEST_NULL, "request %d", i);
}

/* Does not commute: the first operand of all. */
static void first(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    memcpy(inout, in, (size_t)*count * sizeof(int));
}

/* All forms at once; those after `half` start in a second call. */
static void all_forms(MPI_Comm comm, int n, int half) {
    const int root = 1 % size;
    const size_t whole = (size_t)(n * size);
    int* counts = ints((size_t)size);
    int* places = ints((size_t)size);
    int* bytes = ints((size_t)size);
    MPI_Datatype* types = malloc((size_t)size * sizeof *types);
    int* mine = ints(whole);
    int* got[kForms];
    MPI_Request requests[kForms];
    MPI_Op op;
    for (int r = 0; r < size; ++r) {
        counts[r] = n;
        places[r] = n * (size - 1 - r);
        bytes[r] = places[r] * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    for (int g = 0; g < kForms; ++g)
        got[g] = ints(whole);
    const int* own = mine + rank * n;
    MPI_Op_create(first, 0, &op);
    FORM(Barrier)(comm, MPI_INFO_NULL, &requests[0]);
    FORM(Bcast)(got[1], n, MPI_INT, root, comm, MPI_INFO_NULL, &requests[1]);
    FORM(Gather)(own, n, MPI_INT, got[2], n, MPI_INT, root, comm, MPI_INFO_NULL, &requests[2]);
    FORM(Gatherv)
    (own, n, MPI_INT, got[3], counts, places, MPI_INT, root, comm, MPI_INFO_NULL, &requests[3]);
    FORM(Scatter)(mine, n, MPI_INT, got[4], n, MPI_INT, root, comm, MPI_INFO_NULL, &requests[4]);
    FORM(Scatterv)
    (mine, counts, places, MPI_INT, got[5], n, MPI_INT, root, comm, MPI_INFO_NULL, &requests[5]);
    FORM(Allgather)(own, n, MPI_INT, got[6], n, MPI_INT, comm, MPI_INFO_NULL, &requests[6]);
    FORM(Allgatherv)
    (own, n, MPI_INT, got[7], counts, places, MPI_INT, comm, MPI_INFO_NULL, &requests[7]);
    FORM(Alltoall)(mine, n, MPI_INT, got[8], n, MPI_INT, comm, MPI_INFO_NULL, &requests[8]);
    FORM(Alltoallv)
    (mine, counts, places, MPI_INT, got[9], counts, places, MPI_INT, comm, MPI_INFO_NULL,
     &requests[9]);
    FORM(Alltoallw)
    (mine, counts, bytes, types, got[10], counts, bytes, types, comm, MPI_INFO_NULL, &requests[10]);
    FORM(Reduce)(mine, got[11], n, MPI_INT, MPI_SUM, root, comm, MPI_INFO_NULL, &requests[11]);
    FORM(Allreduce)(mine, got[12], n, MPI_INT, op, comm, MPI_INFO_NULL, &requests[12]);
    FORM(Reduce_scatter)
    (mine, got[13], counts, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[13]);
    FORM(Reduce_scatter_block)
    (mine, got[14], n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[14]);
    FORM(Scan)(mine, got[15], n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[15]);
    FORM(Exscan)(mine, got[16], n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[16]);
    if (early) MPI_Op_free(&op);
    MPI_Request inactive = requests[3];
    MPI_Wait(&inactive, MPI_STATUS_IGNORE); /* returns at once */
    for (int round = 0; round < kRounds; ++round) {
        for (int r = 0; r < size; ++r)
            for (int i = 0; i < n; ++i)
                mine[r * n + i] = block(round, rank, r, i);
        for (int g = 0; g < kForms; ++g)
            for (size_t i = 0; i < whole; ++i)
                got[g][i] = -7;
        for (int i = 0; rank == root && i < n; ++i)
            got[1][i] = block(round, root, root, i);
        MPI_Startall(half, requests);
        MPI_Startall(kForms - half, requests + half);
        wait_all(kForms, requests);
        const int ranks = size * (size - 1) / 2;
        for (int i = 0; i < n; ++i) {
            const int sum = size * block(round, 0, 0, i) + ranks * 10000;
            CHECK(got[1][i] == block(round, root, root, i), "bcast %d", i);
            CHECK(got[4][i] == block(round, root, rank, i), "scatter %d", i);
            CHECK(got[5][i] == block(round, root, size - 1 - rank, i), "scatterv %d", i);
            for (int r = 0; r < size; ++r) {
                const int at = places[r] + i;
                const int other = size - 1 - rank;
                if (rank == root) {
                    CHECK(got[2][r * n + i] == block(round, r, r, i), "gather %d %d", r, i);
                    CHECK(got[3][at] == block(round, r, r, i), "gatherv %d %d", r, i);
                }
                CHECK(got[6][r * n + i] == block(round, r, r, i), "allgather %d %d", r, i);
                CHECK(got[7][at] == block(round, r, r, i), "allgatherv %d %d", r, i);
                CHECK(got[8][r * n + i] == block(round, r, rank, i), "alltoall %d %d", r, i);
                CHECK(got[9][at] == block(round, r, other, i), "alltoallv %d %d", r, i);
                CHECK(got[10][at] == block(round, r, other, i), "alltoallw %d %d", r, i);
            }
            if (rank == root) CHECK(got[11][i] == sum, "reduce %d: %d", i, got[11][i]);
            CHECK(got[12][i] == block(round, 0, 0, i), "allreduce %d: %d", i, got[12][i]);
            CHECK(got[13][i] == sum + size * 100 * rank, "reduce_scatter %d", i);
            CHECK(got[14][i] == sum + size * 100 * rank, "reduce_scatter_block %d", i);
            int until = 0;
            for (int r = 0; r < rank; ++r)
                until += block(round, r, 0, i);
            CHECK(got[16][i] == (rank == 0 ? -7 : until), "exscan %d", i);
            CHECK(got[15][i] == until + block(round, rank, 0, i), "scan %d", i);
        }
    }
    for (int g = 0; g < kForms; ++g) {
        MPI_Request_free(&requests[g]);
        CHECK(requests[g] == MPI_REQUEST_NULL, "request %d", g);
        free(got[g]);
    }
    if (!early) MPI_Op_free(&op);
    free(mine);
    free(types);
    free(bytes);
    free(places);
    free(counts);
}

/* In place, with a blocking collective and a message between start and wait. */
static void in_place(int n) {
    const size_t whole = (size_t)(n * size);
    int* sums = ints((size_t)n);
    int* gathered = ints(whole);
    int* exchanged = ints(whole);
    MPI_Request requests[3];
    FORM(Allreduce)
    (MPI_IN_PLACE, sums, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    FORM(Allgather)
    (MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, n, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
     &requests[1]);
    FORM(Alltoall)
    (MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, exchanged, n, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
     &requests[2]);
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < n; ++i) {
            sums[i] = rank + i + round;
            gathered[rank * n + i] = block(round, rank, 0, i);
            for (int r = 0; r < size; ++r)
                exchanged[r * n + i] = block(round, rank, r, i);
        }
        for (int r = 2; r >= 0; --r)
            MPI_Start(&requests[(r + round) % 3]);
        int next = rank;
        MPI_Sendrecv_replace(&next, 1, MPI_INT, (rank + 1) % size, 5, (rank + size - 1) % size, 5,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(next == (rank + size - 1) % size, "message %d", next);
        MPI_Barrier(MPI_COMM_WORLD);
        wait_all(3, requests);
        for (int i = 0; i < n; ++i) {
            CHECK(sums[i] == size * (size - 1) / 2 + size * (i + round), "allreduce %d", i);
            for (int r = 0; r < size; ++r) {
                CHECK(gathered[r * n + i] == block(round, r, 0, i), "allgather %d %d", r, i);
                CHECK(exchanged[r * n + i] == block(round, r, rank, i), "alltoall %d %d", r, i);
            }
        }
    }
    for (int r = 0; r < 3; ++r)
        MPI_Request_free(&requests[r]);
    free(sums);
    free(gathered);
    free(exchanged);
}

/* Packed at odd ranks; the longer broadcast goes in pieces. */
static void with_gaps(int n) {
    const int stride = rank % 2 == 1 ? 3 : 1;
    const int part = n / size;
    int* data = ints((size_t)(n * stride));
    int* all = ints((size_t)(n * stride * size));
    int* exchanged = ints((size_t)(n * stride));
    int* counts[2] = {ints((size_t)size), ints((size_t)size)};
    int* places[2] = {ints((size_t)size), ints((size_t)size)};
    MPI_Request requests[3];
    MPI_Datatype type;
    MPI_Comm dup;
    for (int r = 0; r < size; ++r) {
        counts[0][r] = n;
        places[0][r] = n * r;
        counts[1][r] = part;
        places[1][r] = part * r;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Type_create_resized(MPI_INT, 0, stride * (int)sizeof(int), &type);
    MPI_Type_commit(&type);
    FORM(Bcast)(data, n, type, 0, dup, MPI_INFO_NULL, &requests[0]);
    FORM(Allgatherv)
    (data, n, type, all, counts[0], places[0], type, dup, MPI_INFO_NULL, &requests[1]);
    FORM(Alltoallv)
    (data, counts[1], places[1], type, exchanged, counts[1], places[1], type, dup, MPI_INFO_NULL,
     &requests[2]);
    if (early) MPI_Type_free(&type);
    for (int round = 0; round < kRounds; ++round) {
        for (int i = 0; i < n; ++i)
            data[i * stride] = rank == 0 ? block(round, 0, 0, i) : -1;
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        for (int i = 0; i < n; ++i) {
            CHECK(data[i * stride] == block(round, 0, 0, i), "bcast %d", i);
            if (stride == 3) CHECK(data[i * 3 + 1] == -7, "gap %d", i);
            data[i * stride] = block(round, rank, 1, i);
        }
        MPI_Startall(2, &requests[1]);
        if (early && round == 0) MPI_Comm_free(&dup);
        MPI_Waitall(2, &requests[1], MPI_STATUSES_IGNORE);
        for (int r = 0; r < size; ++r) {
            for (int i = 0; i < n; ++i)
                CHECK(all[(r * n + i) * stride] == block(round, r, 1, i), "allgatherv %d", i);
            for (int i = 0; i < part; ++i)
                CHECK(exchanged[(r * part + i) * stride] == block(round, r, 1, rank * part + i),
                      "alltoallv %d %d", r, i);
        }
    }
    for (int r = 0; r < 3; ++r)
        MPI_Request_free(&requests[r]);
    if (!early) {
        MPI_Type_free(&type);
        MPI_Comm_free(&dup);
    }
    free(data);
    free(all);
    free(exchanged);
    for (int i = 0; i < 2; ++i) {
        free(counts[i]);
        free(places[i]);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    early = argc > 1 && strcmp(argv[1], "early") == 0;
    const int lengths[] = {0, 1, 90, 5000};
    for (int i = 0; i < 4; ++i)
        all_forms(MPI_COMM_WORLD, lengths[i], i % 2 == 0 ? kForms : 5);
    in_place(1);
    in_place(700);
    with_gaps(50);
    with_gaps(300000); /* 1.2 MB */
    return finish();
}
