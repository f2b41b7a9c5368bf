/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of endpoints that are open for links: processes that share a secret find each other without
 * an address that one hands to the other. A part of libulc, next to ulc.h.
 *
 *     ulc_link_address name;
 *     ulc_link_name("printer", secret, &name);
 *     ulc_open_links_as_wait(ep, 8, &name, ULC_WAIT_FOREVER);     here
 *     ulc_link(other, &name, 0, &request);                       elsewhere, on any node of the wire
 */
#ifndef ULC_NAMES_H
#define ULC_NAMES_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ULC_NAME_BYTES 14
#define ULC_NAME_SECRET_BYTES 16

/* Makes the address that stands for the endpoint which is open under `name`, 1 … 14 letters.
 * secret: 16 bytes, not all 0, of getrandom() or another source of secrets. The two together permit
 * to link to the endpoint; the name alone tells nothing. ulc_link() to the address looks the
 * endpoint up first, on all nodes of the wire, until its time limit: it finds an endpoint that is
 * opened later too. If two nodes have endpoints of one name, the first answer counts. Errors:
 * INVALID. Threads: any. */
ULC_API int ulc_link_name(const char* name, const void* secret, ulc_link_address* out);

/* As ulc_open_links(), under a name of ulc_link_name(). Errors: INVALID (no such name), those of
 * ulc_open_links(); of ulc_job_state() also RANK_TAKEN (an endpoint of that name is open at the
 * same engine). Threads: the endpoint's. Cost: as ulc_open_links(). */
ULC_API int ulc_open_links_as(ulc_endpoint* ep, uint16_t links, const ulc_link_address* name);
/* ulc_open_links_as() and wait. */
ULC_API int ulc_open_links_as_wait(ulc_endpoint* ep, uint16_t links, const ulc_link_address* name,
                                   int64_t timeout_ns);

#ifdef __cplusplus
}
#endif
#endif
