/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * libulc: user-level messaging for Ethernet clusters. Public C API, stable within a major version.
 *
 * Model. A process opens an *endpoint* on an engine (a daemon on this node, or one embedded in
 * the process), joins a *job* as one of its ranks, then sends messages to ranks and multicasts to
 * groups of ranks. Messages have any length. They arrive once, whole, and in order for each pair
 * of source rank and destination rank, whether unicast or multicast (URTP §3.1).
 *
 * Calls. A call that starts an operation returns ULC_OK or an error at once. Only ulc_poll() moves
 * an endpoint; only the calls with a time limit block.
 *
 * Threads. An endpoint belongs to one thread at a time; different endpoints are independent.
 *
 * fork(). In a child, endpoints are closed (ULC_ERR_CLOSED; ulc_close() frees one), and the memory
 * of ulc_alloc() and of views is empty. The child may open endpoints.
 *
 * Errors. Each function that returns int gives ULC_OK (0) or one of ulc_error below;
 * ulc_error_text() explains it. ULC_ERR_AGAIN is back-pressure, not a failure: poll and try again.
 */
#ifndef ULC_H
#define ULC_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ULC_API __attribute__((visibility("default"))) /**< exports a symbol of the library */
#else
#define ULC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** @defgroup ulc_general Errors, requests and pieces */ /** @{ */
#define ULC_API_VERSION 1 /**< version of this interface; grows with incompatible changes only */

/** Results of calls and requests. */
enum ulc_error {
    ULC_OK = 0,               /**< success */
    ULC_ERR_AGAIN = 1,        /**< nothing there, or no space, at the moment: poll and try again */
    ULC_ERR_INVALID = 2,      /**< an argument is out of its range */
    ULC_ERR_NO_MEMORY = 3,    /**< memory is exhausted */
    ULC_ERR_VERSION = 4,      /**< client and engine, or two engines, speak different versions */
    ULC_ERR_CORRUPT = 5,      /**< shared memory holds impossible values; the endpoint was closed */
    ULC_ERR_PERMISSION = 6,   /**< not permitted, by the engine or by the kernel */
    ULC_ERR_NO_ENGINE = 7,    /**< no engine answers */
    ULC_ERR_CLOSED = 8,       /**< the endpoint is closed */
    ULC_ERR_PEER_LEFT = 9,    /**< the peer left the job */
    ULC_ERR_PEER_DIED = 10,   /**< the peer, its engine or its node died */
    ULC_ERR_JOB_SIZE = 11,    /**< ranks of one job name gave different sizes */
    ULC_ERR_RANK_TAKEN = 12,  /**< another process claims the rank */
    ULC_ERR_TWO_ROSTERS = 13, /**< two ranks 0 claim one job name */
    ULC_ERR_TIMEOUT = 14,     /**< the time limit passed */
    ULC_ERR_NOT_FORMED = 15,  /**< the job has not formed yet */
    ULC_ERR_MISMATCH = 16,    /**< members of one collective call gave different arguments */
    ULC_ERR_TRUNCATED = 17,   /**< the message is longer than the buffer */
    ULC_ERR_LIMIT = 18,       /**< a configured limit is reached */
    ULC_ERR_PORT_DOWN = 19,   /**< the link is down, or the port changed */
    ULC_ERR_SYSTEM = 20,      /**< a system call failed */
    ULC_ERR_UNSUPPORTED = 21, /**< this engine or port cannot do it */
    ULC_ERR_PROFILE = 22,     /**< ranks of one job use different transport profiles */
    ULC_ERR_LOST = 23,        /**< packets were lost, and the profile does not repair */
    ULC_ERR_PEER_SLOW = 24,   /**< a member takes multicasts too slowly */
    ULC_ERR_PEER_SILENT = 25, /**< a member does not answer */
    ULC_ERR_EXCLUDED = 26     /**< ulc_set_hold() ended the relation of two ranks */
};

#define ULC_RANK_ANY ((uint16_t)0xffff) /**< any source, or no rank */
#define ULC_SUBSET_ALL ((uint64_t)0)    /**< all other members of the group */
#define ULC_WAIT_FOREVER INT64_MAX      /**< a wait without a time limit */
#define ULC_TAG_MAX (UINT64_MAX >> 1)   /**< tags with the top bit set belong to coll.h */

