/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Collective operations over groups of ranks, on ulc.h.
 *
 * Model. All members of a group call the same operations in the same order. An operation is
 * started, tested and waited for; the blocking forms do all three. Each byte crosses a broadcast
 * medium once where the algorithm allows (URTP §4). Buffers stay the caller's and must not be
 * touched until the operation is done.
 *
 * Offload. With ULC_OFFLOAD=1 in the environment, the engine carries on a barrier, broadcast,
 * gather, scatter, allgather or alltoall that was started while the application does something
 * else.
 *
 *     double mine = 1, sum;
 *     ulc_allreduce(ep, ulc_world(ep), &mine, &sum, 1, ULC_REDUCTION(ULC_DOUBLE, ULC_SUM));
 */
#ifndef ULC_COLL_H
#define ULC_COLL_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup coll_types Types and operators */ /** @{ */

/** Element types of reductions: C's and MPI's predefined ones. Numbers are ABI. */
enum ulc_type {
    ULC_INT8 = 1,                 /**< int8_t */
    ULC_INT16 = 2,                /**< int16_t */
    ULC_INT32 = 3,                /**< int32_t */
    ULC_INT64 = 4,                /**< int64_t */
    ULC_UINT8 = 5,                /**< uint8_t */
    ULC_UINT16 = 6,               /**< uint16_t */
    ULC_UINT32 = 7,               /**< uint32_t */
    ULC_UINT64 = 8,               /**< uint64_t */
    ULC_FLOAT = 9,                /**< float */
    ULC_DOUBLE = 10,              /**< double */
    ULC_LONG_DOUBLE = 11,         /**< long double */
    ULC_BOOL = 12,                /**< one byte: 0 is false, anything else true */
    ULC_BYTE = 13,                /**< one byte, for the bitwise operators */
    ULC_FLOAT_COMPLEX = 14,       /**< float complex */
    ULC_DOUBLE_COMPLEX = 15,      /**< double complex */
    ULC_LONG_DOUBLE_COMPLEX = 16, /**< long double complex */
    ULC_FLOAT_INT = 17,           /**< struct of a float and an int index, for MINLOC and MAXLOC */
    ULC_DOUBLE_INT = 18,          /**< the same of a double */
    ULC_LONG_INT = 19,            /**< the same of a long */
    ULC_SHORT_INT = 20,           /**< the same of a short */
    ULC_2INT = 21,                /**< the same of an int */
    ULC_LONG_DOUBLE_INT = 22      /**< the same of a long double */
};
/** Elements of n bytes, 1 ≤ n ≤ 65536, that only a user's operator understands. */
#define ULC_BYTES(n) (UINT32_C(0x80000000) | (n))
#define ULC_OCTETS(n) ULC_BYTES(n) /**< the former name; goes with the next minor version */

/** Operators of reductions, with the types that they take. Numbers are ABI. */
enum ulc_operator {
    ULC_SUM = 1,     /**< integers (they wrap), floating point, complex */
    ULC_PROD = 2,    /**< as ULC_SUM */
    ULC_MIN = 3,     /**< integers, floating point */
    ULC_MAX = 4,     /**< as ULC_MIN */
    ULC_LAND = 5,    /**< integers, ULC_BOOL; gives 0 or 1 */
    ULC_LOR = 6,     /**< as ULC_LAND */
    ULC_LXOR = 7,    /**< as ULC_LAND */
    ULC_BAND = 8,    /**< integers, ULC_BYTE */
    ULC_BOR = 9,     /**< as ULC_BAND */
    ULC_BXOR = 10,   /**< as ULC_BAND */
    ULC_MINLOC = 11, /**< the types with an index: the least value, and of those the least index */
    ULC_MAXLOC =
        12,       /**< the types with an index: the greatest value, and of those the least index */
    ULC_USER = 13 /**< ulc_reduction.function; any type */
};

/** Computes into[i] = into[i] ∘ from[i] for `count` elements. Must be associative. ulc_coll_test()
 * and ulc_coll_wait() call it, in pieces of any number of elements. `into` and `from` are aligned
 * to 16 bytes, whatever the caller's buffers are: an operand that is not aligned is copied first.
 * It must not call functions of the endpoint. */
typedef void (*ulc_function)(void* context, void* into, const void* from, size_t count);

/** Describes a reduction. Passed by value: {ULC_DOUBLE, ULC_SUM} in C++,
 * ULC_REDUCTION(ULC_DOUBLE, ULC_SUM) in C. */
