/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurement of barriers [GAMMA §5.4]: 104 trials, of which the first two and the worst two
 * are discarded. Instance 0 prints the mean of the others. The argument, if there is one, is the
 * number of instances of the group; one that is not in it says so. */
#include "check.h"

#define N_TRIALS 104
#define N_DISCARDED 2

static int ascending(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    static double trials[N_TRIALS];
    time_586 start, end;
    const int wanted = argc > 1 ? atoi(argv[1]) : 0;
    if (gamma_init(wanted, argc, argv) != 0) {
        CHECK(wanted > 0);
        printf("barriers: left out\n");
        return 0;
    }
    for (int i = 0; i < N_TRIALS; i++) {
        CHECK(gamma_sync() == 0);
        gamma_time(start);
        CHECK(gamma_sync() == 0);
        gamma_time(end);
        trials[i] = gamma_time_diff(end, start);
        CHECK(trials[i] > 0);
    }
    const int node = gamma_my_node(), nodes = gamma_how_many_nodes();
    CHECK(gamma_exit() == 0);
    double* counted = trials + N_DISCARDED;
    const int count = N_TRIALS - 2 * N_DISCARDED;
    qsort(counted, N_TRIALS - N_DISCARDED, sizeof *counted, ascending);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += counted[i];
    if (node == 0) printf("barriers: %d instances, %.1f us\n", nodes, sum / count);
    return 0;
}