typedef struct ulc_endpoint ulc_endpoint; /**< one endpoint; the caller owns it until ulc_close() */
typedef uint32_t ulc_group;               /**< a group of ranks, valid in its job */

/** The outcome of a request. */
typedef struct ulc_status {
    int error;         /**< ULC_OK, ULC_ERR_TRUNCATED, ULC_ERR_PEER_LEFT, ULC_ERR_PEER_DIED, … */
    uint16_t source;   /**< receives: rank of the sender */
    uint16_t reserved; /**< 0 */
    uint32_t group;    /**< receives: the group it was multicast to, 0: unicast */
    uint64_t tag;      /**< receives */
    uint64_t length;   /**< receives: bytes of the message, even if truncated */
} ulc_status;

/** One piece of a payload, or of a buffer: `length` bytes at `base`. Laid out as struct iovec.
 * `base` may be NULL if `length` is 0. A list has at most ULC_PIECES_MAX pieces; pieces are joined
 * in order. */
typedef struct ulc_piece {
    void* base;    /**< first byte */
    size_t length; /**< in bytes */
} ulc_piece;
#define ULC_PIECES_MAX 8 /**< pieces of one message */

/** Flags of ulc_sendv() and ulc_multicastv(). */
enum ulc_send_flag {
    /** The request completes when the engine of every receiver has acknowledged the whole message
     * (URTP §3.1), and not before. Needs a request. A receiver that died ends a unicast with
     * PEER_DIED; a multicast goes on with the others. */
    ULC_SEND_DELIVERED = 1,
    /** The request completes when a receive at the receiver has matched the message, and the
     * payload may be reused. Needs a request; of unicasts only. ulc_leave() ends a request that
     * still waits for its match alone with CLOSED. */
    ULC_SEND_MATCHED = 2
};

/** A message that ulc_claim() gave to the caller. */
typedef struct ulc_message ulc_message;

/** One operation under way. The caller owns its memory, 128 bytes, which need not be initialised.
 * It must stay in place and untouched from the start until ulc_test() says that the operation is
 * done, or ulc_cancel() succeeds. */
typedef struct ulc_request {
    uint64_t opaque[16]; /**< of libulc */
} ulc_request;

/** @} */ /** @defgroup ulc_endpoints Endpoints */ /** @{ */
/** Opens an endpoint. Blocks for the handshake, at most 5 s. Cost: milliseconds.
 *
 * engine: NULL takes the environment's ULC_ENGINE, else the default socket.
 * - `/run/ulc/engine.sock` or any path: a daemon on this node
 * - `embedded:<vdev string>`: an engine inside this process (needs libulc-engine.so); ';' separates
 *   several ports, each of which is a net
 * - `embedded:udp`: the same on a UDP socket of any network
 *
 * `%n` in either form becomes rank modulo ULC_NODES if that is set, with the rank that the launcher
 * gave this process. An endpoint belongs to one net: `#name` behind either form names it
 * (`/run/ulc/engine.sock#lab`), else the environment's ULC_NET, else it is the engine's first.
 * Names are those of ulc-engine's `--device name:…`, else 0, 1, …. Jobs on different nets never
 * meet, even under one name. Errors: NO_ENGINE, INVALID (no such net), PERMISSION, VERSION,
 * NO_MEMORY, LIMIT, SYSTEM; ulc_last_error_text() says what to do. */
ULC_API int ulc_open(const char* engine, ulc_endpoint** out);

/** Frees the endpoint; NULL is allowed. Data of an endpoint that did not ulc_leave() are still
 * delivered: by a daemon's engine later, by an embedded one at once, in at most 12 s, or 24 s if it
 * is the engine's last endpoint. Requests under way are dropped: neither they nor their buffers are
 * touched any more. If a process ends without this call, a daemon's engine delivers its messages
 * for half a second at most before peers get PEER_DIED; an embedded engine may lose them. */
ULC_API void ulc_close(ulc_endpoint* ep);

