/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcasts COUNT times BYTES from rank 0 and compares them, for a test that counts the frames.
 * neighbours: by MPI_Neighbor_allgather, on a graph whose edges lead from rank 0 to all others.
 *   mpirun -n N broadcasting COUNT BYTES [neighbours] */
#include "check.h"

static MPI_Comm star(int rank) {
    MPI_Comm comm;
    int size;
    int others[64];
    const int root = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int r = 1; r < size && r < 64; ++r)
        others[r - 1] = r;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 0 ? 0 : 1, &root, MPI_UNWEIGHTED,
                                   rank == 0 ? size - 1 : 0, others, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &comm);
    return comm;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int count = argc > 1 ? atoi(argv[1]) : 10;
    const int bytes = argc > 2 ? atoi(argv[2]) : 100000;
    const int neighbours = argc > 3;
    MPI_Barrier(MPI_COMM_WORLD); /* makes the group */
    MPI_Comm comm = neighbours ? star(rank) : MPI_COMM_WORLD;
    char* data = malloc((size_t)bytes);
    for (int i = 0; i < count; ++i) {
        memset(data, rank == 0 ? i : -1, (size_t)bytes);
        if (neighbours)
            MPI_Neighbor_allgather(data, bytes, MPI_BYTE, data, bytes, MPI_BYTE, comm);
        else
            MPI_Bcast(data, bytes, MPI_BYTE, 0, comm);
        CHECK(data[0] == (char)i && data[bytes - 1] == (char)i, "broadcast %d", i);
    }
    free(data);
    if (neighbours) MPI_Comm_free(&comm);
    return finish();
}
