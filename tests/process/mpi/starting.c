/* SPDX-License-Identifier: BSD-3-Clause */
/* Non-blocking collectives: each operation against its definition, many at once waited for in
 * reverse, with blocking ones between them, by Waitany and Testall, datatypes and communicators
 * freed while they are under way.
 *   mpirun -n N starting */
#include "check.h"

enum { kMany = 40, kInts = 300 };

static int rank;
static int size;

static void finish_all(int count, MPI_Request* requests) {
    int done = 0;
    while (!done)
        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d", i);
}

/* Element i of the block that a rank gives another. */
static int block(int from, int to, int i) { return from * 10000 + to * 100 + i % 100; }

static void moving_blocks(int n) {
    const int root = 1 % size;
    int* counts = ints((size_t)size);
    int* places = ints((size_t)size);
    int* mine = ints((size_t)(n * size));
    int* got[9];
    MPI_Request requests[9];
    for (int r = 0; r < size; ++r) {
        counts[r] = n;
        places[r] = n * (size - 1 - r);
        for (int i = 0; i < n; ++i)
            mine[r * n + i] = block(rank, r, i);
    }
    for (int g = 0; g < 9; ++g)
        got[g] = ints((size_t)(n * size));
    const int* own = mine + rank * n;
    MPI_Igather(own, n, MPI_INT, got[0], n, MPI_INT, root, MPI_COMM_WORLD, &requests[0]);
    MPI_Igatherv(own, n, MPI_INT, got[1], counts, places, MPI_INT, root, MPI_COMM_WORLD,
                 &requests[1]);
    MPI_Iscatter(mine, n, MPI_INT, got[2], n, MPI_INT, root, MPI_COMM_WORLD, &requests[2]);
    MPI_Iscatterv(mine, counts, places, MPI_INT, got[3], n, MPI_INT, root, MPI_COMM_WORLD,
                  &requests[3]);
    MPI_Iallgather(own, n, MPI_INT, got[4], n, MPI_INT, MPI_COMM_WORLD, &requests[4]);
    MPI_Iallgatherv(own, n, MPI_INT, got[5], counts, places, MPI_INT, MPI_COMM_WORLD, &requests[5]);
    MPI_Ialltoall(mine, n, MPI_INT, got[6], n, MPI_INT, MPI_COMM_WORLD, &requests[6]);
    MPI_Ialltoallv(mine, counts, places, MPI_INT, got[7], counts, places, MPI_INT, MPI_COMM_WORLD,
                   &requests[7]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[8]);
    finish_all(9, requests);
    for (int i = 0; i < n; ++i) {
        CHECK(got[2][i] == block(root, rank, i), "iscatter %d", i);
        CHECK(got[3][i] == block(root, size - 1 - rank, i), "iscatterv %d", i);
        for (int r = 0; r < size; ++r) {
            if (rank == root) {
                CHECK(got[0][r * n + i] == block(r, r, i), "igather %d %d", r, i);
                CHECK(got[1][places[r] + i] == block(r, r, i), "igatherv %d %d", r, i);
            }
            CHECK(got[4][r * n + i] == block(r, r, i), "iallgather %d %d", r, i);
            CHECK(got[5][places[r] + i] == block(r, r, i), "iallgatherv %d %d", r, i);
            CHECK(got[6][r * n + i] == block(r, rank, i), "ialltoall %d %d", r, i);
            CHECK(got[7][places[r] + i] == block(r, size - 1 - rank, i), "ialltoallv %d %d", r, i);
        }
    }
    for (int g = 0; g < 9; ++g)
        free(got[g]);
    free(mine);
    free(places);
    free(counts);
}

/* Does not commute: the first operand of all. */
static void first(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    memcpy(inout, in, (size_t)*count * sizeof(int));
}

