/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank takes part in a sum, which all ranks get, bit by bit the same; then in a barrier.
 *
 *     cc collective.c $(pkg-config --cflags --libs libulc) -o collective
 *     ulc run -n 4 ./collective
 */
#include <stdio.h>
#include <stdlib.h>
#include <coll.h>

static void check(int error, const char* during) {
    if (error == ULC_OK) return;
    fprintf(stderr, "collective: %s: %s; %s\n", during, ulc_error_text(error),
            ulc_last_error_text());
    exit(1);
}

int main(void) {
    ulc_endpoint* ep = NULL;
    check(ulc_open(NULL, &ep), "opening an endpoint");
    check(ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, 30000000000LL), "joining the job");
    const uint16_t rank = ulc_rank(ep);

    double mine[2] = {rank, 1.0 / (rank + 1)}, sum[2];
    check(ulc_allreduce(ep, ulc_world(ep), mine, sum, 2, ULC_REDUCTION(ULC_DOUBLE, ULC_SUM)),
          "allreduce");
    printf("rank %u of %u: the ranks add up to %g, their shares to %.3f\n", rank, ulc_size(ep),
           sum[0], sum[1]);
    check(ulc_barrier(ep, ulc_world(ep)), "barrier");

    check(ulc_leave_wait(ep, 10000000000LL), "leaving");
    ulc_close(ep);
    return 0;
}
