/* SPDX-License-Identifier: BSD-3-Clause */
/* Meeting of engines inside processes, on wires that find no nodes themselves, such as UDP. For
 * libraries on top of libulc that reach their peers before they join; not installed.
 * ulc_join_wait() does the same through the launcher. */
#ifndef ULC_MEETING_H
#define ULC_MEETING_H

#include <ulc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Octets of such a text at most, with its terminator. */
#define ULC_MEETING_MAX 256

/* Writes where other engines can ask for the endpoint's, as "10.0.0.5:4001,192.168.0.5:4001"; "" if
 * its wire needs no such word. Errors: INVALID (the text is longer than `size`). Threads: any.
 * Cost: system calls. */
ULC_API int ulc_meeting(ulc_endpoint* ep, char* text, size_t size);

/* Lets the endpoint's engine ask for nodes there: one node that all others ask is enough. Called
 * before the job forms. "" changes nothing. Errors: INVALID (it is no such text), TIMEOUT.
 * Threads: any. */
ULC_API int ulc_meet(ulc_endpoint* ep, const char* text);

#ifdef __cplusplus
}
#endif
#endif
