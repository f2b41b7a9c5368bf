/* SPDX-License-Identifier: BSD-3-Clause */
/* The last rank is killed in the midst of collectives. Under MPI_ERRORS_RETURN the others get an
 * error in bounded time, blocking or not.
 *   mpirun --enable-recovery -n N dying SECONDS [CALL] */
#include <signal.h>
#include <unistd.h>

#include "check.h"

int main(int argc, char** argv) {
    int rank;
    int size;
    const double most = argc > 1 ? atof(argv[1]) : 5;
    const int last = argc > 2 ? atoi(argv[2]) : 20; /* odd: a non-blocking call */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int error = MPI_SUCCESS;
    double begin = MPI_Wtime();
    for (int i = 0; i < 1000 && error == MPI_SUCCESS; ++i) {
        int sum = 0;
        if (i == last) begin = MPI_Wtime();
        if (i == last && rank == size - 1) raise(SIGKILL);
        if (i % 2 == 0) {
            error = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            error = MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
            if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    const double took = MPI_Wtime() - begin;
    printf("rank %d: %s after %.2f s\n", rank, error == MPI_SUCCESS ? "no error" : "error", took);
    fflush(stdout);
    _exit(error != MPI_SUCCESS && took < most ? 0 : 1); /* MPI_Finalize would wait for the dead */
}
