/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that are made, used and freed by the thousand leave no memory in use: bytes of heap
 * after CALLS of them less those before, for each call at most BYTES.
 *   mpirun -n N splitting [CALLS [BYTES]] */
#include <malloc.h>
#include <unistd.h>

#include "check.h"

static int rank, size;

static void split(int n) {
    MPI_Comm comm;
    const int root = n % size;
    int value = rank == root ? n : -1;
    if (n % 2 == 0) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    } else {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    MPI_Bcast(&value, 1, MPI_INT, root, comm);
    CHECK(value == n, "%d, not %d", value, n);
    MPI_Comm_free(&comm);
}

/* The groups of freed communicators rest for half a second, and end with the next communicators. */
static size_t heap_bytes(void) {
    for (int turn = 0; turn < 2; ++turn) {
        usleep(600000);
        split(turn);
    }
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int calls = argc > 1 ? atoi(argv[1]) : 2000;
    const double most = argc > 2 ? atof(argv[2]) : 100; /* the MPI has lists that grow */
    for (int n = 0; n < calls / 2; ++n)
        split(n);
    const size_t before = heap_bytes();
    for (int n = 0; n < calls; ++n)
        split(n);
    const size_t after = heap_bytes();
    const double each = ((double)after - (double)before) / calls;
    if (getenv("ULC_TEST_PRINTS") != NULL)
        fprintf(stderr, "rank %d: %zu bytes, then %zu: %.1f a communicator\n", rank, before, after,
                each);
    CHECK(each <= most, "%.1f bytes a communicator", each);
    return finish();
}
