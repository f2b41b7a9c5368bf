/* Collectives over groups, on ulc.h. Every operation starts (non-blocking), is tested, and may be waited for. All members of the
 * group call the same operations in the same order. Each byte crosses a broadcast medium once where the
 * algorithm allows (URTP §4). Buffers stay the caller's and untouched until done. */
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
 * any number of elements, which may lie at any address (use memcpy for types that need alignment). It must not call
 * functions of the endpoint. */
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
