// SPDX-License-Identifier: BSD-3-Clause
// Frames of the engine as messages of a UDP socket. Sans-IO but for one function that it is given.
//
//   frames ──▶ runs: to one node or group, of one length but for the last ──▶ messages ──▶ call
//
// A frame that is too long for the path to a receiver goes there in parts: the length of a packet
// that waits for its acknowledgement cannot change (docs/protocol/IP.md, I-18).
//
// Invariant: send() takes frames from the first one on, so the engine offers the others again. A
// run that the call took for some of its receivers counts as taken: the rest waits here, and until
// it has gone nothing is taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bounded.h"
#include "port/segment.h"
#include "udp/datagram.h"
#include "udp/message.h"
#include "udp/peers.h"

namespace ulc::udp {

/// Sends the first k messages, and returns k. error: errno of the next one; EAGAIN: later; 0: none.
struct SendCall {
    void* context = nullptr;
    std::size_t (*send)(void* context, std::span<const Message> messages, int& error) = nullptr;
};

class Sender {
public:
    static constexpr std::uint16_t kBurst = 64;  ///< most frames of one call

    struct Config {
        std::uint32_t frame_max = 0;      ///< octets of the longest frame
        std::size_t narrow_datagram = 0;  ///< octets of a datagram that passes each path
        seal::Keyring* ring = nullptr;    ///< seals datagrams; nullptr: the net is open
    };
    /// Frames are of FramePools. peers and the ring outlive this.
    Sender(Peers& peers, const Config& config, const SendCall& call);
    ~Sender() { drop_rest(); }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    /// Takes over one reference of each of the first k frames, and returns k.
    [[nodiscard]] std::uint16_t send(Segment* const* frames, std::uint16_t n);
    /// Sends what waits. True: nothing waits any more.
    [[nodiscard]] bool send_rest();
    /// Sends the last broadcast to an address, if there was one.
    void repeat_broadcast(const Address& to);

    [[nodiscard]] std::size_t waiting() const noexcept { return rest_.frames.size(); }
    /// Returns frames that were taken and could not be sent, once for each receiver.
    [[nodiscard]] std::uint64_t unsendable() const noexcept { return unsendable_; }

private:
    struct Receiver {
        SocketAddress address;
        std::size_t secret = 0;  ///< one that it holds, on a sealed net
        bool narrow = false;     ///< its path does not take the longest datagrams
    };
    static constexpr std::size_t kAll = SIZE_MAX;
    /// A message that a receiver has not got.
    struct Owed {
        Receiver to;
        std::size_t frame = kAll;  ///< the number of that which goes to it in parts
    };
    /// Frames of one node or group, which go to one address or several.
    struct Run {
        std::uint16_t first = 0;
        std::uint16_t frames = 0;
        std::size_t messages = 0;
    };
    /// Octets of a frame in whose place a head stands during the call.
    struct Replaced {
        std::byte* at = nullptr;
        Head octets{};
    };
    using Runs = FixedVector<Run, kBurst>;
    /// A run that was sent to some of its receivers.
    struct Rest {
        std::vector<Segment*> frames;  ///< whole, without tails
        std::vector<Owed> owed;        ///< those to the other receivers
        std::size_t next = 0;          ///< in `owed`
    };

    [[nodiscard]] std::uint16_t gather(Segment* const* frames, std::uint16_t first, std::uint16_t n,
                                       Runs& runs);
    [[nodiscard]] std::uint16_t run_length(Segment* const* frames, std::uint16_t n,
                                           std::size_t copies) const noexcept;
    [[nodiscard]] Message put_pieces(Segment* const* frames, std::uint16_t n, std::size_t secret);
    [[nodiscard]] Message put_parts(const Segment& frame, std::size_t secret);
    void put_open(Segment& frame, const Head& head);
    std::size_t call(std::span<const Message> messages, int& error);
    void put_sealed(const Segment& frame, std::size_t secret);
    [[nodiscard]] bool is_wide(const Segment& frame) const noexcept;
    [[nodiscard]] std::byte* next_place();
    [[nodiscard]] std::size_t seal(std::size_t secret, const Mac& to, std::byte* datagram,
                                   std::size_t octets);
    void keep_broadcast(const Segment& frame);
    void add_message(const Message& message, const Receiver& to);
    void add_group(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] static Receiver receiver_of(const Peers::Peer& peer) noexcept;
    [[nodiscard]] std::size_t group_copies(const Segment& frame) const noexcept;
    [[nodiscard]] bool note_narrow(Receiver& receiver, const Segment& frame);
    void cut_rest();
    void keep_rest(Segment* const* frames, const Run& run, std::size_t message, std::size_t served);
    void drop_rest();

    Peers& peers_;
    Config config_;
    SendCall call_;
    std::size_t around_;  ///< octets that a datagram has more than the frame's body
    std::size_t place_octets_;
    std::vector<std::byte> places_;  ///< copies of datagrams, kBurst of them
    std::vector<std::byte> whole_;   ///< a datagram that is cut
    std::uint16_t cut_ = 0;          ///< datagrams that were cut
    std::array<Replaced, kBurst> replaced_{};
    std::size_t replaced_used_ = 0;
    std::array<iovec, 2 * kBurst> pieces_{};
    std::size_t frames_used_ = 0;  ///< frames of a burst, by their copies
    std::size_t pieces_used_ = 0;
    std::vector<Message> messages_;    ///< those of a burst
    std::vector<Receiver> receivers_;  ///< by the same numbers
    Rest rest_;
    std::vector<std::byte> last_to_all_;  ///< the last broadcast; keep_broadcast()
    std::uint64_t unsendable_ = 0;
};

}  // namespace ulc::udp
