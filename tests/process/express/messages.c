/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of all lengths arrive whole and in order; handlers interrupt a loop, block on a mutex of
 * the program while later messages wait, and answer. Prints "messages: process N passed". */
#include <string.h>

#include "check.h"

enum { ROUNDS = 400, PROCESSES_MAX = 8 };

typedef struct {
    unsigned number, bytes;
} head;

static express_mutex lock;
static express_condition changed;
static volatile int is_locked, pings, requests, in_handler;
static unsigned next_of[PROCESSES_MAX], answered;
static volatile int violations;

static unsigned length_of(unsigned number) {
    static const unsigned lengths[] = {8, 40, 100, 101, 1500, 4096, 9000, EXPRESS_MESSAGE_MAX};
    return lengths[number % 8];
}

static void on_answer(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message;
    CHECK(length == 1);
    ++answered;
    CHECK(express_signal(&changed) == ULC_OK);
}

/* Checks the message, then answers; blocks while the program has the mutex. */
static void on_message(uint16_t source, const void* message, size_t length) {
    head got;
    CHECK(in_handler == 0);
    in_handler = 1;
    CHECK(length >= sizeof got);
    memcpy(&got, message, sizeof got);
    CHECK(got.number == next_of[source] && got.bytes == length && length == length_of(got.number));
    for (size_t at = sizeof got; at < length; ++at)
        CHECK(((const unsigned char*)message)[at] == (unsigned char)(got.number + at));
    ++next_of[source];
    CHECK(express_lock(&lock) == ULC_OK);
    if (is_locked) ++violations;
    CHECK(express_unlock(&lock) == ULC_OK);
    char* answer = express_alloc(1);
    CHECK(answer != NULL);
    *answer = 1;
    CHECK(express_send(source, answer, on_answer) == ULC_OK);
    in_handler = 0;
}

static void on_ping(uint16_t source, const void* message, size_t length) {
    (void)source, (void)message, (void)length;
    ++pings;
}

/* Answers with a ping. It comes at the earliest after a round trip, so the call that sent the
 * request has ended. */
static void on_request(uint16_t source, const void* message, size_t length) {
    (void)message, (void)length;
    ++requests;
    CHECK(express_send(source, express_alloc(5), on_ping) == ULC_OK);
}

static void send_all(void* argument) {
    (void)argument;
    for (unsigned number = 0; number < ROUNDS; ++number) {
        for (int to = 0; to < express_processes(); ++to) {
            const head told = {number, length_of(number)};
            unsigned char* message = express_alloc(told.bytes); /* blocks without space */
            CHECK(message != NULL);
            for (unsigned at = sizeof told; at < told.bytes; ++at)
                message[at] = (unsigned char)(number + at);
            memcpy(message, &told, sizeof told);
            CHECK(express_send((uint16_t)to, message, on_message) == ULC_OK);
        }
        if (number % 16 == 0) express_yield();
    }
}

/* Holds the mutex over yields and computing, so that handlers find it held. */
static void hold(void* argument) {
    (void)argument;
    while (answered < (unsigned)(ROUNDS * express_processes())) {
        CHECK(express_lock(&lock) == ULC_OK);
        is_locked = 1;
        for (volatile int n = 0; n < 20000; ++n)
            continue;
        express_yield();
        is_locked = 0;
        CHECK(express_unlock(&lock) == ULC_OK);
        express_yield();
    }
}

static void bad_calls(void) {
    static const express_handler none = NULL;
    char* message = express_alloc(10);
    CHECK(express_init(&none, 1) == ULC_ERR_INVALID);
    CHECK(express_send(1000, message, on_ping) == ULC_ERR_INVALID);
    CHECK(express_send(0, message, (express_handler)bad_calls) == ULC_ERR_INVALID);
    CHECK(express_send(0, message + 1, on_ping) == ULC_ERR_INVALID);
    CHECK(express_free(message) == ULC_OK && express_free(message) == ULC_ERR_INVALID);
    CHECK(express_alloc(0) == NULL && express_alloc(EXPRESS_MESSAGE_MAX + 1) == NULL);
    CHECK(express_unlock(&lock) == ULC_ERR_INVALID);
}

int main(void) {
    const express_handler handlers[] = {on_message, on_answer, on_ping, on_request};
    CHECK(express_sync() == ULC_ERR_INVALID);
    CHECK(express_init(handlers, 4) == ULC_OK);
    bad_calls();

    express_thread* sender = express_fork(send_all, NULL);
    express_thread* holder = express_fork(hold, NULL);
    CHECK(sender != NULL && holder != NULL && express_exit() == ULC_ERR_INVALID);
    CHECK(express_join(sender) == ULC_OK && express_join(holder) == ULC_OK);
    CHECK(express_sync() == ULC_OK);
    CHECK(violations == 0);
    for (int from = 0; from < express_processes(); ++from)
        CHECK(next_of[from] == ROUNDS);

    /* A loop that calls nothing: without upcalls it does not end. */
    for (int to = 0; to < express_processes(); ++to)
        CHECK(express_send((uint16_t)to, express_alloc(5), on_ping) == ULC_OK);
    while (pings < express_processes())
        continue;
    const uint16_t next = (uint16_t)((express_process() + 1) % express_processes());
    int asked = 0;
    for (; express_handled(1) == 0 && asked < 1000; ++asked) {
        CHECK(express_send(next, express_alloc(5), on_request) == ULC_OK);
        while (pings < express_processes() + asked + 1)
            continue;
    }
    CHECK(express_handled(1) > 0);

    /* Nothing interrupts the next loop; the message waits for a call. */
    CHECK(express_let_interrupt(0) == ULC_OK);
    const unsigned long interrupts = express_handled(1);
    CHECK(express_handled(0) + interrupts ==
          2UL * ROUNDS * express_processes() + (unsigned)pings + (unsigned)requests);
    CHECK(express_send((uint16_t)express_process(), express_alloc(5), on_ping) == ULC_OK);
    for (volatile int n = 0; n < 20000000; ++n)
        continue;
    while (pings < express_processes() + asked + 1)
        CHECK(express_yield() == ULC_OK);
    CHECK(express_handled(1) == interrupts);
    CHECK(express_let_interrupt(1) == ULC_OK);

    CHECK(express_sync() == ULC_OK);
    for (int reason = 0; reason < EXPRESS_DROPS; ++reason)
        CHECK(express_dropped((enum express_drop)reason) == 0);
    printf("messages: process %d passed\n", express_process());
    fflush(stdout);
    return express_exit() != ULC_OK;
}
