// SPDX-License-Identifier: BSD-3-Clause
#include "plain_ulc.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/process_start.h"
#include "client/ulc_meeting.h"
#include "client/ulc_memory.h"

struct ulc_message {
    std::uint16_t source;
    std::uint64_t tag;
    std::vector<unsigned char> bytes;
};

struct ulc_endpoint {
    struct Posted {
        ulc_request* request;
        std::uint16_t from;
        std::uint64_t tag;
        std::uint64_t mask;
        std::vector<ulc_piece> pieces;
        ulc_part_giver give_part = nullptr;
    };
    std::list<Posted> posted;
    std::list<ulc_message> unexpected;
    std::list<ulc_message> claimed;
    std::set<ulc_request*> collected;
    std::map<ulc_request*, ulc_status> done;
    std::deque<ulc_request*> to_hand_out;
    std::uint64_t malformed_taken = 0;
    ulc::fuzz::Sent last_sent{};
    bool formed = true;
    bool loops = false;
    bool moves_frames = false;
    bool holds_sends = false;
    std::vector<ulc_request*> held;
};

namespace {

ulc_endpoint* open_one = nullptr;
ulc_near_process peers_process{};
int near_error = ULC_OK;
bool has_endpoints = true;
bool has_links = false;

constexpr std::uint64_t kProvidersOwn = std::uint64_t{1} << 61;
constexpr std::uint64_t kWholeMessage = std::uint64_t{1} << 60;

bool is_own(std::uint64_t tag) { return tag >> 62 == 0 && (tag & kProvidersOwn) != 0; }

bool has_bits(const std::vector<unsigned char>& bytes, std::size_t from, std::size_t to) {
    return std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                       bytes.begin() + static_cast<std::ptrdiff_t>(to),
                       [](unsigned char byte) { return byte != 0; });
}

/// Written from the description of the header, not with the provider's code. `whole`: it follows
/// an announcement. `looks`: its body is read.
bool is_malformed(const std::vector<unsigned char>& bytes, bool whole, bool looks) {
    if (bytes.size() < 12 || bytes[0] != 1 || bytes[1] > 7 || bytes[2] != 0 || bytes[3] != 0)
        return true;
    const bool announces = (bytes[1] & 2) != 0;
    if (!announces) return (bytes[1] & 4) != 0 || (bytes[1] == 0 && has_bits(bytes, 4, 12));
    if (whole || bytes.size() != 36 || !has_bits(bytes, 4, 12) || bytes[11] % 16 != 0) return true;
    // At most 2^40 - 12 bytes.
    return looks && (has_bits(bytes, 12, 15) ||
                     (bytes[15] == 0xff && bytes[16] == 0xff && bytes[17] == 0xff &&
                      bytes[18] == 0xff && bytes[19] > 0xf4));
}

bool matches(const ulc_message& message, std::uint16_t from, std::uint64_t tag,
             std::uint64_t mask) {
    return (from == ULC_RANK_ANY || from == message.source) && (message.tag & mask) == (tag & mask);
}

void complete(ulc_endpoint& ep, ulc_request* request, const ulc_status& status) {
    ep.done[request] = status;
    if (ep.collected.contains(request)) ep.to_hand_out.push_back(request);
}

void give(ulc_endpoint& ep, const ulc_endpoint::Posted& to, const ulc_message& message) {
    std::size_t at = 0;
    for (const ulc_piece& piece : to.pieces) {
        const std::size_t taken = std::min(piece.length, message.bytes.size() - at);
        if (taken > 0) std::memcpy(piece.base, message.bytes.data() + at, taken);
        at += taken;
    }
    const bool own = is_own(message.tag);
    const bool whole = own && (message.tag & kWholeMessage) != 0;
    if (!own || whole) ep.malformed_taken += is_malformed(message.bytes, whole, false) ? 1 : 0;
    ulc_status status{};
    status.error = at < message.bytes.size() ? ULC_ERR_TRUNCATED : ULC_OK;
    status.source = message.source;
    status.tag = message.tag;
    status.length = message.bytes.size();
    complete(ep, to.request, status);
}

