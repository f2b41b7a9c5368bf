// SPDX-License-Identifier: BSD-3-Clause
#include "client/messages/control_messages.h"

#include <cstring>

#include "client/p2p/rendezvous.h"

namespace ulc::client {
namespace {

/// Reads a control message of exactly that size. Returns false if it has another size.
template <typename Content>
bool read(std::span<const unsigned char> from, Content& content) noexcept {
    if (from.size() != sizeof content) return false;
    std::memcpy(&content, from.data(), sizeof content);
    return true;
}

/// Control messages that one call tries to send. A peer whose stream is blocked holds up no other.
constexpr unsigned kAtOnce = 64;

}  // namespace

Inbox::Taken ControlMessages::on_message(const abi::CompletionRecord& record, Near* near) {
    if (record.tag == kTagAnnouncement || is_rest(record.tag)) return inbox_.on_announced(record);
    std::uint32_t length = 0;
    std::uint32_t block = Arrivals::kNoBlock;
    const unsigned char* payload = inbox_.arrivals().payload_of(record, length, block);
    if (payload == nullptr || record.source >= membership_.size()) return Inbox::Taken::kCorrupt;
    if (!handle(record, {payload, length}, near)) ++dropped_;
    inbox_.arrivals().give_back(block);
    return Inbox::Taken::kYes;
}

/// Returns false if the message is malformed or too late.
bool ControlMessages::handle(const abi::CompletionRecord& record,
                             std::span<const unsigned char> content, Near* near) {
    const bool by_unicast = group_of(record.stream) == 0;
    if (record.tag == kTagAsk) {
        Ask ask;
        return by_unicast && read(content, ask) && ask.zero == 0 &&
               outbox_.on_ask(record.source, ask.id, ask.up_to);
    }
    if (record.tag == kTagHold) {
        Hold hold;
        if (!by_unicast || !read(content, hold) || hold.hold > 1) return false;
        outbox_.on_hold(record.source, hold.hold == 1);
        return true;
    }
    if (record.tag == kTagNear && near != nullptr)
        return by_unicast && near->on_offer(record.source, content);
    return groups_.on_control(record.source, record.tag, content);
}

bool ControlMessages::send(std::uint16_t to, std::uint64_t tag, const void* content,
                           std::size_t octets) noexcept {
    if (membership_.peer_error(to) != 0) return true;  // it receives nothing more
    SendArgs args;
    args.stream = to;
    args.tag = tag;
    args.payload = Pieces::one(content, octets);
    return outbox_.send(args, nullptr) == ULC_OK;
}

void ControlMessages::answer() noexcept {
    if (membership_.ended() != 0) return;
    for (unsigned tries = kAtOnce; tries > 0; --tries) {
        Arrival* const arrival = inbox_.arrivals().first_to_ask();
        if (arrival == nullptr) break;
        Ask ask{};
        ask.id = arrival->id;
        ask.up_to = arrival->wanted;
        const bool asked = arrival->source == membership_.rank()
                               ? answer_own(*arrival)
                               : send(arrival->source, kTagAsk, &ask, sizeof ask);
        if (asked) {
            inbox_.arrivals().on_asked(*arrival);
        } else {
            inbox_.arrivals().ask_later(*arrival);
        }
    }
    inbox_.arrivals().shares().each_to_hold(kAtOnce, [this](std::uint16_t source, bool holds) {
        Hold hold{};
        hold.hold = holds ? 1U : 0U;
        return source == membership_.rank() || send(source, kTagHold, &hold, sizeof hold);
    });
}

// ---------------------------------------------------------------- messages to oneself

int ControlMessages::announce_to_self(const SendArgs& args, ulc_request* request) noexcept {
    std::uint32_t id = 0;
    if (const int error = outbox_.announce_own(args, request, &id); error != ULC_OK) return error;
    if (!inbox_.announce_local(membership_.rank(), args.tag, args.payload.length, id)) {
        outbox_.take_back_own(id);
        return ULC_ERR_NO_MEMORY;
    }
    answer();
    return ULC_OK;
}

/// Returns false if there is no memory now.
bool ControlMessages::answer_own(Arrival& arrival) noexcept {
    const Request* request = outbox_.announcements().find(arrival.id);
    if (request == nullptr) return true;  // it ended with the endpoint's leaving
    Pieces payload;
    payload.base = const_cast<unsigned char*>(request->payload);
    payload.list = request->pieces;
    payload.count = request->piece_count;
    payload.length = request->capacity;
    if (!inbox_.finish_local(arrival, payload)) return false;
    return outbox_.on_ask(membership_.rank(), arrival.id, 0);
}

}  // namespace ulc::client
