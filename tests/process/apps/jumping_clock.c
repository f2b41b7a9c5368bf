// SPDX-License-Identifier: BSD-3-Clause
// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD, in whose programs the wall clock jumps by an hour, forward or back,
// every 20 ms. Each program that loads it adds its name to the file $JUMPING_CLOCK_LOG.
// $JUMPING_CLOCK=monotonic lets CLOCK_MONOTONIC jump, which no kernel does: a test must then fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { HOUR_SECONDS = 3600, JUMP_NANOS = 20 * 1000 * 1000, NANOS_PER_SECOND = 1000 * 1000 * 1000 };

static int (*real_clock)(clockid_t, struct timespec*);
static int monotonic_jumps;

__attribute__((constructor)) static void load(void) {
    // ISO C has no cast from an object's address to a function's.
    void* symbol = dlsym(RTLD_NEXT, "clock_gettime");
    memcpy(&real_clock, &symbol, sizeof symbol);
    const char* which = getenv("JUMPING_CLOCK");
    monotonic_jumps = which != NULL && strcmp(which, "monotonic") == 0;
    const char* log = getenv("JUMPING_CLOCK_LOG");
    if (log == NULL) return;
    const int file = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return;
    dprintf(file, "%s\n", program_invocation_short_name);
    close(file);
}

static time_t jump(void) {
    struct timespec now;
    real_clock(CLOCK_MONOTONIC, &now);
    const long long nanos = (long long)now.tv_sec * NANOS_PER_SECOND + now.tv_nsec;
    return (time_t)(nanos / JUMP_NANOS % 3 - 1) * HOUR_SECONDS;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
    if (real_clock == NULL) load();
    const int result = real_clock(clock, now);
    const int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (result == 0 && (is_wall || (monotonic_jumps && clock == CLOCK_MONOTONIC))) {
        now->tv_sec += jump();
    }
    return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    (void)zone;
    struct timespec wall;
    if (clock_gettime(CLOCK_REALTIME, &wall) != 0) return -1;
    now->tv_sec = wall.tv_sec;
    now->tv_usec = wall.tv_nsec / 1000;
    return 0;
}

time_t time(time_t* seconds) {
    struct timespec wall;
    if (clock_gettime(CLOCK_REALTIME, &wall) != 0) return -1;
    if (seconds != NULL) *seconds = wall.tv_sec;
    return wall.tv_sec;
}
