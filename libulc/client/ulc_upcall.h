/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Upcalls: messages that interrupt a thread which computes. A part of libulc, next to ulc.h.
 *
 *     ulc_upcall(ep, handler, context);
 *     do { ulc_poll(ep); ... take what came ... } while (ulc_promise(ep, 0) == ULC_ERR_AGAIN);
 *     compute();            the handler interrupts it
 *     ulc_promise(ep, 1);   calls of the endpoint are allowed again
 */
#ifndef ULC_UPCALL_H
#define ULC_UPCALL_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup ulc_upcalls Upcalls */ /** @{ */

/** Handles what has arrived at the endpoint. `context` is that of ulc_upcall(). */
typedef void (*ulc_upcall_handler)(ulc_endpoint* ep, void* context);

/** Lets `handler` interrupt this thread when something arrives while the thread computes and does
 * not poll (Express §3.2). The thread calls it between ulc_promise(ep, 0) and ulc_promise(ep, 1)
 * only, within the handler of SIGURG, after the endpoint was polled. It may call every function of
 * the endpoint that does not block, but not ulc_upcall(), ulc_promise(ep, 0) and ulc_close(). After
 * ulc_promise(ep, 1) in the handler the promise stands at its return. Handlers of the endpoints of
 * a thread run one after the other. handler: NULL takes it away.
 *
 * A handler of SIGURG that the program had installed is called too; one that it installs later ends
 * upcalls. An upcall that comes too late interrupts the thread and calls no handler.
 *
 * Errors: UNSUPPORTED, NO_MEMORY, SYSTEM, CLOSED. Threads: the endpoint's, which is then the one
 * that is interrupted; it takes the handler away before another thread uses or closes the endpoint.
 * Cost: five system calls. With an embedded engine the helper thread polls while the promise is
 * revoked, and needs a core. */
ULC_API int ulc_upcall(ulc_endpoint* ep, ulc_upcall_handler handler, void* context);

/** polls = 0: revokes the promise that this thread polls the endpoint. From now on the handler of
 * ulc_upcall() is called when something arrives. The thread calls no function of the endpoint until
 * ulc_promise(ep, 1). The handler interrupts it anywhere but in the library that holds malloc(),
 * which is the C library as a rule: there it waits until the thread has left. A sleep there is
 * interrupted, and ends early with EINTR: nanosleep(), poll(), select(), and what else SA_RESTART
 * does not repeat. In a read(), write(), recv(), send(), accept(), connect() or waitpid() that
 * blocks the handler runs, and the call goes on. In a lock, a semaphore or a condition variable of
 * pthreads without a time limit it waits. In a program that is linked
 * statically the thread must not call malloc() while it computes. polls = 1: promises to
 * poll; no handler is called any more. Messages that a poll took before are not announced again:
 * take them before the promise is revoked.
 *
 * Errors of polls = 0: AGAIN (something has arrived: the promise stands; poll, then try again),
 * INVALID (no handler), an error that ended the endpoint. Threads: the endpoint's. Cost: one store
 * and one fence, no system call; for an embedded engine whose helper sleeps, one system call. */
ULC_API int ulc_promise(ulc_endpoint* ep, int polls);

/** Takes the endpoint for the calling thread while the endpoint's own thread computes, i.e. has
 * revoked its promise. Until ulc_give_back() the caller may call every function of the endpoint but
 * ulc_upcall(), ulc_promise() and ulc_close(). Meanwhile no handler is called, and
 * ulc_promise(ep, 1) of the endpoint's thread waits. Errors: AGAIN (the endpoint's thread, its
 * handler, or another thread uses the endpoint). Threads: any, but not after the endpoint's thread
 * has taken its handler away. Cost: two atomic operations. */
ULC_API int ulc_borrow(ulc_endpoint* ep);

/** Gives a borrowed endpoint back. The endpoint's thread is interrupted, and its handler called, if
 * `interrupt` is not 0, for what the caller has polled, or if something has arrived. Errors:
 * INVALID. Threads: the one that borrowed. Cost: two atomic operations and a fence; a system call
 * to interrupt. */
ULC_API int ulc_give_back(ulc_endpoint* ep, int interrupt);

/** Kinds of handlers of messages that libraries on libulc run. */
enum ulc_handler_kind {
    ULC_HANDLER_NONE = 0, /**< no handler runs */
    ULC_HANDLER_PORT = 1, /**< libgamma; the number is the port */
    ULC_HANDLER_EXPRESS =
        2 /**< libexpress; the number is the place in the list of express_init() */
};

/** Publishes that such a handler begins to run, or, with ULC_HANDLER_NONE, that it has returned.
 * `ulc stat` names a handler that has run for a second. Threads: the one that may use the endpoint.
 * Cost: one store, one look at a coarse clock; no system call. */
ULC_API void ulc_show_handler(ulc_endpoint* ep, enum ulc_handler_kind kind, uint16_t number);

/** lend = 1: from now on an embedded engine hands over messages of one packet as the received frame
 * itself, so that ulc_take() costs no copy. The bytes at *view are then aligned to 4, not to 64. A
 * receive copies them once instead of twice. The endpoints of a net have at most 64 frames, or an
 * eighth of the port's segments if that is less; messages beyond are copied, as are messages of 40
 * bytes or less, those inside one engine, and all if the profile has `pack`. lend = 0: as at first.
 * Errors: INVALID, UNSUPPORTED (the engine is another process), CLOSED, TIMEOUT (another thread of
 * the process has not left the engine for 5 s). Threads: the endpoint's. */
ULC_API int ulc_lend_frames(ulc_endpoint* ep, int lend);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
