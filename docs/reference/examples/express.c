/* SPDX-License-Identifier: BSD-3-Clause */
/* One example for each section of express.h in the reference. The test reference_of_headers
 * compiles them. */
#include <express.h>
#include <stdio.h>
#include <string.h>

/* [express_threads] */
static express_mutex mutex;
static express_condition changed;
static int arrived;

static void count_one(void) {
    express_lock(&mutex);
    ++arrived;
    express_signal(&changed);
    express_unlock(&mutex);
}

static void wait_for_one(void* argument) {
    (void)argument;
    express_lock(&mutex);
    while (arrived == 0)
        express_wait(&changed, &mutex);
    express_unlock(&mutex);
}
/* [express_threads] */

/* [express_messages] */
static void on_text(uint16_t source, const void* message, size_t length) {
    printf("from %u: %.*s\n", source, (int)length, (const char*)message);
    count_one();
}

static int send_text(uint16_t process, const char* text) {
    const size_t length = strlen(text);
    void* message = express_alloc(length);
    if (message == NULL) return ULC_ERR_NO_MEMORY;
    memcpy(message, text, length);
    return express_send(process, message, on_text);
}
/* [express_messages] */

/* [express_processes] */
int main(void) {
    static const express_handler handlers[] = {on_text};
    if (express_init(handlers, 1) != ULC_OK) return 1;
    express_thread* waiter = express_fork(wait_for_one, NULL);
    const int next = (express_process() + 1) % express_processes();
    int error = send_text((uint16_t)next, "hello");
    if (waiter != NULL) express_join(waiter);
    if (error == ULC_OK) error = express_sync();
    return error != ULC_OK || express_exit() != ULC_OK;
}
/* [express_processes] */
