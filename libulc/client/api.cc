// SPDX-License-Identifier: BSD-3-Clause
// The C entries: argument checks, the values that users may pass, and the blocking calls made from
// non-blocking ones.
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "abi/attach.h"
#include "abi/client_notes.h"
#include "abi/engine_entry.h"
#include "base/check.h"
#include "base/coarse_clock.h"
#include "client/attach/attach_client.h"
#include "client/attach/defaults.h"
#include "client/attach/embedded_client.h"
#include "client/attach/waiting.h"
#include "client/blocking.h"
#include "client/error_text.h"
#include "client/p2p/tags.h"
#include "client/ulc.h"
#include "client/ulc_internal.h"
#include "client/ulc_meeting.h"
#include "client/ulc_memory.h"
#include "client/ulc_upcall.h"

namespace {

using ulc::Nanos;
using ulc::client::deadline_in;
using ulc::client::env;
using ulc::client::env_number;
using ulc::client::kAnySource;
using ulc::client::kUserTagBit;
using ulc::client::left_of;
using ulc::client::Pieces;
using ulc::client::Request;
using ulc::client::RequestState;
using ulc::client::set_last_error;

constexpr char kEmbedded[] = "embedded:";
constexpr Nanos kCloseMax = 2 * ulc::kSecond;
constexpr std::uint64_t kPatienceMsMax = 3'600'000;
constexpr Nanos kLeaveMax = 15 * ulc::kSecond;
static_assert(ULC_RANK_ANY == kAnySource);

/// Returns ULC_MEDIUM as JoinRequest::medium. Returns false if there is no such medium; the error's
/// text is set.
bool say_medium(std::uint16_t& out) {
    const char* word = env("ULC_MEDIUM");
    if (word == nullptr) return true;
    ulc::Medium medium{};
    if (!ulc::medium_of(word, medium) || medium >= ulc::Medium::kNode) {
        set_last_error(
            "ULC_MEDIUM=%s is not a medium; say switch, hub, shallow, machine or crowded", word);
        return false;
    }
    out = static_cast<std::uint16_t>(1 + static_cast<std::uint8_t>(medium));
    return true;
}

/// Splits "where#net" into where and net; a '#' with a '/' behind it is part of the path. No net:
/// ULC_NET's, else "". Returns false if it is too long.
bool split_net(std::string& where, std::string& net) {
    const std::size_t hash = where.rfind('#');
    if (hash != std::string::npos && where.find('/', hash) == std::string::npos) {
        net = where.substr(hash + 1);
        where.resize(hash);
    } else if (const char* given = env("ULC_NET")) {
        net = given;
    }
    return net.size() < ulc::abi::kNetNameOctetsMax;
}

void tell(const Request& request, ulc_status& status) {
    status = {};
    status.error = request.error;
    status.source = request.source;
    status.group = (request.stream >> 31) != 0 ? request.stream : 0;
    status.tag = request.tag;
    status.length = request.length;
}

}  // namespace

