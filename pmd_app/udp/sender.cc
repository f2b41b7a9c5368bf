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

using Head = std::array<std::byte, kHeadOctets>;

/// Returns the octets in the place of the Ethernet header of a frame for that address.
Head head_of(const Mac& to) noexcept {
    Head head{};
    head[0] = static_cast<std::byte>(!is_group(to)         ? Kind::kFrame
                                     : to == kBroadcastMac ? Kind::kToAll
                                                           : Kind::kToGroup);
    if (head[0] == static_cast<std::byte>(Kind::kToGroup))
        std::memcpy(&head[1], &to.octets[kGroupPrefix.size()], head.size() - 1);
    return head;
}

Mac destination_of(const Segment& segment) noexcept {
    Mac mac;
    std::memcpy(&mac, segment.frame, sizeof mac);
    return mac;
}

}  // namespace

Sender::Sender(const Peers& peers, std::uint32_t frame_max, const SendCall& call,
               seal::Keyring* ring)
    : peers_(peers),
      frame_max_(frame_max),
      call_(call),
      ring_(ring),
      around_(kHeadOctets + (ring == nullptr ? 0 : seal::kSealOctets)),
      sealed_(ring == nullptr ? 0 : kBurst * (frame_max - kEthernetOctets + around_)) {
    messages_.reserve(kMessagesMax);
    receivers_.reserve(kMessagesMax);
}

/// Returns how many of the frames go to the receivers of the first one in one message: all but the
/// last have its length. copies: of each, one for each secret.
std::uint16_t Sender::run_length(Segment* const* frames, std::uint16_t n,
                                 std::size_t copies) const noexcept {
    const Mac to = destination_of(*frames[0]);
    const std::size_t octets = frames[0]->length - kEthernetOctets + around_;
    const std::size_t most = std::min({std::size_t{n}, kDatagramsMax, kMessageOctetsMax / octets,
                                       (kBurst - heads_used_) / copies});
    std::uint16_t count = 1;
    while (count < most) {
        const Segment& frame = *frames[count];
        if (frame.length > frames[0]->length || destination_of(frame) != to) break;
        ++count;
        if (frame.length < frames[0]->length) break;
    }
    return count;
}

Message Sender::put_pieces(Segment* const* frames, std::uint16_t n, std::size_t secret) {
    Message message;
    message.pieces = &pieces_[pieces_used_];
    for (std::uint16_t i = 0; i < n; ++i) {
        if (ring_ != nullptr) {
            put_sealed(*frames[i], secret);
        } else {
            put_open(*frames[i]);
        }
    }
    message.piece_count = static_cast<std::size_t>(&pieces_[pieces_used_] - message.pieces);
    if (destination_of(*frames[0]) == kBroadcastMac) keep_broadcast(*frames[n - 1]);
    if (n > 1)
        message.datagram_octets =
            static_cast<std::uint16_t>(frames[0]->length - kEthernetOctets + around_);
    return message;
}

void Sender::put_open(const Segment& frame) {
    auto& head = heads_[heads_used_++];
    head = head_of(destination_of(frame));
    pieces_[pieces_used_++] = {head.data(), head.size()};
    const std::uint32_t tail = frame.tail == nullptr ? 0 : frame.tail_octets;
    pieces_[pieces_used_++] = {frame.frame + kEthernetOctets,
                               frame.length - kEthernetOctets - tail};
    if (tail > 0) pieces_[pieces_used_++] = {const_cast<std::byte*>(frame.tail), tail};
}

/// Encrypts a copy, since a frame may have to be sent again.
void Sender::put_sealed(const Segment& frame, std::size_t secret) {
    const std::size_t place = sealed_.size() / kBurst;
    std::byte* const datagram = sealed_.data() + heads_used_++ * place;
    std::byte* const text = datagram + sizeof(seal::SealHead);
    const Head head = head_of(destination_of(frame));
    const std::uint32_t tail = frame.tail == nullptr ? 0 : frame.tail_octets;
    const std::size_t front = frame.length - kEthernetOctets - tail;
    std::memcpy(text, head.data(), head.size());
    std::memcpy(text + head.size(), frame.frame + kEthernetOctets, front);
    if (tail > 0) std::memcpy(text + head.size() + front, frame.tail, tail);
    ring_->seal(secret, peers_.cipher(), static_cast<std::uint8_t>(Kind::kSealed), datagram,
                head.size() + front + tail);
    pieces_[pieces_used_++] = {datagram, head.size() + front + tail + seal::kSealOctets};
}

