/* SPDX-License-Identifier: BSD-3-Clause */
/* The second handler of process 1 is blocked on a mutex until the file argv[1] exists, the program
 * runs until argv[2] does. */
#include <unistd.h>

#include "check.h"

static express_mutex held;

static void wait_for(const char* file) {
    while (access(file, F_OK) != 0)
        express_sleep(10000000);
}

static void unused(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message, (void)length;
}

static void stuck(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message, (void)length;
    express_lock(&held);
    express_unlock(&held);
}

int main(int argc, char** argv) {
    const express_handler handlers[] = {unused, stuck};
    CHECK(argc == 3 && express_init(handlers, 2) == ULC_OK);
    CHECK(express_lock(&held) == ULC_OK);
    CHECK(express_sync() == ULC_OK);
    if (express_process() == 0) CHECK(express_send(1, express_alloc(8), stuck) == ULC_OK);
    wait_for(argv[1]);
    CHECK(express_unlock(&held) == ULC_OK);
    wait_for(argv[2]);
    CHECK(express_sync() == ULC_OK);
    return express_exit() == ULC_OK ? 0 : 1;
}
