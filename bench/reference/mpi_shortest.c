/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest half of a round trip of MPI_Send and MPI_Recv between ranks 0 and 1, for each length
 * given, in µs. The shortest of many is about the same on a busy machine and on a quiet one.
 *   mpicc -O2 bench/reference/mpi_shortest.c -o mpi_shortest
 *   mpirun -np 2 mpi_shortest TRIPS LENGTH... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double half_round_trip(int rank, char* out, char* in, int length) {
    const double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(out, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in, length, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin) / 2;
}

int main(int argc, char** argv) {
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int trips = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 2; i < argc && rank < 2; ++i) {
        const int length = atoi(argv[i]);
        char* memory = calloc(2, (size_t)length + 1);
        if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
        double shortest = 1e9;
        for (int trip = 0; trip < trips; ++trip) {
            const double took = half_round_trip(rank, memory, memory + length, length);
            if (took < shortest) shortest = took;
        }
        if (rank == 0) printf("%d B: %.1f\n", length, shortest * 1e6);
        free(memory);
    }
    MPI_Finalize();
    return 0;
}
