/* SPDX-License-Identifier: BSD-3-Clause */
/* Four instances: the rules of ports, the error of each port, broadcast, handlers that interrupt a
 * loop, atomic functions, and semaphores. Prints "ports: instance N passed". */
#include <string.h>

#include "check.h"

enum { DATA = 1, ERRORS = 2, BLIND = 3, UNBOUND = 4, NEWS = 5, TICK = 6, GO = 7, REPLY = 8 };
enum { WORDS = 20000, TICKS = 100 };

static unsigned char buffer[8], second[8], blob[3 * WORDS];
static unsigned char port_seen[16], errno_seen[16];
static volatile int errors, ticks, waits_refused, nested_sends;

static void on_message(void) { gamma_signal(gamma_active_port); }

static void on_error(void) {
    port_seen[errors % 16] = gamma_active_port;
    errno_seen[errors % 16] = gamma_errno;
    ++errors;
    gamma_sigerr(gamma_active_port);
    gamma_signal(gamma_active_port);
}

static void on_tick(void) {
    ++ticks;
    if (gamma_wait(TICK, 0) == -1 && gamma_sync() == -1) ++waits_refused;
    if (gamma_send(REPLY, NULL, 0) == 0) ++nested_sends;
    gamma_signal(TICK);
}

static void watch_ticks(void) {
    time_586 begun;
    gamma_time(begun);
    const int before = ticks;
    while (passed_us(begun) < 30000)
        CHECK(ticks == before);
    CHECK(gamma_wait(TICK, 0) == -1);
}

