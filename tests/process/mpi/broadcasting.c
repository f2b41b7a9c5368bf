/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcasts COUNT times BYTES from rank 0 and compares them, for a test that counts the frames.
 *   mpirun -n N broadcasting COUNT BYTES */
#include "check.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int count = argc > 1 ? atoi(argv[1]) : 10;
    const int bytes = argc > 2 ? atoi(argv[2]) : 100000;
    char* data = malloc((size_t)bytes);
    for (int i = 0; i < count; ++i) {
        memset(data, rank == 0 ? i : -1, (size_t)bytes);
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        CHECK(data[0] == (char)i && data[bytes - 1] == (char)i, "broadcast %d", i);
    }
    free(data);
    return finish();
}
