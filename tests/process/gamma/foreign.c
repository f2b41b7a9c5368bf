/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between groups 21 and 22, in ways that groups.c has not. Argument:
 * "relay": a message goes round 21/1, 21/0, 22/0, 21/0, 21/1. Instance 21/0 computes, so that a
 *   message at either endpoint interrupts it, and the handler sends through the other, more than
 *   can be under way. A second thread calls now and then, and must not get the endpoint through
 *   which a handler sends. Prints "relay: PID/INSTANCE passed".
 * "lose": under the profile detect a loss between 21/0 and 22/0 is raised at the port of the
 *   message behind the gap. 21/0 sends until 22/0 has enough and ends. 22/0 prints
 *   "foreign: C came, F gaps".
 * "guest": each process of a group of one broadcasts to the three instances of 22, with messages to
 *   22/0 before and between. 22 checks that those of each guest come in their order. Arguments: how
 *   many guests there are, and how many live; the parallel PIDs of those that die follow. With
 *   TWICE in the environment guests do the same for the successors of 22. Prints
 *   "guest: PID/INSTANCE passed". */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { OUT = 1, ABROAD = 2, HOME = 3, BACK = 4, DONE = 5, BULK = 6, START = 7, OVER = 8 };
enum { HERE = 21, THERE = 22, ROUNDS = 200, MANY = 100, LARGE = 20000, ENOUGH = 10000 };

static volatile uint32_t number;
static volatile int came, gaps, untold, rounds;
static uint32_t expected = UINT32_MAX; /* the number that comes next; UINT32_MAX: any may */
static unsigned char bulk[LARGE];
static atomic_int is_over;

static void bind_port(unsigned char port, unsigned char node, unsigned char pid, unsigned char to) {
    int tries = 0;
    while (gamma_setport(port, node, pid, to, NULL, NULL, NULL, 0) != 0)
        CHECK(++tries < 10);
}

static void listen_at(unsigned char port, gamma_handler handler) {
    CHECK(gamma_setport(port, 254, gamma_my_par_pid(), 0, handler, NULL, (void*)&number,
                        sizeof number) == 0);
}

/* ---- relay */

static void on_signal(void) { gamma_signal(gamma_active_port); }

static void send_on(unsigned char port) {
    const uint32_t sent = number;
    CHECK(gamma_send(port, &sent, sizeof sent) == 0);
}

static void on_out(void) { send_on(ABROAD); }
static void on_abroad(void) {
    ++came;
    send_on(HOME);
}

static void on_home(void) {
    CHECK(number == (uint32_t)rounds && rounds < ROUNDS);
    ++rounds;
    for (int n = 0; n < MANY; ++n)
        CHECK(gamma_send(BULK, bulk, sizeof bulk) == 0);
    send_on(BACK);
}

/* The sender has to wait meanwhile. */
static void on_bulk(void) {
    if (came++ % MANY == 0) usleep(2000);
}

static void nothing(void) {}

static void* call_often(void* unused) {
    for (unsigned n = 0; !atomic_load(&is_over); ++n) {
        CHECK(gamma_atomic(nothing) == 0);
        usleep(n % 5 * 500);
    }
    return unused;
}

