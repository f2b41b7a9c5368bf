/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libexpress: Express Messages [Express §4] on libulc: threads, and messages that run a handler.
 *
 * Model. A program runs as the processes 0 … N − 1 of one job, all from the same executable. Each
 * has user-level threads on one kernel thread. express_send() sends a message together with a
 * handler. At the destination a server thread runs the handlers, one after the other, in the order
 * of arrival.
 *
 * Handlers. They interrupt a thread that computes (SIGURG), but not inside libexpress. Inside the
 * C library they interrupt sleeps (usleep(), poll() …), which then end early, and a read() that
 * blocks, which then goes on. A handler may block, on a mutex for example; later messages then
 * wait. It may call every function of this header but express_init(), express_exit() and
 * express_sync(), which then fail.
 *
 * Threads. They run until they block or yield. All calls belong to the kernel thread that called
 * express_init(); in others they fail. No thread may switch inside a C++ catch block.
 *
 * Errors. Functions that return int return ULC_OK (0) or an error of ulc.h, which ulc_error_text()
 * explains. INVALID also means: no express_init(), another kernel thread.
 */
#ifndef EXPRESS_H
#define EXPRESS_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXPRESS_API __attribute__((visibility("default"))) /**< exports a symbol of the library */

/** @defgroup express_processes Processes */ /** @{ */

#define EXPRESS_HANDLERS_MAX 4096 /**< handlers of express_init() */

/** Handles a message of process `source`. The message is valid until the return, and aligned to 64
 * bytes unless express_lend_frames() says otherwise. */
typedef void (*express_handler)(uint16_t source, const void* message, size_t length);

/** Joins the job of `ulc run` or another launcher, and waits until all processes have come. The
 * caller becomes the first thread. handlers: those that messages may name, in the same order at all
 * processes; the list is copied. Blocks, at most 60 s. Errors: INVALID, MISMATCH (a process runs
 * another build, or gave other handlers), PEER_DIED, TIMEOUT, NO_MEMORY, those of ulc_open(),
 * ulc_join_wait() and ulc_upcall(). A sentence on standard error says what to do. */
EXPRESS_API int express_init(const express_handler* handlers, unsigned count);

/** Waits until all own messages have been accepted, and leaves the job. Messages that come later
 * are not handled: call express_sync() before it. Errors: INVALID (threads that were not joined; in
 * a handler), those of ulc_leave_wait(). */
EXPRESS_API int express_exit(void);

EXPRESS_API int express_process(void);   /**< the number of the calling process, or -1 */
EXPRESS_API int express_processes(void); /**< the number of processes, or -1 */

/** Waits until all processes have called it. Handlers run meanwhile. Messages that were sent before
 * to a process have run there when the call returns there. Errors: INVALID (in a handler, in two
 * threads at once), PEER_DIED, PEER_LEFT. */
EXPRESS_API int express_sync(void);

/** Handles the death of a process. */
typedef void (*express_death_handler)(uint16_t process);
/** Sets a function that the server thread calls once for each process that has died. Without it,
 * the program then ends with status 1 and a sentence on standard error. A death is noticed within
 * 0.1 s by a process whose threads all wait, and by sends and express_sync(). Errors: INVALID. */
EXPRESS_API int express_on_death(express_death_handler handler);

/** @} */ /** @defgroup express_messages Express messages */ /** @{ */

#define EXPRESS_SHORT_MAX 100     /**< bytes of a message from the free list */
#define EXPRESS_MESSAGE_MAX 65536 /**< bytes of a message */

/** Returns a buffer for a message of that length: up to EXPRESS_SHORT_MAX bytes from a free list,
 * else pages. Blocks the calling thread while there is no memory, until messages were accepted.
 * NULL: the length is 0 or above EXPRESS_MESSAGE_MAX, no express_init(), another kernel thread. */
EXPRESS_API void* express_alloc(size_t length);

/** Gives back a buffer that was not sent. Errors: INVALID (it is none). */
EXPRESS_API int express_free(void* message);

/** Sends a buffer of express_alloc() to a process, where `handler` is called with it. Returns at
 * once. The library frees the buffer when the message has been accepted, and also on error, except
 * for INVALID. Messages from one process to another are handled in the order of sending. Errors:
 * INVALID (no such process, no buffer, a handler that express_init() was not given), PEER_DIED,
 * PEER_LEFT. */
