/* SPDX-License-Identifier: BSD-3-Clause */
/* Active Ports: each instance sends its number to instance 0, whose handler adds them up.
 *
 *     cc ports.c $(pkg-config --cflags --libs libgamma) -o ports
 *     ulc run -n 4 ./ports
 */
#include <gamma.h>
#include <stdio.h>

enum { NUMBERS = 1 };
static int number, sum;

static void on_number(void) {
    sum += number;
    gamma_signal(NUMBERS);
}

int main(int argc, char** argv) {
    if (gamma_init(0, argc, argv) < 0) return 1;
    int own = gamma_my_node(), others = gamma_how_many_nodes() - 1;
    gamma_setport(NUMBERS, 0, gamma_my_par_pid(), NUMBERS, on_number, NULL, &number, sizeof number);
    gamma_sync();
    if (own != 0) gamma_send(NUMBERS, &own, sizeof own);
    if (own == 0 && gamma_wait(NUMBERS, others) == 0) printf("the numbers add up to %d\n", sum);
    return gamma_exit() < 0;
}
