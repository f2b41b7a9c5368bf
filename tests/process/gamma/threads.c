/* SPDX-License-Identifier: BSD-3-Clause */
/* Two instances of four threads each, which send and wait at once while the first computes, and
 * while it waits. Handlers are serial: they count in a plain variable, and so do atomic functions.
 * Prints "threads: instance N passed". */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 160, FIRST_PORT = 1, CALLED = 20, ANSWERED = 21 };

static int words[THREADS];
static long counted; /* by handlers and atomic functions */
static int inside;
static atomic_int finished;

static void on_message(void) {
    CHECK(inside++ == 0);
    ++counted;
    CHECK(gamma_wait(gamma_active_port, 0) < 0);
    CHECK(gamma_signal(gamma_active_port) == 0);
    --inside;
}

static void count(void) {
    CHECK(inside++ == 0);
    ++counted;
    CHECK(gamma_sync() < 0);
    --inside;
}

static int send_by(int port, const int* word) {
    switch (port % 3) {
        case 0:
            return gamma_send(port, word, sizeof *word);
        case 1:
            return gamma_send_fast(port, word, sizeof *word);
        default:
            return gamma_send_flowctl(port, word, sizeof *word);
    }
}

/* One thread: a ping-pong with that of the same number at the other instance. */
static void* play(void* number) {
    const int own = (int)(intptr_t)number, port = FIRST_PORT + own;
    CHECK(gamma_exit() < 0);
    for (int round = 1; round <= ROUNDS; ++round) {
        if (gamma_my_node() == 0) CHECK(send_by(port, &round) == 0);
        CHECK(gamma_wait(port, 1) == 0);
        CHECK(words[own] == round);
        if (gamma_my_node() == 1) CHECK(send_by(port, &round) == 0);
        if (round % 8 == 0) CHECK(gamma_atomic(count) == 0);
    }
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void play_all(int waits) {
    pthread_t threads[THREADS];
    atomic_store(&finished, 0);
    for (int n = 0; n < THREADS; ++n)
        CHECK(pthread_create(&threads[n], NULL, play, (void*)(intptr_t)n) == 0);
    while (!waits && atomic_load(&finished) < THREADS)
        continue; /* computes */
    for (int n = 0; n < THREADS; ++n)
        CHECK(pthread_join(threads[n], NULL) == 0);
    CHECK(counted == THREADS * (ROUNDS + ROUNDS / 8));
    counted = 0; /* before the other instance may send again */
    CHECK(gamma_sync() == 0);
}

/* Waits for a semaphore that is signalled only after another wait has ended. */
static void* answer(void* unused) {
    (void)unused;
    CHECK(gamma_wait(CALLED, 2) == 0);
    CHECK(gamma_signal(ANSWERED) == 0);
    return NULL;
}

int main(int argc, char** argv) {
    CHECK(gamma_init(0, argc, argv) == 0);
    const int node = gamma_my_node(), pid = gamma_my_par_pid();
    CHECK(gamma_how_many_nodes() == 2);
    for (int n = 0; n < THREADS; ++n)
        CHECK(gamma_setport(FIRST_PORT + n, 1 - node, pid, FIRST_PORT + n, on_message, NULL,
                            &words[n], sizeof words[n]) == 0);
    CHECK(gamma_sync() == 0);
    play_all(0);
    play_all(1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
    CHECK(gamma_signal(CALLED) == 0);
    CHECK(gamma_signal(CALLED) == 0);
    CHECK(gamma_wait(ANSWERED, 1) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(gamma_sync() == 0);
    CHECK(gamma_exit() == 0);
    printf("threads: instance %d passed\n", node);
    return 0;
}
