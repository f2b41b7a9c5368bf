/* Collectives over groups, on ulc.h. Every operation starts (non-blocking), is tested, and may be waited for. All members of the
 * group call the same operations in the same order. Each byte crosses a broadcast medium once where the
 * algorithm allows (URTP §4). Buffers stay the caller's and untouched until done. With ULC_OFFLOAD=1 in the environment the engine
 * carries on a barrier, broadcast, gather, scatter, allgather or alltoall that was started while the application does something
 * else. */
#ifndef ULC_COLL_H
#define ULC_COLL_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types of reductions: C's and MPI's predefined ones. Numbers are ABI. */
enum ulc_type {
    ULC_INT8 = 1,
    ULC_INT16 = 2,
    ULC_INT32 = 3,
    ULC_INT64 = 4,
    ULC_UINT8 = 5,
    ULC_UINT16 = 6,
    ULC_UINT32 = 7,
    ULC_UINT64 = 8,
    ULC_FLOAT = 9,
    ULC_DOUBLE = 10,
    ULC_LONG_DOUBLE = 11,
    ULC_BOOL = 12, /* one octet: 0 is false, anything else true */
    ULC_BYTE = 13, /* one octet, for the bitwise operators */
    ULC_FLOAT_COMPLEX = 14,
    ULC_DOUBLE_COMPLEX = 15,
    ULC_LONG_DOUBLE_COMPLEX = 16,
    /* C structs of a value and an int index, for MINLOC and MAXLOC; ULC_2INT: two ints. */
    ULC_FLOAT_INT = 17,
    ULC_DOUBLE_INT = 18,
    ULC_LONG_INT = 19,
    ULC_SHORT_INT = 20,
    ULC_2INT = 21,
    ULC_LONG_DOUBLE_INT = 22
};
/* Elements of n octets, 1 ≤ n ≤ 65536, that only a user's operator understands. */
#define ULC_OCTETS(n) (UINT32_C(0x80000000) | (n))

enum ulc_operator {
    ULC_SUM = 1,     /* integers (they wrap), floating point, complex */
    ULC_PROD = 2,    /* as ULC_SUM */
    ULC_MIN = 3,     /* integers, floating point */
    ULC_MAX = 4,     /* as ULC_MIN */
    ULC_LAND = 5,    /* integers, ULC_BOOL; gives 0 or 1 */
    ULC_LOR = 6,     /* as ULC_LAND */
    ULC_LXOR = 7,    /* as ULC_LAND */
    ULC_BAND = 8,    /* integers, ULC_BYTE */
    ULC_BOR = 9,     /* as ULC_BAND */
    ULC_BXOR = 10,   /* as ULC_BAND */
    ULC_MINLOC = 11, /* the types with an index: the least value, and of those the least index */
    ULC_MAXLOC = 12, /* the types with an index: the greatest value, and of those the least index */
    ULC_USER = 13    /* ulc_reduction.function; any type */
};

/* into[i] = into[i] ∘ from[i] for `count` elements. Associative; called by ulc_coll_test() and ulc_coll_wait(), in pieces of
 * any number of elements. `into` and `from` are aligned to 16 bytes, whatever the caller's buffers;
 * an operand that is not is copied
 * first, so aligned buffers are cheaper. It must not call functions of the endpoint. */
typedef void (*ulc_function)(void* context, void* into, const void* from, size_t count);

/* What a reduction does, by value: {ULC_DOUBLE, ULC_SUM} in C++, ULC_REDUCTION(ULC_DOUBLE, ULC_SUM) in C. */
typedef struct ulc_reduction {
    uint32_t type;         /* ulc_type or ULC_OCTETS(n) */
    uint32_t op;           /* ulc_operator */
    ulc_function function; /* with ULC_USER, else NULL */
    void* context;         /* of function */
    int commutative; /* function: x ∘ y = y ∘ x. If not, operands are in the order of the group's indices */
} ulc_reduction;
#define ULC_REDUCTION(type, op) ((ulc_reduction){(type), (op), NULL, NULL, 0})

/* Octets of one element; 0: there is no such type. */
ULC_API size_t ulc_type_octets(uint32_t type);

/* One collective under way; made by a start call, freed by ulc_coll_test() when it says done. */
typedef struct ulc_coll ulc_coll;

