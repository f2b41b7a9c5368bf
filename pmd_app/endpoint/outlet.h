// SPDX-License-Identifier: BSD-3-Clause
// Delivery to one client: packets in order → completion records and blocks of the rx arena.
//
//   one packet, ≤ 104 bytes        inside the completion record
//   one packet, longer             a separate block
//   several, ≤ half of the arena   one block for the whole message, completed when whole, so that
//                                  the client may take it without a second copy
//   longer, or memory is short     chunks: each completed when full, message_offset is its place
//
// The client gives blocks back through a separate ring. Each delivery reads it first, since memory
// is wanted then. Messages that the client cannot take stay in the Transport, whose credit stops
// the source. Each source that has sent owns one packet-sized block of the arena (decision D8), so
// the unconsumed data of one source cannot stop another; reserves take at most half of the arena.
//
// The client may have the messages of one source stopped, so that what it has no receive for cannot
// use up the memory for those of others. They stay in the Transport then, too.
//
// Packets of one source arrive message by message (docs/PROTOCOL.md §6.1), so there is one open
// message a source. A source that breaks this is counted (drop_framing) and damages its own
// messages only.
//
// With the profile `pack`, a packet of whole messages is a list of them, each delivered as above.
// If the client has space for some of them only, the packet stays in front until all are delivered.
//
// A message of an offloaded schedule goes to the place that the schedule names (offload.h), with
// neither block nor completion. If a client of this process has named the memory for a receive, the
// message goes there, and only its end is completed (abi/placement.h). If a client of this process
// has asked for it, it gets a message of one packet as the frame itself (frame_loans.h). A long
// message that begins before its receive is posted stays in the Transport for kRoundsForReceive
// rounds (placing.cc): often the client posts the receive as soon as it sees what came with the
// message, such as an acknowledgement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/placement.h"
#include "abi/region.h"
#include "base/copy_short.h"
#include "base/counters.h"
#include "base/units.h"
#include "endpoint/frame_loans.h"
#include "endpoint/passed_log.h"
#include "endpoint/rx_arena.h"
#include "endpoint/sink.h"
#include "urtp/transport.h"

namespace ulc::state {
class Archive;
}  // namespace ulc::state

namespace ulc::endpoint {

class Offloads;

/// The place of a message inside one packet: its completion, and its block if the record has no
/// space for it.
struct Claim {
    abi::CompletionRecord* out = nullptr;  ///< nullptr: it goes nowhere
    std::uint32_t block = RxArena::kNone;
    bool lends = false;       ///< the block stands for the frame
    bool is_reserve = false;  ///< the block is the reserve of its source
};

class Outlet {
public:
    Outlet(const abi::Region& region, Counters& counters);

    /// Completions, whose messages go through deliver_to() and run() alone.
    [[nodiscard]] abi::CompletionProducer& completions() noexcept { return completions_; }
    [[nodiscard]] const abi::CompletionProducer& completions() const noexcept {
        return completions_;
    }
    /// Returns the completion of a client's request or of a report, to be filled before publish();
    /// nullptr: there is no space.
    [[nodiscard]] abi::CompletionRecord* claim_report(abi::CompletionKind kind) noexcept;
    void publish_report() noexcept {
        completions_.publish();
        counters_.add(Counter::completions);
    }
    /// Tells the client that a send of its has ended.
    void end_send(std::uint32_t cookie, Err status) noexcept {
        ends_.push(cookie, status);
        counters_.add(Counter::completions);
    }
    /// Returns the number of completions and of ends of sends that the client was given, free
    /// running.
    [[nodiscard]] std::uint32_t given() const noexcept {
        return completions_.produced() + ends_.produced();
    }

    /// Returns the frames that the client has, and whether it may get more.
    [[nodiscard]] FrameLoans& loans() noexcept { return loans_; }