/// Keeps a broadcast, as an open datagram behind kReplaced octets.
void Sender::keep_broadcast(const Segment& frame) {
    last_to_all_.resize(frame.length);
    copy_frame(last_to_all_.data(), frame);
    std::memset(&last_to_all_[kReplaced], 0, kHeadOctets);
    last_to_all_[kReplaced] = static_cast<std::byte>(Kind::kToAll);
}

Sender::Receiver Sender::receiver_of(const Peers::Peer& peer) noexcept {
    return {socket_address(peer.address), peer.keys == nullptr ? 0 : peer.keys->secret()};
}

void Sender::add_message(const Message& message, const Peers::Peer& to) {
    receivers_.push_back(receiver_of(to));
    messages_.push_back(message);
    messages_.back().to = &receivers_.back().address;  // the vector has its space
}

/// Returns how many different datagrams a frame for a group becomes.
std::size_t Sender::secrets_in_use() const noexcept {
    std::size_t count = 0;
    for (std::size_t secret = 0; ring_ != nullptr && secret < ring_->count(); ++secret)
        if (peers_.holders_of(secret) > 0) ++count;
    return std::max<std::size_t>(count, 1);
}

/// Adds a message to each node. Those that hold one secret get the same datagrams.
void Sender::add_group(Segment* const* frames, std::uint16_t n) {
    const std::size_t secrets = ring_ == nullptr ? 1 : ring_->count();
    for (std::size_t secret = 0; secret < secrets; ++secret) {
        if (ring_ != nullptr && peers_.holders_of(secret) == 0) continue;
        const Message message = put_pieces(frames, n, secret);
        peers_.each([&](const Peers::Peer& peer) {
            if (receiver_of(peer).secret == secret) add_message(message, peer);
        });
    }
}

/// Makes messages of the frames from `first` on, as many as one call takes. Returns the number of
/// the first frame that found no place. Frames for nodes that no address is known of are dropped.
std::uint16_t Sender::gather(Segment* const* frames, std::uint16_t first, std::uint16_t n,
                             Runs& runs) {
    messages_.clear();
    receivers_.clear();
    heads_used_ = pieces_used_ = 0;
    const std::size_t copies = secrets_in_use();
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
        if (is_group(to) && copies > kBurst - heads_used_) break;
        const auto left = static_cast<std::uint16_t>(n - at);
        Run run{at, run_length(from, left, is_group(to) ? copies : 1), receivers};
        if (peer != nullptr)
            add_message(put_pieces(from, run.frames, receiver_of(*peer).secret), *peer);
        if (is_group(to) && receivers <= kMessagesMax) add_group(from, run.frames);
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
        peers_.each([this](const Peers::Peer& peer) { rest_.to.push_back(receiver_of(peer)); });
        std::ranges::stable_sort(rest_.to, {}, &Receiver::secret);
        return;
    }
    for (std::size_t i = served; i < run.messages; ++i)
        rest_.to.push_back(receivers_[message + i]);
}

/// Returns whether nothing is left of a run. Receivers of one secret follow each other.
bool Sender::send_rest() {
    if (rest_.frames.empty()) return true;
    while (rest_.next < rest_.to.size()) {
        const std::size_t secret = rest_.to[rest_.next].secret;
        messages_.clear();
        heads_used_ = pieces_used_ = 0;
        Message message = put_pieces(rest_.frames.data(),
                                     static_cast<std::uint16_t>(rest_.frames.size()), secret);
        for (std::size_t i = rest_.next; i < rest_.to.size(); ++i) {
            if (messages_.size() == kMessagesMax || rest_.to[i].secret != secret) break;
            message.to = &rest_.to[i].address;
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
    const Peers::Peer* const peer = peers_.find(peers_.name_of(to));
    if (peer == nullptr) return;
    const Receiver receiver = receiver_of(*peer);
    std::span<std::byte> datagram(last_to_all_.data() + kReplaced, last_to_all_.size() - kReplaced);
    std::vector<std::byte> sealed;
    if (ring_ != nullptr) {
        sealed.resize(datagram.size() + seal::kSealOctets);
        std::ranges::copy(datagram, sealed.begin() + sizeof(seal::SealHead));
        ring_->seal(receiver.secret, peers_.cipher(), static_cast<std::uint8_t>(Kind::kSealed),
                    sealed.data(), datagram.size());
        datagram = sealed;
    }
    iovec piece{datagram.data(), datagram.size()};
    const Message message{&receiver.address, &piece, 1, 0};
    int error = 0;
    if (call_.send(call_.context, {&message, 1}, error) == 0) ++unsendable_;
}

}  // namespace ulc::udp