auto find(ulc_endpoint& ep, std::uint16_t from, std::uint64_t tag, std::uint64_t mask) {
    return std::ranges::find_if(
        ep.unexpected, [&](const ulc_message& one) { return matches(one, from, tag, mask); });
}

void describe(const ulc_message& message, ulc_status* status) {
    *status = {};
    status->source = message.source;
    status->tag = message.tag;
    status->length = message.bytes.size();
}

/// Gives the message to a part of a receive of many. True if that is over.
bool give_part(ulc_endpoint& ep, const ulc_endpoint::Posted& many, const ulc_message& message) {
    ulc_status status;
    describe(message, &status);
    ulc_part part{};
    many.give_part(many.request, &status, message.bytes.data(), message.bytes.size(), &part);
    ep.done.erase(part.request);
    ep.collected.insert(part.request);
    if (part.last != 0) complete(ep, many.request, {});
    give(ep, {part.request, 0, 0, 0, {part.pieces, part.pieces + part.count}}, message);
    return part.last != 0;
}

}  // namespace

namespace ulc::fuzz {

void be_in(const ulc_near_process& process) { peers_process = process; }
void be_near(int error) { near_error = error; }
void have_endpoints(bool has) { has_endpoints = has; }
void have_links(bool has) { has_links = has; }
void form() { open_one->formed = true; }
void move_frames(bool moves) { open_one->moves_frames = moves; }
void loop_back() { open_one->loops = true; }
void hold_sends(bool holds) {
    ulc_endpoint& ep = *open_one;
    ep.holds_sends = holds;
    if (holds) return;
    for (ulc_request* request : std::exchange(ep.held, {}))
        complete(ep, request, {});
}
void unform() { open_one->formed = false; }

void arrive(std::uint16_t source, std::uint64_t tag, std::vector<unsigned char> bytes) {
    ulc_endpoint& ep = *open_one;
    if (!ep.formed) return;
    ulc_message message{source, tag, std::move(bytes)};
    const auto to = std::ranges::find_if(ep.posted, [&](const ulc_endpoint::Posted& one) {
        return matches(message, one.from, one.tag, one.mask);
    });
    if (to == ep.posted.end()) {
        ep.unexpected.push_back(std::move(message));
        return;
    }
    if (to->give_part != nullptr) {
        if (give_part(ep, *to, message)) ep.posted.erase(to);
        return;
    }
    const ulc_endpoint::Posted taken = *to;
    ep.posted.erase(to);
    give(ep, taken, message);
}

void end_peer(std::uint16_t rank, int error) {
    ulc_endpoint& ep = *open_one;
    std::list<ulc_endpoint::Posted> over;
    for (auto one = ep.posted.begin(); one != ep.posted.end();) {
        const auto next = std::next(one);
        if (one->from == rank) over.splice(over.end(), ep.posted, one);
        one = next;
    }
    ulc_status status{};
    status.error = error;
    status.source = rank;
    for (const ulc_endpoint::Posted& one : over)
        complete(ep, one.request, status);
}

const Sent& last_sent() { return open_one->last_sent; }

std::size_t unexpected() { return open_one->unexpected.size(); }

std::uint64_t malformed_taken() { return open_one->malformed_taken; }

}  // namespace ulc::fuzz

