// SPDX-License-Identifier: BSD-3-Clause
// Timed packet scripts: a real member (rank 0) against frames written by hand. One script a file in
// urtp/:
//
//   # comment
//   job 3 window=32 first=4294967295      first non-comment line: size of the job, then parameters
//                                         (times in us); profile=urtp-1997 is laid over them
//   port busy | idle                      frames stay in the port until it is idle; idle at first
//   at 10us                               the clock advances; timers before that time fire
//   recv DATA from=1 seq=1 text=b         a frame arrives (fields below; flags default to FL)
//   send stream=1 text=hello              the client submits one packet; `send … blocked` expects a
//                                         refusal
//   group 1 ranks=0,2                     a group of the member
//   receive from=1                        the client has a pending receive that names the source
//   deliver from=1 a b                    exactly these are ready, and taken
//   expect REQ to=1 next=0 within=20us    the next frame out is this one, at the latest then; the
//                                         clock advances there
//   nothing for=100us                     no frame goes out
//   event died 1 within=3s                a peer is reported
//   drained                               nothing is unacknowledged
//   count drop_duplicate 1                a counter's value
//
// Fields: DATA, MCAST: seq flags text ack=stream:next after=stream:seq,… subset; ACK:
// entries=stream:next[:credit[:delay in us, 65535: unknown]],…; REQ: stream next bitmap(hex);
// PROBE: stream seq. Streams: a rank, `world`, or gN. All frames: from or to (rank or `all`), and
// mac=RANK for a sender's address that is another's. An expected frame must have the named fields;
// frames that no line expects fail the script.
#pragma once

#include <string>

namespace ulc::urtp::test {

/// Returns an empty string if the script passed, else "line N: the fault".
std::string run_script(const std::string& text);

}  // namespace ulc::urtp::test