extern "C" {

// ---------------------------------------------------------------- endpoints

int ulc_open(const char* engine, ulc_endpoint** out) {
    if (out == nullptr) return ULC_ERR_INVALID;
    *out = nullptr;
    if (engine == nullptr) engine = env("ULC_ENGINE");
    if (engine == nullptr) engine = ulc::abi::kDefaultSocketPath;
    ulc::client::Limits limits;
    // The second name is the former one.
    if (!env_number("ULC_UNEXPECTED_BYTES", UINT64_MAX, limits.unexpected_octets))
        static_cast<void>(
            env_number("ULC_UNEXPECTED_OCTETS", UINT64_MAX, limits.unexpected_octets));
    static_cast<void>(env_number("ULC_COLL_CHECK", 1, limits.check_collectives));
    static_cast<void>(env_number("ULC_COLL_PATIENCE_MS", kPatienceMsMax, limits.patience_ms));
    static_cast<void>(env_number("ULC_OFFLOAD", 1, limits.offload));
    if (!say_medium(limits.medium)) return ULC_ERR_INVALID;
    const std::size_t prefix = sizeof kEmbedded - 1;
    try {
        std::string where = engine;
        std::string net;
        if (!ulc::client::choose_node(where)) return ULC_ERR_INVALID;
        if (!split_net(where, net)) {
            set_last_error("%s: a net's name has at most %zu octets", net.c_str(),
                           ulc::abi::kNetNameOctetsMax - 1);
            return ULC_ERR_INVALID;
        }
        auto endpoint =
            where.starts_with(kEmbedded)
                ? ulc::client::attach_embedded(where.c_str() + prefix, net.c_str(), limits)
                : ulc::client::attach_daemon(where.c_str(), net.c_str(), limits);
        if (!endpoint) return static_cast<int>(endpoint.error());
        endpoint.value()->membership().opened_as(engine);
        *out = endpoint.value().release();
    } catch (const std::bad_alloc&) {
        set_last_error("memory is exhausted");
        return ULC_ERR_NO_MEMORY;
    }
    return ULC_OK;
}

void ulc_close(ulc_endpoint* ep) {
    if (ep == nullptr) return;
    // Sends without a request that still wait for space were promised: submit them, within bounds.
    // An embedded engine ends with this process, so its data must also be acknowledged: leave.
    if (ep->membership().job_state() == ULC_OK && ep->hooks().progress != nullptr) {
        static_cast<void>(ulc_leave_wait(ep, kLeaveMax));
    } else if (ep->membership().job_state() == ULC_OK) {
        ep->messages().push_announced();
        const Nanos deadline = deadline_in(*ep, kCloseMax);
        while (!ep->messages().outbox().all_submitted() && left_of(*ep, deadline) > 0)
            if (ep->waiter.wait(left_of(*ep, deadline)) != ULC_OK) break;
    }
    delete ep;
}

// ---------------------------------------------------------------- jobs

void ulc_set_error_handler(ulc_endpoint* ep, ulc_error_handler handler, void* context) {
    if (ep != nullptr) ep->messages().set_error_handler({handler, context});
}

int ulc_set_patience(ulc_endpoint* ep, int64_t patience_ns) {
    if (ep == nullptr || patience_ns < 0) return ULC_ERR_INVALID;
    ep->membership().set_patience(patience_ns);
    return ULC_OK;
}

int ulc_set_profile(ulc_endpoint* ep, const char* profile) {
    if (ep == nullptr) return ULC_ERR_INVALID;
    return ep->membership().set_profile(profile != nullptr ? profile : "");
}

int ulc_join(ulc_endpoint* ep, const char* job, uint16_t rank, uint16_t size,
             const unsigned char* nonce) {
    if (ep == nullptr || job == nullptr) return ULC_ERR_INVALID;
    return ep->membership().join(job, std::strlen(job), rank, size, nonce, 0);
}

int ulc_meeting(ulc_endpoint* ep, char* text, size_t size) {
    if (ep == nullptr || text == nullptr || size == 0) return ULC_ERR_INVALID;
    *text = '\0';
    const ulc::client::Hooks& hooks = ep->hooks();
    if (hooks.addresses == nullptr) return ULC_OK;
    return hooks.addresses(hooks.context, text, static_cast<std::uint32_t>(size));
}

int ulc_meet(ulc_endpoint* ep, const char* text) {
    if (ep == nullptr || text == nullptr) return ULC_ERR_INVALID;
    const ulc::client::Hooks& hooks = ep->hooks();
    if (*text == '\0' || hooks.meet == nullptr) return ULC_OK;
    return hooks.meet(hooks.context, text);
}

int ulc_job_state(const ulc_endpoint* ep) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->membership().job_state();
}

int ulc_join_wait(ulc_endpoint* ep, const char* job, uint16_t rank, uint16_t size,
                  int64_t timeout_ns) {
    if (ep == nullptr || timeout_ns < 0) return ULC_ERR_INVALID;
    const Nanos deadline = deadline_in(*ep, timeout_ns);
    ulc::client::JoinPlace place;
    try {
        place.job = job != nullptr ? job : "";
        place.rank = rank;
        place.size = size;
        static_assert(ULC_MEETING_MAX == ulc::abi::kMeetingOctets);
        char text[ULC_MEETING_MAX] = "";
        static_cast<void>(ulc_meeting(ep, text, sizeof text));
        place.own_addresses = text;
        if (!ulc::client::complete_place(place, timeout_ns)) return ULC_ERR_INVALID;
        if (ulc_meet(ep, place.rank_0_addresses.c_str()) != ULC_OK) {
            set_last_error("rank 0 gave no addresses of an engine: \"%s\"; use one version of ULC",
                           place.rank_0_addresses.c_str());
            return ULC_ERR_INVALID;
        }
    } catch (const std::bad_alloc&) {
        set_last_error("memory is exhausted");
        return ULC_ERR_NO_MEMORY;
    }
    job = place.job.c_str();
    if (const char* profile = env("ULC_PROFILE");
        profile != nullptr && ep->membership().recall().profile.empty()) {
        if (ep->membership().set_profile(profile) == ULC_ERR_INVALID &&
            ep->membership().job_state() == ULC_ERR_NOT_FORMED) {
            set_last_error("ULC_PROFILE=%s is longer than 32 letters", profile);
            return ULC_ERR_INVALID;
        }
    }
    const int error =
        ep->membership().join(job, place.job.size(), place.rank, place.size,
                              place.has_nonce ? place.nonce : nullptr, left_of(*ep, deadline));
    if (error != ULC_OK) return error;
    return ulc::client::wait_until_formed(*ep, job, deadline);
}

