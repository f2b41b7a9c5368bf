/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Memory of operations under way that their caller has to give back, whatever peers do. */
#ifndef ULC_MEMORY_H
#define ULC_MEMORY_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup ulc_memory Memory of operations under way */ /** @{ */

/** Takes back a receive even if a message has begun to fill it: nothing writes to its buffer after
 * the call. The message is thrown away, also the part of it that is still to come. Errors: AGAIN if
 * the receive is done (test it instead), INVALID (no receive), TIMEOUT (another thread of the
 * process has not left the embedded engine for 5 s: the receive stays, and so must its buffer).
 * Threads: the endpoint's; with an embedded engine it waits for the end of a round. */
ULC_API int ulc_abandon(ulc_endpoint* ep, ulc_request* req);

/** Copies the bytes that a send under way has still to read to `copy`, of at least `bytes` bytes.
 * From then on the send reads them there: the memory with which it was started is the caller's
 * again. `copy` and the request stay until the request is done. Errors: AGAIN (it is done, or an
 * engine reads the memory), INVALID (no send), LIMIT (`bytes` are too few). Threads: the
 * endpoint's. Cost: one copy. */
ULC_API int ulc_move_payload(ulc_endpoint* ep, ulc_request* req, void* copy, size_t bytes);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
