// SPDX-License-Identifier: BSD-3-Clause
#include "udp/sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "port/frame_pool.h"

namespace ulc::udp {
namespace {

/// Octets of an Ethernet header in front of the place of ours.
constexpr std::size_t kReplaced = kEthernetOctets - kHeadOctets;

bool is_group(const Mac& mac) noexcept { return (mac.octets[0] & 1U) != 0; }

Mac destination_of(const Segment& segment) noexcept {
    Mac mac;
    std::memcpy(&mac, segment.frame, sizeof mac);
    return mac;
}

}  // namespace

Sender::Sender(const Peers& peers, std::uint32_t frame_max, const SendCall& call)
    : peers_(peers), frame_max_(frame_max), call_(call) {
    messages_.reserve(kMessagesMax);
    addresses_.reserve(kMessagesMax);
}

/// Returns how many of the frames go to the receivers of the first one in one message: all but the
/// last have its length.
std::uint16_t Sender::run_length(Segment* const* frames, std::uint16_t n) const noexcept {
    const Mac to = destination_of(*frames[0]);
    const std::size_t octets = frames[0]->length - kEthernetOctets + kHeadOctets;
    const std::size_t most =
        std::min({std::size_t{n}, kDatagramsMax, kMessageOctetsMax / octets, kBurst - heads_used_});
    std::uint16_t count = 1;
    while (count < most) {
        const Segment& frame = *frames[count];
        if (frame.length > frames[0]->length || destination_of(frame) != to) break;
        ++count;
        if (frame.length < frames[0]->length) break;
    }
    return count;
}

Message Sender::put_pieces(Segment* const* frames, std::uint16_t n) {
    Message message;
    message.pieces = &pieces_[pieces_used_];
    const Mac to = destination_of(*frames[0]);
    for (std::uint16_t i = 0; i < n; ++i) {
        const Segment& frame = *frames[i];
        auto& head = heads_[heads_used_++];
        head = {};
        head[0] = static_cast<std::byte>(!is_group(to)         ? Kind::kFrame
                                         : to == kBroadcastMac ? Kind::kToAll
                                                               : Kind::kToGroup);
        if (head[0] == static_cast<std::byte>(Kind::kToGroup))
            std::memcpy(&head[1], &to.octets[kGroupPrefix.size()], head.size() - 1);
        pieces_[pieces_used_++] = {head.data(), head.size()};
        const std::uint32_t tail = frame.tail == nullptr ? 0 : frame.tail_octets;
        pieces_[pieces_used_++] = {frame.frame + kEthernetOctets,
                                   frame.length - kEthernetOctets - tail};
        if (tail > 0) pieces_[pieces_used_++] = {const_cast<std::byte*>(frame.tail), tail};
    }
    message.piece_count = static_cast<std::size_t>(&pieces_[pieces_used_] - message.pieces);
    if (to == kBroadcastMac) keep_broadcast(*frames[n - 1]);
    if (n > 1)
        message.datagram_octets =
            static_cast<std::uint16_t>(frames[0]->length - kEthernetOctets + kHeadOctets);
    return message;
}

/// Keeps a broadcast, as a datagram behind kReplaced octets.
void Sender::keep_broadcast(const Segment& frame) {
    last_to_all_.resize(frame.length);
    copy_frame(last_to_all_.data(), frame);
    std::memset(&last_to_all_[kReplaced], 0, kHeadOctets);
    last_to_all_[kReplaced] = static_cast<std::byte>(Kind::kToAll);
}

void Sender::add_message(const Message& message, const Address& to) {
    addresses_.push_back(socket_address(to));
    messages_.push_back(message);
    messages_.back().to = &addresses_.back();  // the vector has its space
}

/// Makes messages of the frames from `first` on, as many as one call takes. Returns the number of
/// the first frame that found no place. Frames for nodes that no address is known of are dropped.
std::uint16_t Sender::gather(Segment* const* frames, std::uint16_t first, std::uint16_t n,
                             Runs& runs) {
    messages_.clear();
    addresses_.clear();
    heads_used_ = pieces_used_ = 0;
    std::uint16_t at = first;
    while (at < n && heads_used_ < kBurst && messages_.size() < kMessagesMax) {
        Segment* const* const from = frames + at;
        const Mac to = destination_of(*from[0]);
        const Peers::Peer* peer = is_group(to) ? nullptr : peers_.find(to);
        const std::size_t receivers = is_group(to) ? peers_.count() : (peer != nullptr ? 1 : 0);
        if (from[0]->length > frame_max_ || receivers == 0) {
            if (!runs.empty()) break;  // those go first, or none of these is taken
            if (from[0]->length > frame_max_ || !is_group(to))
                ++unsendable_;
            else if (to == kBroadcastMac)
                keep_broadcast(*from[0]);
            port::FramePool::put(from[0]);
            ++at;
            continue;
        }
        if (receivers > kMessagesMax - messages_.size() && !messages_.empty()) break;
        Run run{at, run_length(from, static_cast<std::uint16_t>(n - at)), receivers};
        const Message message = put_pieces(from, run.frames);
        if (peer != nullptr) add_message(message, peer->address);
        if (is_group(to) && receivers <= kMessagesMax)
            peers_.each([&](const Peers::Peer& each) { add_message(message, each.address); });
        (void)runs.push_back(run);
        at = static_cast<std::uint16_t>(at + run.frames);
        if (receivers > kMessagesMax) break;  // too many for one call
    }
    return at;
}

std::uint16_t Sender::send(Segment* const* frames, std::uint16_t n) {
    std::uint16_t done = 0;
    while (done < n && send_rest()) {
        Runs runs;
        const std::uint16_t end = gather(frames, done, n, runs);
        int error = 0;
        std::size_t sent = messages_.empty() ? 0 : call_.send(call_.context, messages_, error);
        done = end;
        std::size_t first_message = 0;
        for (const Run& run : runs) {
            const std::size_t got = std::min(run.messages, sent);
            if (got == 0 && run.messages > 0 && error == EAGAIN) return run.first;
            if (got < run.messages) {  // without the receiver that was refused, if one was
                const std::size_t refused = error == 0 || error == EAGAIN ? 0 : 1;
                unsendable_ += refused * run.frames;
                keep_rest(frames, run, first_message, got + refused);
                done = static_cast<std::uint16_t>(run.first + run.frames);
                break;
            }
            for (std::uint16_t i = 0; i < run.frames; ++i)
                port::FramePool::put(frames[run.first + i]);
            sent -= got;
            first_message += run.messages;
        }
    }
    (void)send_rest();
    return done;
}

/// Keeps the frames of a run for those receivers that `served` others come before. message: the
/// run's first one.
void Sender::keep_rest(Segment* const* frames, const Run& run, std::size_t message,
                       std::size_t served) {
    ULC_CHECK(rest_.frames.empty());
    for (std::uint16_t i = 0; i < run.frames; ++i) {
        pull_tail(*frames[run.first + i]);
        rest_.frames.push_back(frames[run.first + i]);
    }
    if (run.messages > kMessagesMax) {
        peers_.each(
            [this](const Peers::Peer& peer) { rest_.to.push_back(socket_address(peer.address)); });
        return;
    }
    for (std::size_t i = served; i < run.messages; ++i)
        rest_.to.push_back(addresses_[message + i]);
}

/// Returns whether nothing is left of a run.
bool Sender::send_rest() {
    if (rest_.frames.empty()) return true;
    messages_.clear();
    heads_used_ = pieces_used_ = 0;
    Message message =
        put_pieces(rest_.frames.data(), static_cast<std::uint16_t>(rest_.frames.size()));
    while (rest_.next < rest_.to.size()) {
        messages_.clear();
        for (std::size_t i = rest_.next; i < rest_.to.size(); ++i) {
            if (messages_.size() == kMessagesMax) break;
            message.to = &rest_.to[i];
            messages_.push_back(message);
        }
        int error = 0;
        rest_.next += call_.send(call_.context, messages_, error);
        if (error == EAGAIN) return false;
        if (error != 0) {
            ++rest_.next;
            unsendable_ += rest_.frames.size();
        }
    }
    drop_rest();
    return true;
}

void Sender::drop_rest() {
    for (Segment* frame : rest_.frames)
        port::FramePool::put(frame);
    rest_.frames.clear();
    rest_.to.clear();
    rest_.next = 0;
}

void Sender::repeat_broadcast(const Address& to) {
    if (last_to_all_.empty()) return;
    const SocketAddress address = socket_address(to);
    iovec piece{last_to_all_.data() + kReplaced, last_to_all_.size() - kReplaced};
    const Message message{&address, &piece, 1, 0};
    int error = 0;
    if (call_.send(call_.context, {&message, 1}, error) == 0) ++unsendable_;
}

}  // namespace ulc::udp