static void compute(void) {
    pthread_t thread;
    time_586 begun;
    CHECK(pthread_create(&thread, NULL, call_often, NULL) == 0);
    gamma_time(begun);
    while (rounds < ROUNDS)
        CHECK(passed_us(begun) < COMPUTE_MAX_US);
    atomic_store(&is_over, 1);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void relay(int node, int pid) {
    if (pid == THERE) {
        listen_at(DONE, on_signal);
        bind_port(HOME, 0, HERE, HOME);
        listen_at(ABROAD, on_abroad);
        bind_port(START, 0, HERE, START);
        /* A message to a port that is not bound yet is discarded. */
        while (came == 0) {
            CHECK(gamma_send(START, NULL, 0) == 0);
            usleep(2000);
        }
        CHECK(gamma_wait(DONE, 1) == 0);
    } else if (node == 0) {
        listen_at(HOME, on_home);
        CHECK(gamma_setport(BACK, 1, pid, BACK, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_setport(BULK, 1, pid, BULK, NULL, NULL, NULL, 0) == 0);
        bind_port(ABROAD, 0, THERE, ABROAD);
        bind_port(DONE, 0, THERE, DONE);
        listen_at(OUT, on_out);
        CHECK(gamma_setport(START, 254, pid, 0, on_signal, NULL, NULL, 0) == 0);
        CHECK(gamma_wait(START, 1) == 0);
        CHECK(gamma_sync() == 0);
        compute();
        CHECK(gamma_send(DONE, NULL, 0) == 0);
    } else {
        listen_at(BACK, on_signal);
        CHECK(gamma_setport(BULK, 254, pid, 0, on_bulk, NULL, bulk, sizeof bulk) == 0);
        CHECK(gamma_setport(OUT, 0, pid, OUT, NULL, NULL, NULL, 0) == 0);
        CHECK(gamma_sync() == 0);
        for (uint32_t n = 0; n < ROUNDS; ++n) {
            CHECK(gamma_send(OUT, &n, sizeof n) == 0);
            CHECK(gamma_wait(BACK, 1) == 0);
            CHECK(number == n);
        }
        CHECK(came == ROUNDS * MANY);
    }
    if (pid == HERE) CHECK(gamma_sync() == 0);
    printf("relay: %d/%d passed\n", pid, node);
}

/* ---- lose */

static void on_message(void) {
    if (number != expected && number > expected) ++untold;
    expected = number + 1;
    ++came;
}

static void on_error(void) {
    if (gamma_errno != GAMMA_ERR_FRAMELOST || gamma_active_port != OUT) return;
    ++gaps;
    expected = UINT32_MAX;
}

static void lose(int pid) {
    time_586 begun;
    gamma_time(begun);
    if (pid == HERE) {
        bind_port(OUT, 0, THERE, OUT);
        /* 22/0 discards what comes before it has bound its port. */
        for (uint32_t n = 0; gamma_send_flowctl(OUT, &n, sizeof n) == 0; ++n)
            CHECK(passed_us(begun) < COMPUTE_MAX_US);
        return;
    }
    CHECK(gamma_setport(OUT, 254, pid, 0, on_message, on_error, (void*)&number, sizeof number) ==
          0);
    while (came < ENOUGH && passed_us(begun) < COMPUTE_MAX_US)
        CHECK(gamma_sigerr(0) == 0);
    CHECK(untold == 0 && came >= ENOUGH);
    printf("foreign: %d came, %d gaps\n", came, gaps);
}

/* ---- guest */

enum { BEFORE = 50, BROADCASTS = 400, GUESTS_MAX = 16, FIRST_GUEST = 31, WORDS = 350 };

struct news {
    uint32_t guest, number, words[WORDS];
};
static struct news news;
static volatile uint32_t come[GUESTS_MAX], over;

/* Instances above 0 get the broadcasts alone, whose numbers then leave the others out. */
static void on_news(void) {
    const uint32_t guest = news.guest;
    CHECK(guest < GUESTS_MAX);
    while (gamma_my_node() > 0 && (come[guest] < BEFORE || come[guest] % 2 == 1))
        ++come[guest];
    CHECK(news.number == come[guest]);
    for (uint32_t n = 0; n < WORDS; ++n)
        CHECK(news.words[n] == n * news.number);
    ++come[guest];
}

static void on_over(void) { ++over; }

static void tell(unsigned char port, uint32_t guest, uint32_t n) {
    struct news told = {guest, n, {0}};
    for (uint32_t word = 0; word < WORDS; ++word)
        told.words[word] = word * n;
    CHECK((n % 3 == 0 ? gamma_send(port, &told, sizeof told)
                      : gamma_send_fast(port, &told, sizeof told)) == 0);
}

static void be_guest(int pid, int dies) {
    CHECK(gamma_setport(START, 254, pid, 0, on_signal, NULL, NULL, 0) == 0);
    CHECK(gamma_wait(START, 1) == 0);
    bind_port(ABROAD, 0, THERE, ABROAD);
    bind_port(DONE, 0, THERE, DONE);
    for (uint32_t n = 0; n < BEFORE; ++n)
        tell(ABROAD, pid - FIRST_GUEST, n);
    bind_port(OUT, BROADCAST, THERE, ABROAD);
    for (uint32_t n = BEFORE; n < BEFORE + BROADCASTS; ++n) {
        if (dies && n == BEFORE + BROADCASTS / 2) kill(getpid(), SIGKILL);
        tell(n % 2 == 0 ? OUT : ABROAD, pid - FIRST_GUEST, n);
    }
    bind_port(OVER, BROADCAST, THERE, OVER);
    CHECK(gamma_send(OVER, NULL, 0) == 0);
}

/* Waits until 22/0 has ended, and forgets its signals. */
static void await_end(void) {
    while (gamma_send(DONE, NULL, 0) == 0)
        usleep(2000);
    CHECK(gamma_wait(START, gamma_test(START)) == 0);
}

static void hear_guests(uint32_t guests, uint32_t living) {
    CHECK(gamma_setport(ABROAD, 254, THERE, 0, on_news, NULL, &news, sizeof news) == 0);
    CHECK(gamma_setport(OVER, 254, THERE, 0, on_over, NULL, NULL, 0) == 0);
    CHECK(gamma_sync() == 0);
    for (uint32_t guest = 0; gamma_my_node() == 0 && guest < guests; ++guest) {
        bind_port(START, 0, FIRST_GUEST + guest, START);
        while (come[guest] == 0) {
            CHECK(gamma_send(START, NULL, 0) == 0);
            usleep(2000);
        }
    }
    time_586 begun;
    gamma_time(begun);
    while (over < living)
        CHECK(passed_us(begun) < COMPUTE_MAX_US / 2);
}

int main(int argc, char** argv) {
    CHECK(argc >= 2 && gamma_init(0, argc, argv) == 0);
    const int pid = gamma_my_par_pid();
    if (strcmp(argv[1], "relay") == 0) {
        relay(gamma_my_node(), pid);
    } else if (strcmp(argv[1], "lose") == 0) {
        lose(pid);
    } else {
        int dies = 0;
        for (int n = 4; n < argc; ++n)
            dies = dies || atoi(argv[n]) == pid;
        CHECK(argc >= 4);
        if (pid == THERE) {
            hear_guests((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
        } else {
            be_guest(pid, dies);
            if (getenv("TWICE") != NULL) {
                await_end();
                be_guest(pid, dies);
            }
        }
        printf("guest: %d/%d passed\n", pid, gamma_my_node());
    }
    fflush(stdout);
    gamma_exit();
    return 0;
}
