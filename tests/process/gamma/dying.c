/* SPDX-License-Identifier: BSD-3-Clause */
/* Instance 2 is killed. The others' barriers and waits end with an error, and a message to it
 * raises SENDFAILURE at the port that it is sent through. Prints "dying: instance N knows". */
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { TO_VICTIM = 9, VICTIM = 2 };

static volatile int failures, others;

static void on_error(void) {
    if (gamma_active_port == TO_VICTIM && gamma_errno == GAMMA_ERR_SENDFAILURE)
        ++failures;
    else
        ++others;
}

int main(int argc, char** argv) {
    CHECK(gamma_init(0, argc, argv) == 0);
    const int node = gamma_my_node(), pid = gamma_my_par_pid();
    CHECK(gamma_setport(TO_VICTIM, VICTIM, pid, 1, NULL, on_error, NULL, 0) == 0);
    CHECK(gamma_sync() == 0);
    if (node == VICTIM) raise(SIGKILL);
    CHECK(gamma_sync() < 0);
    CHECK(gamma_wait(1, 1) < 0);
    CHECK(gamma_send(TO_VICTIM, "x", 1) < 0);
    CHECK(failures == 1 && others == 0);
    printf("dying: instance %d knows\n", node);
    fflush(stdout);
    gamma_exit();
    return 0;
}
