// SPDX-License-Identifier: BSD-3-Clause
// The words of announced messages between endpoints (rendezvous.h), and announced messages of a
// rank to itself.
#include <cstring>

#include "client/endpoint.h"
#include "client/p2p/rendezvous.h"

namespace ulc::client {
namespace {

/// The word in a message of exactly its size. False: it is another size.
template <typename Word>
bool read(const unsigned char* octets, std::uint32_t length, Word& word) noexcept {
    if (length != sizeof word) return false;
    std::memcpy(&word, octets, sizeof word);
    return true;
}

/// Words that one call tries to send. A peer whose stream is blocked holds up no other.
constexpr unsigned kWordsAtOnce = 64;

}  // namespace

int Endpoint::set_rendezvous(std::uint64_t from, std::uint64_t held_max) noexcept {
    if (ended_ != 0) return ended_;
    recall_.announce_from = from;
    recall_.held_max = held_max;
    outbox_.announcements().set_from(from);
    inbox_.arrivals().shares().set_held_max(held_max);
    return ULC_OK;
}

// A message of another rank's libulc. It proves nothing: a malformed one is dropped.
Inbox::Taken Endpoint::on_word(const abi::CompletionRecord& record) {
    if (record.tag == kTagAnnouncement || is_rest(record.tag)) return inbox_.on_announced(record);
    std::uint32_t length = 0;
    std::uint32_t block = UINT32_MAX;
    const unsigned char* payload = inbox_.arrivals().payload_of(record, length, block);
    if (payload == nullptr || record.source >= size_) return Inbox::Taken::kCorrupt;
    bool understood = false;
    const bool by_unicast = group_of(record.stream) == 0;
    if (record.tag == kTagAsk) {
        Ask ask;
        understood = by_unicast && read(payload, length, ask) && ask.zero == 0 &&
                     outbox_.on_ask(record.source, ask.id, ask.up_to);
    } else if (record.tag == kTagHold) {
        Hold hold;
        understood = by_unicast && read(payload, length, hold) && hold.hold <= 1;
        if (understood) outbox_.on_hold(record.source, hold.hold == 1);
    } else if (record.tag == kTagNear && near_ != nullptr) {
        understood = by_unicast && near_->on_offer(record.source, {payload, length});
    } else {
        understood = groups_.on_control(record.source, record.tag, {payload, length});
    }
    if (!understood) ++words_dropped_;
    if (block != UINT32_MAX) inbox_.arrivals().give_back(block);
    return Inbox::Taken::kYes;
}

bool Endpoint::say(std::uint16_t to, std::uint64_t tag, const void* word,
                   std::size_t octets) noexcept {
    if (peer_errors_[to] != 0) return true;  // it hears nothing more
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = Pieces::one(word, octets);
    return outbox_.send(args, nullptr) == ULC_OK;
}

void Endpoint::answer_announced() noexcept {
    if (ended_ != 0) return;
    for (unsigned tries = kWordsAtOnce; tries > 0; --tries) {
        Arrival* const arrival = inbox_.arrivals().first_to_ask();
        if (arrival == nullptr) break;
        Ask ask{};
        ask.id = arrival->id;
        ask.up_to = arrival->wanted;
        const bool asked = arrival->source == rank_
                               ? answer_own(*arrival)
                               : say(arrival->source, kTagAsk, &ask, sizeof ask);
        if (asked) {
            inbox_.arrivals().on_asked(*arrival);
        } else {
            inbox_.arrivals().ask_later(*arrival);
        }
    }
    inbox_.arrivals().shares().each_to_hold(kWordsAtOnce, [this](std::uint16_t source, bool holds) {
        Hold hold{};
        hold.hold = holds ? 1U : 0U;
        return source == rank_ || say(source, kTagHold, &hold, sizeof hold);
    });
}

// ---------------------------------------------------------------- messages to oneself

int Endpoint::announce_to_self(const SendArgs& args, ulc_request* request) noexcept {
    std::uint32_t id = 0;
    if (const int error = outbox_.announce_own(args, request, &id); error != ULC_OK) return error;
    if (!inbox_.announce_local(rank_, args.tag, args.payload.length, id)) {
        outbox_.take_back_own(id);
        return ULC_ERR_NO_MEMORY;
    }
    answer_announced();
    return ULC_OK;
}

// False: no memory now.
bool Endpoint::answer_own(Arrival& arrival) noexcept {
    const Request* request = outbox_.announcements().find(arrival.id);
    if (request == nullptr) return true;  // it ended with the endpoint's leaving
    Pieces payload;
    payload.base = const_cast<unsigned char*>(request->payload);
    payload.list = request->pieces;
    payload.count = request->piece_count;
    payload.length = request->capacity;
    if (!inbox_.finish_local(arrival, payload)) return false;
    return outbox_.on_ask(rank_, arrival.id, 0);
}

}  // namespace ulc::client
