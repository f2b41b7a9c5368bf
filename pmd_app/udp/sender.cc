// SPDX-License-Identifier: BSD-3-Clause
#include "udp/sender.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "port/frame_pool.h"
#include "wire/header.h"

namespace ulc::udp {
namespace {

/// Octets of an Ethernet header in front of the place of ours.
constexpr std::size_t kReplaced = kEthernetOctets - kHeadOctets;

/// Returns whether an interface refused a message for its length. Kernels say EINVAL of one that
/// they should cut.
bool is_too_long(int error) noexcept { return error == EMSGSIZE || error == EINVAL; }

/// Writes a frame as an open datagram. Returns its octets.
std::size_t put_whole(const Segment& frame, std::byte* to) noexcept {
    Mac mac;
    std::memcpy(&mac, frame.frame, sizeof mac);
    const Head head = head_of(mac);
    const std::uint32_t tail = frame.tail == nullptr ? 0 : frame.tail_octets;
    const std::size_t front = frame.length - kEthernetOctets - tail;
    std::memcpy(to, head.data(), head.size());
    std::memcpy(to + head.size(), frame.frame + kEthernetOctets, front);
    if (tail > 0) std::memcpy(to + head.size() + front, frame.tail, tail);
    return head.size() + front + tail;
}

Mac destination_of(const Segment& segment) noexcept {
    Mac mac;
    std::memcpy(&mac, segment.frame, sizeof mac);
    return mac;
}

}  // namespace

Sender::Sender(Peers& peers, const Config& config, const SendCall& call)
    : peers_(peers),
      config_(config),
      call_(call),
      around_(kHeadOctets + (config.ring == nullptr ? 0 : seal::kSealOctets)),
      place_octets_(config.frame_max + kPartsMax * around_),
      places_(config.ring == nullptr ? 0 : kBurst * place_octets_) {
    ULC_CHECK(config.narrow_datagram > around_ &&
              config.frame_max / (config.narrow_datagram - around_) < kPartsMax);
    messages_.reserve(kMessagesMax);
    receivers_.reserve(kMessagesMax);
}

/// Returns whether narrow paths get the frame in parts. The length of JOB frames tries the path
/// (J-44).
bool Sender::is_wide(const Segment& frame) const noexcept {
    constexpr auto kJob = static_cast<std::byte>(wire::FrameType::kJob);
    return (frame.frame[kEthernetOctets] & std::byte{0x0f}) != kJob &&
           frame.length - kEthernetOctets + around_ > config_.narrow_datagram;
}

/// Returns how many of the frames go to the receivers of the first one in one message: all but the
/// last have its length. copies: of each, one for each secret.
std::uint16_t Sender::run_length(Segment* const* frames, std::uint16_t n,
                                 std::size_t copies) const noexcept {
    const Mac to = destination_of(*frames[0]);
    const std::size_t octets = frames[0]->length - kEthernetOctets + around_;
    const std::size_t most = std::min({std::size_t{n}, kDatagramsMax, kMessageOctetsMax / octets,
                                       (kBurst - frames_used_) / copies});
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
    const Head head = head_of(destination_of(*frames[0]));
    for (std::uint16_t i = 0; i < n; ++i) {
        if (config_.ring != nullptr) {
            put_sealed(*frames[i], secret);
        } else {
            put_open(*frames[i], head);
        }
    }
    message.piece_count = static_cast<std::size_t>(&pieces_[pieces_used_] - message.pieces);
    if (destination_of(*frames[0]) == kBroadcastMac) keep_broadcast(*frames[n - 1]);
    if (n > 1)
        message.datagram_octets =
            static_cast<std::uint16_t>(frames[0]->length - kEthernetOctets + around_);
    return message;
}

/// The head stands in the frame, so that the kernel reads fewer pieces. call() puts back what was
/// there.
void Sender::put_open(Segment& frame, const Head& head) {
    ++frames_used_;
    std::byte* const at = frame.frame + kReplaced;
    Replaced& replaced = replaced_[replaced_used_++];
    replaced.at = at;
    std::memcpy(replaced.octets.data(), at, head.size());
    std::memcpy(at, head.data(), head.size());
    const std::uint32_t tail = frame.tail == nullptr ? 0 : frame.tail_octets;
    pieces_[pieces_used_++] = {at, frame.length - kReplaced - tail};
    if (tail > 0) pieces_[pieces_used_++] = {const_cast<std::byte*>(frame.tail), tail};
}

/// Sends messages, and restores the frames that they are made of. A frame may stand in several.
std::size_t Sender::call(std::span<const Message> messages, int& error) {
    const std::size_t sent = call_.send(call_.context, messages, error);
    while (replaced_used_ > 0) {
        const Replaced& replaced = replaced_[--replaced_used_];
        std::memcpy(replaced.at, replaced.octets.data(), replaced.octets.size());
    }
    return sent;
}

/// Returns the place of a copy of one more frame.
std::byte* Sender::next_place() {
    if (places_.empty()) places_.resize(kBurst * place_octets_);
    return places_.data() + frames_used_++ * place_octets_;
}

/// Seals the datagram of a frame for `to` that stands sizeof(SealHead) behind `datagram`. Returns
/// the octets of both.
std::size_t Sender::seal(std::size_t secret, const Mac& to, std::byte* datagram,
                         std::size_t octets) {
    config_.ring->seal(secret, peers_.cipher(), is_group(to) ? Mac{} : to, datagram, octets);
    return octets + seal::kSealOctets;
}

/// Encrypts a copy, since a frame may have to be sent again.
void Sender::put_sealed(const Segment& frame, std::size_t secret) {
    std::byte* const datagram = next_place();
    const std::size_t octets = put_whole(frame, datagram + sizeof(seal::SealHead));
    pieces_[pieces_used_++] = {datagram, seal(secret, destination_of(frame), datagram, octets)};
}

/// Makes a message of parts of the frame: all but the last have one length.
Message Sender::put_parts(const Segment& frame, std::size_t secret) {
    whole_.resize(frame.length - kEthernetOctets + kHeadOctets);
    const std::size_t octets = put_whole(frame, whole_.data());
    const std::size_t most = config_.narrow_datagram - around_;
    const std::size_t parts = (octets + most - 1) / most;
    const std::size_t each = (octets + parts - 1) / parts;
    std::byte* const first = next_place();
    std::byte* to = first;
    PartHead head;
    head.datagram = ++cut_;
    for (std::size_t at = 0; at < octets; at += each, ++head.number) {
        const std::size_t piece = std::min(each, octets - at);
        if (at + piece == octets) head.number |= kLastPart;
        std::byte* const text = to + (config_.ring == nullptr ? 0 : sizeof(seal::SealHead));
        std::memcpy(text, &head, sizeof head);
        std::memcpy(text + sizeof head, &whole_[at], piece);
        to += config_.ring == nullptr
                  ? sizeof head + piece
                  : seal(secret, destination_of(frame), to, sizeof head + piece);
    }
    Message message;
    message.pieces = &pieces_[pieces_used_++];
    message.piece_count = 1;
    *message.pieces = {first, static_cast<std::size_t>(to - first)};
    message.datagram_octets = static_cast<std::uint16_t>(parts > 1 ? each + around_ : 0);
    return message;
}

/// Keeps a broadcast, as an open datagram behind kReplaced octets.
void Sender::keep_broadcast(const Segment& frame) {
    last_to_all_.resize(frame.length);
    copy_frame(last_to_all_.data(), frame);
    std::memset(&last_to_all_[kReplaced], 0, kHeadOctets);
    last_to_all_[kReplaced] = static_cast<std::byte>(Kind::kToAll);
}

Sender::Receiver Sender::receiver_of(const Peers::Peer& peer) noexcept {
    return {socket_address(peer.address), peer.keys == nullptr ? 0 : peer.keys->secret(),
            peer.narrow};
}

void Sender::add_message(const Message& message, const Receiver& to) {
    receivers_.push_back(to);
    messages_.push_back(message);
    messages_.back().to = &receivers_.back().address;  // the vector has its space
}

/// Returns how many different messages a frame for a group can become.
std::size_t Sender::group_copies(const Segment& frame) const noexcept {
    std::size_t secrets = 0;
    for (std::size_t secret = 0; config_.ring != nullptr && secret < config_.ring->count();
         ++secret)
        if (peers_.holders_of(secret) > 0) ++secrets;
    const bool cuts = peers_.narrow_count() > 0 && is_wide(frame);
    return std::max<std::size_t>(secrets, 1) * (cuts ? 2 : 1);
}

/// Adds a message to each node. Those that hold one secret get the same datagrams, or parts.
void Sender::add_group(Segment* const* frames, std::uint16_t n) {
    const std::size_t secrets = config_.ring == nullptr ? 1 : config_.ring->count();
    const bool cuts = peers_.narrow_count() > 0 && is_wide(*frames[0]);
    for (std::size_t secret = 0; secret < secrets; ++secret)
        for (const bool narrow : {false, true}) {
            if (narrow && !cuts) continue;
            std::optional<Message> message;
            peers_.each([&](const Peers::Peer& peer) {
                const Receiver receiver = receiver_of(peer);
                if (receiver.secret != secret || (cuts && peer.narrow) != narrow) return;
                if (!message)
                    message =
                        narrow ? put_parts(*frames[0], secret) : put_pieces(frames, n, secret);
                add_message(*message, receiver);
            });
        }
}

/// Makes messages of the frames from `first` on, as many as one call takes. Returns the number of
/// the first frame that found no place. Frames for nodes that no address is known of are dropped.
std::uint16_t Sender::gather(Segment* const* frames, std::uint16_t first, std::uint16_t n,
                             Runs& runs) {
    messages_.clear();
    receivers_.clear();
    frames_used_ = pieces_used_ = 0;
    std::uint16_t at = first;
    while (at < n && frames_used_ < kBurst && messages_.size() < kMessagesMax) {
        Segment* const* const from = frames + at;
        const Mac to = destination_of(*from[0]);
        const Peers::Peer* peer = is_group(to) ? nullptr : peers_.find(to);
        const std::size_t receivers = is_group(to) ? peers_.count() : (peer != nullptr ? 1 : 0);
        if (from[0]->length > config_.frame_max || receivers == 0) {
            if (!runs.empty()) break;  // those go first, or none of these is taken
            if (from[0]->length > config_.frame_max || !is_group(to))
                ++unsendable_;
            else if (to == kBroadcastMac)
                keep_broadcast(*from[0]);
            port::FramePool::put(from[0]);
            ++at;
            continue;
        }
        if (receivers > kMessagesMax - messages_.size() && !messages_.empty()) break;
        const std::size_t copies = is_group(to) ? group_copies(*from[0]) : 1;
        if (copies > kBurst - frames_used_) break;
        const bool wide = is_wide(*from[0]);
        const bool cuts = wide && (peer != nullptr ? peer->narrow : peers_.narrow_count() > 0);
        const auto left = static_cast<std::uint16_t>(cuts ? 1 : n - at);
        Run run{at, run_length(from, left, copies), receivers};
        if (peer != nullptr) {
            const Receiver receiver = receiver_of(*peer);
            add_message(cuts ? put_parts(*from[0], receiver.secret)
                             : put_pieces(from, run.frames, receiver.secret),
                        receiver);
        }
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
        std::size_t sent = messages_.empty() ? 0 : call(messages_, error);
        done = end;
        std::size_t first_message = 0;
        for (const Run& run : runs) {
            const std::size_t got = std::min(run.messages, sent);
            if (got == 0 && run.messages > 0 && error == EAGAIN) return run.first;
            if (got < run.messages) {  // without the receiver that was refused, if one was
                const bool can_cut =
                    is_too_long(error) && run.messages <= kMessagesMax &&
                    note_narrow(receivers_[first_message + got], *frames[run.first]);
                const std::size_t refused = error == 0 || error == EAGAIN || can_cut ? 0 : 1;
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
        peers_.each([this](const Peers::Peer& peer) { rest_.owed.push_back({receiver_of(peer)}); });
        std::ranges::stable_sort(rest_.owed, {}, [](const Owed& owed) { return owed.to.secret; });
    } else {
        for (std::size_t i = served; i < run.messages; ++i)
            rest_.owed.push_back({receivers_[message + i]});
    }
    cut_rest();
}

/// Notes that the path to a receiver does not take such a frame. False: it has it in parts, or not
/// for its length.
bool Sender::note_narrow(Receiver& receiver, const Segment& frame) {
    if (receiver.narrow || !is_wide(frame)) return false;
    receiver.narrow = true;
    peers_.set_narrow(address_of(receiver.address.any), true);
    return true;
}

/// Owes each frame by itself to receivers that get them in parts.
void Sender::cut_rest() {
    if (!is_wide(*rest_.frames[0])) return;
    std::vector<Owed> owed;
    for (std::size_t n = rest_.next; n < rest_.owed.size(); ++n) {
        const Owed& one = rest_.owed[n];
        if (!one.to.narrow || one.frame != kAll) {
            owed.push_back(one);
            continue;
        }
        for (std::size_t frame = 0; frame < rest_.frames.size(); ++frame)
            owed.push_back({one.to, frame});
    }
    rest_.owed = std::move(owed);
    rest_.next = 0;
}

/// Returns whether nothing is left of a run. Receivers of one secret follow each other.
bool Sender::send_rest() {
    if (rest_.frames.empty()) return true;
    while (rest_.next < rest_.owed.size()) {
        const Owed first = rest_.owed[rest_.next];
        messages_.clear();
        frames_used_ = pieces_used_ = 0;
        Message message =
            first.frame != kAll
                ? put_parts(*rest_.frames[first.frame], first.to.secret)
                : put_pieces(rest_.frames.data(), static_cast<std::uint16_t>(rest_.frames.size()),
                             first.to.secret);
        for (std::size_t i = rest_.next; i < rest_.owed.size(); ++i) {
            const Owed& one = rest_.owed[i];
            if (messages_.size() == kMessagesMax || one.to.secret != first.to.secret ||
                one.frame != first.frame)
                break;
            message.to = &one.to.address;
            messages_.push_back(message);
        }
        int error = 0;
        rest_.next += call(messages_, error);
        if (error == EAGAIN) return false;
        if (error == 0) continue;
        Owed& refused = rest_.owed[rest_.next];
        if (is_too_long(error) && note_narrow(refused.to, *rest_.frames[0])) {
            cut_rest();
            continue;
        }
        ++rest_.next;
        unsendable_ += first.frame == kAll ? rest_.frames.size() : 1;
    }
    drop_rest();
    return true;
}

void Sender::drop_rest() {
    for (Segment* frame : rest_.frames)
        port::FramePool::put(frame);
    rest_.frames.clear();
    rest_.owed.clear();
    rest_.next = 0;
}

void Sender::repeat_broadcast(const Address& to) {
    if (last_to_all_.empty()) return;
    const Peers::Peer* const peer = peers_.find(peers_.name_of(to));
    if (peer == nullptr) return;
    const Receiver receiver = receiver_of(*peer);
    std::span<std::byte> datagram(last_to_all_.data() + kReplaced, last_to_all_.size() - kReplaced);
    std::vector<std::byte> sealed;
    if (config_.ring != nullptr) {
        sealed.resize(datagram.size() + seal::kSealOctets);
        std::ranges::copy(datagram, sealed.begin() + sizeof(seal::SealHead));
        static_cast<void>(seal(receiver.secret, kBroadcastMac, sealed.data(), datagram.size()));
        datagram = sealed;
    }
    iovec piece{datagram.data(), datagram.size()};
    const Message message{&receiver.address, &piece, 1, 0};
    int error = 0;
    if (call_.send(call_.context, {&message, 1}, error) == 0) ++unsendable_;
}

}  // namespace ulc::udp
