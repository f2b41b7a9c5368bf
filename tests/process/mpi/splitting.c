/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that are made, used and freed by the thousand leave no memory in use. The heap may
 * grow while lists and tables reach their size, so CALLS communicators are made again and again,
 * until each rank has seen an interval in which they took at most BYTES of heap each. A leak lets
 * its rank see none.
 *   GLIBC_TUNABLES=glibc.malloc.tcache_count=0 mpirun -n N splitting [CALLS [BYTES]]
 * Without the variable the caches of each thread count as memory in use. */
#include <float.h>
#include <malloc.h>
#include <unistd.h>

#include "check.h"

enum { kIntervals = 8 };

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
    const double most = argc > 2 ? atof(argv[2]) : 4; /* lists of the MPI */
    double least = DBL_MAX;
    double worst = 0;
    size_t before = heap_bytes();
    for (int interval = 0; interval < kIntervals; ++interval) {
        for (int n = 0; n < calls; ++n)
            split(n);
        const size_t after = heap_bytes();
        const double each = ((double)after - (double)before) / calls;
        if (getenv("ULC_TEST_PRINTS") != NULL)
            fprintf(stderr, "rank %d: %zu bytes, then %zu: %.2f a communicator\n", rank, before,
                    after, each);
        before = after;
        if (each < least) least = each;
        MPI_Allreduce(&least, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (worst <= most) return finish();
    }
    CHECK(worst <= most, "%.2f bytes a communicator, %d times", worst, kIntervals);
    return finish();
}
