/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of ULC's MPI collectives that no MPI is special in: session, communicators, buffers and
 * operations. Used by the glue of each MPI (openmpi/). A C header, because Open MPI's own headers
 * are not C++.
 *
 * Rule that everything here keeps: whether ULC takes a call depends only on what MPI makes equal at
 * all members: communicator, operation, root, bytes of a block where every member knows them,
 * operator. It never depends on one member's datatype, buffer or memory.
 *
 * Threads: every function may be called by any thread. One lock guards the endpoint; it is free
 * while the MPI's progress runs. */
#ifndef ULC_MPI_CORE_H
#define ULC_MPI_CORE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A datatype as the core sees it. */
typedef struct ulc_mpi_type {
    void* handle;       /* the MPI's */
    size_t size;        /* bytes of one element, packed */
    ptrdiff_t extent;   /* from one element to the next */
    ptrdiff_t true_lb;  /* from an element's address to its first byte */
    size_t true_extent; /* from its first byte to behind its last */
    uint32_t native;    /* ulc_type for reductions, 0: none */
    int tight;          /* any number of elements lies in memory as it is packed */
} ulc_mpi_type;

/* An operator as the core sees it. */
typedef struct ulc_mpi_operator {
    void* handle;
    uint32_t native; /* ulc_operator, 0: none */
    int commutes;
} ulc_mpi_operator;

/* The functions of the MPI that the core calls. Only `progress` may call the core. */
typedef struct ulc_mpi_hooks {
    /* True if `count` elements from one address lie in memory as they are packed. */
    int (*contiguous)(const ulc_mpi_type* type, size_t count);
    /* Copies count elements between memory and their packed form; 0 if all went well. */
    int (*pack)(const ulc_mpi_type* type, size_t count, const void* memory, void* packed);
    int (*unpack)(const ulc_mpi_type* type, size_t count, void* memory, const void* packed);
    /* Packs (or unpacks) count elements piece by piece, in order. NULL: no memory. */
    void* (*open_stream)(const ulc_mpi_type* type, size_t count, const void* memory, int packs);
    /* The next `bytes` of the packed form, all of them; 0 if all went well. */
    int (*move_stream)(void* stream, void* packed, size_t bytes);
    void (*close_stream)(void* stream);
    /* inout[i] = in[i] op inout[i], by the MPI's own reduction. */
    void (*reduce)(const ulc_mpi_operator* op, const ulc_mpi_type* type, void* in, void* inout,
                   size_t count);
    /* Drives the MPI's own progress. */
    void (*progress)(void);
} ulc_mpi_hooks;

/* The card that each process gives the others before one of them uses ULC. */
typedef struct ulc_mpi_card {
    uint32_t version; /* kCardVersion, the same for the same decisions */
    uint32_t able;    /* not 0: an engine answered */
    /* ULC_MPI_SAME_NODE: use ULC between ranks of one node too; rank 0's counts */
    uint32_t same_node;
    unsigned char nonce[16]; /* of the job; rank 0's counts */
    char meeting[256];       /* ulc_meeting.h; rank 0's counts */
} ulc_mpi_card;

enum ulc_mpi_op {
    ULC_MPI_BARRIER,
    ULC_MPI_BCAST,
    ULC_MPI_GATHER,
    ULC_MPI_GATHERV,
    ULC_MPI_SCATTER,
    ULC_MPI_SCATTERV,
    ULC_MPI_ALLGATHER,
    ULC_MPI_ALLGATHERV,
    ULC_MPI_ALLTOALL,
    ULC_MPI_ALLTOALLV,
    ULC_MPI_ALLTOALLW,
    ULC_MPI_REDUCE,
    ULC_MPI_ALLREDUCE,
    ULC_MPI_REDUCE_SCATTER,
    ULC_MPI_REDUCE_SCATTER_BLOCK,
    ULC_MPI_SCAN,
    ULC_MPI_EXSCAN,
    ULC_MPI_NEIGHBOR_ALLGATHER,
    ULC_MPI_NEIGHBOR_ALLGATHERV,
    ULC_MPI_NEIGHBOR_ALLTOALL,
    ULC_MPI_NEIGHBOR_ALLTOALLV,
    ULC_MPI_NEIGHBOR_ALLTOALLW,
    ULC_MPI_BLOCKING_OPS, /* the non-blocking form of op is op + ULC_MPI_BLOCKING_OPS */
    ULC_MPI_PERSISTENT = 2 * ULC_MPI_BLOCKING_OPS, /* added to op: the persistent form */
    ULC_MPI_OPS = 3 * ULC_MPI_BLOCKING_OPS
};

