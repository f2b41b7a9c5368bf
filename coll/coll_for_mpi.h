/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that coll.h does not have and MPI needs: operations that start again and again with
 * the same arguments, and exchanges with neighbours. For coll/mpi; not installed. */
#ifndef ULC_COLL_FOR_MPI_H
#define ULC_COLL_FOR_MPI_H

#include <coll.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Keeps a pending operation: ulc_coll_test() and ulc_coll_wait() do not free it when it is over. */
ULC_API void ulc_coll_keep(ulc_coll* operation);
/* Starts a kept operation that is over, as the next operation of its group, with the arguments of
 * its first start. Its schedule is not made again. Errors: MISMATCH, LIMIT, NO_MEMORY, and INVALID
 * if the group was freed; it is over then too. */
ULC_API int ulc_coll_start_again(ulc_coll* operation);
/* Frees a kept operation that is over. */
ULC_API void ulc_coll_free(ulc_coll* operation);

/* A block for a member of the group, or from one: bytes in the input or the output. */
typedef struct ulc_edge {
    uint16_t peer;
    size_t offset;
    size_t length;
} ulc_edge;

/* Starts an exchange along edges. The i-th edge to a member meets its i-th edge from this one; both
 * have one length. Edges to itself are copied. Edges of one block to different members are a
 * multicast, in a group of at most 64. Only the call reads the edges. Errors: those of the start
 * functions of coll.h. */
ULC_API int ulc_neighbours_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                 const ulc_edge* to, size_t to_count, void* output,
                                 const ulc_edge* from, size_t from_count, ulc_coll** out);

#ifdef __cplusplus
}
#endif
#endif
