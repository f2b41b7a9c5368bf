// SPDX-License-Identifier: BSD-3-Clause
// The C entries for messages in pieces, and for messages that have arrived: argument checks; the
// work is the endpoint's.
#include "client/endpoint.h"
#include "client/p2p/pieces.h"
#include "client/p2p/tags.h"
#include "client/ulc.h"

namespace {

using ulc::client::Arrival;
using ulc::client::kUserTagBit;
using ulc::client::Pieces;

bool flags_fit(unsigned flags, unsigned allowed, const ulc_request* req) {
    return (flags & ~allowed) == 0 && (flags == 0 || req != nullptr);
}

Arrival* arrival_of(ulc_message* message) { return reinterpret_cast<Arrival*>(message); }

}  // namespace

extern "C" {

int ulc_sendv(ulc_endpoint* ep, uint16_t to, uint64_t tag, const ulc_piece* pieces, unsigned count,
              unsigned flags, ulc_request* req) {
    Pieces payload;
    if (ep == nullptr || tag > ULC_TAG_MAX ||
        !flags_fit(flags, ULC_SEND_DELIVERED | ULC_SEND_MATCHED, req) ||
        !Pieces::of(pieces, count, payload))
        return ULC_ERR_INVALID;
    return ep->messages().send(to, tag, payload, flags, req);
}

int ulc_multicastv(ulc_endpoint* ep, ulc_group group, uint64_t subset, uint64_t tag,
                   const ulc_piece* pieces, unsigned count, unsigned flags, ulc_request* req) {
    Pieces payload;
    if (ep == nullptr || tag > ULC_TAG_MAX || !flags_fit(flags, ULC_SEND_DELIVERED, req) ||
        !Pieces::of(pieces, count, payload))
        return ULC_ERR_INVALID;
    return ep->messages().multicast(group, subset, tag, payload, flags, req);
}

int ulc_receivev(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                 const ulc_piece* pieces, unsigned count, ulc_request* req) {
    Pieces buffer;
    if (ep == nullptr || tag > ULC_TAG_MAX || !Pieces::of(pieces, count, buffer))
        return ULC_ERR_INVALID;
    return ep->messages().receive(from, tag, mask | kUserTagBit, buffer, req);
}

int ulc_receive_many(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask,
                     ulc_part_giver give, ulc_request* req) {
    if (ep == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    return ep->messages().receive_many(from, tag, mask | kUserTagBit, give, req);
}

int ulc_set_rendezvous(ulc_endpoint* ep, uint64_t from, uint64_t held_max) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->messages().set_rendezvous(from, held_max);
}

int ulc_probe(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, ulc_status* status) {
    if (ep == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    ulc_status unused;
    return ep->messages().probe(from, tag, mask | kUserTagBit,
                                status != nullptr ? status : &unused);
}

int ulc_probe_head(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, void* head,
                   size_t* octets, ulc_status* status) {
    if (ep == nullptr || tag > ULC_TAG_MAX || octets == nullptr || (head == nullptr && *octets > 0))
        return ULC_ERR_INVALID;
    ulc_status unused;
    return ep->messages().probe_head(from, tag, mask | kUserTagBit, head, octets,
                                     status != nullptr ? status : &unused);
}

int ulc_claim(ulc_endpoint* ep, uint16_t from, uint64_t tag, uint64_t mask, ulc_message** message,
              ulc_status* status) {
    if (ep == nullptr || message == nullptr || tag > ULC_TAG_MAX) return ULC_ERR_INVALID;
    ulc_status unused;
    Arrival* claimed = nullptr;
    const int error = ep->messages().claim(from, tag, mask | kUserTagBit, &claimed,
                                           status != nullptr ? status : &unused);
    *message = reinterpret_cast<ulc_message*>(claimed);
    return error;
}

int ulc_receive_claimed(ulc_endpoint* ep, ulc_message* message, const ulc_piece* pieces,
                        unsigned count, ulc_request* req) {
    Pieces buffer;
    if (ep == nullptr || !Pieces::of(pieces, count, buffer)) return ULC_ERR_INVALID;
    return ep->messages().receive_claimed(arrival_of(message), buffer, req);
}

int ulc_discard(ulc_endpoint* ep, ulc_message* message) {
    return ep == nullptr ? int{ULC_ERR_INVALID} : ep->messages().discard(arrival_of(message));
}
}
