/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks go on when an engine is restarted: each exchange that fails is made again in the next
 * life of the job. Here the ranks begin the second and the third life by themselves.
 *
 *     cc rejoin.c $(pkg-config --cflags --libs libulc) -o rejoin
 *     ulc run -n 2 ./rejoin
 */
#include <stdio.h>
#include <ulc.h>

#define LIMIT 30000000000LL /* ns */

/* Sends a line to the other rank and takes one from it. Returns ULC_OK or an error of either. */
static int exchange(ulc_endpoint* ep, int round, char* heard, size_t octets) {
    const uint16_t other = ulc_rank(ep) == 0 ? 1 : 0;
    char line[64];
    snprintf(line, sizeof line, "line %d of rank %u", round, ulc_rank(ep));
    const ulc_piece piece = {line, sizeof line};
    ulc_request requests[2];
    ulc_status status;
    int error = ulc_receive(ep, other, 1, UINT64_MAX, heard, octets, &requests[0]);
    /* DELIVERED: the other rank's engine has it when the request is done. */
    if (error == ULC_OK)
        error = ulc_sendv(ep, other, 1, &piece, 1, ULC_SEND_DELIVERED, &requests[1]);
    for (int i = 0; i < 2 && error == ULC_OK; ++i) {
        error = ulc_wait_for(ep, &requests[i], &status, LIMIT);
        if (error == ULC_OK) error = status.error;
    }
    return error;
}

int main(void) {
    ulc_endpoint* ep = NULL;
    int error = ulc_open(NULL, &ep);
    if (error == ULC_OK) error = ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, LIMIT);
    for (int round = 1; error == ULC_OK && round <= 3;) {
        char heard[64];
        error = exchange(ep, round, heard, sizeof heard);
        if (error == ULC_OK) {
            printf("rank %u heard: %s\n", ulc_rank(ep), heard);
            if (++round > 3) break;
        }
        /* After NO_ENGINE at this rank, and after PEER_DIED or PEER_LEFT at the other. */
        error = ulc_rejoin(&ep, LIMIT);
    }
    if (error == ULC_OK) error = ulc_leave_wait(ep, LIMIT);
    if (error != ULC_OK)
        fprintf(stderr, "rejoin: %s; %s\n", ulc_error_text(error), ulc_last_error_text());
    ulc_close(ep);
    return error == ULC_OK ? 0 : 1;
}