/* Algorithms. NULL chooses by the selection table (ulc_coll_algorithm() below). Else, the same at every member:
 *   barrier     "gather_broadcast" (URTP §4.5), "dissemination" (k messages a round), "chain" (GAMMA §5.3: k chains,
 *               for hubs)
 *   broadcast   "multicast" (URTP §4.2), "binomial" (tree over unicast, for reference)
 *   gather      "direct" (URTP §4.4), "token" (GAMMA §6.3: k senders at a time, for hubs), "binomial" (many ranks)
 *   gatherv     "direct", "token"
 *   scatter     "packed" (URTP §4.4: small blocks share a multicast), "direct", "binomial" (nodes of one machine)
 *   scatterv    "direct"
 *   allgather, allgatherv   "round_robin", "concurrent" (URTP §4.3, algorithms 1 and 2), "ring" (unicast; nodes of one machine)
 *   alltoall    "pairwise" (k rounds under way; no port takes more than that at a time), "multicast" (small blocks)
 *   alltoallv   "pairwise"
 *   reduce      "flat" (few ranks), "binomial", "chain" (large)
 *   allreduce   "multicast" (small), "binomial_multicast", "chain_multicast", "pairwise_multicast" (large: reduce_scatter,
 *               then allgather), "binomial" (for reference)
 *   reduce_scatter, reduce_scatter_block   "multicast" (small), "pairwise", "binomial" (small, several ranks a node)
 *   scan, exscan   "multicast" (small, few ranks), "chain" (large), "doubling" (small, many ranks)
 * A name may be followed by ":k" (segments that each member of "concurrent" has under way, chains of "chain", senders,
 * rounds; default 1) and by "@octets" (of a segment): "concurrent:4@16384".
 *
 * Blocks by rank: `lengths` and `offsets` have an entry for each member, in octets; offsets NULL: one behind the other. They
 * are read by the start call only. Blocks that are written may not overlap, nor may input and output.
 *
 * Errors of the start functions: INVALID (not a member, root out of range, null buffer with a length, unknown
 * algorithm, a mistake in the file of ULC_COLL_TABLE; ulc_last_error_text() says which), LIMIT (the result exceeds the address space), NO_MEMORY, NOT_FORMED,
 * and too many under way: none begins 4,095 or more behind the oldest of its group (LIMIT).
 * A call that fails is not counted as one of the group's operations. Messages bear a code of operation, root, type, operator, algorithm and
 * length, and whether each is the last, by which members find that they disagree; where all wait and none has sent anything, they ask each other after a second
 * (ULC_COLL_PATIENCE_MS in the environment). ULC_COLL_CHECK=0 leaves out both. Cost: some 100 ns and one message. */
ULC_API int ulc_barrier_start(ulc_endpoint* ep, ulc_group group, const char* algorithm,
                              ulc_coll** out);
/* buffer: `length` octets, read at the root (index in the group), written elsewhere. */
ULC_API int ulc_broadcast_start(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                                size_t length, const char* algorithm, ulc_coll** out);
/* input: `length` octets; output, looked at by the root alone: group size × length octets, block i from index i. In place,
 * at the root: input NULL, own block already in output. */
ULC_API int ulc_gather_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                             void* output, size_t length, const char* algorithm, ulc_coll** out);
/* As ulc_gather_start(); lengths and offsets are looked at by the root alone, `length` by the others, whose lengths[] it is. */
ULC_API int ulc_gatherv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                              size_t length, void* output, const size_t* lengths,
                              const size_t* offsets, const char* algorithm, ulc_coll** out);
/* input, looked at by the root alone: group size × length octets, block i for index i; output: `length` octets. In place, at
 * the root: output NULL, its block stays in input. */
ULC_API int ulc_scatter_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                              void* output, size_t length, const char* algorithm, ulc_coll** out);
/* As ulc_scatter_start(); lengths and offsets are looked at by the root alone, `length` by the others, whose lengths[] it is. */
ULC_API int ulc_scatterv_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                               const size_t* lengths, const size_t* offsets, void* output,
                               size_t length, const char* algorithm, ulc_coll** out);
/* input: `length` octets; output: group size × length octets, block i from index i. In place: input NULL, own block
 * already in output. */
ULC_API int ulc_allgather_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                size_t length, const char* algorithm, ulc_coll** out);
/* As ulc_allgather_start(), with blocks by rank; every member gives the same lengths. input: lengths[own index] octets. */
ULC_API int ulc_allgatherv_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                 const size_t* lengths, const size_t* offsets,
                                 const char* algorithm, ulc_coll** out);
/* input: block i for index i; output: block i from index i, `length` octets each. In place: input NULL; what is sent lies in
 * output, and what is received from a member replaces what went to it. */
ULC_API int ulc_alltoall_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                               size_t length, const char* algorithm, ulc_coll** out);
/* As ulc_alltoall_start(), with blocks by rank: input_lengths[i] here is output_lengths[own index] at index i. In place: input
 * and input_lengths NULL, and every two members give each other as much. */
ULC_API int ulc_alltoallv_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                const size_t* input_lengths, const size_t* input_offsets,
                                void* output, const size_t* output_lengths,
                                const size_t* output_offsets, const char* algorithm,
                                ulc_coll** out);

/* Reductions of `count` elements from every member. Operands are taken in the order of indices; a commutative operator of
 * ulc_reduce() in that order from the root round. Order and brackets depend on algorithm, size and number of members alone, so a
 * floating-point result is the same in every run, and ulc_allreduce()'s at every member, to the last bit.
 * Further errors: INVALID (unknown type or operator, an operator that is not defined for the type, ULC_USER without a function).
 *
 * output, looked at by the root alone: the fold of all. In place, at the root: input NULL, its operand is in output. */
ULC_API int ulc_reduce_start(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                             void* output, size_t count, ulc_reduction reduction,
                             const char* algorithm, ulc_coll** out);