    /// Begins a job: sources are 0 … ranks-1, packets carry at most `mtu` bytes.
    /// `packs`: a packet of whole messages holds a list of them (wire/packed.h).
    void begin_job(std::uint16_t ranks, std::uint16_t mtu, bool packs = false);
    /// Delivers until nothing is ready, `budget` packets were delivered, or the client has no
    /// space. Returns true if something moved.
    bool run(urtp::Transport& member, unsigned budget, Nanos now);
    /// True if the last run() stopped for lack of space; only the client can change that.
    [[nodiscard]] bool blocked() const noexcept { return blocked_; }
    /// True if the last run() left packets behind, blocked or out of budget.
    [[nodiscard]] bool unfinished() const noexcept { return unfinished_; }
    /// Takes and drops the packets that are ready: the client is gone.
    static bool discard(urtp::Transport& member, unsigned budget, Nanos now);
    /// Takes the blocks that the client has given back, at most kReclaimMax; call it before each
    /// run(). Returns false if one is a block that the client does not hold.
    [[nodiscard]] bool reclaim() noexcept {
        if (arena_.lent_blocks() != 0 && !bad_release_) bad_release_ = !take_back();
        return !bad_release_;
    }
    /// Notes that the source is a different one after this call. Its first message takes the
    /// general path, so that it finds the reports that must come before.
    void begin_source(Rank source) noexcept;
    /// Drops the half message of a source that is gone. The client is notified by kPeerLeft or
    /// kPeerDied.
    void forget(Rank source) noexcept;

    /// Sets which messages of the source are delivered. Others stay in the Transport.
    void set_intake(Rank source, abi::Intake intake);

    /// True if nothing of the source waits, and nothing of any source waits for the client.
    [[nodiscard]] bool may_claim(Rank rank) const noexcept {
        if (rank >= index_.size() || index_[rank] == 0 || blocked_) return false;
        const Source& source = sources_[index_[rank] - 1U];
        return !source.open && source.intake == abi::Intake::kAll;
    }
    /// Returns the place of a message that is `length` bytes long and inside one packet, of a
    /// source that may_claim(); without a record: run() delivers it. deliver_to() or unclaim() must
    /// follow. `framed`: the message is in a received frame, which deliver_to() gets. kInside: it
    /// is at most abi::kInlineOctetsMax long.
    template <bool kInside>
    [[gnu::always_inline]] [[nodiscard]] Claim claim(std::uint32_t length, bool tagged,
                                                     std::uint64_t tag, bool framed) noexcept {
        if (tagged && offloads_ != nullptr && is_operation(tag)) [[unlikely]]
            return {};
        Claim claim{completions_.claim()};
        if (!kInside && length > abi::kInlineOctetsMax) claim_block(claim, length, framed);
        return claim;
    }
    /// True if packets from the middle of the message that is arriving from that source in that
    /// stream have a place.
    [[nodiscard]] bool takes_parts(Rank rank, StreamId stream) const noexcept {
        if (rank >= index_.size() || index_[rank] == 0) return false;
        const Source& source = sources_[index_[rank] - 1U];
        return source.open && !source.forgotten && !source.sink && source.stream == stream &&
               source.intake != abi::Intake::kNone && (source.place || source.whole);
    }
    /// Takes the payload of the next packet from the middle of that message, if it is not the last
    /// one's. Returns false if nothing was changed.
    [[nodiscard]] bool take_part(Rank rank, std::span<const std::byte> payload) noexcept;
    /// Returns where such a payload goes, if not to its segment; nullptr: no such place.
    [[nodiscard]] std::byte* place_of_part(Rank rank, std::uint32_t octets) const;
    /// Gives back a place that is not used.
    void unclaim(const Claim& claim) noexcept {
        if (claim.block != RxArena::kNone) arena_.free(claim.block);
    }
    /// Delivers a message to its place. The caller counts Counter::completions and
    /// messages_received. `frame`: the one that the message is in; if claim.lends, this takes over
    /// the caller's reference.
    [[gnu::always_inline]] void deliver_to(const Claim& claim, Rank rank,
                                           const urtp::ShortMessage& message,
                                           Segment* frame) noexcept {
        if (claim.block != RxArena::kNone) return deliver_block(rank, message, claim, frame);
        complete(*claim.out, rank, message, {.flags = abi::kCompleteInline | kWhole});
    }
    /// Sets the object that is asked first about a message of a collective operation; nullptr:
    /// none.
    void set_offloads(Offloads* offloads) noexcept { offloads_ = offloads; }
    /// Sets the placer, which is asked next; nullptr: none. It stays until replaced, and messages
    /// go to the place that it named even after that.
    void set_placer(const abi::Placer* placer) noexcept { placer_ = placer; }
    [[nodiscard]] const abi::Placer* placer() const noexcept { return placer_; }
    /// Ends the use of a place for the message of `source` that is arriving, whose rest is dropped
    /// without a completion. Returns false if none arrives there.
    bool forget_place(Rank source, const abi::Place& place) noexcept;
    /// True if some message goes to the place that its client named, or may.
    [[nodiscard]] bool placing() const noexcept { return places_ > 0 || placer_ != nullptr; }
    /// Returns where the payload of the next delivered packet goes, if not to its segment; nullptr:
    /// no such place.
    [[nodiscard]] std::byte* next_place(Rank source, const urtp::ReadyPacket& packet) const;
    /// Returns the log of messages that went to the client.
    [[nodiscard]] const PassedLog& passed() const noexcept { return passed_; }
    /// Calls found(source) for each message of that tag that will go to the client, and that was
    /// not reported to it yet.
    template <typename Found>
    void each_half_passed(std::uint64_t tag, std::uint64_t mask, Found found) const {
        for (std::size_t rank = 0; rank < index_.size(); ++rank) {
            if (index_[rank] == 0) continue;
            const Source& source = sources_[index_[rank] - 1U];
            const bool begun = source.open && !source.sink && !source.place && source.has_tag &&
                               source.done == 0 && source.filled > 0;
            if (begun && ((source.tag ^ tag) & mask) == 0) found(static_cast<Rank>(rank));
        }
    }