/** @} */ /** @defgroup ulc_jobs Jobs */ /** @{ */
/** Chooses how the transport of the next job works. profile: words joined by "+" (`ulc-engine
 * --help` lists them), at most 32 bytes, the same at every rank; NULL or "": as the engine is
 * configured. Errors: INVALID (too long, or a job is joined). */
ULC_API int ulc_set_profile(ulc_endpoint* ep, const char* profile);
/** Sets the silence of a node, in ns, after which its ranks count as dead in later jobs, if it is
 * longer than the engine's --peer-dead. At most an hour counts, and ten minutes at the peers. A
 * debugger, or ULC_DEBUG=1 in the environment, makes it ten minutes. Errors: INVALID. */
ULC_API int ulc_set_patience(ulc_endpoint* ep, int64_t patience_ns);

/** Starts joining `job` (1 … 64 bytes) as `rank` of `size` (1 … 65534). nonce: 16 bytes from the
 * launcher, or NULL. Then poll until ulc_job_state() is ULC_OK. Errors: INVALID, AGAIN. */
ULC_API int ulc_join(ulc_endpoint* ep, const char* job, uint16_t rank, uint16_t size,
                     const unsigned char* nonce);

/** Returns ULC_OK if the job has formed, ULC_ERR_AGAIN while it forms, CLOSED if it ended. Else why
 * it failed: JOB_SIZE, RANK_TAKEN, TWO_ROSTERS, TIMEOUT, VERSION, PROFILE, PEER_DIED, PEER_LEFT. */
ULC_API int ulc_job_state(const ulc_endpoint* ep);

/** Joins a job and waits until it has formed. Blocks, at most timeout_ns. Values left at NULL,
 * ULC_RANK_ANY or 0 come from ULC_JOB, ULC_RANK, ULC_SIZE and ULC_NONCE, and the profile from
 * ULC_PROFILE if none was set. The launcher gives what they do not: a PMIx server
 * (mpirun, prte, srun), Hydra (mpiexec) or Slurm. Errors: those of ulc_join(), ulc_job_state(). */
ULC_API int ulc_join_wait(ulc_endpoint* ep, const char* job, uint16_t rank, uint16_t size,
                          int64_t timeout_ns);

ULC_API uint16_t ulc_rank(const ulc_endpoint* ep);   /**< Returns the own rank. */
ULC_API uint16_t ulc_size(const ulc_endpoint* ep);   /**< Returns the number of ranks. */
ULC_API ulc_group ulc_world(const ulc_endpoint* ep); /**< Returns the group of all ranks. */
/** Returns ULC_OK while the peer is there, else PEER_LEFT or PEER_DIED. */
ULC_API int ulc_peer_state(const ulc_endpoint* ep, uint16_t rank);

/** Starts leaving the job: messages that were sent are delivered first. Poll until ulc_job_state()
 * is ULC_ERR_CLOSED. Errors: AGAIN. */
ULC_API int ulc_leave(ulc_endpoint* ep);
/** Leaves the job and waits for the end. Blocks, at most timeout_ns. Errors: TIMEOUT (if the engine
 * gave up, ulc_last_error_text() says how many bytes were not delivered). */
ULC_API int ulc_leave_wait(ulc_endpoint* ep, int64_t timeout_ns);

/** Opens the endpoint again when its engine ended, or a peer died, and joins its job or opens it
 * for links again (man ulc_rejoin). The job forms when all its ranks have called. Blocks, at most
 * timeout_ns. On success *ep is another endpoint; requests of the old one are done, its groups,
 * views and memory are gone. On error *ep stays. Errors: those of ulc_open(), ulc_leave_wait() and
 * ulc_join_wait(). Threads: the endpoint's. Cost: milliseconds. */
ULC_API int ulc_rejoin(ulc_endpoint** ep, int64_t timeout_ns);

/** @} */ /** @defgroup ulc_links Links */ /** @{ */
#define ULC_ADDRESS_BYTES 32               /**< bytes of an address */
/** Names an endpoint that is open for links. Opaque bytes of constant length, of which a part is
 * secret: the address is the permission to link to the endpoint. Copies are equal. */
typedef struct ulc_link_address {
    unsigned char bytes[ULC_ADDRESS_BYTES]; /**< as ulc_address() gave them */
} ulc_link_address;

