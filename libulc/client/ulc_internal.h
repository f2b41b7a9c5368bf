/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries for coll/ alone, not exported by libulc.so, and the classes of tags. User receives never
 * match tags with the top bit set, whatever their mask.
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

/* The most ranks of a group on one node (0: no member), and the job's ulc::Medium. All members get
 * the same. */
uint16_t ulc_internal_per_node(ulc_endpoint* ep, ulc_group group);
uint8_t ulc_internal_medium(const ulc_endpoint* ep);
/* Not 0: collectives that are started go to the engine (ULC_OFFLOAD). */
int ulc_internal_offloads(const ulc_endpoint* ep);

#ifdef __cplusplus
}
#endif
#endif