    [[nodiscard]] const RxArena& arena() const noexcept { return arena_; }
    /// Ranks of the job that began last.
    [[nodiscard]] std::size_t ranks() const noexcept { return index_.size(); }
    /// Fails the process if a message has two destinations, if a block of the arena is lost or has
    /// two owners, or if a count is wrong. O(sources + blocks).
    void check_invariants() const;
    /// Writes or reads all but the client's own places for messages, of which there are none.
    void fields(state::Archive& archive);

private:
    friend struct Breaker;  // tests/unit/engine/invariants_test.cc

    /// A block for one packet that only its owners use, and that a client gives back at once.
    struct Reserve {
        std::uint32_t block = RxArena::kNone;
        bool free = false;
        void fields(state::Archive& archive);
    };
    struct Source {
        std::uint16_t reserve = 0;             ///< index of its reserve, or of the common one
        std::uint32_t block = RxArena::kNone;  ///< being filled
        std::uint32_t capacity = 0;
        std::uint32_t filled = 0;
        std::uint64_t done = 0;  ///< bytes of the message completed in earlier chunks
        std::uint64_t length = 0;
        std::uint64_t tag = 0;
        std::uint32_t stream = 0;
        std::uint16_t unpacked = 0;  ///< bytes of the packet in front whose messages are delivered
        Sink sink;                   ///< destination of the open message, if not the client
        abi::Place place;            ///< place that the client named for all of it; or none
        bool block_is_reserve = false;
        bool open = false;
        bool whole = false;  ///< one block for the whole message
        bool has_tag = false;
        bool forgotten = false;  ///< the client gave back the place of the open message
        abi::Intake intake = abi::Intake::kAll;
        void fields(state::Archive& archive);
    };

    /// The part of a message that one completion reports.
    struct Part {
        std::uint8_t flags = 0;  ///< abi::kComplete*, but kCompleteHasTag
        abi::Block block{};      ///< place of a payload that is not inside the record
        Err status = Err::kOk;   ///< else the message is broken off, and nothing is in the record
    };
    static constexpr std::uint8_t kWhole = abi::kCompleteFirst | abi::kCompleteLast;

    /// Writes the completion of a message, or of a part of it, and passes it to the client. Nothing
    /// else writes such a record. Lends the block, and logs a message that begins. `out`: claimed.
    /// `message.payload`: read only if it goes inside the record.
    [[gnu::always_inline]] void complete(abi::CompletionRecord& out, Rank rank,
                                         const urtp::ShortMessage& message,
                                         const Part& part) noexcept {
        const bool is_inside = (part.flags & abi::kCompleteInline) != 0;
        const auto flags =
            static_cast<std::uint8_t>(part.flags | (message.has_tag ? abi::kCompleteHasTag : 0));
        abi::write_message_head(out, flags,
                                is_inside ? static_cast<std::uint16_t>(message.octets) : 0, rank,
                                message.stream);
        out.tag = message.tag;
        if (part.status != Err::kOk) {
            out.status = static_cast<std::int16_t>(part.status);
        } else if (is_inside) {
            copy_short(out.body.inline_octets, message.payload, message.octets);
        } else {
            out.body.block = part.block;
            if ((part.flags & abi::kCompletePlaced) == 0) arena_.lend(part.block.offset);
        }
        if ((part.flags & abi::kCompleteFirst) != 0)
            note_passed(rank, message.has_tag, message.tag);
        completions_.publish(out);
    }

