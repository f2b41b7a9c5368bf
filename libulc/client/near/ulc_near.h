/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between ranks of one node that do not pass through the engine. For libraries on top of
 * libulc whose threads poll, such as the provider of libfabric; not installed.
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

/* Names a peer that uses the same engine; both sides do. To name it again changes nothing.
 * Errors: INVALID (no such peer, or ulc_near_prepare() was not called), NOT_FORMED, CLOSED.
 * Threads: the endpoint's. Cost: 140 KiB of memory and one file descriptor for each peer that
 * sends; 256 peers at most have it. */
ULC_API int ulc_near_peer(ulc_endpoint* ep, uint16_t peer);

#ifdef __cplusplus
}
#endif
#endif
