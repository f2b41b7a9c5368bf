/* SPDX-License-Identifier: BSD-3-Clause */
/* Express Messages: each process sends its number to process 0 while a thread there computes. The
 * handler interrupts it, adds the number up, and wakes the main thread after the last.
 *
 *     cc express.c $(pkg-config --cflags --libs libexpress) -o express
 *     ulc run -n 4 ./express
 */
#include <express.h>
#include <stdio.h>

static express_mutex lock;
static express_condition changed;
static volatile int sum, came;

static void add(uint16_t source, const void* message, size_t length) {
    (void)source;
    if (length == sizeof(int)) sum += *(const int*)message;
    ++came;
    express_signal(&changed);
}

static void compute(void* numbers) {
    while (came < *(int*)numbers)
        continue;
}

int main(void) {
    const express_handler handlers[] = {add};
    if (express_init(handlers, 1) != ULC_OK) return 1;
    int others = express_processes() - 1, *number = express_alloc(sizeof *number);
    *number = express_process();
    if (*number != 0) express_send(0, number, add);
    if (express_process() == 0) {
        express_thread* thread = express_fork(compute, &others);
        express_lock(&lock);
        while (came < others)
            express_wait(&changed, &lock);
        express_unlock(&lock);
        express_join(thread);
        printf("the numbers add up to %d\n", sum);
    }
    express_sync();
    return express_exit() != ULC_OK;
}
