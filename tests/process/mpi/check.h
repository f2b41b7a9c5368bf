/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the MPI programs of this folder, which compare their results with what MPI promises. */
#ifndef ULC_TESTS_MPI_CHECK_H
#define ULC_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition, ...)                                                                     \
    do {                                                                                          \
        if (!(condition) && ++failures <= 10) {                                                   \
            int world_rank_;                                                                      \
            MPI_Comm_rank(MPI_COMM_WORLD, &world_rank_);                                          \
            fprintf(stderr, "rank %d: %s:%d: %s: ", world_rank_, __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                                         \
            fputc('\n', stderr);                                                                  \
        }                                                                                         \
    } while (0)

static inline int* ints(size_t count) {
    int* memory = malloc((count + 1) * sizeof(int));
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    for (size_t i = 0; i <= count; ++i)
        memory[i] = -7;
    return memory;
}

/* Ends the program: "all right" by rank 0 if no rank found a failure. */
static inline int finish(void) {
    int all = 0;
    int rank = 0;
    MPI_Reduce(&failures, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf(all == 0 ? "all right\n" : "%d failures\n", all);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}

#endif
