/* SPDX-License-Identifier: BSD-3-Clause */
/* A broadcast that the engine carries on while the application computes.
 *
 *     cc offload.c $(pkg-config --cflags --libs libulc) -o offload
 *     ULC_OFFLOAD=1 ulc run -n 3 ./offload
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <coll.h>

enum { LENGTH = 1 << 20 };

static void check(int error, const char* during) {
    if (error == ULC_OK) return;
    fprintf(stderr, "offload: %s: %s; %s\n", during, ulc_error_text(error), ulc_last_error_text());
    exit(1);
}

/* Some work that does not call libulc. */
static double compute(void) {
    double sum = 0;
    for (int i = 1; i < 20000000; ++i)
        sum += 1.0 / i;
    return sum;
}

int main(void) {
    static char data[LENGTH];
    ulc_endpoint* ep = NULL;
    check(ulc_open(NULL, &ep), "opening an endpoint");
    check(ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, 30000000000LL), "joining the job");
    const uint16_t rank = ulc_rank(ep);
    if (rank == 0) memset(data, 'b', LENGTH);

    ulc_coll* broadcast = NULL;
    check(ulc_broadcast_start(ep, ulc_world(ep), 0, data, LENGTH, NULL, &broadcast), "broadcast");
    const double sum = compute();
    check(ulc_coll_wait(ep, broadcast, ULC_WAIT_FOREVER), "broadcast");
    printf("rank %u computed %.3f; its last byte is '%c'\n", rank, sum, data[LENGTH - 1]);

    check(ulc_leave_wait(ep, 10000000000LL), "leaving");
    ulc_close(ep);
    return 0;
}
