/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that leave a collective operation as soon as their part is over, and then wait inside the
 * MPI, where under MPICH nothing polls ULC: each call is followed by a barrier that the MPI carries
 * itself, by messages or by MPI_Ibarrier, which Open MPI gives to ULC.
 *   mpirun -n N leaving [CALLS [OCTETS…]] */
#include "check.h"

enum { kOperations = 10 };

static int rank, size, count;
static int *in, *out;

/* Returns 0 if there is no such operation. */
static int call(int operation, int root) {
    MPI_Comm all = MPI_COMM_WORLD;
    const int part = count / size;
    switch (operation) {
        case 0:
            return MPI_Scan(in, out, count, MPI_INT, MPI_SUM, all), 1;
        case 1:
            return MPI_Exscan(in, out, count, MPI_INT, MPI_SUM, all), 1;
        case 2:
            return MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, root, all), 1;
        case 3:
            return MPI_Bcast(in, count, MPI_INT, root, all), 1;
        case 4:
            return MPI_Gather(in, part, MPI_INT, out, part, MPI_INT, root, all), 1;
        case 5:
            return MPI_Scatter(in, part, MPI_INT, out, part, MPI_INT, root, all), 1;
        case 6:
            return MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, all), 1;
        case 7:
            return MPI_Allgather(in, part, MPI_INT, out, part, MPI_INT, all), 1;
        case 8:
            return MPI_Alltoall(in, part, MPI_INT, out, part, MPI_INT, all), 1;
        case 9:
            return MPI_Reduce_scatter_block(in, out, part, MPI_INT, MPI_SUM, all), 1;
    }
    return 0;
}

static void check_scan(int n) {
    const int step = count > 16 ? count / 7 : 1;
    for (int i = 0; i < count; i += step) {
        int sum = 0;
        for (int r = 0; r <= rank; ++r)
            sum += r + n + i;
        CHECK(out[i] == sum, "scan %d of %d: %d, not %d", n, count, out[i], sum);
    }
}

/* Each rank has heard from all others, by messages alone. */
static void barrier_of_messages(void) {
    for (int distance = 1; distance < size; distance *= 2) {
        MPI_Request request;
        MPI_Isend(NULL, 0, MPI_INT, (rank + distance) % size, 1, MPI_COMM_WORLD, &request);
        MPI_Recv(NULL, 0, MPI_INT, (rank + size - distance) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void barrier_of_the_mpi(int n) {
    if (n % 2 == 0) {
        barrier_of_messages();
        return;
    }
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    static const int usual[] = {8, 8192, 131072};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int calls = argc > 1 ? atoi(argv[1]) : 1200;
    const int sizes = argc > 2 ? argc - 2 : 3;
    for (int s = 0; s < sizes; ++s) {
        const int octets = argc > 2 ? atoi(argv[2 + s]) : usual[s];
        count = octets / (int)sizeof(int);
        in = ints((size_t)count);
        out = ints((size_t)count);
        for (int operation = 0; operation < kOperations; ++operation) {
            for (int n = 0; n < calls; ++n) {
                for (int i = 0; i < count; ++i)
                    in[i] = rank + n + i;
                /* The root is one rank first, and then goes round. */
                if (!call(operation, n < calls / 2 ? 0 : n % size)) return 1;
                if (operation == 0) check_scan(n);
                barrier_of_the_mpi(n);
            }
        }
        free(in);
        free(out);
    }
    return finish();
}
