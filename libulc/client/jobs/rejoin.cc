// SPDX-License-Identifier: BSD-3-Clause
// This file takes an application through the end of its engine: ulc_rejoin() opens an endpoint on
// the next engine of the same name and joins the same job.
//
//   leave, if the engine lives ─▶ open until an engine serves ─▶ join until the job has formed
//                                         ▲                             │ that engine ends too
//                                         └─────────────────────────────┘
//
// The old endpoint is freed last, so that the caller has one after each error. It has ended by
// then: its requests are done, and a rank that its engine still knew has left the job.
#include <string>

#include "base/clock.h"
#include "client/attach/waiting.h"
#include "client/blocking.h"
#include "client/error_text.h"
#include "client/ulc_names.h"

namespace {

using ulc::Nanos;
using ulc::client::deadline_in;
using ulc::client::left_of;
using ulc::client::Recall;
using ulc::client::set_last_error;

constexpr Nanos kTryApart = 5 * ulc::kMillisecond;

/// Returns false if the deadline is reached.
bool pause_until(Nanos deadline) {
    const Nanos left = deadline == ULC_WAIT_FOREVER ? kTryApart : deadline - ulc::monotonic_now();
    if (left <= 0) return false;
    const timespec nap{0, static_cast<long>(std::min(left, kTryApart))};
    nanosleep(&nap, nullptr);
    return true;
}

/// True if an engine that starts, stops or is full may be the reason.
bool engine_may_come(int error) {
    return error == ULC_ERR_NO_ENGINE || error == ULC_ERR_CLOSED || error == ULC_ERR_TIMEOUT ||
           error == ULC_ERR_LIMIT;
}

/// True if ranks of the earlier incarnation may be the reason, which the others hold for alive yet.
bool may_form_later(int error) {
    return error == ULC_ERR_RANK_TAKEN || error == ULC_ERR_TWO_ROSTERS ||
           error == ULC_ERR_JOB_SIZE || error == ULC_ERR_LIMIT;
}

int open_again(const std::string& engine, Nanos deadline, ulc_endpoint** out) {
    for (;;) {
        const int error = ulc_open(engine.c_str(), out);
        if (!engine_may_come(error) || !pause_until(deadline)) return error;
    }
}

/// Joins or opens for links as was done before; nothing if neither was.
int join_once(ulc_endpoint& ep, const Recall& before, Nanos deadline) {
    if (before.links != 0) {
        const bool named = before.name.bytes[1] == ulc::abi::NamedAddress::kMark;
        return named
                   ? ulc_open_links_as_wait(&ep, before.links, &before.name, left_of(ep, deadline))
                   : ulc_open_links_wait(&ep, before.links, left_of(ep, deadline));
    }
    const ulc::abi::JoinRequest& place = before.join;
    if (place.name_length == 0) return ULC_OK;
    const std::string job(place.name, place.name_length);
    const int error = ep.membership().join(job.data(), job.size(), place.rank, place.size,
                                           place.nonce, left_of(ep, deadline));
    return error != ULC_OK ? error : wait_until_formed(ep, job.c_str(), deadline);
}

int join_again(ulc_endpoint& ep, const Recall& before, Nanos deadline) {
    for (;;) {
        const int error = join_once(ep, before, deadline);
        if (!may_form_later(error) || !pause_until(deadline)) return error;
    }
}

}  // namespace

extern "C" int ulc_rejoin(ulc_endpoint** ep, int64_t timeout_ns) {
    if (ep == nullptr || *ep == nullptr || timeout_ns < 0) return ULC_ERR_INVALID;
    ulc_endpoint& old = **ep;
    const Nanos deadline = deadline_in(old, timeout_ns);
    const int left = old.ended() != 0 ? ULC_OK : ulc_leave_wait(&old, left_of(old, deadline));
    if (old.ended() == 0) return left;
    try {
        ulc_endpoint* next = nullptr;
        for (;;) {
            int error = open_again(old.membership().recall().engine, deadline, &next);
            if (error != ULC_OK) return error;
            next->prepare_as(old);
            error = join_again(*next, old.membership().recall(), deadline);
            if (error == ULC_OK) break;
            const bool ended = next->ended() != 0;
            ulc_close(next);
            if (!ended || !pause_until(deadline)) return error;
        }
        next->messages().collector().take_from(old.messages().collector());
        ulc_close(&old);
        *ep = next;
    } catch (const std::bad_alloc&) {
        set_last_error("memory is exhausted");
        return ULC_ERR_NO_MEMORY;
    }
    return ULC_OK;
}
