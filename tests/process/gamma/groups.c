/* SPDX-License-Identifier: BSD-3-Clause */
/* Three groups of two instances, with the parallel PIDs 11, 12 and 13. Those of 11 and 12 message
 * each other, while 13 broadcasts to both. Handlers interrupt a loop of 12. Instance 1 of 13 kills
 * itself when a message of 11 comes, and the others go on. Prints "groups: PID/INSTANCE passed".
 * Arguments: "stay" makes the file that THERE names, and stays until there is that of OVER; "reach"
 * tries to reach 12 alone, and prints what gamma_setport() returned. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { PEER = 1, NEWS = 2, NEWS_TO_12 = 3, VICTIM = 4, READY = 5, WORDS = 6, TICK = 7, REPLY = 8 };
enum { GO = 9, DONE = 10, FIRST = 20 /* READY of each */, TALKERS = 4 };
enum { RED = 11, GREEN = 12, BLUE = 13 };
enum { MESSAGES = 300, BROADCASTS = 100, LONG = 20000 };

static unsigned long number;
static char text[64];
static unsigned char words[LONG];
static volatile unsigned long came, wrong, failures, failed_port, ticks;

static void on_peer(void) {
    wrong += number != came++;
    gamma_signal(PEER);
}

static void on_message(void) { gamma_signal(gamma_active_port); }

static void on_failure(void) {
    failures += gamma_errno == GAMMA_ERR_SENDFAILURE;
    failed_port = gamma_active_port;
}

/* Answers from the handler, in the midst of a loop. */
static void on_tick(void) {
    CHECK(gamma_send(REPLY, NULL, 0) == 0);
    ++ticks;
}

/* Binds a port to another group, which may have to start yet. */
static void bind_port(unsigned char port, unsigned char node, unsigned char pid, unsigned char to,
                      gamma_handler in, gamma_handler error, void* buffer, unsigned long length) {
    int tries = 0;
    while (gamma_setport(port, node, pid, to, in, error, buffer, length) != 0)
        CHECK(++tries < 10);
}

static void kill_victim(void) {
    bind_port(VICTIM, 1, BLUE, VICTIM, NULL, on_failure, NULL, 0);
    CHECK(gamma_send(VICTIM, "die", 3) == 0);
    /* Whether this one arrives is not known at the death, which interrupts the loop. */
    time_586 begun;
    gamma_time(begun);
    gamma_send_fast(VICTIM, "more", 4);
    while (failures == 0)
        CHECK(passed_us(begun) < COMPUTE_MAX_US);
    CHECK(failures == 1 && failed_port == VICTIM);
    CHECK(gamma_send(VICTIM, "more", 4) < 0);
    CHECK(failures == 2);
    CHECK(gamma_setport(VICTIM, 1, BLUE, VICTIM, NULL, on_failure, NULL, 0) < 0);
}

static void talk(int node, int pid) {
    const unsigned char other = pid == RED ? GREEN : RED;
    CHECK(gamma_setport(NEWS, 254, pid, 0, on_message, NULL, text, sizeof text) == 0);
    CHECK(gamma_setport(WORDS, 254, pid, 0, on_message, NULL, words, sizeof words) == 0);
    bind_port(PEER, node, other, PEER, on_peer, on_failure, &number, sizeof number);
    bind_port(READY, 0, BLUE, FIRST + 2 * (pid - RED) + node, NULL, NULL, NULL, 0);
    bind_port(DONE, 0, BLUE, DONE, NULL, NULL, NULL, 0);
    CHECK(gamma_setport(GO, 254, pid, 0, on_message, NULL, NULL, 0) == 0);
    if (pid == RED) {
        CHECK(gamma_setport(REPLY, 254, pid, 0, on_message, NULL, NULL, 0) == 0);
        bind_port(TICK, node, other, TICK, NULL, NULL, NULL, 0);
    } else {
        CHECK(gamma_setport(TICK, 254, pid, 0, on_tick, NULL, NULL, 0) == 0);
        bind_port(REPLY, node, other, REPLY, NULL, NULL, NULL, 0);
    }
    CHECK(gamma_sync() == 0);
    /* A message to a port that is not bound yet is discarded. */
    while (gamma_test(GO) == 0) {
        CHECK(gamma_send(READY, NULL, 0) == 0);
        usleep(2000);
    }
    if (pid == RED && node == 0) kill_victim();
    for (unsigned long n = 0; n < MESSAGES; ++n) {
        CHECK((n % 3 == 0 ? gamma_send_fast(PEER, &n, sizeof n)
                          : gamma_send_flowctl(PEER, &n, sizeof n)) == 0);
        CHECK(gamma_wait(PEER, 1) == 0);
    }
    CHECK(wrong == 0 && came == MESSAGES);
    if (pid == RED) CHECK(gamma_send(TICK, NULL, 0) == 0 && gamma_wait(REPLY, 1) == 0);
    time_586 begun;
    gamma_time(begun);
    while (pid == GREEN && ticks == 0)
        CHECK(passed_us(begun) < COMPUTE_MAX_US);
    CHECK(gamma_wait(NEWS, BROADCASTS) == 0);
    CHECK(strcmp(text, "news 99") == 0);
    CHECK(gamma_wait(WORDS, 1) == 0);
    for (size_t n = 0; n < sizeof words; ++n)
        CHECK(words[n] == (unsigned char)(n * 7 + n / 251));
    /* 13 exits when it has come, so no acknowledgement is waited for. */
    CHECK(gamma_send_fast(DONE, NULL, 0) == 0);
    CHECK(gamma_sync() == 0);
}

