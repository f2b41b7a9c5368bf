/* Collectives over groups, on ulc.h. Every operation starts (non-blocking), is tested, and may be waited for. All members of the
 * group call the same operations in the same order. Each byte crosses a broadcast medium once where the
 * algorithm allows (URTP §4). Buffers stay the caller's and untouched until done. */
#ifndef ULC_COLL_H
#define ULC_COLL_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One collective under way; made by a start call, freed by ulc_coll_test() when it says done. */
typedef struct ulc_coll ulc_coll;

/* Algorithms. NULL chooses by the table in coll/selection.cc. Else, the same at every member:
 *   barrier     "gather_broadcast" (URTP §4.5), "dissemination", "chain" (GAMMA §5.3: k chains, for hubs)
 *   broadcast   "multicast" (URTP §4.2), "binomial" (tree over unicast, for reference)
 *   allgather   "round_robin", "concurrent" (URTP §4.3, algorithms 1 and 2), "ring" (unicast, for reference)
 * A name may be followed by ":k" (segments that each member of "concurrent" has under way, chains of "chain";
 * default 1) and by "@octets" (of a segment): "concurrent:4@16384".
 *
 * Errors of the start functions: INVALID (not a member, root out of range, null buffer with a length, unknown
 * algorithm; ulc_last_error_text() says which), LIMIT (the result exceeds the address space), NO_MEMORY, NOT_FORMED.
 * A call that fails is not counted as one of the group's operations. Cost: some 100 ns and one message. */
ULC_API int ulc_barrier_start(ulc_endpoint* ep, ulc_group group, const char* algorithm,
                              ulc_coll** out);
/* buffer: `length` octets, read at the root (index in the group), written elsewhere. */
ULC_API int ulc_broadcast_start(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                                size_t length, const char* algorithm, ulc_coll** out);
/* input: `length` octets; output: group size × length octets, block i from index i. In place: input NULL, own block
 * already in output. */
ULC_API int ulc_allgather_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                size_t length, const char* algorithm, ulc_coll** out);
/* Advances the operation with what the last ulc_poll() brought; bounded work. ULC_OK: done and freed. ULC_ERR_AGAIN:
 * under way. Else the operation failed and is freed: PEER_LEFT, PEER_DIED, CLOSED, MISMATCH (lengths differ between
 * members; the buffer's contents are undefined). */
ULC_API int ulc_coll_test(ulc_endpoint* ep, ulc_coll* operation);
/* ulc_coll_test() until done, ulc_wait() in between. TIMEOUT: still under way, not freed. */
ULC_API int ulc_coll_wait(ulc_endpoint* ep, ulc_coll* operation, int64_t timeout_ns);

/* Start and wait, forever. */
ULC_API int ulc_barrier(ulc_endpoint* ep, ulc_group group);
ULC_API int ulc_broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                          size_t length);
ULC_API int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                          size_t length);

#ifdef __cplusplus
}
#endif
#endif
