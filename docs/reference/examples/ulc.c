/* SPDX-License-Identifier: BSD-3-Clause */
/* One example for each section of ulc.h, ulc_upcall.h and ulc_memory.h in the reference. The test
 * reference_of_headers compiles them. docs/examples/ has whole programs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ulc.h>
#include <ulc_memory.h>
#include <ulc_upcall.h>

void compute(void);
int may_stop(void);

/* [ulc_general] */
/* Waits for a request, and returns the length of its message, or -1. */
int64_t finish(ulc_endpoint* ep, ulc_request* request) {
    ulc_status status;
    int error = ulc_wait_for(ep, request, &status, ULC_WAIT_FOREVER);
    if (error == ULC_OK) error = status.error;
    if (error == ULC_OK) return (int64_t)status.length;
    fprintf(stderr, "failed: %s (%s)\n", ulc_error_text(error), ulc_last_error_text());
    return -1;
}
/* [ulc_general] */

/* [ulc_endpoints] */
int with_an_endpoint(int (*work)(ulc_endpoint*)) {
    ulc_endpoint* ep = NULL;
    const int error = ulc_open(NULL, &ep); /* ULC_ENGINE, or the default socket */
    if (error != ULC_OK) {
        fprintf(stderr, "cannot open an endpoint: %s\n", ulc_last_error_text());
        return error;
    }
    const int result = work(ep);
    ulc_close(ep);
    return result;
}
/* [ulc_endpoints] */

/* [ulc_jobs] */
int in_a_job(ulc_endpoint* ep) {
    int error = ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, ULC_WAIT_FOREVER); /* as ulc run says */
    if (error != ULC_OK) return error;
    printf("rank %u of %u\n", ulc_rank(ep), ulc_size(ep));
    error = ulc_leave_wait(ep, INT64_C(5000000000));
    return error;
}
/* [ulc_jobs] */

/* [ulc_links] */
int greet_a_stranger(ulc_endpoint* ep, const ulc_link_address* stranger) {
    int error = ulc_open_links_wait(ep, 16, ULC_WAIT_FOREVER);
    ulc_request link;
    if (error == ULC_OK) error = ulc_link(ep, stranger, 0, &link);
    if (error != ULC_OK) return error;
    ulc_status status;
    error = ulc_wait_for(ep, &link, &status, ULC_WAIT_FOREVER);
    if (error != ULC_OK || status.error != ULC_OK) return error != ULC_OK ? error : status.error;
    while ((error = ulc_send(ep, status.source, 0, "hello", 5, NULL)) == ULC_ERR_AGAIN)
        ulc_poll(ep);
    return error;
}
/* [ulc_links] */

/* [ulc_groups] */
/* Makes a group of the even ranks, and multicasts to it from its first member. */
int multicast_to_even_ranks(ulc_endpoint* ep, const void* data, size_t length) {
    uint16_t ranks[64];
    uint16_t count = 0;
    for (uint16_t rank = 0; rank < ulc_size(ep) && count < 64; rank += 2)
        ranks[count++] = rank;
    ulc_request made;
    ulc_status status;
    int error = ulc_group_create(ep, ranks, count, &made);
    if (error == ULC_OK) error = ulc_wait_for(ep, &made, &status, ULC_WAIT_FOREVER);
    if (error != ULC_OK || status.error != ULC_OK) return error != ULC_OK ? error : status.error;
    if (ulc_group_index(ep, status.group) != 0) return ULC_OK;
    return ulc_multicast(ep, status.group, ULC_SUBSET_ALL, 7, data, length, NULL);
}
/* [ulc_groups] */

/* [ulc_messages] */
/* Sends a number to the next rank, and receives that of the one before. */
int pass_round(ulc_endpoint* ep, uint64_t* number) {
    const uint16_t size = ulc_size(ep);
    const uint16_t next = (uint16_t)((ulc_rank(ep) + 1) % size);
    const uint16_t before = (uint16_t)((ulc_rank(ep) + size - 1) % size);
    uint64_t got = 0;
    ulc_request receive;
    ulc_status status;
    int error = ulc_receive(ep, before, 1, UINT64_MAX, &got, sizeof(got), &receive);
    if (error != ULC_OK) return error;
    while ((error = ulc_send(ep, next, 1, number, sizeof(*number), NULL)) == ULC_ERR_AGAIN)
        ulc_poll(ep);
    if (error == ULC_OK) error = ulc_wait_for(ep, &receive, &status, ULC_WAIT_FOREVER);
    if (error == ULC_OK) error = status.error;
    *number = got;
    return error;
}
/* [ulc_messages] */

/* [ulc_progress] */
/* Computes in small steps until the request is done. */
int overlap(ulc_endpoint* ep, ulc_request* request, ulc_status* status) {
    int error = ULC_OK;
    while ((error = ulc_test(ep, request, status)) == ULC_ERR_AGAIN) {
        compute();
        const int events = ulc_poll(ep);
        if (events < 0 && events != -ULC_ERR_LIMIT) return -events;
    }
    return error;
}
/* [ulc_progress] */

/* [ulc_texts] */
void report(const char* what, int error) {
    fprintf(stderr, "%s: %s; %s (libulc %s)\n", what, ulc_error_text(error), ulc_last_error_text(),
            ulc_version());
}
/* [ulc_texts] */

/* [ulc_upcalls] */
static void arrived(ulc_endpoint* ep, void* context) {
    ulc_status status;
    const void* view = NULL;
    while (ulc_take(ep, ULC_RANK_ANY, 0, 0, &view, &status) == ULC_OK) {
        *(uint64_t*)context += status.length;
        ulc_release(ep, view);
    }
}

int count_while_computing(ulc_endpoint* ep, uint64_t* bytes) {
    int error = ulc_upcall(ep, arrived, bytes);
    if (error != ULC_OK) return error;
    do {
        ulc_poll(ep);
        arrived(ep, bytes); /* what came before the promise is revoked */
        error = ulc_promise(ep, 0);
    } while (error == ULC_ERR_AGAIN);
    compute();
    if (error == ULC_OK) error = ulc_promise(ep, 1);
    ulc_upcall(ep, NULL, NULL);
    return error;
}
/* [ulc_upcalls] */

/* [ulc_memory] */
/* Receives into `buffer` for a while. The buffer is the caller's again at the return. */
int receive_for_a_while(ulc_endpoint* ep, void* buffer, size_t capacity, int64_t limit_ns) {
    ulc_request request;
    ulc_status status;
    int error = ulc_receive(ep, ULC_RANK_ANY, 0, 0, buffer, capacity, &request);
    if (error != ULC_OK) return error;
    error = ulc_wait_for(ep, &request, &status, limit_ns);
    if (error == ULC_OK) return status.error;
    if (ulc_abandon(ep, &request) == ULC_ERR_AGAIN) error = ulc_test(ep, &request, &status);
    return error;
}
/* [ulc_memory] */