typedef struct ulc_reduction {
    uint32_t type;         /**< ulc_type or ULC_BYTES(n) */
    uint32_t op;           /**< ulc_operator */
    ulc_function function; /**< with ULC_USER, else NULL */
    void* context;         /**< of function */
    int commutative; /**< function: x ∘ y = y ∘ x. If 0, operands are in the order of indices */
} ulc_reduction;
/** A reduction by a predefined operator, for C. */
#define ULC_REDUCTION(type, op) ((ulc_reduction){(type), (op), NULL, NULL, 0})

/** Returns the bytes of one element, or 0 if there is no such type. */
ULC_API size_t ulc_type_bytes(uint32_t type);
/** The former name of ulc_type_bytes(); goes with the next minor version. */
ULC_API size_t ulc_type_octets(uint32_t type);

/** One collective under way. A start call makes it; ulc_coll_test() frees it when it is done. */
typedef struct ulc_coll ulc_coll;

/** @} */
/** @defgroup coll_start Start of operations
 *
 * The start functions begin an operation and set *out. They do not block. Cost: some 100 ns and one
 * message. They have these parameters in common:
 * - ep, group: an endpoint and a group of which it is a member
 * - root: index of the root in the group, 0 to size − 1
 * - length: bytes of one block
 * - lengths, offsets: length and place of each block by index, in bytes, one entry for each member.
 *   offsets NULL: one block behind the other. Only the start call reads them. Blocks that are
 *   written must not overlap, nor may input and output
 * - algorithm: NULL: chosen by the selection table (ulc_coll_algorithm()). Else a name, the same at
 *   every member. ":k" may follow (default 1: the segments that each member of `concurrent` has
 *   under way; chains, senders or rounds of the others), and "@bytes" of a segment:
 *   `concurrent:4@16384`
 *
 * The algorithms:
 * - barrier: `gather_broadcast` (URTP §4.5), `dissemination` (k messages a round), `chain` (GAMMA
 *   §5.3: k chains, for hubs)
 * - broadcast: `multicast` (URTP §4.2), `binomial` (a tree of unicasts, for reference)
 * - gather: `direct` (URTP §4.4), `token` (GAMMA §6.3: k senders at a time, for hubs), `binomial`
 *   (many ranks)
 * - gatherv: `direct`, `token`
 * - scatter: `packed` (URTP §4.4: small blocks share a multicast), `direct`, `binomial` (nodes of
 *   one machine)
 * - scatterv: `direct`
 * - allgather, allgatherv: `round_robin`, `concurrent` (URTP §4.3, algorithms 1 and 2), `ring`
 *   (unicast; nodes of one machine)
 * - alltoall: `pairwise` (k rounds under way; no port takes more at a time), `multicast` (small
 *   blocks)
 * - alltoallv: `pairwise`
 * - reduce: `flat` (few ranks), `binomial`, `chain` (large)
 * - allreduce: `multicast` (small), `binomial_multicast`, `chain_multicast`, `pairwise_multicast`
 *   (large: reduce_scatter, then allgather), `binomial` (for reference)
 * - reduce_scatter, reduce_scatter_block: `multicast` (small), `pairwise`, `binomial` (small,
 *   several ranks a node)
 * - scan, exscan: `multicast` (small, few ranks), `chain` (large), `doubling` (small, many ranks)
 *
 * Errors: INVALID (not a member, root out of range, null buffer with a length, unknown algorithm, a
 * mistake in the file of ULC_COLL_TABLE; ulc_last_error_text() says which), LIMIT (the result
 * exceeds the address space, or 4,095 operations of the group began after its oldest under way),
 * NO_MEMORY, NOT_FORMED. A call that fails does not count as one of the group's operations.
 *
 * Members that disagree: messages carry a code of operation, root, type, operator, algorithm and
 * length, and whether each is the last. Members find by it that they disagree, and the operation
 * ends with MISMATCH. Where all members wait and none has sent anything, they ask each other after
 * a second (ULC_COLL_PATIENCE_MS in the environment). ULC_COLL_CHECK=0 leaves out both.
 * @{ */

/** Starts a barrier: it is done when all members have started it. */
ULC_API int ulc_barrier_start(ulc_endpoint* ep, ulc_group group, const char* algorithm,
                              ulc_coll** out);
/** Starts a broadcast. buffer: `length` bytes, read at the root, written elsewhere. */
ULC_API int ulc_broadcast_start(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                                size_t length, const char* algorithm, ulc_coll** out);
/** Starts a gather. input: `length` bytes. output: group size × length bytes, block i from index i;
 * only the root uses it. In place at the root: input NULL, the own block is already in output. */
ULC_API int ulc_gather_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                             void* output, size_t length, const char* algorithm, ulc_coll** out);
/** Starts a gather of blocks by index. Only the root uses lengths and offsets; the others give
 * their entry of lengths as `length`. Else as ulc_gather_start(). */