/* Why a call went where it went. */
enum ulc_mpi_way {
    ULC_MPI_BY_ULC,
    ULC_MPI_NO_JOB,        /* the job of all ranks did not form */
    ULC_MPI_NO_GROUP,      /* a member could not make the group */
    ULC_MPI_ONE_NODE,      /* all members on one node, where the MPI's shared memory is faster */
    ULC_MPI_LARGE_ELEMENT, /* elements of a reduction above 64 KiB */
    ULC_MPI_NOT_YET,       /* non-blocking, and no blocking collective has made the group */
    ULC_MPI_NOT_CAUGHT,    /* non-blocking, and the MPI's waits would not move it */
    ULC_MPI_WAYS
};

/* ---------------------------------------------------------------- session */

/* Opens an endpoint and fills in the card. 0: an engine answered. Silent otherwise. */
int ulc_mpi_open(const ulc_mpi_hooks* hooks, ulc_mpi_card* card);
/* Leaves a reason for the account, in place of ulc_mpi_open(). */
void ulc_mpi_decline(const char* why);
/* Judges the cards of all ranks and, if all are able, starts joining the job. `cards`: one a rank;
 * a version of 0 is a rank without a card. Every rank gives the same cards. 0: joining. */
int ulc_mpi_join(const char* job, uint32_t rank, uint32_t size, const ulc_mpi_card* cards);
/* Takes completions from the engine; for the MPI's progress to call. Returns their number. */
int ulc_mpi_progress(void);
/* Leaves the job and frees everything; with ULC_MPI_VERBOSE=1 rank 0 prints its account. */
void ulc_mpi_close(uint32_t rank);

/* ---------------------------------------------------------------- communicators */

typedef struct ulc_mpi_comm ulc_mpi_comm;

/* The least of the values that the members give, by the collectives that the MPI had before; called
 * at every member alike, without the lock. Negative: it failed. */
typedef int (*ulc_mpi_agree)(void* context, int mine);

/* A communicator of `count` ranks of the job, in its own order. whole: all ranks, in order, the
 * first communicator of these. key: the same at all members, and no other communicator of these
 * ranks that exists has it. NULL: no memory. Starts nothing. */
ulc_mpi_comm* ulc_mpi_comm_new(const uint16_t* ranks, uint16_t count, int whole, uint64_t key);
/* Frees it, without waiting. orderly: all members do, in any order of their communicators. */
void ulc_mpi_comm_free(ulc_mpi_comm* comm, int orderly);
/* BY_ULC: the members agreed on a group. Else why not. The first call on a communicator is
 * collective: it makes the group. Every member gets the same answer. */
enum ulc_mpi_way ulc_mpi_comm_way(ulc_mpi_comm* comm, ulc_mpi_agree agree, void* context);
/* As ulc_mpi_comm_way(), for a non-blocking call, which cannot make the group. */
enum ulc_mpi_way ulc_mpi_comm_way_yet(const ulc_mpi_comm* comm);
/* Counts a call for the account of ULC_MPI_VERBOSE. */
void ulc_mpi_count(enum ulc_mpi_op op, enum ulc_mpi_way way);

/* ---------------------------------------------------------------- operations, BY_ULC only */
/* Arguments as MPI's. in_place: MPI_IN_PLACE was given at this member. A failure is said once in a
 * sentence on stderr.
 *
 * pending NULL: blocking, returns a ulc_error. Else the operation begins. ULC_OK promises one call
 * of done() with a ulc_error, by this call or by a thread in ulc_mpi_progress() or in a wait,
 * without the lock. Any other result is a failure, and done() is not called.
 *
 * is_persistent set: the call only prepares, and ULC_OK promises nothing. ulc_mpi_start() begins
 * the operation, any number of times, and ulc_mpi_release() ends it. Buffers, types and operators
 * are used until then; arrays of counts, displacements and types are read by the call only. */
typedef struct ulc_mpi_pending {
    void (*done)(struct ulc_mpi_pending* self, int error);
    int is_persistent;
    void* operation; /* the core's, of a persistent one */
} ulc_mpi_pending;

/* Begins a prepared operation that is not in progress. Promises as above. */
int ulc_mpi_start(ulc_mpi_pending* pending);
/* Frees what was prepared and is not in progress. */
void ulc_mpi_release(ulc_mpi_pending* pending);

/* MPI_Count and MPI_Aint, which MPIs make of long or of long long. */
typedef long __attribute__((may_alias)) ulc_mpi_wide;

