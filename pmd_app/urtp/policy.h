// SPDX-License-Identifier: BSD-3-Clause
// The choices of a job about its transport (DECISIONS D9). A policy is a constant table:
// values of named parameters, and functions called on an acknowledgement that is due, a gap, a
// timer, credit and congestion. In-order receive calls none of them; it compares numbers that they
// set (RxStream::ack_at, TxStream::limit and cwnd, Params).
//
// A *profile* is the configuration of a job: words joined by "+", each the word of one table in
// policies/. A table leaves entries empty that it does not decide: tables are laid over the default
// one from left to right, so "gbn+eager" is go-back-n with eager acknowledgement. All ranks of a
// job must use one profile (docs/PROTOCOL.md §7).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "urtp/params.h"
#include "urtp/types.h"
#include "wire/ids.h"

namespace ulc::wire {
struct FrameView;  // wire/parse.h
struct FlowBody;   // wire/header.h
}  // namespace ulc::wire

namespace ulc::urtp {

struct RxStream;
struct TxStream;
struct Session;
struct Group;
class GroupRules;
class Receiver;
class Sender;
struct TransportParts;  // urtp/transport.h

/// One acknowledgement that advanced a destination, as congestion control sees it.
struct AckNews {
    std::uint32_t packets = 0;  ///< numbers newly acknowledged by this destination
    Nanos rtt = -1;             ///< a sample, less the receiver's own delay; −1: none (Karn)
};

/// Takes packets that are not the next of their stream, or whose `after` entries are unmet. Each
/// function returns whether the segment was kept.
struct ReceiveMode {
    using Take = bool (*)(Receiver& receiver, const wire::FrameView& frame, Segment* segment,
                          RxStream& rx, Nanos now);
    Take not_next = nullptr;
    Take unmet = nullptr;
};
/// Repair: lost packets are retransmitted. Others are held, and the gaps are requested.
extern const ReceiveMode kRepairMode;

struct Policy {
    std::string_view word;  ///< lower case, digits, '-'
    std::string_view help;  ///< for --help and docs: the policy, and its origin

    /// True if every packet arrives in the end; false: a loss is an event (EventKind::kLost).
    bool recovers = true;

    /// Values of named parameters, written over the engine's.
    void (*tune)(Params& params) noexcept = nullptr;

    // --- the receiver
    /// Returns the number at which the next acknowledgement is due: once `next` is not before it.
    /// Called whenever the stream's position was reported to the source, with the credit that was
    /// reported.
    Seq (*next_ack)(const RxStream& rx, std::uint32_t credit,
                    const Params& params) noexcept = nullptr;
    /// Returns the packets beyond `next` that the source may send.
    std::uint32_t (*credit)(Receiver& receiver, RxStream& rx) noexcept = nullptr;
    /// Called when a packet beyond `next` came, and some before it are missing. `new_gap`: more
    /// than before.
    void (*on_gap)(Receiver& receiver, RxStream& rx, bool new_gap, Nanos now) noexcept = nullptr;
    /// Called when a hole was filled, and behind the packets that it held back is another one.
    /// Empty: it was requested when it showed.
    void (*on_next_hole)(Receiver& receiver, RxStream& rx, Nanos now) noexcept = nullptr;
    /// Called when a packet was dropped for lack of space.
    void (*on_no_room)(Receiver& receiver, RxStream& rx, Nanos now) noexcept = nullptr;

    /// Called when a stream from another rank was made. Empty: nothing to reserve for it.
    void (*on_stream)(Receiver& receiver, RxStream& rx) noexcept = nullptr;
    /// Returns whether this number of a rationed stream (KeptRoom) may take a node of the pool,
    /// which has one. `slot`: it is one of the stream's own.
    bool (*may_hold)(Receiver& receiver, RxStream& rx, Seq seq, bool& slot) noexcept = nullptr;
    /// Called when a node became free while sources wait for space.
    void (*on_room)(Receiver& receiver, Nanos now) noexcept = nullptr;

    /// Handles a FLOW frame of a sender: RESERVE. Set if on_flow is.
    void (*on_reserve)(Receiver& receiver, const wire::FlowBody& body,
                       Session& session) noexcept = nullptr;
    const ReceiveMode* receive_mode = nullptr;

    // --- groups
    /// Makes the rules of a new group, and sets Group::counted. Empty: URTP's.
    std::unique_ptr<GroupRules> (*group_rules)(const TransportParts& parts, Group& group) = nullptr;

    // --- the sender
    /// Called for data, or a wish for credit, without news for the time that the tail timer waits;
    /// it has been armed again, and dead destinations are removed already.
    void (*on_tail)(Sender& sender, TxStream& tx, Nanos now) = nullptr;
    /// True if on_tail retransmits packets and asks nothing. Receivers then acknowledge duplicates
    /// in every profile, or the retransmissions would not end.
    bool repeats_tail = false;
    /// Called when may_send() has just refused for lack of window, credit or congestion window.
    void (*on_refused)(Sender& sender, TxStream& tx, Nanos now) noexcept = nullptr;
    /// Returns whether the next packet of a message of that length may be sent, of which `left`
    /// bytes are still to go; the window and the credit allow it. Empty: yes. Only for messages
    /// longer than Params::reserve_above.
    bool (*may_start)(Sender& sender, TxStream& tx, std::uint64_t left,
                      Nanos now) noexcept = nullptr;
    /// Handles a FLOW frame of a receiver: GRANT or REFUSE. Empty: not supported.
    void (*on_flow)(Sender& sender, const wire::FlowBody& body, Session& session,
                    Nanos now) noexcept = nullptr;
    /// Called when destination `at` reported again, while more is on the wire, that it waits for
    /// the number that it had named before. Empty: ignored.
    void (*on_repeated_ack)(Sender& sender, TxStream& tx, std::uint32_t at,
                            Nanos now) noexcept = nullptr;

    // --- congestion (sender/congestion.h, pacer.h). Each may set TxStream::cwnd and the pacer.
    // Empty: only the window bounds a stream.
    void (*on_opened)(Sender& sender, TxStream& tx) noexcept = nullptr;
    void (*on_acked)(Sender& sender, TxStream& tx, const AckNews& news,
                     Nanos now) noexcept = nullptr;
    /// Called when a destination asks for `seq`, which will be retransmitted.
    void (*on_lost)(Sender& sender, TxStream& tx, Seq seq, Nanos now) noexcept = nullptr;
};

/// Returns every table, the default one first.
[[nodiscard]] std::span<const Policy* const> policies() noexcept;

/// Lays the tables that the words name over each other, and writes their values over `params`.
/// Entries that are called without a test are all set. Errors: kInvalid (no such word, a word
/// twice, too long); nothing is changed then.
[[nodiscard]] Err resolve(std::string_view profile, Policy& policy, Params& params) noexcept;

/// Returns "urtp, gbn, …": for messages.
[[nodiscard]] std::string policy_words();

}  // namespace ulc::urtp
