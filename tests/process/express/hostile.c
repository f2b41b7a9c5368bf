/* SPDX-License-Identifier: BSD-3-Clause */
/* Process 1 is no Express program: it shows the build that process 0 sent, and then sends
 * bytes that are no messages. Process 0 drops and counts them, and still serves a right one. */
#include <string.h>
#include <ulc.h>

#include "check.h"

#define KIND(kind) ((uint64_t)(kind) << 48)
enum { USER = 1, HELLO = 2, ENTER = 3 };

static int served;

static void on_message(uint16_t source, const void* message, size_t length) {
    CHECK(source == 1 && length == 5 && memcmp(message, "right", 5) == 0);
    ++served;
}

static int attack(void) {
    static char bytes[EXPRESS_MESSAGE_MAX + 1] = "right";
    static const char count[8] = {[7] = 1}; /* one message that is handled */
    char hello[8];
    ulc_endpoint* ep = NULL;
    ulc_request request;
    ulc_status status;
    CHECK(ulc_open(NULL, &ep) == ULC_OK);
    CHECK(ulc_join_wait(ep, NULL, ULC_RANK_ANY, 0, ULC_WAIT_FOREVER) == ULC_OK);
    CHECK(ulc_receive(ep, 0, KIND(HELLO), UINT64_MAX, hello, sizeof hello, &request) == ULC_OK);
    CHECK(ulc_wait_for(ep, &request, &status, ULC_WAIT_FOREVER) == ULC_OK);
    CHECK(status.length == sizeof hello);
    const struct {
        uint64_t tag;
        size_t length;
    } sends[] = {
        {KIND(USER), 5},             /* stranger */
        {KIND(HELLO), 7},            /* length */
        {KIND(HELLO), sizeof hello}, /* right */
        {0, 5},                      /* kind */
        {KIND(USER) | 1U << 20, 5},  /* kind */
        {KIND(USER) | 1, 5},         /* handler */
        {KIND(USER) | 0xffff, 5},    /* handler */
        {KIND(USER), 0},             /* length */
        {KIND(USER), sizeof bytes},  /* length */
        {KIND(ENTER), 0},            /* length */
        {KIND(ENTER), 1},            /* length: 'r' is no error */
        {KIND(ENTER), 16},           /* length: a count too many */
        {KIND(USER), 5},             /* right */
        {KIND(ENTER), sizeof count}, /* right */
    };
    for (size_t n = 0; n < sizeof sends / sizeof *sends; ++n) {
        const char* payload = sends[n].tag == KIND(HELLO)       ? hello
                              : sends[n].length == sizeof count ? count
                                                                : bytes;
        CHECK(ulc_send(ep, 0, sends[n].tag, payload, sends[n].length, &request) == ULC_OK);
        CHECK(ulc_wait_for(ep, &request, NULL, ULC_WAIT_FOREVER) == ULC_OK);
    }
    CHECK(ulc_leave_wait(ep, ULC_WAIT_FOREVER) == ULC_OK);
    ulc_close(ep);
    return 0;
}

int main(void) {
    const express_handler handlers[] = {on_message};
    const char* rank = getenv("ULC_RANK");
    if (rank != NULL && *rank == '1') return attack();
    CHECK(express_init(handlers, 1) == ULC_OK);
    CHECK(express_sync() == ULC_OK);
    CHECK(served == 1);
    CHECK(express_dropped(EXPRESS_DROP_STRANGER) == 1);
    CHECK(express_dropped(EXPRESS_DROP_KIND) == 2);
    CHECK(express_dropped(EXPRESS_DROP_HANDLER) == 2);
    CHECK(express_dropped(EXPRESS_DROP_LENGTH) == 6);
    printf("hostile: all dropped\n");
    fflush(stdout);
    express_exit();
    return 0;
}
