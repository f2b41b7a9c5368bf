// SPDX-License-Identifier: BSD-3-Clause
// A port whose frames are sealed, over one whose frames all stations of its segment can read
// (docs/protocol/IP.md §17).
//
//   engine ── tx() ──▶ copy, encrypt, name ─▶ address ──▶ port below
//   engine ◀── rx() ── decrypt into a frame, address ─▶ name ◀── port below
//
// A frame for a group is encrypted once for each secret, and sent once: all that hold the secret
// read it. Nodes find each other by broadcast questions (udp/peers.h), which carry a proof that the
// sender holds a secret. An address of the segment stands in that table as an IPv6 address.
//
// Invariant: a frame that tx() took lies here encrypted until the port below takes it, and until
// then no other frame is taken. Engine thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bounded.h"
#include "base/error.h"
#include "port/frame_pool.h"
#include "port/port.h"
#include "seal/keys.h"
#include "seal/tokens.h"
#include "udp/datagram.h"
#include "udp/peers.h"

namespace ulc::sealed {

struct PortOptions {
    std::uint16_t ether_type = 0;
    std::uint32_t segments = 0;  ///< frames of the engine, and as many again of received ones
    seal::Seed seed;             ///< for name, tokens and tables
    std::string key_file;        ///< empty: add_secret() names the first secret
    Nanos (*clock)() = nullptr;
};

class SealedPort {
public:
    /// below: one link, which outlives this. Errors: kInvalid (the key file, an MTU too small),
    /// kNoMemory, kSystem.
    static Err open(const Port& below, const PortOptions& options, std::unique_ptr<SealedPort>& out,
                    std::string& why);
    ~SealedPort();
    SealedPort(const SealedPort&) = delete;
    SealedPort& operator=(const SealedPort&) = delete;

    [[nodiscard]] const Port& port() const noexcept { return port_; }
    /// Takes a secret by which nodes are found from now on. False: there are too many.
    [[nodiscard]] bool add_secret(const seal::Secret& secret) noexcept;
    /// Returns whether no secret is known, so that no node is found.
    [[nodiscard]] bool needs_secret() const noexcept { return ring_->count() == 0; }

private:
    static constexpr std::uint16_t kBurst = 64;
    static constexpr Nanos kCallFirst = 10 * kMillisecond;  ///< until the second call; doubles
    static constexpr Nanos kCallAgain = 60 * kSecond;       ///< between all later ones

    SealedPort(const Port& below, const PortOptions& options, const udp::PeersConfig& config,
               std::unique_ptr<seal::Keyring> ring);
    void fill_table();

    [[nodiscard]] std::uint16_t send(Segment* const* frames, std::uint16_t n);
    [[nodiscard]] bool take(const Segment& frame);
    [[nodiscard]] bool take_for_all(const Segment& frame, const Mac& to);
    void put(std::span<const std::byte> datagram, const Mac& to, std::size_t secret,
             const Mac& receiver);
    [[nodiscard]] bool flush();
    [[nodiscard]] std::uint32_t pending();
    void repeat_broadcast(const udp::Address& to);

    [[nodiscard]] std::uint16_t receive(Segment** out, std::uint16_t n);
    [[nodiscard]] std::span<const std::byte> sealed_in(const Segment& frame);
    [[nodiscard]] Segment* open_frame(const Segment& sealed);
    [[nodiscard]] Segment* pass_on(const Segment& foreign);
    [[nodiscard]] Segment* new_segment();
    void know_sender(const Mac& from) noexcept;
    [[nodiscard]] std::string words_of_strangers() const;

    void look();
    void answer();
    void follow_address();
    [[nodiscard]] std::span<const std::byte> datagram_of(const Segment& frame);

    Port below_;
    PortOptions options_;
    std::unique_ptr<seal::Keyring> ring_;
    udp::Peers peers_;
    port::FramePool tx_pool_;
    port::FramePool rx_pool_;
    Port port_;
    std::uint32_t frame_max_;                ///< octets of the engine's longest frame
    Mac address_;                            ///< this station's on the segment
    FixedVector<Segment*, kBurst> waiting_;  ///< sealed frames that the port below did not take
    std::vector<std::byte> datagram_;        ///< an open one
    std::vector<std::byte> last_to_all_;     ///< the last broadcast, as an open datagram
    Mac from_;                               ///< sender of the last frame, its name and its keys
    Mac name_;
    seal::PeerKeys* keys_ = nullptr;
    Mac stranger_;                ///< sender of the last frame that was not sealed as this net is
    std::int64_t failed_at_ = 0;  ///< the millisecond of the last wrong seal
    Nanos next_call_ = 0;
    Nanos call_wait_ = kCallFirst;
    InterfaceState interface_;
    PortDrops drops_;
    std::uint64_t no_frame_ = 0;
    std::uint64_t copied_bytes_ = 0;
};

}  // namespace ulc::sealed
