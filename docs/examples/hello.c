/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 multicasts a greeting; everyone else answers it.
 *
 *     cc hello.c $(pkg-config --cflags --libs libulc) -o hello
 *     ulc run -n 4 ./hello
 */
#include <stdio.h>
#include <ulc.h>

int main(void) {
    ulc_endpoint* ep = NULL;
    int error = ulc_open(NULL, &ep); /* ULC_ENGINE says where; `ulc run` sets it */
    if (error == ULC_OK) error = ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, 30000000000LL);
    if (error != ULC_OK) {
        fprintf(stderr, "hello: %s; %s\n", ulc_error_text(error), ulc_last_error_text());
        return 1;
    }
    const uint16_t rank = ulc_rank(ep), size = ulc_size(ep);
    char text[64] = "hello, all";
    ulc_request request;
    ulc_status status;
    if (rank == 0) {
        ulc_multicast(ep, ulc_world(ep), ULC_SUBSET_ALL, 1, text, sizeof text, NULL);
        for (uint16_t i = 1; i < size; ++i) {
            ulc_receive(ep, ULC_RANK_ANY, 2, UINT64_MAX, text, sizeof text, &request);
            ulc_wait_for(ep, &request, &status, ULC_WAIT_FOREVER);
            printf("rank 0 of %u heard: %s\n", size, text);
        }
    } else {
        ulc_receive(ep, 0, 1, UINT64_MAX, text, sizeof text, &request);
        ulc_wait_for(ep, &request, &status, ULC_WAIT_FOREVER);
        snprintf(text, sizeof text, "hello from rank %u", rank);
        ulc_send(ep, 0, 2, text, sizeof text, NULL);
    }
    ulc_leave_wait(ep, 10000000000LL);
    ulc_close(ep);
    return 0;
}