ULC_API int ulc_gatherv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                              size_t length, void* output, const size_t* lengths,
                              const size_t* offsets, const char* algorithm, ulc_coll** out);
/** Starts a scatter. input: group size × length bytes, block i for index i; only the root uses it.
 * output: `length` bytes. In place at the root: output NULL, its block stays in input. */
ULC_API int ulc_scatter_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                              void* output, size_t length, const char* algorithm, ulc_coll** out);
/** Starts a scatter of blocks by index. Only the root uses lengths and offsets; the others give
 * their entry of lengths as `length`. Else as ulc_scatter_start(). */
ULC_API int ulc_scatterv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                               const size_t* lengths, const size_t* offsets, void* output,
                               size_t length, const char* algorithm, ulc_coll** out);
/** Starts an allgather. input: `length` bytes. output: group size × length bytes, block i from
 * index i. In place: input NULL, the own block is already in output. */
ULC_API int ulc_allgather_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                size_t length, const char* algorithm, ulc_coll** out);
/** Starts an allgather of blocks by index; every member gives the same lengths. input: lengths[own
 * index] bytes. Else as ulc_allgather_start(). */
ULC_API int ulc_allgatherv_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                 const size_t* lengths, const size_t* offsets,
                                 const char* algorithm, ulc_coll** out);
/** Starts a total exchange. input: block i for index i. output: block i from index i. Each has
 * `length` bytes. In place: input NULL; blocks to send lie in output, and the block received from a
 * member replaces the one sent to it. */
ULC_API int ulc_alltoall_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                               size_t length, const char* algorithm, ulc_coll** out);
/** Starts a total exchange of blocks by index: input_lengths[i] here is output_lengths[own index]
 * at index i. In place: input and input_lengths NULL, and each two members give each other blocks
 * of one length. Else as ulc_alltoall_start(). */
ULC_API int ulc_alltoallv_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                const size_t* input_lengths, const size_t* input_offsets,
                                void* output, const size_t* output_lengths,
                                const size_t* output_offsets, const char* algorithm,
                                ulc_coll** out);

/** @} */
/** @defgroup coll_reductions Start of reductions
 *
 * A reduction folds `count` elements from every member. Operands are taken in the order of indices;
 * a commutative operator of ulc_reduce() takes them in that order from the root round. Order and
 * brackets depend on algorithm, size and number of members alone. So a floating-point result is the
 * same in every run, and that of ulc_allreduce() the same at every member, to the last bit. Further
 * errors: INVALID (unknown type or operator, an operator that is not defined for the type, ULC_USER
 * without a function).
 * @{ */

/** Starts a reduction to the root. output: the fold of all; only the root uses it. In place at the
 * root: input NULL, its operand is in output. */
ULC_API int ulc_reduce_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                             void* output, size_t count, ulc_reduction reduction,
                             const char* algorithm, ulc_coll** out);
/** Starts a reduction to all members. output: the fold of all. In place: input NULL, the operand is
 * in output. */
ULC_API int ulc_allreduce_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                size_t count, ulc_reduction reduction, const char* algorithm,
                                ulc_coll** out);
/** Starts a reduction of which index i gets counts[i] elements, in the order of indices; every
 * member gives the same counts. input: the sum of counts elements. output: counts[own index]
 * elements. In place: input NULL, the operand is in output, and the result will be at its
 * beginning. */
ULC_API int ulc_reduce_scatter_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                     void* output, const size_t* counts, ulc_reduction reduction,
                                     const char* algorithm, ulc_coll** out);
/** Starts ulc_reduce_scatter_start() with `count` elements for each index. */
ULC_API int ulc_reduce_scatter_block_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                           void* output, size_t count, ulc_reduction reduction,
                                           const char* algorithm, ulc_coll** out);
/** Starts an inclusive scan. output: the fold of the members up to this one. In place: input NULL,
 * the operand is in output. */
ULC_API int ulc_scan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                           size_t count, ulc_reduction reduction, const char* algorithm,
                           ulc_coll** out);
/** Starts an exclusive scan. output: the fold of the members before this one; index 0's is left as
 * it was. In place: as ulc_scan_start(). */
ULC_API int ulc_exscan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             size_t count, ulc_reduction reduction, const char* algorithm,
                             ulc_coll** out);

/** @} */ /** @defgroup coll_progress Progress of operations */ /** @{ */

/** Advances an operation with the events of the last ulc_poll(); bounded work. ULC_OK: it is done
 * and freed. ULC_ERR_AGAIN: it is under way. Any other error: it failed and is freed, and the
 * contents of its buffers are undefined. Errors: PEER_LEFT, PEER_DIED (any member; all others get
 * this), CLOSED, MISMATCH (members gave different arguments: ulc_last_error_text() names one and
 * its arguments; every later operation of the group fails so at every member). The call that ends
 * an operation may yield the core once, to an engine that waits for it. */
