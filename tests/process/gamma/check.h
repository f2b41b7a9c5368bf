/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the programs of this folder, and their clock. */
#ifndef GAMMA_CHECK_H
#define GAMMA_CHECK_H

#include <gamma.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            fprintf(stderr, "instance %d: %s is false (line %d)\n", gamma_my_node(), #condition, \
                    __LINE__);                                                                   \
            _Exit(1);                                                                            \
        }                                                                                        \
    } while (0)

/* Microseconds since `since`. */
static inline double passed_us(time_586 since) {
    time_586 now;
    gamma_time(now);
    return gamma_time_diff(now, since);
}

#define COMPUTE_MAX_US 60e6

#endif
