/* SPDX-License-Identifier: BSD-3-Clause */
/* Process 2 is killed. Without an argument the others set a handler, which wakes the main thread;
 * syncs and sends then fail. With an argument the library ends them. */
#include <signal.h>

#include "check.h"

enum { VICTIM = 2 };

static express_mutex lock;
static express_condition changed;
static int dead = -1;

static void on_death(uint16_t process) {
    dead = process;
    express_signal(&changed);
}

static void on_message(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message, (void)length;
}

int main(int argc, char** argv) {
    const express_handler handlers[] = {on_message};
    (void)argv;
    CHECK(express_init(handlers, 1) == ULC_OK);
    if (argc == 1) CHECK(express_on_death(on_death) == ULC_OK);
    CHECK(express_sync() == ULC_OK);
    if (express_process() == VICTIM) raise(SIGKILL);
    CHECK(express_lock(&lock) == ULC_OK);
    while (dead < 0)
        CHECK(express_wait(&changed, &lock) == ULC_OK);
    CHECK(express_unlock(&lock) == ULC_OK);
    CHECK(dead == VICTIM);
    CHECK(express_sync() == ULC_ERR_PEER_DIED);
    CHECK(express_send(VICTIM, express_alloc(8), on_message) == ULC_ERR_PEER_DIED);
    printf("dying: process %d knows\n", express_process());
    fflush(stdout);
    express_exit();
    return 0;
}
