// SPDX-License-Identifier: BSD-3-Clause
// The sender's part of announced messages (rendezvous.h): announcements, and the rest when it is
// asked for. announcements.h has the table of them.
#include <algorithm>
#include <cstring>
#include <new>

#include "base/group_handle.h"
#include "client/p2p/outbox.h"
#include "client/p2p/rendezvous.h"
#include "client/p2p/tags.h"

namespace ulc::client {
void Outbox::on_hold(std::uint32_t source, bool hold) noexcept {
    if (announcements_.set_held(source, hold)) announce_pending(source);
}

// Announces the messages to that peer that wait for their turn, too, so that what a sender has
// submitted before it heard Hold does not fill the receiver's memory.
void Outbox::announce_pending(std::uint32_t to) noexcept {
    for (Request* request = pending_.front(); request != nullptr;
         request = RequestList::next(*request)) {
        const bool whole = request->length == 0 && request->capacity >= kHeldOctetsMin;
        if (request->stream != to || request->announces || !whole || request->tag >= kUserTagsEnd)
            continue;
        if (!announcements_.open(*request)) return;
        request->announces = true;
    }
}

// ---------------------------------------------------------------- announcements

// The request of a send that is to be announced, with its id. nullptr: error says why not.
Request* Outbox::open_announcement(const SendArgs& args, ulc_request* memory, int& error) noexcept {
    Request* request = nullptr;
    if (memory == nullptr) {
        request = copy_detached(args, error);
        if (request == nullptr) return nullptr;
    } else {
        request = ::new (static_cast<void*>(memory)) Request(args.request());
    }
    if (!announcements_.open(*request)) {
        error = ULC_ERR_AGAIN;
        if (memory == nullptr) end(*request, error);
        return nullptr;
    }
    return request;
}

int Outbox::send_announced(const SendArgs& args, ulc_request* memory) noexcept {
    int error = ULC_OK;
    Request* request = open_announcement(args, memory, error);
    if (request == nullptr) return error;
    request->announces = true;
    if (must_queue(args.stream) || advance(*request, false) != Step::kFinished) enqueue(*request);
    return ULC_OK;
}

// Bytes of the first part. It has whole pieces only, so that the rest begins with a piece. A held
// sender sends short first pieces all the same: they are what a receiver matches by.
std::uint64_t Outbox::first_part(const Request& request, bool held) const noexcept {
    const std::uint64_t most =
        held ? kHeadOctetsMax
             : std::min<std::uint64_t>(kFirstOctetsMax, chunk_octets_ - sizeof(Announcement));
    if (request.pieces == nullptr) return held ? 0 : std::min(request.capacity, most);
    if (!held && request.capacity <= most) return request.capacity;
    std::uint64_t first = 0;
    for (unsigned n = 0; n < request.piece_count; ++n) {
        if (first + request.pieces[n].length > most) break;
        first += request.pieces[n].length;
    }
    return std::min(first, request.capacity);
}

Outbox::Step Outbox::hand_announcement(Request& request) noexcept {
    const bool held = announcements_.is_held(request.stream);
    const std::uint64_t first = first_part(request, held && request.capacity >= kHeldOctetsMin);
    Announcement head{};
    head.tag = request.tag;
    head.length = request.capacity;
    head.id = request.id;
    head.first = static_cast<std::uint32_t>(first);
    const auto octets = static_cast<std::uint32_t>(sizeof head + first);

    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kSend);
    if (record == nullptr) return Step::kRingFull;
    unsigned char* to = record->body.inline_octets;
    unsigned flags = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitHasTag;
    if (octets <= abi::kInlineOctetsMax) {
        flags |= abi::kSubmitInline;
        record->inline_length = static_cast<std::uint16_t>(octets);
    } else {
        std::uint32_t& held_octets = held_by(request.stream);
        if (held_octets != 0 && held_octets + octets > arena_.octets() / 2) return Step::kBlocked;
        const std::uint32_t cookie = in_flight_.take();
        if (cookie == kNoCookie) return Step::kBlocked;
        const std::uint32_t block = arena_.allocate(octets);
        if (block == TxArena::kNone) {
            in_flight_.drop(cookie);
            return Step::kBlocked;
        }
        InFlight::Entry& entry = in_flight_[cookie];
        entry.block = block;
        entry.octets = octets;
        entry.stream = request.stream;
        held_octets += octets;
        to = reinterpret_cast<unsigned char*>(arena_.at(block));
        flags |= abi::kSubmitNotify;
        record->cookie = cookie;
        record->body.block = {block, octets, octets, 0, 0, 0};
    }
    std::memcpy(to, &head, sizeof head);
    if (first > 0) request.read(0, to + sizeof head, first);
    record->flags = static_cast<std::uint8_t>(flags);
    record->stream = request.stream;
    record->tag = kTagAnnouncement;
    submitter_.publish();
    request.announces = false;
    request.length = first;
    request.state = RequestState::kAnnounced;
    return Step::kFinished;
}

// ---------------------------------------------------------------- the rest

bool Outbox::on_ask(std::uint32_t source, std::uint32_t id, std::uint64_t up_to) noexcept {
    Request* const known = announcements_.find(id);
    if (known == nullptr || known->stream != source || known->state != RequestState::kAnnounced ||
        up_to > known->capacity)
        return false;
    Request& request = *known;
    announcements_.close(id);
    request.matched = false;  // it has, so no end of this send means otherwise
    if (up_to <= request.length) {
        end(request, ULC_OK);
    } else {
        send_rest(request, up_to);
    }
    return true;
}

// Makes the request a send of bytes [length, up_to) of its payload. It has no id any more.
void Outbox::send_rest(Request& request, std::uint64_t up_to) noexcept {
    request.skip(request.length);
    request.capacity = up_to - request.length;
    request.length = 0;
    request.tag = kTagRest | request.id;
    request.state = RequestState::kQueued;
    if (must_queue(request.stream) || advance(request, false) != Step::kFinished) {
        enqueue(request);
    } else if (request.detached && request.state == RequestState::kDone) {
        end(request, ULC_OK);
    }
}

void Outbox::push_announced(std::uint32_t self) noexcept {
    announcements_.leave();
    for (Request* request = pending_.front(); request != nullptr;
         request = RequestList::next(*request)) {
        if (!request->announces) continue;
        request->announces = false;  // it goes out whole
        announcements_.close(request->id);
    }
    announcements_.each([&](Request& request) {
        announcements_.close(request.id);
        if (request.stream == self) {
            end(request, ULC_ERR_CLOSED);
        } else if (request.length == request.capacity) {
            end(request, request.matched ? ULC_ERR_CLOSED : ULC_OK);
        } else {
            send_rest(request, request.capacity);
        }
    });
}

void Outbox::announced_peer_gone(std::uint32_t rank, int error) noexcept {
    announcements_.each([&](Request& request) {
        if (request.stream != rank) return;
        announcements_.close(request.id);
        end(request, error);
    });
    on_hold(rank, false);
}

// ---------------------------------------------------------------- messages to oneself

int Outbox::announce_own(const SendArgs& args, ulc_request* memory, std::uint32_t* id) noexcept {
    int error = ULC_OK;
    Request* request = open_announcement(args, memory, error);
    if (request == nullptr) return error;
    request->state = RequestState::kAnnounced;
    *id = request->id;
    return ULC_OK;
}

void Outbox::take_back_own(std::uint32_t id) noexcept {
    Request& request = *announcements_.find(id);
    announcements_.close(id);
    end(request, ULC_ERR_NO_MEMORY);
}

}  // namespace ulc::client
