/* SPDX-License-Identifier: BSD-3-Clause */
/* More communicators at once than the engines have groups: some go by ULC, the others by the MPI.
 *   mpirun -n N crowding COMMUNICATORS */
#include "check.h"

int main(int argc, char** argv) {
    int rank;
    int size;
    const int count = argc > 1 ? atoi(argv[1]) : 12;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm* dups = malloc((size_t)count * sizeof *dups);
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < count; ++i) {
            int data = rank == i % size ? i : -1;
            if (turn == 0) MPI_Comm_dup(MPI_COMM_WORLD, &dups[i]);
            MPI_Bcast(&data, 1, MPI_INT, i % size, dups[i]);
            CHECK(data == i, "communicator %d turn %d: %d", i, turn, data);
        }
    }
    for (int i = 0; i < count; ++i)
        MPI_Comm_free(&dups[i]);
    free(dups);
    return finish();
}
