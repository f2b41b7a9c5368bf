/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares MPI_Put of 8 bytes between two fences with a ping-pong, in turns; prints the medians.
 *   mpirun -n 2 putting MOST
 * MOST: how many times as long as a message of the ping-pong the put may take. */
#include "check.h"

enum { kRounds = 1000 };

static int compare(const void* left, const void* right) {
    const double a = *(const double*)left;
    const double b = *(const double*)right;
    return (a > b) - (a < b);
}

static double median(double* times) {
    qsort(times, kRounds, sizeof *times, compare);
    return times[kRounds / 2] * 1e6;
}

int main(int argc, char** argv) {
    static double messages[kRounds];
    static double puts[kRounds];
    int rank;
    int size;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || size != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    static long memory[2];
    MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    const int peer = 1 - rank;
    for (long i = 0; i < kRounds; ++i) {
        long value = i;
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        if (rank == 0) MPI_Send(&value, 1, MPI_LONG, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_LONG, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&value, 1, MPI_LONG, peer, 0, MPI_COMM_WORLD);
        messages[i] = (MPI_Wtime() - begin) / 2;
        MPI_Win_fence(0, window);
        begin = MPI_Wtime();
        if (rank == 0) MPI_Put(&value, 1, MPI_LONG, peer, 0, 1, MPI_LONG, window);
        MPI_Win_fence(0, window);
        puts[i] = MPI_Wtime() - begin;
        CHECK(rank == 0 || memory[0] == i, "%ld in round %ld", memory[0], i);
    }
    MPI_Win_free(&window);
    const double message = median(messages);
    const double put = median(puts);
    if (rank == 0) {
        fprintf(stderr, "MPI_Put of 8 B and a fence: %.2f us, a message: %.2f us, ratio %.2f\n",
                put, message, put / message);
        CHECK(put <= atof(argv[1]) * message, "%.2f us", put);
    }
    return finish();
}