/* Instance 0 sends to 1, which checks what its ports did. */
static void check_rules(int node, int pid) {
    if (node == 1) {
        CHECK(gamma_setport(DATA, 1 + 4, pid, 0, on_message, on_error, buffer, sizeof buffer) == 0);
        CHECK(gamma_setport(BLIND, 5, pid, 0, on_message, on_error, NULL, 0) == 0);
        CHECK(gamma_attach_buffer(BLIND, buffer) < 0);
        CHECK(gamma_send(DATA, "x", 1) < 0); /* bound for input alone */
    }
    CHECK(gamma_sync() == 0);
    if (node == 0) {
        CHECK(gamma_setport(DATA, 1, pid, DATA, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_setport(BLIND, 1, pid, BLIND, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_setport(UNBOUND, 1, pid, UNBOUND, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_send(UNBOUND, "lost", 4) == 0);
        CHECK(gamma_send(DATA, "abc", 3) == 0);
        CHECK(gamma_send_fast(DATA, "defgh", 5) == 0);          /* full */
        CHECK(gamma_send_flowctl(DATA, "ABCDEFGHIJ", 10) == 0); /* too long */
        CHECK(gamma_send(BLIND, "", 0) == 0);
        CHECK(gamma_send(BLIND, "y", 1) == 0); /* no buffer */
    }
    if (node == 1) {
        CHECK(gamma_wait(DATA, 3) == -1);
        CHECK(memcmp(buffer, "ABCDEFGH", 8) == 0);
        CHECK(gamma_wait(BLIND, 2) == -1);
        CHECK(errors == 2);
        CHECK(port_seen[0] == DATA && errno_seen[0] == GAMMA_ERR_MSGTOOLONG);
        CHECK(port_seen[1] == BLIND && errno_seen[1] == GAMMA_ERR_MSGTOOLONG);
        CHECK(gamma_test(DATA) == 0 && gamma_test(UNBOUND) == 0);
        CHECK(gamma_attach_buffer(DATA, second) == 0);
    }
    CHECK(gamma_sync() == 0);
    if (node == 0) CHECK(gamma_send(DATA, "12345678", 8) == 0);
    if (node == 1) {
        CHECK(gamma_wait(DATA, 1) == 0);
        CHECK(memcmp(second, "12345678", 8) == 0 && memcmp(buffer, "ABCDEFGH", 8) == 0);
    }
    CHECK(gamma_sync() == 0);
}

/* Around the ring, messages of many packets and of one byte. */
static void check_ring(int node, int nodes, int pid) {
    static unsigned char mine[3 * WORDS];
    const int from = (node + nodes - 1) % nodes;
    CHECK(gamma_setport(DATA, (node + 1) % nodes, pid, DATA, on_message, on_error, blob,
                        sizeof blob) == 0);
    CHECK(gamma_sync() == 0);
    for (size_t n = 0; n < sizeof mine; ++n)
        mine[n] = (unsigned char)(n * 7 + n / 251 + (unsigned)node);
    for (int round = 0; round < 10; ++round) {
        CHECK(gamma_send_flowctl(DATA, mine, WORDS) == 0);
        CHECK(gamma_send_fast(DATA, mine + WORDS, 1) == 0);
        CHECK(gamma_send(DATA, mine + WORDS + 1, 2 * WORDS - 1) == 0);
        CHECK(gamma_wait(DATA, 3) == 0);
        for (size_t n = 0; n < sizeof blob; ++n)
            CHECK(blob[n] == (unsigned char)(n * 7 + n / 251 + (unsigned)from));
        memset(blob, 0, sizeof blob);
        CHECK(gamma_sync() == 0);
    }
}

static void check_broadcast(int node, int nodes, int pid) {
    static char text[32];
    CHECK(gamma_setport(NEWS, BROADCAST, pid, NEWS, on_message, on_error, text, sizeof text) == 0);
    CHECK(gamma_sync() == 0);
    for (int sender = 0; sender < nodes; ++sender) {
        char expected[32] = "";
        snprintf(expected, sizeof expected, "news of instance %d", sender);
        if (node == sender) CHECK(gamma_send(NEWS, expected, sizeof expected) == 0);
        if (node != sender) CHECK(gamma_wait(NEWS, 1) == 0 && strcmp(text, expected) == 0);
        CHECK(gamma_sync() == 0);
        CHECK(gamma_test(NEWS) == 0);
        CHECK(gamma_sync() == 0); /* the next sender waits for that look */
    }
}

/* Instance 2 computes and calls nothing, while 3 sends. */
static void check_interrupts(int node, int pid) {
    if (node == 2) {
        CHECK(gamma_setport(REPLY, 3, pid, REPLY, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_setport(TICK, 255 - 1, pid, 0, on_tick, NULL, NULL, 0) == 0);
    }
    if (node == 3) {
        CHECK(gamma_setport(TICK, 2, pid, TICK, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_setport(REPLY, 254, pid, 0, on_message, NULL, NULL, 0) == 0);
    }
    CHECK(gamma_sync() == 0);
    if (node == 3) {
        for (int n = 0; n < TICKS; ++n) {
            CHECK(gamma_send_fast(TICK, NULL, 0) == 0);
            CHECK(gamma_wait(REPLY, 1) == 0);
        }
    }
    if (node == 2) {
        time_586 begun;
        gamma_time(begun);
        while (ticks < TICKS && passed_us(begun) < COMPUTE_MAX_US) {
        }
        CHECK(ticks == TICKS && waits_refused == TICKS && nested_sends == TICKS);
        CHECK(gamma_wait(TICK, TICKS) == 0);
    }
    CHECK(gamma_sync() == 0);
    if (node == 3)
        for (int n = 0; n < TICKS; ++n)
            CHECK(gamma_send_fast(TICK, NULL, 0) == 0);
    if (node == 2) {
        CHECK(gamma_atomic(watch_ticks) == 0);
        CHECK(gamma_wait(TICK, TICKS) == 0);
    }
    CHECK(gamma_sync() == 0);
}

int main(int argc, char** argv) {
    CHECK(gamma_sync() < 0 && gamma_setport(DATA, 0, 1, DATA, on_message, NULL, NULL, 0) < 0);
    CHECK(gamma_init(0, argc, argv) == 0);
    const int node = gamma_my_node(), nodes = gamma_how_many_nodes(), pid = gamma_my_par_pid();
    CHECK(nodes == 4 && pid > 0 && pid < 256);
    CHECK(gamma_setport(GAMMA_RESERVED_FROM, 0, pid, DATA, on_message, NULL, NULL, 0) < 0);
    CHECK(gamma_setport(DATA, 0, pid % 255 + 1, DATA, NULL, NULL, NULL, 0) < 0);
    CHECK(gamma_setport(DATA, 200, pid, DATA, NULL, NULL, NULL, 0) < 0);
    CHECK(gamma_send(DATA, "x", 1) < 0);
    CHECK(gamma_mlock(blob, sizeof blob) == 0 && gamma_munlock(blob, sizeof blob) == 0);
    check_rules(node, pid);
    check_ring(node, nodes, pid);
    check_broadcast(node, nodes, pid);
    check_interrupts(node, pid);
    CHECK(gamma_exit() == 0 && gamma_sync() < 0);
    printf("ports: instance %d passed\n", node);
    return 0;
}
