/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that may interrupt no thread are handled within the calls of a thread that never waits.
 * Prints "polls: N handled by calls, M interrupted". */
#include <time.h>

#include "check.h"

enum { MESSAGES = 200, SECONDS = 30 };

static volatile unsigned handled;

static void on_message(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message, (void)length;
    ++handled;
}

int main(void) {
    const express_handler handlers[] = {on_message};
    CHECK(express_init(handlers, 1) == ULC_OK);
    if (express_process() == 0) {
        CHECK(express_let_interrupt(0) == ULC_OK);
        CHECK(express_sync() == ULC_OK);
        const time_t give_up = time(NULL) + SECONDS;
        const unsigned long before = express_handled(1);
        while (handled < MESSAGES && time(NULL) < give_up)
            CHECK(express_yield() == ULC_OK);
        printf("polls: %u handled by calls, %lu interrupted\n", handled,
               express_handled(1) - before);
    } else {
        CHECK(express_sync() == ULC_OK);
        for (unsigned n = 0; n < MESSAGES; ++n) {
            char* message = express_alloc(1);
            CHECK(message != NULL);
            *message = 1;
            CHECK(express_send(0, message, on_message) == ULC_OK);
        }
    }
    CHECK(express_sync() == ULC_OK);
    CHECK(express_exit() == ULC_OK);
    return 0;
}
