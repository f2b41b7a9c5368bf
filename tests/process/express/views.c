/* SPDX-License-Identifier: BSD-3-Clause */
/* libexpress copies no message that it receives [Express §4.2.1]: the handler gets the memory that
 * ulc_take() named, and that memory is released once, after the handler has returned. This program
 * stands between libexpress and libulc for both functions. Prints "views: N handed over, 0
 * copied".
 *
 *   views [frames | refused]
 *
 * frames: with lent frames. Prints "views: N of N in frames" too: a block of the receive arena
 * begins at a multiple of 64, which no payload in a frame does. refused: the engine cannot lend. */
#include <dlfcn.h>
#include <string.h>

#include "check.h"

enum { MESSAGES = 500, BATCH = 32, INSIDE_RECORD = 40, BLOCK = 64 };

static const void* taken;   /* what ulc_take() named last */
static const void* handled; /* the message whose handler runs or was the last to run */
static unsigned handed, copied, released, longer, framed;
static volatile unsigned left = MESSAGES;

int ulc_take(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, const void** view,
             ulc_status* status) {
    int (*real)(ulc_endpoint*, uint16_t, uint64_t, uint64_t, const void**, ulc_status*);
    *(void**)&real = dlsym(RTLD_NEXT, "ulc_take");
    const int error = real(ep, from, tag, mask, view, status);
    if (error == ULC_OK) taken = *view;
    return error;
}

void ulc_release(ulc_endpoint* ep, const void* view) {
    void (*real)(ulc_endpoint*, const void*);
    *(void**)&real = dlsym(RTLD_NEXT, "ulc_release");
    if (view == handled && view != NULL) {
        ++released;
        handled = NULL;
    }
    real(ep, view);
}

static void on_message(uint16_t source, const void* message, size_t length) {
    (void)source;
    CHECK(released == handed + copied); /* all earlier ones, and not this one */
    if (message == taken)
        ++handed;
    else
        ++copied;
    handled = message;
    if (length > INSIDE_RECORD) {
        ++longer;
        if ((uintptr_t)message % BLOCK != 0) ++framed;
    }
    for (size_t at = 0; at < length; ++at)
        CHECK(((const unsigned char*)message)[at] == (unsigned char)(length + at));
    --left;
}

int main(int argc, char** argv) {
    const int lends = argc > 1 && strcmp(argv[1], "frames") == 0;
    const express_handler handlers[] = {on_message};
    CHECK(express_init(handlers, 1) == ULC_OK);
    if (lends)
        CHECK(express_lend_frames(1) == ULC_OK);
    else if (argc > 1)
        CHECK(express_lend_frames(1) == ULC_ERR_UNSUPPORTED);
    CHECK(express_sync() == ULC_OK);
    for (unsigned n = 0; n < MESSAGES; ++n) {
        if (lends && n % BATCH == 0) CHECK(express_sync() == ULC_OK); /* fewer than the bound */
        if (express_process() != 0) continue;
        const size_t length = 1 + n * 7 % 1400; /* one packet */
        unsigned char* message = express_alloc(length);
        CHECK(message != NULL);
        for (size_t at = 0; at < length; ++at)
            message[at] = (unsigned char)(length + at);
        CHECK(express_send(1, message, on_message) == ULC_OK);
    }
    CHECK(express_sync() == ULC_OK);
    if (express_process() == 1) {
        CHECK(left == 0 && released == MESSAGES);
        printf("views: %u handed over, %u copied\n", handed, copied);
        if (lends) printf("views: %u of %u in frames\n", framed, longer);
    }
    CHECK(express_sync() == ULC_OK);
    return express_exit() == ULC_OK ? 0 : 1;
}
