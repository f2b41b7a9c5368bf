/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives together with the rest of MPI: messages that a barrier must move, communicators that
 * come and go and overlap, non-blocking and inter-communicator collectives.
 *   mpirun -n N mixing [DUPS] */
#include "check.h"

/* A long message is moved by the sender's progress; the receiver asks for it only behind the
 * barrier, in which the sender is. A barrier without the MPI's progress never ends for some. */
static void long_message_across_a_barrier(int rank) {
    const int n = 1 << 18; /* 1 MiB */
    int* data = ints((size_t)n);
    for (int round = 0; round < 4; ++round) {
        MPI_Request request;
        if (rank == 0) {
            for (int i = 0; i < n; ++i)
                data[i] = round + i;
            MPI_Isend(data, n, MPI_INT, 1, round, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            if (round % 2 == 0) {
                MPI_Recv(data, n, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Barrier(MPI_COMM_WORLD);
            } else {
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Recv(data, n, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            CHECK(data[0] == round && data[n - 1] == round + n - 1, "round %d", round);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    free(data);
}

static void come_and_go(int rank, int dups) {
    for (int i = 0; i < dups; ++i) {
        MPI_Comm dup;
        int data = rank == 0 ? i : -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        if (i % 8 != 7) MPI_Bcast(&data, 1, MPI_INT, 0, dup);
        CHECK(i % 8 == 7 || data == i, "dup %d", i);
        MPI_Comm_free(&dup);
    }
}

/* Neighbours free two communicators in opposite orders, with a message between the two. */
static void free_in_any_order(int rank, int size) {
    for (int i = 0; i < 10; ++i) {
        MPI_Comm dups[2];
        int from = -1;
        for (int d = 0; d < 2; ++d) {
            int data = rank == d ? i : -1;
            MPI_Comm_dup(MPI_COMM_WORLD, &dups[d]);
            MPI_Bcast(&data, 1, MPI_INT, d, dups[d]);
            CHECK(data == i, "dup %d of round %d", d, i);
        }
        MPI_Comm_free(&dups[rank % 2]);
        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &from, 1, MPI_INT,
                     (rank + size - 1) % size, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(from == (rank + size - 1) % size, "from %d", from);
        MPI_Comm_free(&dups[1 - rank % 2]);
    }
}

/* Three communicators over shared members, used in turns. */
static void overlap(int rank, int size) {
    MPI_Comm comms[3];
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comms[0]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &comms[2]);
    for (int round = 0; round < 20; ++round) {
        for (int c = 0; c < 3; ++c) {
            int members;
            int sum = 0;
            int one = 1;
            MPI_Comm_size(comms[c], &members);
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[c]);
            CHECK(sum == members, "communicator %d round %d: %d", c, round, sum);
        }
    }
    for (int c = 2; c >= 0; --c)
        MPI_Comm_free(&comms[c]);
}

/* Ranks that are in no part, parts of one rank, and a part in reverse order within a part. */
static void parts(int rank, int size) {
    MPI_Comm even;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2 == 0 ? 3 : MPI_UNDEFINED, rank, &even);
    CHECK((even == MPI_COMM_NULL) == (rank % 2 == 1), "a rank without colour is in a part");
    if (even != MPI_COMM_NULL) {
        MPI_Comm reversed;
        int members;
        int place;
        MPI_Comm_size(even, &members);
        CHECK(members == (size + 1) / 2, "%d members", members);
        MPI_Comm_split(even, 0, -rank, &reversed);
        MPI_Comm_rank(reversed, &place);
        CHECK(place == members - 1 - rank / 2, "rank %d in reverse order", place);
        int ranks[64];
        MPI_Allgather(&rank, 1, MPI_INT, ranks, 1, MPI_INT, reversed);
        for (int i = 0; i < members; ++i)
            CHECK(ranks[i] == 2 * (members - 1 - i), "block %d has %d", i, ranks[i]);
        int before = -1;
        MPI_Exscan(&rank, &before, 1, MPI_INT, MPI_SUM, reversed);
        int sum = 0;
        for (int i = 0; i < place; ++i)
            sum += ranks[i];
        CHECK(place == 0 || before == sum, "%d before place %d", before, place);
        MPI_Comm_free(&reversed);
        MPI_Comm_free(&even);
    }
    MPI_Comm alone;
    int data = rank;
    int sum = -1;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    MPI_Bcast(&data, 1, MPI_INT, 0, alone);
    MPI_Allreduce(&data, &sum, 1, MPI_INT, MPI_SUM, alone);
    MPI_Barrier(alone);
    CHECK(data == rank && sum == rank, "a communicator of one rank");
    MPI_Comm_free(&alone);
}

static void non_blocking(int rank, int size) {
    enum { kMany = 12 };
    MPI_Request requests[kMany];
    int data[kMany];
    int sums[kMany];
    for (int i = 0; i < kMany; ++i) {
        data[i] = i % 2 == 0 && rank == i % size ? 100 + i : rank + i;
        if (i % 2 == 0) {
            MPI_Ibcast(&data[i], 1, MPI_INT, i % size, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Iallreduce(&data[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = kMany - 1; i >= 0; --i) {
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        if (i % 2 == 0) CHECK(data[i] == 100 + i, "broadcast %d", i);
        if (i % 2 == 1) CHECK(sums[i] == size * (size - 1) / 2 + size * i, "sum %d", i);
    }
}

static void between_groups(int rank) {
    MPI_Comm half;
    MPI_Comm between;
    MPI_Comm merged;
    int data = rank == 0 ? 77 : 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &between);
    MPI_Bcast(&data, 1, MPI_INT, rank % 2 == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
    CHECK(rank % 2 == 0 || data == 77, "broadcast to the other group");
    MPI_Intercomm_merge(between, rank % 2, &merged);
    int one = 1;
    int sum = 0;
    int members;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
    MPI_Comm_size(merged, &members);
    CHECK(sum == members, "merged");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
    int rank;
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long_message_across_a_barrier(rank);
    overlap(rank, size);
    parts(rank, size);
    non_blocking(rank, size);
    between_groups(rank);
    free_in_any_order(rank, size);
    come_and_go(rank, argc > 1 ? atoi(argv[1]) : 100);
    return finish();
}
