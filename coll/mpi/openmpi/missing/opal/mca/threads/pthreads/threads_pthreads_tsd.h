/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI 5 does not install this header, which its own include: keys are those of pthreads. */
#ifndef ULC_MISSING_THREADS_TSD_H
#define ULC_MISSING_THREADS_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#endif
