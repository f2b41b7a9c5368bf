/* SPDX-License-Identifier: BSD-3-Clause */
/* Each process sends a few messages to all, itself too, then syncs: all that were sent to it before
 * have then run, though it has a message of the barrier from few of their senders. Prints "syncs:
 * process N passed". */
#include <string.h>

#include "check.h"

enum { ROUNDS = 60, PROCESSES_MAX = 16, LONG = 30000 };

static unsigned came[ROUNDS][PROCESSES_MAX];

static void on_message(uint16_t source, const void* message, size_t length) {
    unsigned round;
    CHECK(length == sizeof round || length == LONG);
    memcpy(&round, message, sizeof round);
    CHECK(round < ROUNDS && source < PROCESSES_MAX);
    ++came[round][source];
}

static unsigned messages(unsigned round, unsigned from, unsigned to) {
    return (round * 5 + from * 3 + to) % 4;
}

int main(void) {
    const express_handler handlers[] = {on_message};
    CHECK(express_init(handlers, 1) == ULC_OK);
    const unsigned own = (unsigned)express_process(), all = (unsigned)express_processes();
    CHECK(all <= PROCESSES_MAX);
    for (unsigned round = 0; round < ROUNDS; ++round) {
        const size_t length = (round + own) % 3 == 0 ? LONG : sizeof round;
        for (unsigned to = 0; to < all; ++to) {
            for (unsigned n = messages(round, own, to); n > 0; --n) {
                void* message = express_alloc(length);
                CHECK(message != NULL);
                memcpy(message, &round, sizeof round);
                CHECK(express_send((uint16_t)to, message, on_message) == ULC_OK);
            }
        }
        CHECK(express_sync() == ULC_OK);
        for (unsigned from = 0; from < all; ++from)
            CHECK(came[round][from] == messages(round, from, own));
    }
    printf("syncs: process %u passed\n", own);
    fflush(stdout);
    return express_exit() != ULC_OK;
}