/** Starts opening the endpoint for links, instead of joining a job: it has up to `links` peers
 * (1 … 1,024) that need not know each other. Poll until ulc_job_state() is ULC_OK. Peers are
 * numbers from 0 to links − 1 that take the place of ranks: in sends, in receives and as sources.
 * ulc_size() is `links`, ulc_rank() is ULC_RANK_ANY, and there are no groups. Streams, order,
 * matching, death and leaving are those of a job. ulc_set_profile() before it chooses the
 * transport; both ends of a link must have the same. Errors: INVALID, AGAIN (ring full), SYSTEM; of
 * ulc_job_state(): LIMIT, PROFILE, CLOSED. Threads: the endpoint's. Cost: an idle link takes
 * constant memory of the engine; one that has sent takes a window of packets more. */
ULC_API int ulc_open_links(ulc_endpoint* ep, uint16_t links);
/** Calls ulc_open_links() and waits. Blocks, at most timeout_ns. */
ULC_API int ulc_open_links_wait(ulc_endpoint* ep, uint16_t links, int64_t timeout_ns);

/** Fills *out with the address of an endpoint that is open for links. It is valid until the
 * endpoint or its engine ends. Errors: AGAIN (it is being opened), NOT_FORMED, INVALID (it is in a
 * job). */
ULC_API int ulc_address(const ulc_endpoint* ep, ulc_link_address* out);

/** Starts linking to the endpoint of that address. timeout_ns: 0 means 5 s. When `req` is done, the
 * status' source is the peer's number. Two endpoints have one link at most: if the peer has linked
 * to this one, or both call at once, the request gives that link. Errors: AGAIN (ring full),
 * INVALID, NOT_FORMED, CLOSED; of the request: INVALID (no address), VERSION, LIMIT (no number is
 * free, here or there), PROFILE, CLOSED (the peer leaves), AGAIN (the earlier link to it is still
 * ending), PEER_LEFT and PEER_DIED (the endpoint is not there any more, or its node is dead),
 * TIMEOUT (no answer, as with a wrong key). Threads: the endpoint's. Cost: one round trip; 64 calls
 * of an endpoint are under way at once, others wait. */
ULC_API int ulc_link(ulc_endpoint* ep, const ulc_link_address* peer, int64_t timeout_ns,
                     ulc_request* req);

/** Gives the number of a peer that has linked to this endpoint by itself, each once. Receives from
 * ULC_RANK_ANY take messages of such peers whether or not this was called. Does not poll. Errors:
 * AGAIN (none), NOT_FORMED, CLOSED. */
ULC_API int ulc_next_peer(ulc_endpoint* ep, uint16_t* peer);

/** Starts ending a link: what was sent is delivered first, and the peer then finds PEER_LEFT. Lets
 * go of a peer that is gone as well: its number stays taken until then. Receives that name the peer
 * end with CLOSED, and so do announced sends that no receive has matched. Messages of the peer that
 * no receive took are dropped. When `req` (may be NULL) is done, the number may mean another peer.
 * Errors: INVALID (no such peer, or it is ending), AGAIN (ring full, or sends to it wait for
 * space), NOT_FORMED, CLOSED. Threads: the endpoint's. Cost: one round trip. */
ULC_API int ulc_unlink(ulc_endpoint* ep, uint16_t peer, ulc_request* req);

/** @} */ /** @defgroup ulc_groups Groups */ /** @{ */
/** Starts creating a group. All members call it with the same ranks in the same order (2 … size
 * ranks, the own rank among them). Calls over one set of ranks are made in the same order
 * everywhere. `req` completes when every member has registered; its status names the group.
 * Errors: INVALID, AGAIN, LIMIT; of the request: MISMATCH. */
ULC_API int ulc_group_create(ulc_endpoint* ep, const uint16_t* ranks, uint16_t count,
                             ulc_request* req);
/** As ulc_group_create(), of the group that all members call `key`. Creations over one set of ranks
 * that are under way at once and have different keys may be started in different orders at
 * different members; those with the same key are started in the same order everywhere. A key may be
 * used again, also while a group of that key exists. Keyed and unkeyed creations are apart. Errors:
 * as ulc_group_create(). Cost: about 100 bytes for each pair of ranks and key. */