/* Handlers interrupt the sleep. */
static void await(unsigned char semaphore, int signals) {
    while (gamma_test(semaphore) < signals)
        usleep(10000);
}

static void start_talkers(void) {
    for (int n = 0; n < TALKERS; ++n)
        await(FIRST + n, 1);
    for (unsigned char pid = RED; pid <= GREEN; ++pid) {
        bind_port(NEWS, BROADCAST, pid, GO, NULL, on_failure, NULL, 0);
        CHECK(gamma_send(NEWS, NULL, 0) == 0);
    }
}

static void broadcast_to(unsigned char pid) {
    static unsigned char mine[LONG];
    for (size_t n = 0; n < sizeof mine; ++n)
        mine[n] = (unsigned char)(n * 7 + n / 251);
    bind_port(NEWS, BROADCAST, pid, NEWS, NULL, on_failure, NULL, 0);
    for (int n = 0; n < BROADCASTS; ++n) {
        char news[64] = "";
        snprintf(news, sizeof news, "news %d", n);
        CHECK((n % 2 == 0 ? gamma_send(NEWS, news, sizeof news)
                          : gamma_send_flowctl(NEWS, news, sizeof news)) == 0);
    }
    bind_port(NEWS, BROADCAST, pid, WORDS, NULL, on_failure, NULL, 0);
    CHECK(gamma_send(NEWS, mine, sizeof mine) == 0);
}

static void stay(void) {
    FILE* there = fopen(getenv("THERE"), "w");
    CHECK(there != NULL && fclose(there) == 0);
    for (int looks = 0; access(getenv("OVER"), F_OK) != 0; ++looks) {
        CHECK(looks < 3000);
        usleep(20000);
    }
}

int main(int argc, char** argv) {
    if (gamma_init(0, argc, argv) != 0) return 1;
    const int node = gamma_my_node(), pid = gamma_my_par_pid();
    if (argc > 1 && strcmp(argv[1], "stay") == 0) {
        stay();
        return gamma_exit() != 0;
    }
    if (argc > 1) {
        printf("groups: %d\n", gamma_setport(PEER, 0, GREEN, PEER, NULL, NULL, NULL, 0));
        return gamma_exit() != 0;
    }
    if (pid != BLUE) {
        talk(node, pid);
    } else if (node == 1) {
        CHECK(gamma_setport(VICTIM, 254, pid, 0, on_message, NULL, text, sizeof text) == 0);
        CHECK(gamma_sync() == 0);
        CHECK(gamma_wait(VICTIM, 1) == 0);
        kill(getpid(), SIGKILL);
    } else {
        CHECK(gamma_setport(DONE, 254, pid, 0, on_message, NULL, NULL, 0) == 0);
        for (int n = 0; n < TALKERS; ++n)
            CHECK(gamma_setport(FIRST + n, 254, pid, 0, on_message, NULL, NULL, 0) == 0);
        CHECK(gamma_sync() == 0);
        start_talkers();
        broadcast_to(RED);
        broadcast_to(GREEN);
        await(DONE, TALKERS);
        CHECK(failures == 0);
    }
    printf("groups: %d/%d passed\n", pid, node);
    return gamma_exit() != 0 && pid != BLUE;
}
