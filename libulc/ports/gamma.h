/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libgamma: Active Ports, the programming interface of GAMMA [GAMMA §4.7], on libulc.
 *
 * Model. A program runs as the instances 0 … N − 1 of one process group. Each instance is a
 * process with 256 ports. A message is sent through a port that is bound for output, to a port of
 * another process. There it is copied into the buffer of that port, and then the port's handler
 * runs.
 *
 * Handlers. They run one at a time, each to its end, in the thread that called gamma_init(). They
 * interrupt it while it computes (SIGURG), but not inside gamma_atomic(). Inside the C library
 * they interrupt sleeps (usleep(), poll() …), which then end early, and a read() or accept() that
 * blocks, which then goes on. No message enters the buffer of a port until the handler of the
 * previous one has returned. A handler may call every function but gamma_wait(), gamma_sync(),
 * gamma_init() and gamma_exit(), which then fail. In a handler gamma_send() does not wait.
 *
 * Threads. Any thread may call, but gamma_init() and gamma_exit() belong to one thread, and other
 * threads call between them only. Waits for different semaphores do not exclude each other. Once
 * several threads call, handlers also run in those threads, within their calls. The first thread is
 * then not suspended: share data with handlers by gamma_atomic(). The first call of a second thread
 * may take 0.1 s. Later calls take up to 0.5 ms longer while another thread waits.
 *
 * Errors. Each function that returns int gives a value below 0 on error.
 */
#ifndef GAMMA_H
#define GAMMA_H

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup gamma Active Ports */ /** @{ */

#define GAMMA_API __attribute__((visibility("default"))) /**< exports a symbol of the library */

#define BROADCAST 255           /**< dest_node: all other members of the group */
#define GAMMA_PORTS 256         /**< ports, semaphores and error semaphores of a process */
#define GAMMA_RESERVED_FROM 247 /**< ports and semaphores from here on are the library's */
#define GAMMA_NODES_MAX 255     /**< instances of a group */

/* Values of gamma_errno in an error handler. */
#define GAMMA_ERR_FRAMELOST 2   /**< a part of a message, or messages before this one, were lost */
#define GAMMA_ERR_MSGTOOLONG 3  /**< no buffer, or fewer bytes left in it than the message has */
#define GAMMA_ERR_SENDFAILURE 4 /**< a message sent through this port did not leave or arrive */

typedef void (*gamma_handler)(void); /**< a handler of a port */

/** The port that the handler belongs to; valid in handlers. */
GAMMA_API extern unsigned char gamma_active_port;
/** The reason why an error handler runs; valid in it. */
GAMMA_API extern unsigned char gamma_errno;

/** Joins the process group and waits until all instances have come (barrier).
 * Under `ulc run` or another launcher the group is the launcher's job. num_nodes is then the number
 * of instances; ≤ 0, or more than the job has: all of it. If it is smaller, the first num_nodes
 * instances are the group, and the call fails in the others.
 * A process that was started alone becomes instance 0, and starts itself on other hosts by
 * `ulc run --hosts`. They are the first num_nodes - 1 hosts, without its own, of the file that
 * ULC_HOSTS names (/etc/gamma.conf); num_nodes ≤ 0, or more than there are hosts: all. It ends the
 * others if it ends without gamma_exit(), and waits for their end otherwise. argc, argv: the words
 * of the program; NULL: they are found out.
 * Fails, after a sentence on standard error that says what to do, if there is neither a launcher
 * nor a host file, and if an instance cannot be started. Blocks, at most 60 s. */
GAMMA_API int gamma_init(int num_nodes, int argc, char** argv);

/** Leaves the group: what was sent is delivered first. Ports are unbound. */
GAMMA_API int gamma_exit(void);

