// SPDX-License-Identifier: BSD-3-Clause
// The peers of an endpoint whose short messages go through shared memory. Used by Endpoint.
//
//   receiver                                       sender
//          ◀──────────────── a message through the engine
//   makes a ring, says NearOffer ────────────────▶ maps it
//          ◀════════════════ short messages through the ring
//
// Which process a peer is, each side hears from its engine (abi::NearRows), before it makes or maps
// a ring. The peer's own word does not count.
//
// Order. Each side counts the messages of a pair that go through the engine. A message of the ring
// tells how many went before it; it waits until as many have arrived. A message through the engine
// waits until the ring has given what was written before: it was written before the engine was
// handed that message, so the receiver sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "client/jobs/membership.h"
#include "client/near/near_memory.h"
#include "client/near/near_ring.h"
#include "client/p2p/inbox.h"
#include "client/p2p/submitter.h"

namespace ulc::client {

inline constexpr std::uint64_t kTagNear = kLibulcTags | 9;

class Near {
public:
    static constexpr unsigned kPeersMax = 256;

    /// The references outlive this.
    Near(Inbox& inbox, Submitter& submitter, const Membership& membership,
         const NearMemory& memory) noexcept
        : inbox_(inbox), submitter_(submitter), membership_(membership), memory_(memory) {}
    ~Near();
    Near(const Near&) = delete;
    Near& operator=(const Near&) = delete;

    /// Peers 0 … peers-1. May throw std::bad_alloc.
    void begin_job(std::uint16_t peers) { peers_.assign(peers, Peer{}); }
    /// Performs ulc_near_peer().
    [[nodiscard]] int name(std::uint16_t peer) noexcept;
    /// Performs ulc_near_processes().
    [[nodiscard]] int processes(std::uint16_t peer, abi::NearRows& out) noexcept;
    /// Asks the engine about peers that were named, as far as there is space.
    void ask() noexcept;
    /// Handles kNear, the engine's answer. Returns false if no correct engine writes it.
    [[nodiscard]] bool on_record(const abi::CompletionRecord& record) noexcept;
    /// Nothing comes from the peer any more, and nothing goes to it.
    void forget(std::uint16_t peer) noexcept;

    // --- sending
    /// Hands a message to the peer's ring. False: it has to go through the engine.
    [[nodiscard]] bool send(std::uint16_t to, std::uint64_t tag, const Pieces& payload) noexcept {
        Peer& peer = peers_[to];
        return peer.sender != nullptr && payload.length <= kNearMax &&
               peer.sender->ring.send(peer.sent, tag, payload);
    }
    /// The engine was handed a message to the peer.
    void sent(std::uint16_t to) noexcept { ++peers_[to].sent; }
    /// A word of the peer with kTagNear, which waits for the engine's answer. False: it is
    /// malformed, or from a peer that is not near.
    [[nodiscard]] bool on_offer(std::uint16_t from, std::span<const unsigned char> word) noexcept;

    // --- receiving
    /// A message of the peer through the engine has begun.
    void arrived(std::uint16_t from) noexcept {
        ++peers_[from].arrived;
        if (peers_[from].named == Named::kNear) begin(from);
    }
    /// Gives the inbox what the peer's ring has. False: there is no memory for the next message.
    [[nodiscard]] bool drain(std::uint16_t from) noexcept;
    /// Drains the rings of all senders but those that are stopped (shares.h). Returns how many
    /// messages; *stalled is set if there is no memory.
    unsigned drain_all(bool* stalled) noexcept;

    /// Calls say(peer, offer) for rings whose senders do not know them; say returns false if it
    /// could not be said now.
    template <typename Say>
    void each_offer(Say say) noexcept {
        std::erase_if(unsaid_, [&](std::uint16_t peer) {
            const Receiver* receiver = peers_[peer].receiver;
            return receiver == nullptr || say(peer, receiver->offer);
        });
    }
    /// True if a message may come that wakes no thread.
    [[nodiscard]] bool has_receivers() const noexcept { return !receivers_.empty(); }
    /// Rings that ended because of a malformed record, and malformed offers.
    [[nodiscard]] std::uint64_t malformed() const noexcept { return malformed_; }
    void check_invariants() const;

private:
    friend struct Breaker;
    struct Sender {
        std::byte* memory;
        NearSender ring;
    };
    struct Receiver {
        std::byte* memory;
        NearReceiver ring;
        NearOffer offer;
        std::uint16_t source;
        bool used = false;  ///< a message has come: the sender has mapped it
    };
    enum class Named : std::uint8_t {
        kNo,
        kFar,
        kWanted,  ///< in unasked_
        kAsked,
        kNear,
        kTried,  ///< near, and a ring for it was made, or cannot be made
    };
    [[nodiscard]] static bool is_near(Named named) noexcept { return named >= Named::kNear; }
    /// Exists from kWanted on.
    struct Known {
        abi::NearRows rows{};  ///< if it is near
        NearOffer offer{};     ///< the one that came before the engine's answer
        bool offers = false;
    };
    struct Peer {
        Sender* sender = nullptr;
        Receiver* receiver = nullptr;
        std::uint32_t sent = 0;     ///< messages handed to the engine
        std::uint32_t arrived = 0;  ///< messages that the engine brought
        Named named = Named::kNo;
    };

    void note_named(std::uint16_t peer) noexcept;
    void on_rows(std::uint16_t peer, const abi::NearRows* rows) noexcept;
    void begin(std::uint16_t from) noexcept;
    void use(std::uint16_t peer, const NearOffer& offer) noexcept;
    void end_receiver(std::uint16_t from) noexcept;
    void end_sender(std::uint16_t to) noexcept;

    Inbox& inbox_;
    Submitter& submitter_;
    const Membership& membership_;
    const NearMemory& memory_;
    std::vector<Peer> peers_;
    std::vector<std::unique_ptr<Receiver>> receivers_;
    std::vector<std::unique_ptr<Sender>> senders_;
    std::vector<std::uint16_t> unsaid_;
    std::vector<std::uint16_t> unasked_;
    std::unordered_map<std::uint16_t, Known> known_;
    std::uint64_t malformed_ = 0;
    unsigned given_ = 0;  ///< messages since drain_all() last counted
};

}  // namespace ulc::client
