/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that start others: spawn, messages and collectives with them, connect and accept.
 *   mpirun -n N spawning            N ranks start 2 others, twice */
#include "check.h"

enum { kChildren = 2, kLong = 300000 };

static int rank;
static int size;

/* Byte i of what a rank of a side sends. */
static char byte_of(int side, int from, int i) { return (char)(side * 31 + from * 7 + i % 251); }

static void exchange(MPI_Comm others, int side, int length) {
    int remote;
    MPI_Comm_remote_size(others, &remote);
    char* out = malloc((size_t)length);
    char* in = malloc((size_t)length * (size_t)remote);
    MPI_Request* requests = malloc((size_t)remote * 2 * sizeof *requests);
    for (int i = 0; i < length; ++i)
        out[i] = byte_of(side, rank, i);
    for (int r = 0; r < remote; ++r)
        MPI_Irecv(in + (size_t)r * (size_t)length, length, MPI_CHAR, r, 5, others, &requests[r]);
    for (int r = 0; r < remote; ++r)
        MPI_Isend(out, length, MPI_CHAR, r, 5, others, &requests[remote + r]);
    MPI_Waitall(2 * remote, requests, MPI_STATUSES_IGNORE);
    for (int r = 0; r < remote; ++r)
        for (int i = 0; i < length; ++i)
            CHECK(in[(size_t)r * (size_t)length + (size_t)i] == byte_of(1 - side, r, i),
                  "byte %d of %d from %d", i, length, r);
    /* From any source, in the order of each. */
    for (int k = 0; k < 3; ++k)
        for (int r = 0; r < remote; ++r)
            MPI_Send(&k, 1, MPI_INT, r, 6, others);
    int* next = calloc((size_t)remote, sizeof *next);
    for (int n = 0; n < 3 * remote; ++n) {
        int got;
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, 6, others, &status);
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 6, others, &status);
        CHECK(got == next[status.MPI_SOURCE]++, "%d from %d", got, status.MPI_SOURCE);
    }
    free(next);
    free(requests);
    free(in);
    free(out);
}

/* Receives from any source and from one, in the order in which they were posted. */
static void wild(MPI_Comm all, int in_all, int of_all) {
    enum { kRounds = 50 };
    const int before = (in_all + of_all - 1) % of_all;
    const int after = (in_all + 1) % of_all;
    for (int i = 0; i < kRounds; ++i) {
        int got[2] = {-1, -1};
        int one = 2 * i;
        int other = 2 * i + 1;
        MPI_Request requests[2];
        MPI_Irecv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 9, all, &requests[0]);
        MPI_Irecv(&got[1], 1, MPI_INT, before, 9, all, &requests[1]);
        MPI_Send(&one, 1, MPI_INT, after, 9, all);
        MPI_Send(&other, 1, MPI_INT, after, 9, all);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(got[0] == one && got[1] == other, "got %d and %d in round %d", got[0], got[1], i);
    }
    /* All to all, each once, in any order. */
    int* got = ints((size_t)of_all);
    int* seen = calloc((size_t)of_all, sizeof *seen);
    MPI_Request* requests = malloc((size_t)of_all * sizeof *requests);
    for (int i = 0; i < of_all; ++i)
        MPI_Irecv(&got[i], 1, MPI_INT, MPI_ANY_SOURCE, 10, all, &requests[i]);
    for (int to = 0; to < of_all; ++to)
        MPI_Send(&in_all, 1, MPI_INT, to, 10, all);
    MPI_Waitall(of_all, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < of_all; ++i)
        if (got[i] >= 0 && got[i] < of_all) ++seen[got[i]];
    for (int i = 0; i < of_all; ++i)
        CHECK(seen[i] == 1, "%d messages from %d", seen[i], i);
    /* A receive from any source that is taken back gets none of them. */
    int none = -1;
    int flag = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&none, 1, MPI_INT, MPI_ANY_SOURCE, 11, all, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "it was not cancelled");
    MPI_Barrier(all);
    MPI_Send(&in_all, 1, MPI_INT, after, 11, all);
    MPI_Recv(&got[0], 1, MPI_INT, MPI_ANY_SOURCE, 11, all, MPI_STATUS_IGNORE);
    CHECK(got[0] == before && none == -1, "got %d and %d", got[0], none);
    free(requests);
    free(seen);
    free(got);
}

/* All of both sides in one communicator. */
static void merged(MPI_Comm others, int side) {
    MPI_Comm all;
    int of_all;
    int in_all;
    int sum;
    MPI_Intercomm_merge(others, side, &all);
    MPI_Comm_size(all, &of_all);
    MPI_Comm_rank(all, &in_all);
    MPI_Allreduce(&in_all, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == of_all * (of_all - 1) / 2, "sum %d of %d", sum, of_all);
    int* data = ints(kLong);
    for (int root = 0; root < of_all; ++root) {
        for (int i = 0; i < kLong; ++i)
            data[i] = in_all == root ? root + i : -1;
        MPI_Bcast(data, kLong, MPI_INT, root, all);
        for (int i = 0; i < kLong; ++i)
            CHECK(data[i] == root + i, "broadcast of %d, %d", root, i);
    }
    /* A message of any source of both sides. */
    int got = -1;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 8, all, &request);
    MPI_Send(&in_all, 1, MPI_INT, (in_all + 1) % of_all, 8, all);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(got == (in_all + of_all - 1) % of_all, "from %d", got);
    free(data);
    wild(all, in_all, of_all);
    MPI_Comm_free(&all);
}

static void both(MPI_Comm others, int side) {
    for (int length = 1; length <= kLong; length *= 50)
        exchange(others, side, length);
    merged(others, side);
    MPI_Barrier(others);
    MPI_Comm_disconnect(&others);
}

/* The first half of the ranks accepts, the second connects. */
static void connected(void) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half;
    MPI_Comm others;
    const int side = rank * 2 >= size;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    const int world_rank = rank;
    if (side == 0) {
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &others);
    } else {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &others);
    }
    MPI_Comm_rank(half, &rank);
    both(others, side);
    rank = world_rank;
    if (rank == 0) MPI_Close_port(port);
    MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        both(parent, 1);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < 2; ++i) {
        int errors[kChildren];
        MPI_Comm children;
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, kChildren, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                       &children, errors);
        both(children, 0);
    }
    if (size > 1) connected();
    return finish();
}
