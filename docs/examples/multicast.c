/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 multicasts a long message to a group of the odd ranks; each frame is on the wire once.
 *
 *     cc multicast.c $(pkg-config --cflags --libs libulc) -o multicast
 *     ulc run -n 6 --nodes 3 ./multicast
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulc.h>

enum { LENGTH = 1000000, TAG = 1 };

static void check(int error, const char* during) {
    if (error == ULC_OK) return;
    fprintf(stderr, "multicast: %s: %s; %s\n", during, ulc_error_text(error),
            ulc_last_error_text());
    exit(1);
}

int main(void) {
    static unsigned char data[LENGTH];
    ulc_endpoint* ep = NULL;
    check(ulc_open(NULL, &ep), "opening an endpoint");
    check(ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, 30000000000LL), "joining the job");
    const uint16_t rank = ulc_rank(ep), size = ulc_size(ep);

    /* All members name the same ranks in the same order; the others do not call. */
    uint16_t members[64] = {0}, count = 1;
    for (uint16_t r = 1; r < size && count < 64; r += 2)
        members[count++] = r;
    if (rank == 0 || rank % 2 == 1) {
        ulc_request request;
        ulc_status status;
        check(ulc_group_create(ep, members, count, &request), "creating a group");
        check(ulc_wait_for(ep, &request, &status, ULC_WAIT_FOREVER), "creating a group");
        check(status.error, "creating a group");
        const ulc_group group = status.group;
        if (rank == 0) {
            memset(data, 'm', LENGTH);
            check(ulc_multicast(ep, group, ULC_SUBSET_ALL, TAG, data, LENGTH, &request), "sending");
        } else {
            check(ulc_receive(ep, 0, TAG, UINT64_MAX, data, LENGTH, &request), "receiving");
        }
        check(ulc_wait_for(ep, &request, &status, ULC_WAIT_FOREVER), "waiting");
        check(status.error, "the message");
        if (rank > 0)
            printf("rank %u got %llu bytes, the last is '%c'\n", rank,
                   (unsigned long long)status.length, data[LENGTH - 1]);
    }
    check(ulc_leave_wait(ep, 10000000000LL), "leaving");
    ulc_close(ep);
    return 0;
}
