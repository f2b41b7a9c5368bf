/* SPDX-License-Identifier: BSD-3-Clause */
/* Two instances under the profile detect: a loss is raised at the port of the message behind the
 * gap. Instance 0 sends until instance 1 has enough and leaves; instance 1 prints "losing: C came,
 * F gaps". Barriers are not repaired either, so there is none after gamma_init(), behind which
 * instance 1 prints "losing: began". */
#include <stdint.h>
#include <unistd.h>

#include "check.h"

enum { DATA = 1, ENOUGH = 10000 };

static volatile uint32_t number;
static volatile int came, gaps, untold;
static uint32_t expected = UINT32_MAX; /* any number may follow */

static void on_message(void) {
    /* The fill returns to 0 with each message. */
    if (number != expected && number > expected) ++untold;
    expected = number + 1;
    ++came;
}

static void on_error(void) {
    if (gamma_errno != GAMMA_ERR_FRAMELOST || gamma_active_port != DATA) return;
    ++gaps;
    expected = UINT32_MAX;
}

int main(int argc, char** argv) {
    CHECK(gamma_init(0, argc, argv) == 0);
    const int node = gamma_my_node(), pid = gamma_my_par_pid();
    time_586 begun;
    gamma_time(begun);
    if (node == 0) {
        CHECK(gamma_setport(DATA, 1, pid, DATA, NULL, NULL, NULL, 0) == 0);
        for (uint32_t n = 0; gamma_send_flowctl(DATA, &n, sizeof n) == 0; ++n)
            CHECK(passed_us(begun) < COMPUTE_MAX_US);
    } else {
        printf("losing: began\n");
        fflush(stdout);
        usleep(2000); /* messages that come before the port is bound are discarded */
        CHECK(gamma_setport(DATA, 254, pid, 0, on_message, on_error, (void*)&number,
                            sizeof number) == 0);
        while (came < ENOUGH && passed_us(begun) < COMPUTE_MAX_US)
            CHECK(gamma_sigerr(0) == 0);
        CHECK(untold == 0);
        CHECK(came >= ENOUGH);
        printf("losing: %d came, %d gaps\n", came, gaps);
    }
    gamma_exit();
    return 0;
}
