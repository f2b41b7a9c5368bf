// SPDX-License-Identifier: BSD-3-Clause
// Which node is at which UDP address, and how nodes find each other without broadcast
// (docs/protocol/IP.md). Sans-IO: the port passes datagrams and the time.
//
//   known address ──HELLO(token)──▶ node there          an address counts after its token came back
//                ◀──WELCOME(token, addresses of others)── each of which is asked in the same way
//                ◀──HELLO(token)── the node there asks back, and so learns this one
//
// A node has to know one other address: that of a node which others know too. Little is sent to an
// address that did not answer: one HELLO a second at most, and answers of at most three times the
// octets that it sent (RFC 9000 §8).
//
// On a sealed net a node counts only if its datagrams prove that it holds a secret of this node's
// (seal/keys.h), and comes with the keys by which it seals. Open and sealed nodes do not answer
// each other, but each is asked once, so that the other can say why it finds no node.
//
// Each question to a known node is as long as the longest datagram. If such ones are lost while
// short ones pass, the path is narrow, until a long one passes again (RFC 8899 §4.3).
//
// Invariants: a name has one address, and an address one name; work for a datagram does not grow
// with the number of peers, but for a WELCOME to a peer, which names at most kEntriesMax.
// Engine thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tables/keyed_index.h"
#include "base/units.h"
#include "seal/keys.h"
#include "seal/tokens.h"
#include "udp/address.h"
#include "udp/datagram.h"
#include "wire/ids.h"

namespace ulc::udp {

/// Returns 46 of the bits as the name of a node.
[[nodiscard]] Mac name_of_bits(std::uint64_t bits) noexcept;

struct PeersConfig {
    Mac own;          ///< this node's name
    seal::Seed seed;  ///< for tokens and tables
    /// nullptr: the net is open. It outlives this. While it has no secret no node is found.
    seal::Keyring* ring = nullptr;
    std::size_t datagram_max = 0;  ///< octets of the longest one; 0: paths are not tried
};

class Peers {
public:
    static constexpr std::size_t kPeersMax = 4096;
    static constexpr std::size_t kStrangersMax = 256;  ///< addresses that others named, unanswered
    static constexpr Nanos kAskFirst = 10 * kMillisecond;  ///< until the second question; doubles
    static constexpr Nanos kAskAgain = kSecond;            ///< and between all later ones
    static constexpr std::uint8_t kTries = 8;            ///< for an address that was not configured
    static constexpr Nanos kRefresh = 4 * kSecond;       ///< between two questions to a peer
    static constexpr Nanos kDoubt = 250 * kMillisecond;  ///< while long questions are lost
    static constexpr std::uint8_t kLongTries = 3;        ///< then the path is narrow
    static constexpr Nanos kSilent = 10 * kSecond;   ///< then its name may move to another address
    static constexpr Nanos kForget = 120 * kSecond;  ///< longer than any patience with a node
    static constexpr unsigned kAnswersPerLook = 16;  ///< to strangers, between two on_timer()
    static constexpr std::size_t kHintsPerSecond = 16;
    static constexpr std::size_t kCheckedMax = 256 * 1024;  ///< octets of wrong proofs, in a look
    static constexpr std::size_t kQueueMax = 2 * kPeersMax;

    /// Parts of a datagram that came.
    struct Assembly {
        std::uint16_t datagram = 0;
        std::uint8_t next = 0;  ///< number of the part that is missing; 0: none came
        std::vector<std::byte> octets;
    };
    struct Peer {
        Address address;
        Mac name;  ///< no octet set: it has not answered
        bool configured = false;
        bool own = false;      ///< this node's address
        bool foreign = false;  ///< a node there seals by no secret of this node's, or at all
        std::uint8_t tries = 0;
        std::uint16_t from = 0;  ///< the first entry that is wanted from it
        std::uint64_t token = 0;
        Nanos asked = -kNever / 2;
        Nanos next = 0;              ///< time of the next question
        Nanos heard = 0;             ///< the last good answer
        bool narrow = false;         ///< its path does not take the longest datagrams
        bool asked_long = false;     ///< the last question had that length
        std::uint8_t long_lost = 0;  ///< such questions in a row
        std::size_t secret = 0;      ///< the one that proved the last question, on a sealed net
        Assembly parts;
        std::unique_ptr<seal::PeerKeys> keys;  ///< those of a node that answers, on a sealed net
        [[nodiscard]] bool answers() const noexcept { return name != Mac{}; }
    };
    struct Counts {
        std::uint64_t malformed = 0;
        std::uint64_t unproven = 0;  ///< answers without the token of a question
        std::uint64_t refused = 0;   ///< names that answer elsewhere, and addresses without space
        std::uint64_t unsealed = 0;  ///< datagrams that are not sealed as this net's are
        std::uint64_t narrowed = 0;  ///< paths that stopped taking the longest datagrams
    };

    explicit Peers(const PeersConfig& config);

    /// Asks at this address until a node answers, and keeps it for good.
    void add(const Address& address, Nanos now);
    /// Asks the nodes that hear what is sent to `to` to ask this one. The net is sealed.
    void call_all(const Address& to);
    /// A datagram of kind kHello or kWelcome.
    void on_datagram(const Address& from, std::span<const std::byte> datagram, Nanos now);
    /// Call it every 1 to 10 ms.
    void on_timer(Nanos now);
    /// Writes the next datagram to body, which has kControlMax octets and datagram_max. Returns its
    /// length; 0: none.
    [[nodiscard]] std::size_t next_tx(Address& to, std::byte* body);