ULC_API int ulc_coll_test(ulc_endpoint* ep, ulc_coll* operation);
/** Tests an operation until it is done, with ulc_wait() in between. TIMEOUT: still under way, not
 * freed. Other errors: as ulc_coll_test(). */
ULC_API int ulc_coll_wait(ulc_endpoint* ep, ulc_coll* operation, int64_t timeout_ns);

/** @} */ /** @defgroup coll_choice Choice of algorithms */ /** @{ */

/** Returns the algorithm that a start call with NULL takes, as "name", "name:k" or "name:k@bytes";
 * the text is valid until the process ends. operation: "barrier", "broadcast", "gather", "gatherv",
 * "scatter", "scatterv", "allgather", "alltoall", "alltoallv", "reduce", "allreduce",
 * "reduce_scatter", "scan" or "exscan". bytes: of the vector, or of each rank's block.
 *
 * The choice depends on values that all members have alike: operation, size, members, the most of
 * them on one node, and the medium (rank 0's ULC_MEDIUM, else a hub where its port is half duplex,
 * else a switch). The shipped table decides, unless the file that ULC_COLL_TABLE names at the first
 * collective has a rule (`ulc tune` makes one). NULL: no such operation, not a member, or a mistake
 * in that file; ulc_last_error_text() says which. */
ULC_API const char* ulc_coll_algorithm(ulc_endpoint* ep, ulc_group group, const char* operation,
                                       size_t bytes);

/** Returns the medium of the choice: "switch", "hub", "shallow", "machine", "crowded" or "node"
 * (all members on one node); sets *per_node (may be NULL) to the most members on one node. NULL:
 * not a member. */
ULC_API const char* ulc_coll_medium(ulc_endpoint* ep, ulc_group group, uint16_t* per_node);

/** @} */
/** @defgroup coll_blocking Blocking forms
 *
 * Each starts its operation with algorithm NULL and waits until it is done. Errors: those of the
 * start function and of ulc_coll_test().
 * @{ */

/** Calls ulc_barrier_start() and waits. */
ULC_API int ulc_barrier(ulc_endpoint* ep, ulc_group group);
/** Calls ulc_broadcast_start() and waits. */
ULC_API int ulc_broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                          size_t length);
/** Calls ulc_gather_start() and waits. */
ULC_API int ulc_gather(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                       void* output, size_t length);
/** Calls ulc_gatherv_start() and waits. */
ULC_API int ulc_gatherv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                        size_t length, void* output, const size_t* lengths, const size_t* offsets);
/** Calls ulc_scatter_start() and waits. */
ULC_API int ulc_scatter(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                        void* output, size_t length);
/** Calls ulc_scatterv_start() and waits. */
ULC_API int ulc_scatterv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                         const size_t* lengths, const size_t* offsets, void* output, size_t length);
/** Calls ulc_allgather_start() and waits. */
ULC_API int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                          size_t length);
/** Calls ulc_allgatherv_start() and waits. */
ULC_API int ulc_allgatherv(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                           const size_t* lengths, const size_t* offsets);
/** Calls ulc_alltoall_start() and waits. */
ULC_API int ulc_alltoall(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                         size_t length);
/** Calls ulc_alltoallv_start() and waits. */
ULC_API int ulc_alltoallv(ulc_endpoint* ep, ulc_group group, const void* input,
                          const size_t* input_lengths, const size_t* input_offsets, void* output,
                          const size_t* output_lengths, const size_t* output_offsets);
/** Calls ulc_reduce_start() and waits. */
ULC_API int ulc_reduce(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                       void* output, size_t count, ulc_reduction reduction);
/** Calls ulc_allreduce_start() and waits. */
ULC_API int ulc_allreduce(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                          size_t count, ulc_reduction reduction);
/** Calls ulc_reduce_scatter_start() and waits. */
ULC_API int ulc_reduce_scatter(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                               const size_t* counts, ulc_reduction reduction);
/** Calls ulc_reduce_scatter_block_start() and waits. */
ULC_API int ulc_reduce_scatter_block(ulc_endpoint* ep, ulc_group group, const void* input,
                                     void* output, size_t count, ulc_reduction reduction);
/** Calls ulc_scan_start() and waits. */
ULC_API int ulc_scan(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                     size_t count, ulc_reduction reduction);
/** Calls ulc_exscan_start() and waits. */
ULC_API int ulc_exscan(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                       size_t count, ulc_reduction reduction);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
