/* SPDX-License-Identifier: BSD-3-Clause */
/* One example for each section of coll.h in the reference. The test reference_of_headers compiles
 * them. */
#include <coll.h>
#include <stdio.h>

void compute(void);

/* [coll_types] */
/* Adds points; the operator is the user's. */
struct point {
    double x, y;
};

static void add_points(void* context, void* into, const void* from, size_t count) {
    struct point* sum = into;
    const struct point* more = from;
    (void)context;
    for (size_t i = 0; i < count; ++i) {
        sum[i].x += more[i].x;
        sum[i].y += more[i].y;
    }
}

int centre(ulc_endpoint* ep, const struct point* mine, struct point* sum) {
    const ulc_reduction added = {ULC_BYTES(sizeof(struct point)), ULC_USER, add_points, NULL, 1};
    return ulc_allreduce(ep, ulc_world(ep), mine, sum, 1, added);
}
/* [coll_types] */

/* [coll_start] */
/* Broadcasts from index 0 while the program computes. */
int broadcast_and_compute(ulc_endpoint* ep, void* buffer, size_t length) {
    ulc_coll* broadcast = NULL;
    int error = ulc_broadcast_start(ep, ulc_world(ep), 0, buffer, length, NULL, &broadcast);
    if (error != ULC_OK) return error;
    compute();
    return ulc_coll_wait(ep, broadcast, ULC_WAIT_FOREVER);
}
/* [coll_start] */

/* [coll_reductions] */
/* Starts the sum of vectors by segments of 4 KiB. */
int start_sum(ulc_endpoint* ep, const double* mine, double* sum, size_t count, ulc_coll** out) {
    return ulc_allreduce_start(ep, ulc_world(ep), mine, sum, count,
                               ULC_REDUCTION(ULC_DOUBLE, ULC_SUM), "chain_multicast@4096", out);
}
/* [coll_reductions] */

/* [coll_progress] */
/* Polls an operation to its end between steps of a computation. */
int carry_on(ulc_endpoint* ep, ulc_coll* operation) {
    int error = ULC_OK;
    while ((error = ulc_coll_test(ep, operation)) == ULC_ERR_AGAIN) {
        compute();
        if (ulc_poll(ep) < 0) break;
    }
    return error;
}
/* [coll_progress] */

/* [coll_choice] */
void show_choice(ulc_endpoint* ep, size_t bytes) {
    uint16_t per_node = 0;
    const char* medium = ulc_coll_medium(ep, ulc_world(ep), &per_node);
    const char* name = ulc_coll_algorithm(ep, ulc_world(ep), "allreduce", bytes);
    if (medium == NULL || name == NULL) return;
    printf("allreduce of %zu bytes: %s on a %s, %u ranks a node\n", bytes, name, medium, per_node);
}
/* [coll_choice] */

/* [coll_blocking] */
/* Returns the largest of all members' numbers, or 0 after a failure. */
double largest(ulc_endpoint* ep, double mine) {
    double greatest = 0;
    const int error = ulc_allreduce(ep, ulc_world(ep), &mine, &greatest, 1,
                                    ULC_REDUCTION(ULC_DOUBLE, ULC_MAX));
    return error == ULC_OK ? greatest : 0;
}
/* [coll_blocking] */