    void claim_block(Claim& claim, std::uint32_t length, bool framed) noexcept;
    void deliver_block(Rank rank, const urtp::ShortMessage& message, const Claim& claim,
                       Segment* frame) noexcept;
    Source& source_of(Rank rank);
    std::uint16_t make_reserve();
    /// Returns false if there is no space; nothing has changed that a second try would repeat.
    bool deliver(Rank rank, const urtp::ReadyPacket& packet);
    bool deliver_list(Rank rank, Source& source, const urtp::ReadyPacket& packet);
    bool deliver_whole(Rank rank, Source& source, const urtp::ReadyPacket& packet);
    [[nodiscard]] bool fits(const Source& source) const noexcept;
    [[nodiscard]] static bool continues(const Source& source,
                                        const urtp::ReadyPacket& packet) noexcept;
    [[nodiscard]] Sink sink_of(Rank rank, const urtp::ReadyPacket& packet) noexcept;
    void deliver_to_schedule(Source& source, const urtp::ReadyPacket& packet);
    [[nodiscard]] abi::Beginning beginning_of(Rank rank,
                                              const urtp::ReadyPacket& packet) const noexcept;
    [[nodiscard]] abi::Place place_of(Rank rank, const urtp::ReadyPacket& packet);
    static void put_placed(Source& source, std::span<const std::byte> payload);
    void put_in_block(Source& source, std::span<const std::byte> payload) noexcept;
    bool deliver_placed(Rank rank, Source& source, const urtp::ReadyPacket& packet);
    void leave_place(Source& source) noexcept;
    /// True if the client does not take the source's next packet.
    [[nodiscard]] bool is_stopped(Rank rank) const noexcept {
        if (index_[rank] == 0) return false;
        const Source& source = sources_[index_[rank] - 1U];
        return source.intake != abi::Intake::kAll &&
               !(source.intake == abi::Intake::kToEnd && source.open);
    }
    [[nodiscard]] bool waits_for_receive(Rank rank, const urtp::ReadyPacket& packet, Nanos now);
    void note_passed(Rank rank, bool has_tag, std::uint64_t tag) noexcept {
        passed_at_ = completions_.produced() + 1;
        if (has_tag && is_operation(tag)) passed_.note(completions_.produced(), rank, tag);
    }
    [[nodiscard]] Claim claim_single(Source& source, const urtp::ReadyPacket& packet,
                                     abi::CompletionRecord& out) noexcept;
    void open_message(Source& source, const urtp::ReadyPacket& packet);
    bool append(Rank rank, Source& source, const urtp::ReadyPacket& packet);
    bool next_chunk(Source& source, std::uint32_t packet_octets);
    void flush(Rank rank, Source& source, abi::CompletionRecord& out, bool last) noexcept;
    bool abandon(Rank rank, Source& source);
    std::uint32_t allocate(Source& source, std::uint32_t octets, bool& is_reserve);
    [[nodiscard]] bool take_back() noexcept;
    [[nodiscard]] bool release(std::uint32_t offset) noexcept;
    void give_back(Source& source) noexcept;

    abi::CompletionProducer completions_;
    abi::SendDoneProducer ends_;
    Counters& counters_;
    abi::Region region_;
    abi::ReleaseConsumer releases_;
    RxArena arena_;
    FrameLoans loans_;
    std::vector<std::uint16_t> index_;  ///< by rank: 1 + index into sources_, 0: has not sent
    std::vector<Source> sources_;
    PassedLog passed_;
    Offloads* offloads_ = nullptr;
    const abi::Placer* placer_ = nullptr;
    std::uint32_t places_ = 0;  ///< sources with a place
    std::uint32_t passed_at_ =
        0;  ///< completions, when the last message was passed that must find its receive
    std::vector<Reserve> reserves_;  ///< the first is common to all sources without a separate one
    std::uint32_t reserved_octets_ = 0;
    std::uint16_t mtu_ = 1500;
    bool packs_ = false;
    bool blocked_ = false;
    bool unfinished_ = false;
    std::uint8_t rounds_waited_ = 0;  ///< for the receive of a message; the last one ends the wait
    Nanos waited_in_ = -1;            ///< the last of these rounds, by its time
    bool delivered_part_ = false;     ///< a list was delivered in part; for run()
    bool bad_release_ = false;        ///< the client gave back a block that it did not hold
};

}  // namespace ulc::endpoint