    /// Gives the next address at which a node answered that was not known before. False: none.
    [[nodiscard]] bool next_new(Address& out);

    /// Returns the name of the node that answered at an address; no octet set: none did.
    [[nodiscard]] Mac name_of(const Address& address) const noexcept;
    /// Returns where parts of datagrams from an address gather; nullptr: no node answered there.
    [[nodiscard]] Assembly* parts_of(const Address& address) noexcept;
    /// Notes that the path to an address does not take, or takes, the longest datagrams.
    void set_narrow(const Address& address, bool narrow) noexcept;
    [[nodiscard]] std::size_t narrow_count() const noexcept { return narrow_count_; }
    /// Returns the keys of that node; nullptr: none answered, or the net is open.
    [[nodiscard]] seal::PeerKeys* keys_of(const Address& address) noexcept;
    /// Returns nullptr if no node of that name answered.
    [[nodiscard]] const Peer* find(const Mac& name) const noexcept;
    /// Returns how many nodes that answered have proved that secret (seal::Keyring).
    [[nodiscard]] std::size_t holders_of(std::size_t secret) const noexcept {
        return holders_[secret];
    }
    /// Returns the cipher that all nodes here have.
    [[nodiscard]] seal::Cipher cipher() const noexcept;
    /// Calls visit(peer) for each node that answered.
    template <typename Visit>
    void each(Visit visit) const {
        for (const std::uint32_t at : answering_)
            visit(peers_[at]);
    }
    /// Names the addresses given by add() at which no node answered, a few of many; "": none.
    [[nodiscard]] std::string unanswered() const;
    [[nodiscard]] std::size_t count() const noexcept { return answering_.size(); }
    [[nodiscard]] const Mac& own() const noexcept { return config_.own; }
    [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
    /// Returns how many places of its tables all datagrams have looked at, for tests.
    [[nodiscard]] std::uint64_t steps() const noexcept {
        return by_address_.steps() + by_name_.steps();
    }

private:
    struct Answer {
        Address to;
        std::uint64_t token = 0;
        std::uint16_t from = 0;
        bool is_question = false;
        bool is_call = false;  ///< proved, and wants no answer but a question
        bool with_entries = false;
        bool is_long = false;
        std::size_t secret = 0;  ///< by which it is proved, on a sealed net
    };

    static constexpr std::uint64_t kHint = 0;  ///< token of a question that wants no answer

    struct Hinted {
        Address to;
        Nanos at = -kNever / 2;
    };

    [[nodiscard]] std::uint64_t key_of(const Address& address) const noexcept;
    [[nodiscard]] std::uint32_t at(const Address& address) const noexcept;
    std::uint32_t insert(const Address& address, Nanos now);
    void remove(std::uint32_t slot);
    void ask(Peer& peer, std::size_t secret, Nanos now);
    [[nodiscard]] std::size_t next_secret(const Peer& peer) const noexcept;
    void set_name(std::uint32_t slot, const Mac& name);
    void clear_name(std::uint32_t slot);
    struct Proved {
        std::size_t secret = 0;
        seal::Proof proof;
    };
    [[nodiscard]] bool take_proof(const Address& from, std::span<const std::byte>& datagram,
                                  Proved& out, Nanos now);
    [[nodiscard]] static bool is_hint(std::span<const std::byte> datagram) noexcept;
    [[nodiscard]] bool may_hint(const Address& to, Nanos now) noexcept;
    void on_hello(const Address& from, const Hello& hello, std::size_t secret, Nanos now);
    void on_welcome(const Address& from, std::span<const std::byte> datagram, const Proved& proved,
                    Nanos now);
    void set_keys(Peer& peer, const Proved& proved);
    void learn_path(Peer& peer);
    void set_narrow(Peer& peer, bool narrow) noexcept;
    void count_keys(const Peer& peer, bool more) noexcept;
    void take_entries(std::span<const std::byte> entries, Nanos now);
    [[nodiscard]] std::size_t put_padding(std::byte* body) const;
    [[nodiscard]] std::size_t put_welcome(const Answer& answer, std::byte* body) const;

    PeersConfig config_;
    seal::Tokens tokens_;
    std::uint64_t secret_;
    std::vector<Peer> peers_;  ///< slots are stable
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> used_;       ///< slots in use
    std::vector<std::uint32_t> answering_;  ///< slots of those that answered
    std::size_t strangers_ = 0;             ///< neither configured nor answering
    std::array<std::size_t, seal::kSecretsMax> holders_{};
    std::size_t narrow_count_ = 0;
    std::size_t without_aes_ = 0;  ///< nodes that answered and do not have it
    KeyedIndex by_address_;
    KeyedIndex by_name_;
    std::deque<Answer> queue_;
    std::deque<Address> new_;
    unsigned answers_ = 0;     ///< to strangers, since the last look
    std::size_t checked_ = 0;  ///< octets of wrong proofs, since the last look
    std::array<Hinted, kHintsPerSecond> hinted_{};
    Nanos next_look_ = 0;
    Counts counts_;
};

}  // namespace ulc::udp