ULC_API int ulc_group_create_keyed(ulc_endpoint* ep, const uint16_t* ranks, uint16_t count,
                                   uint64_t key, ulc_request* req);
/** Forgets a group here. Collective by convention; messages under way must have been received. */
ULC_API int ulc_group_free(ulc_endpoint* ep, ulc_group group);
/** Returns the number of members, or 0 if there is no such group. */
ULC_API uint16_t ulc_group_size(const ulc_endpoint* ep, ulc_group group);
/** Returns the index of the own rank in the group, or ULC_RANK_ANY if it is no member. */
ULC_API uint16_t ulc_group_index(const ulc_endpoint* ep, ulc_group group);
/** Returns the rank of the member with that index, or ULC_RANK_ANY if it is out of range. */
ULC_API uint16_t ulc_group_rank(const ulc_endpoint* ep, ulc_group group, uint16_t index);

/** Flags of ulc_set_hold(). */
enum ulc_hold_flag {
    /** The member is excluded: its relation with this rank ends at both sides, as if each had died
     * for the other, and multicasts go on without it. */
    ULC_HOLD_EXCLUDE = 1
};
#define ULC_HOLD_FOREVER INT64_MAX /**< a member may hold up multicasts without limit */
#define ULC_HOLD_KEEP_MAX 20       /**< ranks that ulc_set_hold() keeps */

/** Says how long a member may hold up multicasts of this endpoint, in the job that it has joined. A
 * member holds them up while a packet waits for it alone, or for it and others that hold up as
 * well; a tenth of the time does not count. limit_ns: the time after which the error handler is
 * called with PEER_SLOW or PEER_SILENT, and again after as long; ULC_HOLD_FOREVER: never. flags: 0,
 * or ULC_HOLD_EXCLUDE: the member is excluded then, unless no other member could go on without it.
 * keep: `count` ranks that are never excluded, at most ULC_HOLD_KEEP_MAX. The error handlers of
 * both ranks get EXCLUDED, then each is PEER_DIED for the other, after what had arrived. The other
 * ranks of this node go on without the member too, and it without them. Before the call the
 * engine's parameter hold-limit is the limit, and nothing is excluded. Call it before the first
 * multicast. Errors: INVALID, AGAIN (ring full), NOT_FORMED, CLOSED. Threads: the endpoint's. */
ULC_API int ulc_set_hold(ulc_endpoint* ep, int64_t limit_ns, unsigned flags, const uint16_t* keep,
                         unsigned count);

/** A member that held up multicasts. */
typedef struct ulc_holder {
    int error;         /**< ULC_ERR_PEER_SLOW or ULC_ERR_PEER_SILENT */
    uint16_t rank;     /**< which member */
    uint16_t reserved; /**< 0 */
    uint64_t held_ns;  /**< for how long, since another member of the group was named */
} ulc_holder;

/** Names the member that last held up a multicast of this endpoint to the group for the limit of
 * ulc_set_hold(). Fills *holder. Does not poll. Errors: AGAIN (none did), INVALID (no such group).
 * Threads: the endpoint's. Cost: nanoseconds. */
ULC_API int ulc_group_slowest(const ulc_endpoint* ep, ulc_group group, ulc_holder* holder);

/** @} */ /** @defgroup ulc_messages Messages */ /** @{ */
/** Starts sending a message to a rank. tag: at most ULC_TAG_MAX.
 * If `req` is not NULL, it completes when `payload` may be reused. With an embedded engine,
 * payloads of 64 KiB and more complete only after every receiver's engine has the data. If it is
 * NULL, the payload is copied before the call returns. A payload in memory of ulc_alloc() is not
 * copied by libulc.
 * Errors: AGAIN (ring or arena full), INVALID, NOT_FORMED, PEER_LEFT, PEER_DIED, CLOSED. */
ULC_API int ulc_send(ulc_endpoint* ep, uint16_t to, uint64_t tag, const void* payload,
                     size_t length, ulc_request* req);

