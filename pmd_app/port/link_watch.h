// SPDX-License-Identifier: BSD-3-Clause
// Judges which links of a bond carry frames, by the replies to the echo requests that each of them
// sends (docs/protocol/NODES.md §8.7). Used by BondPort. Sans-IO: it counts rounds and knows no
// time, so a node that is not scheduled judges nothing.
//
//   asked(link) ──▶ replied(link, token) ──▶ end_round()       a round without any reply counts not
//
// Invariant: of the links that are asked, one at least is not silent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "seal/tokens.h"
#include "wire/node_address.h"

namespace ulc::port {

class LinkWatch {
public:
    /// Rounds in a row without a reply, while another link had one, that make a link silent.
    static constexpr std::uint8_t kSilentAfter = 8;
    /// Rounds in a row with a reply that end this.
    static constexpr std::uint8_t kHeardAfter = 4;
    /// Looks at the links, a millisecond apart or more, between two rounds: in doubt, and in use.
    static constexpr std::uint16_t kDoubtLooks = 8;
    static constexpr std::uint16_t kBusyLooks = 50;
    /// Tokens that a reply may have: a node that is late replies to many requests at once.
    static constexpr std::uint64_t kTokensValid = 64;

    /// seed: secret, so that nodes that do not see a request cannot forge its reply.
    explicit LinkWatch(const seal::Seed& seed) noexcept : tokens_(seed) {}

    /// Returns the token of this round's requests; never 0.
    [[nodiscard]] std::uint64_t token() const noexcept { return tokens_.at(round_); }
    /// The link sends a request in this round.
    void asked(std::size_t link) noexcept { links_[link].asked = true; }
    /// The link brought a reply. Those with old or unknown tokens are ignored.
    void replied(std::size_t link, std::uint64_t token) noexcept;
    /// Judges the links by this round, and begins the next one.
    void end_round() noexcept;
    /// The link's device says that it is down: what was known of it holds no more.
    void forget(std::size_t link) noexcept { links_[link] = Link{}; }

    [[nodiscard]] bool is_silent(std::size_t link) const noexcept { return links_[link].silent; }
    /// Returns whether the last round spoke against the verdict on a link.
    [[nodiscard]] bool doubts() const noexcept { return doubts_; }
    /// Returns how often a link became silent.
    [[nodiscard]] std::uint64_t silences() const noexcept { return silences_; }

private:
    struct Link {
        bool asked = false;    ///< in this round
        bool replied = false;  ///< in this round
        bool silent = false;
        std::uint8_t in_a_row = 0;  ///< rounds that speak against the present verdict
    };

    seal::TokenSeries tokens_;
    std::uint64_t round_ = 0;
    std::uint64_t silences_ = 0;
    bool doubts_ = false;
    std::array<Link, kNodeLinksMax> links_{};
};

}  // namespace ulc::port