EXPRESS_API int express_send(uint16_t process, void* message, express_handler handler);

/** Returns the number of messages whose handlers this process has run: of those that interrupted a
 * thread (interrupted != 0), or of all others, which it found by polling. */
EXPRESS_API unsigned long express_handled(int interrupted);

/** Lets messages interrupt threads, as at first, or not (allowed == 0). Then they wait until a
 * thread calls this library, or none can run. Errors: INVALID. */
EXPRESS_API int express_let_interrupt(int allowed);

/** Hands over messages of one packet as the received frames themselves, without a copy
 * [Express §4.2.1], or not (lend == 0, as at first). A handler must expect a message to be aligned
 * to 4 bytes only: it reads larger numbers by memcpy(). A handler that blocks keeps its frame;
 * ulc_lend_frames() says how many there are, and what is copied all the same. Errors: INVALID,
 * UNSUPPORTED (the engine is another process, which has to copy). */
EXPRESS_API int express_lend_frames(int lend);

/** Reasons for which arriving bytes are dropped. */
enum express_drop {
    EXPRESS_DROP_KIND = 0,     /**< no kind of message of this library */
    EXPRESS_DROP_HANDLER = 1,  /**< the handler's number is not in the list */
    EXPRESS_DROP_LENGTH = 2,   /**< longer than a message may be, or not as long as it must be */
    EXPRESS_DROP_STRANGER = 3, /**< from a process that has not shown the same build */
    EXPRESS_DROPS = 4          /**< number of reasons */
};
/** Returns the number of messages that were dropped for that reason. */
EXPRESS_API unsigned long express_dropped(enum express_drop reason);

/** @} */ /** @defgroup express_threads Threads */ /** @{ */

#define EXPRESS_THREADS_MAX 1024 /**< that were forked and not joined */

typedef struct express_thread express_thread; /**< a thread; express_join() frees it */

/** Starts a thread, with a stack of 256 KiB above a guard page; it runs when the caller blocks or
 * yields. NULL: no memory, EXPRESS_THREADS_MAX, no express_init(). */
EXPRESS_API express_thread* express_fork(void (*entry)(void* argument), void* argument);
/** Waits until the thread has returned from its entry, and frees it. Every thread is joined once.
 * Errors: INVALID. */
EXPRESS_API int express_join(express_thread* thread);
/** Lets all ready threads run first. Errors: INVALID. */
EXPRESS_API int express_yield(void);
/** Blocks the thread for that time at least. Errors: INVALID. */
EXPRESS_API int express_sleep(int64_t nanoseconds);

/** A mutex; zeros are an unlocked one. Must not move. */
typedef struct express_mutex {
    uint64_t opaque[3]; /**< of the library */
} express_mutex;
/** A condition; zeros have no waiters. Must not move. */
typedef struct express_condition {
    uint64_t opaque[2]; /**< of the library */
} express_condition;
/** A barrier of threads of this process. Must not move. */
typedef struct express_barrier {
    uint64_t opaque[3]; /**< of the library */
} express_barrier;

/** Locks a mutex. The thread that has waited longest gets it, the server thread before all others.
 * Errors: INVALID (the thread has it). */
EXPRESS_API int express_lock(express_mutex* mutex);
/** Unlocks a mutex. A handler that waits for it gets the processor within the call. Errors: INVALID
 * (the thread has it not). */
EXPRESS_API int express_unlock(express_mutex* mutex);
/** Gives the mutex up, waits for a signal, and has the mutex again at the return. There are no
 * spurious wake-ups, but another thread may have had the mutex in between. Errors: INVALID (the
 * thread has not the mutex). */
EXPRESS_API int express_wait(express_condition* condition, express_mutex* mutex);
/** Wakes the thread that has waited longest. */
EXPRESS_API int express_signal(express_condition* condition);
/** Wakes all threads that wait. */
EXPRESS_API int express_broadcast(express_condition* condition);

/** Makes a barrier of `threads` threads of this process. Errors: INVALID (0 threads). */
EXPRESS_API int express_barrier_init(express_barrier* barrier, unsigned threads);
/** Waits until all threads of the barrier have called it. */
EXPRESS_API int express_barrier_wait(express_barrier* barrier);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
