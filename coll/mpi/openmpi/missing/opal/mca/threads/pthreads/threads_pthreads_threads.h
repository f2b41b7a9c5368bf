/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI 5 does not install this header, which its own include. */
#ifndef ULC_MISSING_THREADS_THREADS_H
#define ULC_MISSING_THREADS_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void) { (void)sched_yield(); }

#endif