/* Counts and displacements in elements, one a member. Used are the wide ones if there are any. */
typedef struct ulc_mpi_blocks {
    const int* counts;
    const int* displacements;
    const ulc_mpi_wide* wide_counts;
    const ulc_mpi_wide* wide_displacements;
} ulc_mpi_blocks;

int ulc_mpi_barrier(ulc_mpi_comm* comm, ulc_mpi_pending* pending);
int ulc_mpi_bcast(ulc_mpi_comm* comm, int root, void* buffer, size_t count,
                  const ulc_mpi_type* type, ulc_mpi_pending* pending);
int ulc_mpi_gather(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                   size_t input_count, const ulc_mpi_type* input_type, void* output,
                   size_t output_count, const ulc_mpi_type* output_type, ulc_mpi_pending* pending);
int ulc_mpi_gatherv(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                    size_t input_count, const ulc_mpi_type* input_type, void* output,
                    ulc_mpi_blocks blocks, const ulc_mpi_type* output_type,
                    ulc_mpi_pending* pending);
int ulc_mpi_scatter(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                    size_t input_count, const ulc_mpi_type* input_type, void* output,
                    size_t output_count, const ulc_mpi_type* output_type, ulc_mpi_pending* pending);
int ulc_mpi_scatterv(ulc_mpi_comm* comm, int root, int in_place, const void* input,
                     ulc_mpi_blocks blocks, const ulc_mpi_type* input_type, void* output,
                     size_t output_count, const ulc_mpi_type* output_type,
                     ulc_mpi_pending* pending);
int ulc_mpi_allgather(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                      const ulc_mpi_type* input_type, void* output, size_t output_count,
                      const ulc_mpi_type* output_type, ulc_mpi_pending* pending);
int ulc_mpi_allgatherv(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                       const ulc_mpi_type* input_type, void* output, ulc_mpi_blocks blocks,
                       const ulc_mpi_type* output_type, ulc_mpi_pending* pending);
int ulc_mpi_alltoall(ulc_mpi_comm* comm, int in_place, const void* input, size_t input_count,
                     const ulc_mpi_type* input_type, void* output, size_t output_count,
                     const ulc_mpi_type* output_type, ulc_mpi_pending* pending);
int ulc_mpi_alltoallv(ulc_mpi_comm* comm, int in_place, const void* input, ulc_mpi_blocks from,
                      const ulc_mpi_type* input_type, void* output, ulc_mpi_blocks to,
                      const ulc_mpi_type* output_type, ulc_mpi_pending* pending);

/* `count` elements of a type at an address. */
typedef struct ulc_mpi_block {
    const void* memory;
    size_t count;
    ulc_mpi_type type;
} ulc_mpi_block;

/* from, to: one block a member. They are read by this call only. */
int ulc_mpi_alltoallw(ulc_mpi_comm* comm, int in_place, const ulc_mpi_block* from,
                      const ulc_mpi_block* to, ulc_mpi_pending* pending);

/* The blocks for or from `count` neighbours, which are ranks of the communicator. */
typedef struct ulc_mpi_edges {
    size_t count;
    const int* peers; /* a negative one is no neighbour */
    const ulc_mpi_block* blocks;
} ulc_mpi_edges;

/* Any neighbourhood collective. The i-th edge to a rank meets its i-th edge from this one. Edges of
 * one block follow each other. They are read by this call only. */
int ulc_mpi_neighbors(ulc_mpi_comm* comm, ulc_mpi_edges to, ulc_mpi_edges from,
                      ulc_mpi_pending* pending);

/* True if elements of that type can be reduced by ULC at all. */
int ulc_mpi_reducible(const ulc_mpi_type* type);
int ulc_mpi_reduce(ulc_mpi_comm* comm, int root, int in_place, const void* input, void* output,
                   size_t count, const ulc_mpi_type* type, const ulc_mpi_operator* op,
                   ulc_mpi_pending* pending);
int ulc_mpi_allreduce(ulc_mpi_comm* comm, int in_place, const void* input, void* output,
                      size_t count, const ulc_mpi_type* type, const ulc_mpi_operator* op,
                      ulc_mpi_pending* pending);
/* counts: elements of each member; NULL: `count` each. */
int ulc_mpi_reduce_scatter(ulc_mpi_comm* comm, int in_place, const void* input, void* output,
                           const int* counts, size_t count, const ulc_mpi_type* type,
                           const ulc_mpi_operator* op, ulc_mpi_pending* pending);
int ulc_mpi_scan(ulc_mpi_comm* comm, int in_place, int exclusive, const void* input, void* output,
                 size_t count, const ulc_mpi_type* type, const ulc_mpi_operator* op,
                 ulc_mpi_pending* pending);

#ifdef __cplusplus
}
#endif
#endif
