/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between ranks of one node that do not pass through the engine. For libraries on top of
 * libulc whose threads poll, such as the provider of libfabric; not installed.
 *
 * The engine says which peers are near: processes of the same user that use the same engine, in its
 * PID namespace. The word of a peer about itself does not count.
 *
 * Short messages go through memory that the two processes share, after the first message has
 * arrived. All others go as ever. The order of all messages between two ranks stays the same.
 * Whatever fails makes the messages of that peer go through the engine, silently. */
#ifndef ULC_NEAR_H
#define ULC_NEAR_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest message that goes through shared memory. */
#define ULC_NEAR_MAX ((size_t)32 * 1024)

/* Lets messages of peers that ulc_near_peer() names go through shared memory. Called before the
 * endpoint joins its job or opens for links. Errors: INVALID (it has joined), UNSUPPORTED (the
 * engine is in this process), NO_MEMORY, CLOSED. Threads: the endpoint's. Cost: 24 bytes a rank, at
 * each poll a look at one cache line for each peer that has sent. A thread that sleeps in
 * ulc_wait() finds such a message after a nap of 200 us; one that computes gets no upcall for it.
 * The engine performs no collectives for this endpoint. */
ULC_API int ulc_near_prepare(ulc_endpoint* ep);

/* Names a peer that may use the same engine; both sides do. The engine is asked once. To name a
 * peer again changes nothing.
 * Errors: INVALID (no such peer, or ulc_near_prepare() was not called), NOT_FORMED, CLOSED.
 * Threads: the endpoint's. Cost: 140 KiB of memory and one file descriptor for each peer that
 * sends; 256 peers at most have it. */
ULC_API int ulc_near_peer(ulc_endpoint* ep, uint16_t peer);

/* A process of this node. Its number is its own as long as it lives. */
typedef struct ulc_near_process {
    uint64_t start_ticks; /* field 22 of /proc/PID/stat, not 0 */
    uint32_t pid;
} ulc_near_process;

/* Sets the process of this endpoint and that of a peer, which it names if ulc_near_peer() did not.
 * Errors: AGAIN (the engine has not answered), UNSUPPORTED (the peer is not near, or gone), and
 * those of ulc_near_peer(). Threads: the endpoint's. Cost: one record to the engine for each
 * peer. */
ULC_API int ulc_near_processes(ulc_endpoint* ep, uint16_t peer, ulc_near_process* self,
                               ulc_near_process* other);

#ifdef __cplusplus
}
#endif
#endif
