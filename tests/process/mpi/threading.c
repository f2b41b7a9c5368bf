/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one process in MPI at once, each on communicators that no other uses: they make groups
 * over the same ranks in different orders, and mix messages with collectives.
 *   mpirun -n N threading */
#include <pthread.h>
#include <semaphore.h>

#include "check.h"

enum { kThreads = 2, kRounds = 12, kMessages = 60 };

static MPI_Comm bases[kThreads];
static sem_t entering[kThreads];
static int world_rank;
static int world_size;
static int wrong[kThreads];

/* Duplicates and broadcasts. The thread that a rank lets go first differs between neighbours. */
static void* dup_and_broadcast(void* which) {
    const int self = (int)(size_t)which;
    const int other = 1 - self;
    for (int round = 0; round < kRounds; ++round) {
        MPI_Comm dup;
        const int root = round % world_size;
        const int value = 1000 * (self + 1) + round;
        int data[2] = {world_rank == root ? value : -1, world_rank == root ? -value : 1};
        MPI_Comm_dup(bases[self], &dup);
        if (self != (world_rank + round) % 2) sem_wait(&entering[other]);
        sem_post(&entering[self]);
        MPI_Bcast(data, 2, MPI_INT, root, dup);
        if (data[0] != value || data[1] != -value) ++wrong[self];
        if (self == (world_rank + round) % 2) sem_wait(&entering[other]);
        MPI_Comm_free(&dup);
    }
    return NULL;
}

static void* reduce_often(void* none) {
    (void)none;
    for (int i = 0; i < kMessages; ++i) {
        int sum = 0;
        const int mine = world_rank + i;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, bases[0]);
        if (sum != world_size * (world_size - 1) / 2 + world_size * i) ++wrong[0];
    }
    return NULL;
}

static void* send_around(void* none) {
    const int to = (world_rank + 1) % world_size;
    const int from = (world_rank + world_size - 1) % world_size;
    (void)none;
    for (int i = 0; i < kMessages; ++i) {
        const int n = i % 3 == 0 ? 40000 : 10;
        int* out = ints((size_t)n);
        int* in = ints((size_t)n);
        out[0] = out[n - 1] = world_rank * 1000 + i;
        MPI_Sendrecv(out, n, MPI_INT, to, i, in, n, MPI_INT, from, i, bases[1], MPI_STATUS_IGNORE);
        if (in[0] != from * 1000 + i || in[n - 1] != from * 1000 + i) ++wrong[1];
        free(in);
        free(out);
    }
    return NULL;
}

static void together(void* (*first)(void*), void* (*second)(void*), const char* what) {
    pthread_t thread;
    wrong[0] = wrong[1] = 0;
    CHECK(pthread_create(&thread, NULL, second, (void*)1) == 0, "no thread");
    first((void*)0);
    pthread_join(thread, NULL);
    CHECK(wrong[0] == 0 && wrong[1] == 0, "%s: %d and %d wrong", what, wrong[0], wrong[1]);
}

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Barrier(MPI_COMM_WORLD); /* makes the group, for Comm_dup's non-blocking reductions */
    for (int i = 0; i < kThreads; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &bases[i]);
        MPI_Barrier(bases[i]);
        sem_init(&entering[i], 0, 0);
    }
    together(dup_and_broadcast, dup_and_broadcast, "broadcasts");
    together(reduce_often, send_around, "messages and reductions");
    for (int i = 0; i < kThreads; ++i)
        MPI_Comm_free(&bases[i]);
    return finish();
}
