/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that coll.h does not have and MPI needs: operations that start again and again with
 * the same arguments. For coll/mpi; not installed. */
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

#ifdef __cplusplus
}
#endif
#endif
