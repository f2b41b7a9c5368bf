/* SPDX-License-Identifier: BSD-3-Clause */
/* The example of gamma.h in the reference. The test reference_of_headers compiles it. */
#include <gamma.h>
#include <stdio.h>

/* [gamma] */
enum { kPort = 1, kArrived = 2 };

static char received[64];

static void on_message(void) {
    gamma_signal(kArrived);
}

int main(int argc, char** argv) {
    if (gamma_init(2, argc, argv) < 0) return 1;
    const unsigned char other = (unsigned char)(1 - gamma_my_node());
    if (gamma_setport(kPort, other, (unsigned char)gamma_my_par_pid(), kPort, on_message, NULL,
                      received, sizeof(received)) < 0)
        return 1;
    gamma_sync(); /* both ports are bound */
    gamma_send(kPort, "hello", 6);
    gamma_wait(kArrived, 1);
    printf("%d got %s\n", gamma_my_node(), received);
    return gamma_exit() < 0;
}
/* [gamma] */