/* output: the fold of all. In place: input NULL, the operand is in output. */
ULC_API int ulc_allreduce_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                                size_t count, ulc_reduction reduction, const char* algorithm,
                                ulc_coll** out);
/* The fold of all, of which index i gets counts[i] elements, one behind the other; every member gives the same counts. input: the
 * sum of counts; output: counts[own index]. In place: input NULL, the operand is in output, the result at its beginning. */
ULC_API int ulc_reduce_scatter_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                     void* output, const size_t* counts, ulc_reduction reduction,
                                     const char* algorithm, ulc_coll** out);
/* As ulc_reduce_scatter_start(), `count` elements for each. */
ULC_API int ulc_reduce_scatter_block_start(ulc_endpoint* ep, ulc_group group, const void* input,
                                           void* output, size_t count, ulc_reduction reduction,
                                           const char* algorithm, ulc_coll** out);
/* output: the fold of the members up to this one. In place: input NULL, the operand is in output. */
ULC_API int ulc_scan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                           size_t count, ulc_reduction reduction, const char* algorithm,
                           ulc_coll** out);
/* output: the fold of the members before this one; index 0's is left as it was. In place: as ulc_scan_start(). */
ULC_API int ulc_exscan_start(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                             size_t count, ulc_reduction reduction, const char* algorithm,
                             ulc_coll** out);

/* Advances the operation with what the last ulc_poll() brought; bounded work. ULC_OK: done and freed. ULC_ERR_AGAIN:
 * under way. Else the operation failed and is freed, and the contents of its buffers are undefined: PEER_LEFT,
 * PEER_DIED (any member: all others get this), CLOSED, MISMATCH (members gave different arguments: ulc_last_error_text() names one
 * and what it gave otherwise; every later operation of the group fails so at every member). The call that ends it may give
 * its core away once, to an engine that waits for the same one. */
ULC_API int ulc_coll_test(ulc_endpoint* ep, ulc_coll* operation);
/* ulc_coll_test() until done, ulc_wait() in between. TIMEOUT: still under way, not freed. */
ULC_API int ulc_coll_wait(ulc_endpoint* ep, ulc_coll* operation, int64_t timeout_ns);

/* What a start call with algorithm NULL takes, as "name", "name:k" or "name:k@octets"; valid until the process ends. operation: "barrier",
 * "broadcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "alltoall", "alltoallv", "reduce", "allreduce",
 * "reduce_scatter", "scan" or "exscan"; octets: of the vector, or of each rank's block. It goes by what all members know alike: operation, size,
 * members, the most of them on one node, and the medium (rank 0's ULC_MEDIUM, else a hub where its port is half duplex, else a switch). The
 * table is what ships, and before it that of the file that ULC_COLL_TABLE names at the first collective (`ulc tune` makes one). NULL:
 * no such operation, not a member, or a mistake in that file; ulc_last_error_text() says which. */
ULC_API const char* ulc_coll_algorithm(ulc_endpoint* ep, ulc_group group, const char* operation,
                                       size_t octets);

/* The medium that the choice goes by, "switch", "hub", "shallow", "machine", "crowded" or "node" (all members on one node), and in *per_node (may be
 * NULL) the most members on one node. NULL: not a member. */
ULC_API const char* ulc_coll_medium(ulc_endpoint* ep, ulc_group group, uint16_t* per_node);

/* Start and wait, forever. */
ULC_API int ulc_barrier(ulc_endpoint* ep, ulc_group group);
ULC_API int ulc_broadcast(ulc_endpoint* ep, ulc_group group, uint16_t root, void* buffer,
                          size_t length);
ULC_API int ulc_gather(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                       void* output, size_t length);
ULC_API int ulc_gatherv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                        size_t length, void* output, const size_t* lengths, const size_t* offsets);
ULC_API int ulc_scatter(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                        void* output, size_t length);
ULC_API int ulc_scatterv(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                         const size_t* lengths, const size_t* offsets, void* output, size_t length);
ULC_API int ulc_allgather(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                          size_t length);
ULC_API int ulc_allgatherv(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                           const size_t* lengths, const size_t* offsets);
ULC_API int ulc_alltoall(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                         size_t length);
ULC_API int ulc_alltoallv(ulc_endpoint* ep, ulc_group group, const void* input,
                          const size_t* input_lengths, const size_t* input_offsets, void* output,
                          const size_t* output_lengths, const size_t* output_offsets);
ULC_API int ulc_reduce(ulc_endpoint* ep, ulc_group group, uint16_t root, const void* input,
                       void* output, size_t count, ulc_reduction reduction);
ULC_API int ulc_allreduce(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                          size_t count, ulc_reduction reduction);
ULC_API int ulc_reduce_scatter(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                               const size_t* counts, ulc_reduction reduction);
ULC_API int ulc_reduce_scatter_block(ulc_endpoint* ep, ulc_group group, const void* input,
                                     void* output, size_t count, ulc_reduction reduction);
ULC_API int ulc_scan(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                     size_t count, ulc_reduction reduction);
ULC_API int ulc_exscan(ulc_endpoint* ep, ulc_group group, const void* input, void* output,
                       size_t count, ulc_reduction reduction);

#ifdef __cplusplus
}
#endif
#endif
