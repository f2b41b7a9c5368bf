/* SPDX-License-Identifier: BSD-3-Clause */
/* Open MPI 5 does not install this header, which its own include: mutexes and conditions are those
 * of pthreads. */
#ifndef ULC_MISSING_THREADS_MUTEX_H
#define ULC_MISSING_THREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;
#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_RECURSIVE_MUTEX_INITIALIZER PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_init(pthread_mutex_t* mutex, bool recursive) {
    pthread_mutexattr_t kind;
    int error = pthread_mutexattr_init(&kind);
    if (error == 0 && recursive) error = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    if (error == 0) error = pthread_mutex_init(mutex, &kind);
    return error;
}
static inline void opal_thread_internal_mutex_lock(pthread_mutex_t* mutex) {
    (void)pthread_mutex_lock(mutex);
}
static inline int opal_thread_internal_mutex_trylock(pthread_mutex_t* mutex) {
    return pthread_mutex_trylock(mutex) == 0 ? 0 : 1;
}
static inline void opal_thread_internal_mutex_unlock(pthread_mutex_t* mutex) {
    (void)pthread_mutex_unlock(mutex);
}
static inline void opal_thread_internal_mutex_destroy(pthread_mutex_t* mutex) {
    (void)pthread_mutex_destroy(mutex);
}
static inline int opal_thread_internal_cond_init(pthread_cond_t* condition) {
    return pthread_cond_init(condition, NULL);
}
static inline void opal_thread_internal_cond_wait(pthread_cond_t* condition,
                                                  pthread_mutex_t* mutex) {
    (void)pthread_cond_wait(condition, mutex);
}
static inline void opal_thread_internal_cond_signal(pthread_cond_t* condition) {
    (void)pthread_cond_signal(condition);
}
static inline void opal_thread_internal_cond_broadcast(pthread_cond_t* condition) {
    (void)pthread_cond_broadcast(condition);
}
static inline void opal_thread_internal_cond_destroy(pthread_cond_t* condition) {
    (void)pthread_cond_destroy(condition);
}

#endif