// ---------------------------------------------------------------- links

int ulc_open_links(ulc_endpoint* ep, uint16_t links) {
    if (ep == nullptr) return ULC_ERR_INVALID;
    unsigned char key[16] = {};
    while (std::ranges::all_of(key, [](unsigned char octet) { return octet == 0; })) {
        if (getrandom(key, sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
            set_last_error("getrandom: %s", std::strerror(errno));
            return ULC_ERR_SYSTEM;
        }
    }
    return ep->membership().open_links(links, key);
}

int ulc_open_links_wait(ulc_endpoint* ep, uint16_t links, int64_t timeout_ns) {
    if (ep == nullptr || timeout_ns < 0) return ULC_ERR_INVALID;
    const Nanos deadline = deadline_in(*ep, timeout_ns);
    const int error = ulc_open_links(ep, links);
    return error != ULC_OK ? error : ulc::client::wait_until_open(*ep, deadline);
}

int ulc_address(const ulc_endpoint* ep, ulc_link_address* out) {
    return ep == nullptr || out == nullptr ? int{ULC_ERR_INVALID} : ep->links().address(*out);
}

int ulc_link(ulc_endpoint* ep, const ulc_link_address* peer, int64_t timeout_ns, ulc_request* req) {
    if (ep == nullptr || peer == nullptr || req == nullptr || timeout_ns < 0)
        return ULC_ERR_INVALID;
    return ep->links().link(*peer, timeout_ns, req);
}

int ulc_next_peer(ulc_endpoint* ep, uint16_t* peer) {
    return ep == nullptr || peer == nullptr ? int{ULC_ERR_INVALID} : ep->links().next_peer(*peer);
}

int ulc_unlink(ulc_endpoint* ep, uint16_t peer, ulc_request* req) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->links().unlink(peer, req);
}

int ulc_upcall(ulc_endpoint* ep, ulc_upcall_handler handler, void* context) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->interrupts.set_handler(handler, context);
}

int ulc_promise(ulc_endpoint* ep, int polls) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->interrupts.promise(polls != 0);
}

int ulc_borrow(ulc_endpoint* ep) {
    if (ep == nullptr) return ULC_ERR_INVALID;
    return ep->interrupts.borrow() ? ULC_OK : ULC_ERR_AGAIN;
}

int ulc_give_back(ulc_endpoint* ep, int interrupt) {
    if (ep == nullptr) return ULC_ERR_INVALID;
    ep->interrupts.give_back(interrupt != 0);
    return ULC_OK;
}

void ulc_show_handler(ulc_endpoint* ep, enum ulc_handler_kind kind, uint16_t number) {
    if (ep == nullptr) return;
    const std::uint32_t since = kind == ULC_HANDLER_NONE ? 0 : ulc::coarse_milliseconds();
    const std::uint64_t word =
        kind == ULC_HANDLER_NONE
            ? 0
            : ulc::abi::handler_word(static_cast<ulc::abi::HandlerKind>(kind), number, since);
    ulc::abi::notes_of(ep->region()).handler.store(word, std::memory_order_relaxed);
}

uint16_t ulc_rank(const ulc_endpoint* ep) { return ep->membership().rank(); }
uint16_t ulc_size(const ulc_endpoint* ep) { return ep->membership().size(); }
ulc_group ulc_world(const ulc_endpoint* ep) { return ep->membership().world(); }
int ulc_peer_state(const ulc_endpoint* ep, uint16_t rank) {
    return ep->membership().peer_state(rank);
}

int ulc_leave(ulc_endpoint* ep) { return ep == nullptr ? int{ULC_ERR_INVALID} : ep->leave(); }

