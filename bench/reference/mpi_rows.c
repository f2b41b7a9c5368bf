/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of docs/benchmarks/MPI.md that other programs do not measure; one line for each argument:
 *   rate          messages of 64 B a second, from rank 0 to rank 1, in windows of 64
 *   stream        MB/s from rank 0 to rank 1, messages of 1 MiB, two under way
 *   bcast         MPI_Bcast of 1 MiB, µs until the last rank has it, median
 *   persistent    µs of an allreduce of 8 B, medians of turns: blocking; by MPI_Iallreduce and
 *                 MPI_Wait; by MPI_Start and MPI_Wait; the third to the second, to the first
 *   none          nothing: MPI_Init and MPI_Finalize alone
 * mpicc -O2 bench/reference/mpi_rows.c -o mpi_rows; mpirun -np 4 mpi_rows rate stream bcast */
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW = 64,
    SHORT = 64,
    WINDOWS = 2000,
    LONG = 1 << 20,
    LONGS = 32,
    BROADCASTS = 11,
    TURNS = 31,
    CALLS = 500
};

static int rank;
static char* memory;

/* Sends `count` messages in windows of `window`; an answer of 1 B ends each. Returns seconds. */
static double windows(int rounds, int window, int length) {
    MPI_Request requests[WINDOW];
    char answer = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int r = 0; r < rounds && rank < 2; ++r) {
        for (int i = 0; i < window; ++i) {
            char* place = memory + (size_t)i * length;
            if (rank == 0)
                MPI_Isend(place, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(place, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) MPI_Recv(&answer, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&answer, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    const double took = MPI_Wtime() - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    return took;
}

static int by_value(const void* one, const void* other) {
    const double a = *(const double*)one, b = *(const double*)other;
    return (a > b) - (a < b);
}

static double broadcasts(void) {
    double took[BROADCASTS];
    for (int i = 0; i < BROADCASTS; ++i) {
        if (rank == 0) memset(memory, i + 1, LONG);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        MPI_Bcast(memory, LONG, MPI_BYTE, 0, MPI_COMM_WORLD);
        const double mine = MPI_Wtime() - begin;
        if (memory[0] != i + 1 || memory[LONG - 1] != i + 1) MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Allreduce(&mine, &took[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    qsort(took, BROADCASTS, sizeof took[0], by_value);
    return took[BROADCASTS / 2];
}

/* Times of a call in µs, medians of turns: blocking, non-blocking, persistent. */
static void allreduces(double* medians) {
    static double took[3][TURNS];
    double in = 1, out = 0;
    MPI_Request request;
    MPI_Request persistent;
    MPI_Allreduce_init(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &persistent);
    for (int turn = 0; turn < 3 * TURNS; ++turn) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < CALLS; ++i) {
            if (turn % 3 == 0) {
                MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                continue;
            }
            if (turn % 3 == 1)
                MPI_Iallreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
            else
                MPI_Start(&persistent);
            MPI_Wait(turn % 3 == 1 ? &request : &persistent, MPI_STATUS_IGNORE);
        }
        took[turn % 3][turn / 3] = (MPI_Wtime() - begin) / CALLS * 1e6;
    }
    MPI_Request_free(&persistent);
    for (int form = 0; form < 3; ++form) {
        qsort(took[form], TURNS, sizeof took[form][0], by_value);
        medians[form] = took[form][TURNS / 2];
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memory = calloc(2, LONG);
    if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 1; i < argc; ++i) {
        char line[100] = "";
        if (strcmp(argv[i], "rate") == 0) {
            windows(WINDOWS / 10, WINDOW, SHORT);
            const double seconds = windows(WINDOWS, WINDOW, SHORT);
            sprintf(line, "rate: %.0f messages/s\n", WINDOWS * WINDOW / seconds);
        } else if (strcmp(argv[i], "stream") == 0) {
            windows(2, 2, LONG);
            const double seconds = windows(LONGS / 2, 2, LONG);
            sprintf(line, "stream: %.2f MB/s\n", (double)LONGS * LONG / seconds / 1e6);
        } else if (strcmp(argv[i], "bcast") == 0) {
            sprintf(line, "bcast: %.0f us\n", broadcasts() * 1e6);
        } else if (strcmp(argv[i], "persistent") == 0) {
            double us[3];
            allreduces(us);
            sprintf(line, "persistent: %.2f %.2f %.2f us, %.2f, %.2f\n", us[0], us[1], us[2],
                    us[2] / us[1], us[2] / us[0]);
        }
        if (rank == 0) fputs(line, stdout);
    }
    free(memory);
    MPI_Finalize();
    return 0;
}