/** Starts a multicast to all other members of the group, one frame a packet on the wire (URTP §3).
 * subset: ULC_SUBSET_ALL, or bit i for member index i, in groups of up to 64. Completion and
 * errors: as ulc_send(). */
ULC_API int ulc_multicast(ulc_endpoint* ep, ulc_group group, uint64_t subset, uint64_t tag,
                          const void* payload, size_t length, ulc_request* req);

/** Starts a receive into `buffer`, of the first message in arrival order with (tag & mask) ==
 * (given tag & mask), from rank `from` or from ULC_RANK_ANY. A longer message is cut (TRUNCATED).
 * A receive that names its source lets the engine ask early for a lost message (URTP §3.1). A
 * source that is gone ends the request with PEER_LEFT or PEER_DIED, after the messages that had
 * arrived from it. Until the request is done, and after ulc_cancel(), the contents of `buffer`
 * are undefined. Errors: INVALID, NOT_FORMED, CLOSED; never AGAIN. */
ULC_API int ulc_receive(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, void* buffer,
                        size_t capacity, ulc_request* req);

/** As ulc_send(), of a payload in `count` pieces, sent as one message. The list and its memory stay
 * in place until the request is done; without a request the payload is copied before the call
 * returns. flags: of ulc_send_flag, or 0. Errors: as ulc_send(); INVALID also for more than
 * ULC_PIECES_MAX pieces, an unknown flag, or a flag without a request. Cost: as ulc_send(). An
 * engine keeps at most 192 DELIVERED sends of an endpoint under way; later sends to the same
 * receivers wait for the first of them. */
ULC_API int ulc_sendv(ulc_endpoint* ep, uint16_t to, uint64_t tag, const ulc_piece* pieces,
                      unsigned count, unsigned flags, ulc_request* req);
/** As ulc_multicast(), of a payload in `count` pieces; else as ulc_sendv(). */
ULC_API int ulc_multicastv(ulc_endpoint* ep, ulc_group group, uint64_t subset, uint64_t tag,
                           const ulc_piece* pieces, unsigned count, unsigned flags,
                           ulc_request* req);

/** Chooses which unicasts of this endpoint are announced: those of `from` bytes and more. Such a
 * message goes out with its first part, at most 16,360 bytes and, of several pieces, whole ones.
 * The rest is sent when a receive at the receiver has matched, straight into its buffer. The
 * request of such a send completes only after that, and both sides must poll meanwhile: an engine
 * in the application passes on requests for the rest, but only the application's own calls match
 * and ask. A program whose ranks wait for large sends to complete before they receive must leave
 * `from` at UINT64_MAX.
 *
 * held_max: bytes of unexpected messages of one sender. Above it, that sender has to announce all
 * messages above 256 bytes without a first part, whatever it chose, until half of them were
 * received. Bytes that were on their way come in addition. UINT64_MAX for either: never, as after
 * ulc_open(). ulc_leave() and ulc_close() send the rest of all announced messages unasked.
 * Errors: INVALID, CLOSED. Cost: one round trip for each announced message. */
ULC_API int ulc_set_rendezvous(ulc_endpoint* ep, uint64_t from, uint64_t held_max);

/** As ulc_receive(), into `count` pieces, filled in order. The list stays in place until the
 * request is done, unless count ≤ 1. Errors, cost: as ulc_receive(); INVALID: above
 * ULC_PIECES_MAX. */
ULC_API int ulc_receivev(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                         const ulc_piece* pieces, unsigned count, ulc_request* req);

/** Where one message of ulc_receive_many() goes. */
typedef struct ulc_part {
    ulc_request* request;    /**< not in use; not NULL */
    const ulc_piece* pieces; /**< as ulc_receivev() */
    unsigned count;          /**< of pieces */
    int last;                /**< not 0: the receive takes no more messages */
} ulc_part;

/** Chooses the place of a message: its source, group, tag and length are in *message, its first
 * `length` bytes at head, *part is zero. Must not call the library for the endpoint. */
typedef void (*ulc_part_giver)(ulc_request* many, const ulc_status* message, const void* head,
                               size_t length, ulc_part* part);

