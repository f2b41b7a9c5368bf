/* SPDX-License-Identifier: BSD-3-Clause */
/* Instance 2 is killed. Messages that it did not get raise SENDFAILURE at the ports that they were
 * sent through, also those of gamma_send_fast(), and no message that it got before does. Barriers
 * and waits of the others end with an error. Prints "dying: instance N knows". */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { TO_VICTIM = 9, EARLY, LATE, LATER, UNUSED, VICTIM = 2 };

static volatile int failures[GAMMA_PORTS], others;

static void on_error(void) {
    if (gamma_errno == GAMMA_ERR_SENDFAILURE)
        ++failures[gamma_active_port];
    else
        ++others;
}

static void nap(long milliseconds) {
    const struct timespec time = {0, milliseconds * 1000000};
    nanosleep(&time, NULL);
}

int main(int argc, char** argv) {
    CHECK(gamma_init(0, argc, argv) == 0);
    const int node = gamma_my_node(), pid = gamma_my_par_pid();
    for (int port = TO_VICTIM; port <= UNUSED; ++port)
        CHECK(gamma_setport(port, VICTIM, pid, 1, NULL, on_error, NULL, 0) == 0);
    CHECK(gamma_sync() == 0);
    for (int n = 0; n < 3 && node != VICTIM; ++n)
        CHECK(gamma_send_fast(EARLY, "x", 1) == 0);
    if (node != VICTIM) CHECK(gamma_send(EARLY, "x", 1) == 0);
    CHECK(gamma_sync() == 0);
    if (node == VICTIM) raise(SIGKILL);
    nap(200);
    /* An engine that lives says at once that its client has died; one inside the victim is gone. */
    gamma_send_fast(LATE, "x", 1);
    gamma_send_fast(LATER, NULL, 0);
    for (int n = 0; n < 600 && failures[LATE] + failures[LATER] < 2; ++n) {
        nap(100);
        gamma_wait(1, 1);
    }
    CHECK(failures[LATE] == 1 && failures[LATER] == 1);
    CHECK(gamma_sync() < 0);
    CHECK(gamma_wait(1, 1) < 0);
    CHECK(gamma_send(TO_VICTIM, "x", 1) < 0);
    CHECK(failures[TO_VICTIM] == 1 && failures[EARLY] + failures[UNUSED] + others == 0);
    CHECK(failures[LATE] == 1 && failures[LATER] == 1);
    printf("dying: instance %d knows\n", node);
    fflush(stdout);
    gamma_exit();
    return 0;
}