int ulc_leave_wait(ulc_endpoint* ep, int64_t timeout_ns) {
    if (ep == nullptr || timeout_ns < 0) return ULC_ERR_INVALID;
    const Nanos deadline = deadline_in(*ep, timeout_ns);
    int error = ep->leave();
    if (error == ULC_ERR_CLOSED) return ULC_OK;
    while (error == ULC_OK && ep->membership().job_state() == ULC_ERR_AGAIN)
        error = ep->waiter.wait(left_of(*ep, deadline));
    if (error == ULC_ERR_TIMEOUT && ep->membership().job_state() == ULC_ERR_AGAIN) return error;
    return ep->membership().left_error();
}

// ---------------------------------------------------------------- groups

int ulc_group_create(ulc_endpoint* ep, const uint16_t* ranks, uint16_t count, ulc_request* req) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->groups().create(ranks, count, nullptr, req);
}

int ulc_group_create_keyed(ulc_endpoint* ep, const uint16_t* ranks, uint16_t count, uint64_t key,
                           ulc_request* req) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->groups().create(ranks, count, &key, req);
}

int ulc_group_free(ulc_endpoint* ep, ulc_group group) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->groups().free(group);
}

int ulc_set_hold(ulc_endpoint* ep, int64_t limit_ns, unsigned flags, const uint16_t* keep,
                 unsigned count) {
    if (ep == nullptr || limit_ns <= 0 || flags > ULC_HOLD_EXCLUDE || count > ULC_HOLD_KEEP_MAX ||
        (keep == nullptr && count > 0))
        return ULC_ERR_INVALID;
    return ep->groups().set_hold(limit_ns, flags, {keep, count});
}

int ulc_group_slowest(const ulc_endpoint* ep, ulc_group group, ulc_holder* holder) {
    const auto* found = ep == nullptr ? nullptr : ep->groups().find(group);
    if (found == nullptr || holder == nullptr) return ULC_ERR_INVALID;
    if (found->slowest.error == ULC_OK) return ULC_ERR_AGAIN;
    *holder = found->slowest;
    return ULC_OK;
}

uint16_t ulc_group_size(const ulc_endpoint* ep, ulc_group group) {
    const auto* found = ep->groups().find(group);
    return found == nullptr ? uint16_t{0} : static_cast<uint16_t>(found->ranks.size());
}

uint16_t ulc_group_index(const ulc_endpoint* ep, ulc_group group) {
    const auto* found = ep->groups().find(group);
    return found == nullptr ? ULC_RANK_ANY : found->own_index;
}

uint16_t ulc_group_rank(const ulc_endpoint* ep, ulc_group group, uint16_t index) {
    const auto* found = ep->groups().find(group);
    if (found == nullptr || index >= found->ranks.size()) return ULC_RANK_ANY;
    return found->ranks[index];
}

// ---------------------------------------------------------------- messages

