/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of port 7 of instance 1 runs until the file argv[1] exists, the program until argv[2]
 * does. */
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { TO_OTHER = 6, STUCK = 7, DONE = 1 };

static const char* release;

static void wait_for(const char* file) {
    const struct timespec nap = {0, 10000000};
    while (access(file, F_OK) != 0)
        nanosleep(&nap, NULL);
}

static void on_message(void) {
    wait_for(release);
    gamma_signal(DONE);
}

int main(int argc, char** argv) {
    CHECK(argc == 3 && gamma_init(2, argc, argv) == 0);
    release = argv[1];
    const int pid = gamma_my_par_pid();
    CHECK(gamma_setport(TO_OTHER, 1, pid, STUCK, NULL, NULL, NULL, 0) == 0);
    CHECK(gamma_setport(STUCK, 254, pid, 0, on_message, NULL, NULL, 0) == 0);
    CHECK(gamma_sync() == 0);
    if (gamma_my_node() == 0)
        CHECK(gamma_send_fast(TO_OTHER, NULL, 0) == 0);
    else
        CHECK(gamma_wait(DONE, 1) == 0);
    wait_for(argv[2]);
    CHECK(gamma_sync() == 0);
    return gamma_exit() == 0 ? 0 : 1;
}