extern "C" {

int ulc_open(const char*, ulc_endpoint** out) {
    if (open_one != nullptr || !has_endpoints) return ULC_ERR_LIMIT;
    *out = open_one = new ulc_endpoint;
    return ULC_OK;
}
void ulc_close(ulc_endpoint* ep) {
    delete ep;
    open_one = nullptr;
}
void ulc_set_error_handler(ulc_endpoint*, ulc_error_handler, void*) {}
int ulc_set_patience(ulc_endpoint*, int64_t) { return ULC_OK; }
int ulc_set_rendezvous(ulc_endpoint*, uint64_t, uint64_t) { return ULC_OK; }
int ulc_meeting(ulc_endpoint*, char* text, size_t) {
    *text = '\0';
    return ULC_OK;
}
int ulc_meet(ulc_endpoint*, const char*) { return ULC_OK; }
int ulc_near_prepare(ulc_endpoint*) { return ULC_OK; }
int ulc_near_peer(ulc_endpoint*, uint16_t) { return ULC_OK; }
int ulc_near_processes(ulc_endpoint*, uint16_t, ulc_near_process* self, ulc_near_process* other) {
    const auto pid = static_cast<std::uint32_t>(::getpid());
    *self = *other = {ulc::process_start_ticks(pid), pid};
    if (peers_process.pid != 0) *other = peers_process;
    return near_error;
}
int ulc_open_links_wait(ulc_endpoint*, uint16_t, int64_t) {
    return has_links ? ULC_OK : ULC_ERR_UNSUPPORTED;
}
const char* ulc_last_error_text() { return ulc::fuzz::kNoEndpoint; }
int ulc_address(const ulc_endpoint*, ulc_link_address*) { return ULC_ERR_INVALID; }
int ulc_link(ulc_endpoint*, const ulc_link_address*, int64_t, ulc_request*) {
    return ULC_ERR_UNSUPPORTED;
}
int ulc_probe(ulc_endpoint*, uint16_t, uint64_t, uint64_t, ulc_status*) { return ULC_ERR_AGAIN; }
int ulc_next_peer(ulc_endpoint*, uint16_t*) { return ULC_ERR_AGAIN; }
int ulc_unlink(ulc_endpoint*, uint16_t, ulc_request*) { return ULC_ERR_INVALID; }
int ulc_join(ulc_endpoint*, const char*, uint16_t rank, uint16_t size, const unsigned char*) {
    ULC_CHECK(rank == ulc::fuzz::kRank && size == ulc::fuzz::kRanks);
    return ULC_OK;
}
int ulc_job_state(const ulc_endpoint* ep) { return ep->formed ? ULC_OK : ULC_ERR_AGAIN; }
int ulc_leave_wait(ulc_endpoint*, int64_t) { return ULC_OK; }
int ulc_poll(ulc_endpoint*) { return 0; }
unsigned ulc_empty_polls(const ulc_endpoint* ep) { return ep->moves_frames ? 0 : UINT32_MAX; }
int ulc_wait(ulc_endpoint*, int64_t) { return ULC_ERR_TIMEOUT; }
const char* ulc_error_text(int) { return ""; }

int ulc_sendv(ulc_endpoint* ep, uint16_t to, uint64_t tag, const ulc_piece* pieces, unsigned count,
              unsigned, ulc_request* req) {
    if (req != nullptr) {
        ep->collected.erase(req);
        ep->done.erase(req);
        if (ep->holds_sends)
            ep->held.push_back(req);
        else
            complete(*ep, req, {});
    }
    const bool loops = ep->loops && to == ulc::fuzz::kRank;
    if (req != nullptr && !loops) return ULC_OK;
    std::vector<unsigned char> bytes;
    for (unsigned i = 0; i < count; ++i) {
        const auto* begin = static_cast<const unsigned char*>(pieces[i].base);
        bytes.insert(bytes.end(), begin, begin + pieces[i].length);
    }
    if (loops)
        ulc::fuzz::arrive(to, tag, std::move(bytes));
    else
        ep->last_sent = {to, tag, std::move(bytes)};
    return ULC_OK;
}

int ulc_receivev(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                 const ulc_piece* pieces, unsigned count, ulc_request* req) {
    ULC_CHECK(ep->formed);
    ep->collected.erase(req);
    ep->done.erase(req);
    const ulc_endpoint::Posted posted{req, from, tag, mask, {pieces, pieces + count}};
    const auto there = find(*ep, from, tag, mask);
    if (there == ep->unexpected.end()) {
        ep->posted.push_back(posted);
    } else {
        give(*ep, posted, *there);
        ep->unexpected.erase(there);
    }
    return ULC_OK;
}

int ulc_receive_many(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                     ulc_part_giver give, ulc_request* req) {
    ULC_CHECK(ep->formed);
    ep->done.erase(req);
    ep->collected.insert(req);
    const ulc_endpoint::Posted many{req, from, tag, mask, {}, give};
    for (;;) {
        const auto there = find(*ep, from, tag, mask);
        if (there == ep->unexpected.end()) break;
        const bool over = give_part(*ep, many, *there);
        ep->unexpected.erase(there);
        if (over) return ULC_OK;
    }
    ep->posted.push_back(many);
    return ULC_OK;
}

int ulc_probe_head(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, void* head,
                   size_t* octets, ulc_status* status) {
    const auto there = find(*ep, from, tag, mask);
    if (there == ep->unexpected.end()) return ULC_ERR_AGAIN;
    describe(*there, status);
    *octets = std::min(*octets, there->bytes.size());
    if (*octets > 0) std::memcpy(head, there->bytes.data(), *octets);
    return ULC_OK;
}

int ulc_claim(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, ulc_message** message,
              ulc_status* status) {
    const auto there = find(*ep, from, tag, mask);
    if (there == ep->unexpected.end()) return ULC_ERR_AGAIN;
    describe(*there, status);
    ep->claimed.splice(ep->claimed.end(), ep->unexpected, there);
    *message = &ep->claimed.back();
    return ULC_OK;
}

int ulc_receive_claimed(ulc_endpoint* ep, ulc_message* message, const ulc_piece* pieces,
                        unsigned count, ulc_request* req) {
    ep->collected.erase(req);
    ep->done.erase(req);
    give(*ep, {req, 0, 0, 0, {pieces, pieces + count}}, *message);
    ep->claimed.remove_if([&](const ulc_message& one) { return &one == message; });
    return ULC_OK;
}

int ulc_discard(ulc_endpoint* ep, ulc_message* message) {
    ep->malformed_taken += is_malformed(message->bytes, false, true) ? 1 : 0;
    ep->claimed.remove_if([&](const ulc_message& one) { return &one == message; });
    return ULC_OK;
}

int ulc_cancel(ulc_endpoint* ep, ulc_request* req) {
    const auto is_it = [&](const ulc_endpoint::Posted& one) { return one.request == req; };
    if (std::erase_if(ep->posted, is_it) == 0) return ULC_ERR_AGAIN;
    ep->collected.erase(req);
    return ULC_OK;
}

// Messages are whole when they arrive, so a receive that has matched is done.
int ulc_abandon(ulc_endpoint* ep, ulc_request* req) { return ulc_cancel(ep, req); }

// A send that is not done cannot be moved.
int ulc_move_payload(ulc_endpoint*, ulc_request*, void*, size_t) { return ULC_ERR_AGAIN; }

int ulc_test(ulc_endpoint* ep, ulc_request* req, ulc_status* status) {
    const auto known = ep->done.find(req);
    if (known == ep->done.end()) return ULC_ERR_AGAIN;
    *status = known->second;
    return ULC_OK;
}

int ulc_collect(ulc_endpoint* ep, ulc_request* req) {
    ep->collected.insert(req);
    if (ep->done.contains(req)) ep->to_hand_out.push_back(req);
    return ULC_OK;
}

ulc_request* ulc_next_done(ulc_endpoint* ep, ulc_status* status) {
    if (ep->to_hand_out.empty()) return nullptr;
    ulc_request* request = ep->to_hand_out.front();
    ep->to_hand_out.pop_front();
    *status = ep->done.at(request);
    ep->done.erase(request);
    ep->collected.erase(request);
    return request;
}

}  // extern "C"