int ulc_send(ulc_endpoint* ep, uint16_t to, uint64_t tag, const void* payload, size_t length,
             ulc_request* req) {
    if (ep == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    if (payload == nullptr && length > 0) return ULC_ERR_INVALID;
    return ep->messages().send(to, tag, Pieces::one(payload, length), 0, req);
}

int ulc_multicast(ulc_endpoint* ep, ulc_group group, uint64_t subset, uint64_t tag,
                  const void* payload, size_t length, ulc_request* req) {
    if (ep == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    if (payload == nullptr && length > 0) return ULC_ERR_INVALID;
    return ep->messages().multicast(group, subset, tag, Pieces::one(payload, length), 0, req);
}

int ulc_receive(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, void* buffer,
                size_t capacity, ulc_request* req) {
    if (ep == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    if (buffer == nullptr && capacity > 0) return ULC_ERR_INVALID;
    return ep->messages().receive(from, tag, mask | kUserTagBit, Pieces::one(buffer, capacity),
                                  req);
}

uint16_t ulc_internal_per_node(ulc_endpoint* ep, ulc_group group) {
    const auto* found = ep->groups().find(group);
    return found == nullptr ? uint16_t{0} : found->per_node;
}

uint8_t ulc_internal_medium(const ulc_endpoint* ep) {
    return static_cast<uint8_t>(ep->membership().medium());
}

// With near rings neither side would count what the engine sends for itself.
int ulc_internal_offloads(const ulc_endpoint* ep) {
    return ep->collectives().offloads && ep->messages().near() == nullptr ? 1 : 0;
}

// Either all receives start or none: a message that was taken could not be given back.
int ulc_multireceive(ulc_endpoint* ep, const uint16_t* from, uint16_t count, uint64_t tag,
                     uint64_t mask, void* const* buffers, size_t capacity, ulc_request* requests) {
    if (ep == nullptr || from == nullptr || buffers == nullptr || requests == nullptr)
        return ULC_ERR_INVALID;
    for (uint16_t i = 0; i < count; ++i) {
        if (from[i] == ULC_RANK_ANY || from[i] >= ep->membership().size()) return ULC_ERR_INVALID;
        if (std::find(from, from + i, from[i]) != from + i) return ULC_ERR_INVALID;
        if (buffers[i] == nullptr && capacity > 0) return ULC_ERR_INVALID;
    }
    for (uint16_t i = 0; i < count; ++i) {
        const int error = ulc_receive(ep, from[i], tag, mask, buffers[i], capacity, &requests[i]);
        if (error == ULC_OK) continue;
        ULC_CHECK(i == 0);  // the endpoint's state is the reason
        return error;
    }
    return ULC_OK;
}

int ulc_test(ulc_endpoint* ep, ulc_request* req, ulc_status* status) {
    if (ep == nullptr || req == nullptr) return ULC_ERR_INVALID;
    const Request& request = Request::of(req);
    if (request.state != RequestState::kDone) return ULC_ERR_AGAIN;
    if (status != nullptr) tell(request, *status);
    return ULC_OK;
}

int ulc_collect(ulc_endpoint* ep, ulc_request* req) {
    if (ep == nullptr || req == nullptr) return ULC_ERR_INVALID;
    return ep->messages().collector().add(Request::of(req)) ? ULC_OK : ULC_ERR_INVALID;
}

ulc_request* ulc_next_done(ulc_endpoint* ep, ulc_status* status) {
    Request* request = ep == nullptr ? nullptr : ep->messages().collector().ended.pop_front();
    if (request == nullptr) return nullptr;
    if (status != nullptr) tell(*request, *status);
    return Request::memory_of(*request);
}

int ulc_cancel(ulc_endpoint* ep, ulc_request* req) {
    if (ep == nullptr || req == nullptr) return ULC_ERR_INVALID;
    return ep->messages().cancel(req);
}

int ulc_move_payload(ulc_endpoint* ep, ulc_request* req, void* copy, size_t bytes) {
    if (ep == nullptr || req == nullptr || copy == nullptr) return ULC_ERR_INVALID;
    return ep->messages().move_payload(req, static_cast<unsigned char*>(copy), bytes);
}

int ulc_abandon(ulc_endpoint* ep, ulc_request* req) {
    return ep == nullptr || req == nullptr ? int{ULC_ERR_INVALID} : ep->messages().abandon(req);
}

int ulc_take(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, const void** view,
             ulc_status* status) {
    if (ep == nullptr || view == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    ulc_status unused;
    return ep->messages().take(from, tag, mask | kUserTagBit, view,
                               status != nullptr ? status : &unused);
}

void ulc_release(ulc_endpoint* ep, const void* view) { ep->messages().inbox().release(view); }

int ulc_lend_frames(ulc_endpoint* ep, int lend) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->lend_frames(lend != 0);
}

void* ulc_alloc(ulc_endpoint* ep, size_t octets) {
    return ep->messages().outbox().arena().allocate_memory(octets);
}

void ulc_free(ulc_endpoint* ep, void* memory) {
    ep->messages().outbox().arena().free_memory(memory);
}

// ---------------------------------------------------------------- progress

int ulc_poll(ulc_endpoint* ep) { return ep->poll(); }

unsigned ulc_empty_polls(const ulc_endpoint* ep) { return ep->empty_polls(); }

int ulc_wait(ulc_endpoint* ep, int64_t timeout_ns) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->waiter.wait(timeout_ns);
}

int ulc_wait_for(ulc_endpoint* ep, ulc_request* req, ulc_status* status, int64_t timeout_ns) {
    if (ep == nullptr || req == nullptr) return ULC_ERR_INVALID;
    int error = ulc_test(ep, req, status);
    const bool waits = error == ULC_ERR_AGAIN;
    const Nanos deadline = waits ? deadline_in(*ep, timeout_ns) : 0;
    while (error == ULC_ERR_AGAIN) {
        const int waited = ep->waiter.wait(left_of(*ep, deadline));
        error = ulc_test(ep, req, status);
        if (error == ULC_ERR_AGAIN && waited != ULC_OK) return waited;
    }
    ep->waiter.before_leaving(waits);
    return error;
}
}
