/* Entries for coll/ alone, not exported by libulc.so: ulc_send(), ulc_multicast() and ulc_receive() with tags whose top
 * bit is set. User receives never match such tags, whatever their mask.
 *
 *   bit 63 62   0 x: users     1 0: coll/     1 1: libulc itself (group creation)
 */
#ifndef ULC_INTERNAL_H
#define ULC_INTERNAL_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ULC_TAG_COLL (UINT64_C(1) << 63)
#define ULC_TAG_LIBULC (UINT64_C(3) << 62)
/* What is left to coll/ for its own use. */
#define ULC_TAG_COLL_MASK (~(UINT64_C(3) << 62))

/* As ulc_send(), ulc_multicast(), ulc_receive(); tag must have ULC_TAG_COLL set and bit 62 clear, else INVALID. */
int ulc_internal_send(ulc_endpoint* ep, uint16_t to, uint64_t tag, const void* payload,
                      size_t length, ulc_request* req);
int ulc_internal_multicast(ulc_endpoint* ep, ulc_group group, uint64_t subset, uint64_t tag,
                           const void* payload, size_t length, ulc_request* req);
/* mask: bits 62 and 63 count as set. */
int ulc_internal_receive(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, void* buffer,
                         size_t capacity, ulc_request* req);

/* Looks for a message that no receive has taken, the first that such a receive would: its tag. Errors: AGAIN (none). */
int ulc_internal_peek(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                      uint64_t* found);

/* What all members of a group know alike: the most of its ranks on one node (0: no member), and the job's ulc::Medium. */
uint16_t ulc_internal_per_node(ulc_endpoint* ep, ulc_group group);
uint8_t ulc_internal_medium(const ulc_endpoint* ep);
/* Not 0: collectives that are started go to the engine (ULC_OFFLOAD). */
int ulc_internal_offloads(const ulc_endpoint* ep);

#ifdef __cplusplus
}
#endif
#endif