/** Starts a receive that keeps its place and takes one message after the other, each into a part
 * that `give` chooses, here or in ulc_poll(). ulc_next_done() hands out `req` when the last message
 * has matched, and the request of a part when its message is whole; all are collected.
 * ulc_cancel() leaves parts alone. Errors, cost: as ulc_receivev(); INVALID: `give` is NULL. */
ULC_API int ulc_receive_many(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                             ulc_part_giver give, ulc_request* req);

/** Starts a receive of the next message of each of `count` distinct sources, in any order of
 * arrival (URTP §2.1): requests[i] from rank from[i] into buffers[i]. Errors: as ulc_receive(). */
ULC_API int ulc_multireceive(ulc_endpoint* ep, const uint16_t* from, uint16_t count, uint64_t tag,
                             uint64_t mask, void* const* buffers, size_t capacity,
                             ulc_request* requests);

/** Returns ULC_OK if the request is done: fills *status (may be NULL), and the request is the
 * caller's again. Returns ULC_ERR_AGAIN while it is under way. Does not poll. */
ULC_API int ulc_test(ulc_endpoint* ep, ulc_request* req, ulc_status* status);

/** Puts a request that was started into the list that ulc_next_done() works off, at once if it is
 * done. Until ulc_next_done() has handed it out, the request stays in place, and only ulc_cancel()
 * and ulc_test() may be called with it. ulc_cancel() that succeeds takes it out. Requests of one
 * endpoint that are not collected are unaffected. Threads: the endpoint's. Errors: INVALID (it is
 * collected already). Cost: nanoseconds; completion costs as much more. */
ULC_API int ulc_collect(ulc_endpoint* ep, ulc_request* req);

/** Hands out the collected request that was done first, and fills *status (may be NULL) as
 * ulc_test() does; the request is the caller's again. NULL: none is done. Does not poll. After the
 * endpoint ended every collected request is handed out, with its error; in a child of fork() those
 * that were done before. Threads: the endpoint's. Cost: nanoseconds, however many requests are
 * under way. */
ULC_API ulc_request* ulc_next_done(ulc_endpoint* ep, ulc_status* status);

/** Takes back a receive that has not matched. Errors: AGAIN if it has matched (ulc_memory.h). */
ULC_API int ulc_cancel(ulc_endpoint* ep, ulc_request* req);

/** Takes the first matching message that no receive has taken, without a second copy. Fills *status
 * and, if the message is whole in the arena, sets *view, which is valid until ulc_release().
 * Errors: AGAIN (none), LIMIT (the message is larger than the arena: use ulc_receive()). */
ULC_API int ulc_take(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                     const void** view, ulc_status* status);
ULC_API void ulc_release(ulc_endpoint* ep, const void* view); /**< Gives back a view. */

/** Looks for the first message that ulc_receive() with these arguments would take, and leaves it
 * where it is. Fills *status (may be NULL): source, group, tag, and the length of the whole
 * message, of which a part may not have arrived yet. Does not poll. Errors: AGAIN (none), INVALID,
 * NOT_FORMED, CLOSED; PEER_LEFT or PEER_DIED if there is none and `from` is gone. Cost: that of a
 * receive, whatever else waits. */
ULC_API int ulc_probe(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                      ulc_status* status);

/** As ulc_probe(), and copies the first bytes of the message, at most *length, to `head`. Sets
 * *length to how many: fewer if the message is shorter, or if that part has not arrived. */
ULC_API int ulc_probe_head(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, void* head,
                           size_t* length, ulc_status* status);

/** As ulc_probe(), and gives that message to the caller: no receive, probe or take finds it any
 * more, also if a part of it is still to come. *message stays valid until ulc_receive_claimed(),
 * ulc_discard() or ulc_close(). On error *message is NULL. */
ULC_API int ulc_claim(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                      ulc_message** message, ulc_status* status);

/** Starts the receive of a claimed message into `count` pieces, as ulc_receivev(). If its source
 * died meanwhile and the message is not whole, the request ends with PEER_DIED. Cannot be
 * cancelled. On ULC_OK `message` is not valid any more. Errors: INVALID, CLOSED; then it is still
 * the caller's. Cost: one copy of what has arrived; what is still to come goes straight into the
 * buffer. */