static void reducing_vectors(int n) {
    const int root = size - 1;
    int* counts = ints((size_t)size);
    int* mine = ints((size_t)(n * size));
    int* got[7];
    MPI_Request requests[7];
    MPI_Op op;
    for (int i = 0; i < n * size; ++i)
        mine[i] = rank + i;
    for (int g = 0; g < 7; ++g)
        got[g] = ints((size_t)(n * size));
    for (int r = 0; r < size; ++r)
        counts[r] = n;
    MPI_Op_create(first, 0, &op);
    MPI_Ireduce(mine, got[0], n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(mine, got[1], n, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
    MPI_Ireduce_scatter(mine, got[2], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2]);
    MPI_Ireduce_scatter_block(mine, got[3], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[3]);
    MPI_Iscan(mine, got[4], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[4]);
    MPI_Iexscan(mine, got[5], n, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[5]);
    MPI_Iallreduce(mine, got[6], n, MPI_INT, op, MPI_COMM_WORLD, &requests[6]);
    MPI_Op_free(&op);
    finish_all(7, requests);
    const int all = size * (size - 1) / 2;
    for (int i = 0; i < n; ++i) {
        const int own = rank * n + i;
        if (rank == root) CHECK(got[0][i] == all + size * i, "ireduce %d", i);
        CHECK(got[1][i] == size - 1 + i, "iallreduce %d", i);
        CHECK(got[2][i] == all + size * own, "ireduce_scatter %d", i);
        CHECK(got[3][i] == all + size * own, "ireduce_scatter_block %d", i);
        CHECK(got[4][i] == rank * (rank + 1) / 2 + (rank + 1) * i, "iscan %d", i);
        CHECK(got[5][i] == (rank == 0 ? -7 : rank * (rank - 1) / 2 + rank * i), "iexscan %d", i);
        CHECK(got[6][i] == i, "first %d: %d", i, got[6][i]);
    }
    for (int g = 0; g < 7; ++g)
        free(got[g]);
    free(mine);
    free(counts);
}

static void many_in_reverse(void) {
    MPI_Request requests[2 * kMany];
    int data[kMany][kInts];
    int sums[kMany][2];
    for (int i = 0; i < kMany; ++i) {
        int one = 1;
        int sum = 0;
        const int n = i % 4 == 0 ? kInts : 1;
        for (int k = 0; k < n; ++k)
            data[i][k] = rank == i % size ? 1000 * i + k : -1;
        sums[i][0] = rank + i;
        MPI_Ibcast(data[i], n, MPI_INT, i % size, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Iallreduce(MPI_IN_PLACE, sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                       &requests[2 * i + 1]);
        if (i % 7 == 3) {
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            CHECK(sum == size, "blocking between: %d", sum);
        }
    }
    for (int i = 2 * kMany - 1; i >= kMany; --i)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < kMany; ++i) {
        int which = -1;
        MPI_Waitany(kMany, requests, &which, MPI_STATUS_IGNORE);
        CHECK(which >= 0 && which < kMany, "waitany %d", which);
    }
    for (int i = 0; i < kMany; ++i) {
        const int n = i % 4 == 0 ? kInts : 1;
        CHECK(data[i][0] == 1000 * i && data[i][n - 1] == 1000 * i + n - 1, "ibcast %d", i);
        CHECK(sums[i][0] == size * (size - 1) / 2 + size * i, "iallreduce %d", i);
    }
}

/* A message that a member waits for before it begins an operation that the others began. */
static void behind_a_message(void) {
    MPI_Request requests[2];
    int value = rank == 0 ? 5 : 0;
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
    if (rank == 0 && size > 1) MPI_Send(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(value == 5, "%d", value);
}

/* The type has gaps at odd ranks only. */
static void freed_at_once(void) {
    enum { kElements = 5000 };
    MPI_Request request;
    MPI_Datatype type;
    MPI_Comm dup;
    const int stride = rank % 2 == 1 ? 3 : 1;
    int* data = ints((size_t)(kElements * stride));
    if (rank == 0)
        for (int i = 0; i < kElements; ++i)
            data[i] = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Barrier(dup);
    MPI_Type_vector(kElements, 1, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Ibcast(data, 1, type, 0, dup, &request);
    MPI_Type_free(&type);
    MPI_Comm_free(&dup);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < kElements; ++i) {
        CHECK(data[i * stride] == i, "element %d: %d", i, data[i * stride]);
        if (stride == 3) CHECK(data[i * 3 + 1] == -7, "gap %d", i);
    }
    free(data);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    const int lengths[] = {0, 1, 90, 20000};
    for (int i = 0; i < 4; ++i) {
        moving_blocks(lengths[i]);
        reducing_vectors(lengths[i]);
    }
    many_in_reverse();
    behind_a_message();
    freed_at_once();
    return finish();
}
