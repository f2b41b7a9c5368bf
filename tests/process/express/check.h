/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the programs of this folder. */
#ifndef EXPRESS_CHECK_H
#define EXPRESS_CHECK_H

#include <express.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            fprintf(stderr, "process %d: %s is false (line %d)\n", express_process(), #condition, \
                    __LINE__);                                                                    \
            _Exit(1);                                                                             \
        }                                                                                         \
    } while (0)

#endif