ULC_API int ulc_receive_claimed(ulc_endpoint* ep, ulc_message* message, const ulc_piece* pieces,
                                unsigned count, ulc_request* req);

/** Throws a claimed message away, also what is still to come of it; `message` is not valid any
 * more. Errors: INVALID. */
ULC_API int ulc_discard(ulc_endpoint* ep, ulc_message* message);

/** Returns memory of the send arena; what is sent from there is not copied. NULL: none left. */
ULC_API void* ulc_alloc(ulc_endpoint* ep, size_t bytes);
ULC_API void ulc_free(ulc_endpoint* ep, void* memory); /**< Gives it back. NULL is allowed. */

/** @} */ /** @defgroup ulc_progress Progress */ /** @{ */
/** Takes what the engine has completed, and returns the number of events, ≥ 0. An embedded engine
 * runs one round, in which it sees new submissions: a message stays here if the program computes
 * after ulc_send(). ulc_wait_for() and the end of a collective leave no submission unseen.
 *
 * Errors, negated: an error that ended the endpoint; or LIMIT, which does not end it: messages
 * without a receive fill 1 GiB, or ULC_UNEXPECTED_BYTES. Receive some and go on; nothing is lost.
 * One sender's fill at most as much as is left; then it waits. Cost: no system call, except a look
 * whether the engine's process lives while it has shown no life for 4 ms. */
ULC_API int ulc_poll(ulc_endpoint* ep);
/** Returns how many polls in succession found nothing, not even a frame of a long message (an
 * embedded engine's). A wait loop of the program's own yields its core after many of them. */
ULC_API unsigned ulc_empty_polls(const ulc_endpoint* ep);

/** Handles, within ulc_poll() and whatever polls, an event that belongs to no request:
 * - LOST: `count` packets from rank `source` were lost (profile "detect"; others repair); a message
 *   that lacks one is not delivered, or ends CORRUPT if a part of it was
 * - PORT_DOWN: `count` packets of ours did not leave: the link was down (profile "detect")
 * - PEER_SLOW: rank `source` held up multicasts of ours for `count` ms: it takes them too slowly,
 *   or loses many (ulc_set_hold())
 * - PEER_SILENT: the same; it does not answer
 * - EXCLUDED: ulc_set_hold() at either node has ended the relation with rank `source`
 * - TRUNCATED: a message of `count` bytes from rank `source` is longer than its receive
 * - LIMIT: messages of rank `source` hold `count` bytes, and it waits until some are received
 * - PEER_LEFT, PEER_DIED: the last `count` unicasts to rank `source`, which has ended, were not
 *   acknowledged, whether or not they had a request; comes in parts; not for links
 *
 * It must not call functions of this endpoint. */
typedef void (*ulc_error_handler)(void* context, int error, uint16_t source, uint64_t count);
/** Sets the error handler and its first argument. NULL: none, as after ulc_open(). */
ULC_API void ulc_set_error_handler(ulc_endpoint* ep, ulc_error_handler handler, void* context);

/** Blocks until ulc_poll() took an event, at most timeout_ns: spins, then yields, then sleeps
 * (Express §3.2). A message that an earlier poll took is no event: test, probe or take first.
 * Errors: TIMEOUT, CLOSED, CORRUPT, NO_ENGINE (the engine died), LIMIT (see ulc_poll()). */
ULC_API int ulc_wait(ulc_endpoint* ep, int64_t timeout_ns);
/** Waits until the request is done, and fills *status (may be NULL). Blocks, at most timeout_ns.
 * Errors: those of ulc_wait(); of the operation: status->error. */
ULC_API int ulc_wait_for(ulc_endpoint* ep, ulc_request* req, ulc_status* status,
                         int64_t timeout_ns);

/** @} */ /** @defgroup ulc_texts Texts */     /** @{ */
ULC_API const char* ulc_error_text(int error); /**< Returns the sentence of an error. */
/** Returns what the last failing call of this thread found, and what to do. Never NULL. */
ULC_API const char* ulc_last_error_text(void);
ULC_API const char* ulc_version(void); /**< Returns the version of the library, as "0.2.0". */

/** @} */

#ifdef __cplusplus
}
#endif
#endif