/** Binds a port, in place of what it was bound to.
 * Output: to port dest_port of instance dest_node, or of all other members (BROADCAST), of the
 * group dest_par_pid. A dest_node without an instance: not for output.
 * Another group than the caller's: both have the secret of ULC_GROUPS (man gamma). The call then
 * finds the instance, or all of the group, and waits for that, at most 2 s (6 s for BROADCAST); the
 * instances must have called gamma_init(). A broadcast goes as one frame a packet to each of four
 * such groups, if they have space for the sender, else as a message to each instance.
 * Input: if there is handler_in, handler_err or buffer_in. Else messages for it are discarded.
 * buffer_len: bytes of buffer_in. The fill of the buffer begins at 0.
 * Fails if the port is reserved, if it is bound for neither, and, after a sentence on standard
 * error, if an instance of another group cannot be reached. Allowed in handlers. */
GAMMA_API int gamma_setport(unsigned char port, unsigned char dest_node, unsigned char dest_par_pid,
                            unsigned char dest_port, gamma_handler handler_in,
                            gamma_handler handler_err, void* buffer_in, unsigned long buffer_len);

/** Gives an input port a new buffer, of the size that gamma_setport() said. The fill begins at 0.
 * Fails if no size was said. No system call. */
GAMMA_API int gamma_attach_buffer(unsigned char port, void* buffer_in);

/** Sends a message through a port that is bound for output. Returns when every receiver's engine
 * has the message, or it has failed (profile detect: when the engine has taken it). `data` may be
 * reused then. Failures raise GAMMA_ERR_SENDFAILURE at the port; those that the call itself finds
 * also make it fail. */
GAMMA_API int gamma_send(unsigned char port, const void* data, unsigned long len);
/** As gamma_send(), but returns at once; `data` may be reused. */
GAMMA_API int gamma_send_fast(unsigned char port, const void* data, unsigned long len);
/** As gamma_send(), but returns when the engine has taken the message, and so waits while a
 * receiver has no credit left. */
GAMMA_API int gamma_send_flowctl(unsigned char port, const void* data, unsigned long len);

/** Increments a semaphore. */
GAMMA_API int gamma_signal(unsigned char sem);
/** Increments an error semaphore. */
GAMMA_API int gamma_sigerr(unsigned char sem);

/** Waits until the semaphore is n or more, subtracts n, and returns 0, or minus the number of
 * gamma_sigerr(sem) since the last wait. Handlers run meanwhile. If a member of the group has died
 * and nothing comes, it subtracts nothing, and returns minus that number minus 1. */
GAMMA_API int gamma_wait(unsigned char sem, unsigned long n);

/** Returns the value of the semaphore. */
GAMMA_API int gamma_test(unsigned char sem);

/** Runs the function; no handler runs before it returns. In it, as in a handler, gamma_wait() and
 * gamma_sync() fail. */
GAMMA_API int gamma_atomic(void (*function)(void));

/** Waits until all instances of the group have called it, by two chains [GAMMA §5.3]. Handlers run
 * meanwhile. Fails if a member has left or died. */
GAMMA_API int gamma_sync(void);

/** Returns the parallel PID of the group, 1 … 255, equal at all its members: ULC_PAR_PID, else made
 * of the job's name. Groups that share a secret (ULC_GROUPS) need different ones. */
GAMMA_API int gamma_my_par_pid(void);
GAMMA_API int gamma_my_node(void);        /**< Returns the number of this instance. */
GAMMA_API int gamma_how_many_nodes(void); /**< Returns the number of instances. */

/** Locks memory, and touches each of its pages. Buffers and data of messages need not be locked
 * here. Fails as mlock() does, above the limit of locked memory (ulimit -l). */
GAMMA_API int gamma_mlock(void* buffer, unsigned long len);
/** Unlocks memory. Fails as munlock() does. */
GAMMA_API int gamma_munlock(void* buffer, unsigned long len);
/** Unlocks all memory of the process. Fails as munlockall() does. */
GAMMA_API int gamma_munlockall(void);

/** An instant. An array, so that it is passed by reference as in the original's calls. */
typedef struct {
    unsigned long hi; /**< high half */
    unsigned long lo; /**< low half */
} time_586[1];
/** Reads the clock. */
GAMMA_API void gamma_time(time_586 t);
/** Returns the time from a to b in microseconds. */
GAMMA_API double gamma_time_diff(time_586 b, time_586 a);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
