// SPDX-License-Identifier: BSD-3-Clause
// Tests the send queue: order, the fast path of short messages, and the count of those that fail.
// Most tests are of long payloads that frames refer to instead of holding a copy (kSubmitDirect on
// a port that gathers). Once a client hears that its send is done, no later frame may read the
// payload. The test frees the payload then, so that the address sanitizer finds such a read.
#include "endpoint/send_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/placement.h"
#include "endpoint/outlet.h"
#include "endpoint/short_record.h"
#include "engine/tx.h"
#include "tests/sim/cluster/ring_client.h"
#include "tests/unit/urtp/world.h"

namespace ulc::endpoint {
namespace {

using urtp::test::Fate;
using urtp::test::kWorld;

constexpr std::uint16_t kMtu = 1500;
constexpr std::uint32_t kOctets = 100'000;
constexpr std::uint32_t kRest = 100;  ///< in failed()

/// The engine of rank 0 of three, with a port that takes nothing: a frame given to its transmitter
/// is kept.
class Rig {
public:
    Rig() {
        port_.context = this;
        port_.pool = world.pool.table();
        port_.info.mtu = kMtu;
        port_.tx = take;
        port_.tx_pending = [](void*) { return std::uint32_t{0}; };
        transmitter_.emplace(port_, departures_, counters_);
        queue_.begin_job(3);
        for (std::uint32_t i = 0; i < kOctets; ++i)
            wanted_ += static_cast<char>(i * 7 + i / 251);
        payload_ = std::make_unique<std::string>(wanted_);
    }
    ~Rig() {
        queue_.abort(port_.pool);
        transmitter_->drop_all();
    }
    Rig(const Rig&) = delete;
    Rig& operator=(const Rig&) = delete;

    void send(std::uint32_t stream, std::uint64_t subset = 0) {
        abi::SubmissionRecord& record = *queue_.slot();
        record = {};
        record.kind = abi::SubmitKind::kSend;
        record.stream = stream;
        record.cookie = 7;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitDirect;
        if (subset != 0) record.flags |= abi::kSubmitHasSubset;
        record.body.block = {0,      kOctets, kOctets,
                             subset, 0,       std::bit_cast<std::uintptr_t>(payload_->data())};
        ASSERT_EQ(queue_.accept(region_, Err::kOk), SendQueue::Verdict::kOk);
    }
    /// Queues a message inside its record, without a request.
    void queue_short(std::uint32_t stream) {
        abi::SubmissionRecord& record = *queue_.slot();
        record = {};
        record.kind = abi::SubmitKind::kSend;
        record.stream = stream;
        record.flags = abi::kSubmitInline | abi::kSubmitFirst | abi::kSubmitLast;
        record.inline_length = 3;
        ASSERT_EQ(queue_.accept(region_, Err::kOk), SendQueue::Verdict::kOk);
    }
    void pump() { queue_.pump(context(), world.now); }
    /// Takes the messages that failed, by rank; each rest counts kRest.
    std::map<Rank, std::uint32_t> failed() {
        std::map<Rank, std::uint32_t> out;
        queue_.take_failed([&](Rank rank, std::uint32_t refused, std::uint32_t rests) {
            out[rank] = refused + kRest * rests;
        });
        return out;
    }
    /// Queues a last chunk without a first one.
    void queue_rest(std::uint32_t stream, Err stream_error) {
        abi::SubmissionRecord& record = *queue_.slot();
        record = {};
        record.kind = abi::SubmitKind::kSend;
        record.stream = stream;
        record.flags = abi::kSubmitLast;
        record.body.block = {0, 64, 128, 0, 0, 0};
        ASSERT_EQ(queue_.accept(region_, stream_error), SendQueue::Verdict::kFailed);
    }
    /// Ends the job.
    void leave() { queue_.abort(port_.pool); }
    /// Offers a message inside its record to the fast path. Returns true if it was taken.
    bool send_short(std::uint32_t stream, std::uint8_t flags = abi::kSubmitInline,
                    std::uint16_t octets = 3) {
        abi::SubmissionRecord& record = *queue_.slot();
        record = {};
        record.kind = abi::SubmitKind::kSend;
        record.stream = stream;
        record.flags = flags;
        record.inline_length = octets;
        return sends_at_once();
    }
    /// The same of a message in the arena, of which the record says these lengths.
    bool send_block(std::uint8_t flags, std::uint32_t octets, std::uint64_t message_octets,
                    std::uint32_t offset = 0) {
        abi::SubmissionRecord& record = *queue_.slot();
        record = {};
        record.kind = abi::SubmitKind::kSend;
        record.stream = 1;
        record.flags = flags;
        record.body.block = {offset, octets, message_octets, 0, 0, 0};
        return sends_at_once();
    }
    bool sends_at_once() {
        urtp::Transport& member = *world.members[0];
        const ShortRecord record(*queue_.slot());
        const BlockRecord block(record, region_, member.short_octets_max());
        if (!queue_.passes_short() || !(record.is_short() || block.is_valid())) return false;
        return world.queue_short(0, record.is_short() ? record.message(record.stream())
                                                      : block.message(record.stream()));
    }
    /// Queues a whole message to rank 1, of octets that count from `first`: inside its record, in
    /// the arena, or in the client's own memory in two pieces.
    void queue(std::uint8_t flags, std::uint32_t octets, char first) {
        abi::SubmissionRecord& record = *queue_.slot();
        record = {};
        record.kind = abi::SubmitKind::kSend;
        record.stream = 1;
        record.cookie = static_cast<unsigned char>(first);
        record.tag = 5;
        record.flags = flags;
        std::string& text = texts_.emplace_back();
        for (std::uint32_t n = 0; n < octets; ++n)
            text += static_cast<char>(first + static_cast<char>(n % 20));
        if ((flags & abi::kSubmitInline) != 0) {
            record.inline_length = static_cast<std::uint16_t>(octets);
            std::memcpy(record.body.inline_octets, text.data(), octets);
        } else if ((flags & abi::kSubmitDirect) != 0) {
            auto* base = reinterpret_cast<std::byte*>(text.data());
            pieces_[0] = {base, octets / 2};
            pieces_[1] = {base + octets / 2, octets - octets / 2};
            record.body.block = {2, octets, octets,
                                 0, 0,      std::bit_cast<std::uintptr_t>(pieces_.data())};
        } else {
            const auto place = static_cast<std::uint32_t>(1000 * texts_.size());
            std::memcpy(region_.tx(place, octets), text.data(), octets);
            record.body.block = {place, octets, octets, 0, 0, 0};
        }
        ASSERT_EQ(queue_.accept(region_, Err::kOk), SendQueue::Verdict::kOk);
    }
    /// Returns the first octets of the sends that were answered since the last call.
    std::string answers() {
        std::string out;
        for (abi::SendDone done{}; answers_.take(done);) {
            EXPECT_EQ(done.status, Err::kOk);
            out += static_cast<char>(done.cookie);
        }
        return out;
    }
    [[nodiscard]] const std::deque<std::string>& texts() const noexcept { return texts_; }
    /// Sends a block of 64 KiB to rank 1 on a port whose device reads the arena. of_operation: the
    /// engine's operation sends it, not the client. Returns the number of its frames with a key.
    unsigned send_from_arena(bool of_operation) {
        port_.add_memory = [](void*, std::span<const std::byte>) { return std::uint32_t{5}; };
        transmitter_->replace_port(port_);
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.stream = 1;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast;
        record.body.block = {0, 64U << 10, 64U << 10, 0, 0, 0};
        if (of_operation) {
            EXPECT_TRUE(queue_.inject(record, Sink{.offload = 1}));
        } else {
            *queue_.slot() = record;
            EXPECT_EQ(queue_.accept(region_, Err::kOk), SendQueue::Verdict::kOk);
        }
        queue_.pump(context(), world.now);
        unsigned keys = 0;
        while (Segment* frame = world.members[0]->next_tx(world.now)) {
            keys += frame->tail != nullptr && frame->tail_key == 5 ? 1 : 0;
            port_.pool.drop(frame);
        }
        return keys;
    }
    /// Fills the port with unsent frames of the member, which it is to take and does not.
    void keep_frames(unsigned count) {
        queue_.pump(context(), world.now);
        for (; count > 0; --count) {
            Segment* frame = world.members[0]->next_tx(world.now);
            ASSERT_NE(frame, nullptr);
            ASSERT_NE(frame->tail, nullptr);
            transmitter_->push(frame);
        }
    }
    /// Runs until the client hears of its send, then frees the payload. Returns the status, or
    /// nothing if it does not come within `span`.
    std::optional<int> run(Nanos span) {
        for (const Nanos end = world.now + span; world.now < end;) {
            queue_.pump(context(), world.now);
            if (abi::SendDone done{}; answers_.take(done)) {
                EXPECT_EQ(done.cookie, 7U);
                payload_.reset();
                return static_cast<int>(done.status);
            }
            world.run_for(100 * kMicrosecond);
            for (const Rank rank : {Rank{1}, Rank{2}})
                for (const std::string& piece : world.receive(rank, 0))
                    got[rank] += piece;
        }
        return std::nullopt;
    }
    /// Lets the port take and read the frames that were kept.
    void open_port() {
        port_takes_ = true;
        transmitter_->flush();
        EXPECT_FALSE(transmitter_->kept());
    }
    [[nodiscard]] bool is_whole(Rank rank) const { return got[rank] == wanted_; }

    urtp::test::World world{3};
    std::string got[3];

private:
    static std::uint16_t take(void* context, Segment* const* frames, std::uint16_t n) {
        const auto& self = *static_cast<Rig*>(context);
        if (!self.port_takes_) return 0;
        for (std::uint16_t i = 0; i < n; ++i) {
            std::vector<std::byte> wire(frames[i]->length);
            copy_frame(wire.data(), *frames[i]);
            self.port_.pool.drop(frames[i]);
        }
        return n;
    }
    SendContext context() {
        return {.member = world.members[0].get(),
                .pool = port_.pool,
                .region = region_,
                .outlet = outlet_,
                .counters = counters_,
                .mtu = kMtu,
                .gathers = &*transmitter_};
    }

    Port port_{};
    Counters counters_;
    urtp::Departures departures_;
    std::optional<engine::Transmitter> transmitter_;
    sim::RegionMemory memory_{{64, 64, 64U << 10, 64U << 10}};
    abi::Region region_{memory_.base(), memory_.layout(), abi::Reach::kProcess};
    Outlet outlet_{region_, counters_};
    abi::SendDoneConsumer answers_ = region_.send_done_consumer();
    SendQueue queue_{64};
    std::string wanted_;
    std::unique_ptr<std::string> payload_;
    std::deque<std::string> texts_;  ///< texts of queue()
    std::array<abi::Piece, 2> pieces_{};
    bool port_takes_ = false;
};

// O-4
TEST(SendQueue, a_short_message_is_sent_at_once_only_if_nothing_waits_before_it) {
    Rig rig;
    ASSERT_EQ(rig.world.send(0, 1, "makes the stream"), urtp::Admission::kYes);
    EXPECT_TRUE(rig.send_short(1));
    EXPECT_TRUE(rig.send_short(1, abi::kSubmitInline | abi::kSubmitHasTag));
    rig.world.run_for(kMillisecond);
    const auto got = rig.world.receive(1, 0);
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[1].size(), 3U);
    rig.send(1);
    EXPECT_FALSE(rig.send_short(1)) << "it would overtake the long one";
    EXPECT_FALSE(rig.send_short(2)) << "the general path keeps the order of answers";
}

TEST(SendQueue, a_record_with_wishes_or_errors_does_not_take_the_fast_path) {
    Rig rig;
    ASSERT_EQ(rig.world.send(0, 1, "makes the stream"), urtp::Admission::kYes);
    EXPECT_FALSE(rig.send_short(1, 0)) << "not inside its record";
    EXPECT_FALSE(rig.send_short(1, abi::kSubmitInline, abi::kInlineOctetsMax + 1))
        << "longer than a record holds";
    EXPECT_FALSE(rig.send_short(1, abi::kSubmitInline | abi::kSubmitNotify));
    EXPECT_FALSE(rig.send_short(1, abi::kSubmitInline | abi::kSubmitNotifyAcked));
    EXPECT_FALSE(rig.send_short(1, abi::kSubmitInline | abi::kSubmitHasSubset));
    EXPECT_FALSE(rig.send_short(1, abi::kSubmitInline | abi::kSubmitDirect));
    EXPECT_FALSE(rig.send_short(kWorld)) << "a multicast";
    EXPECT_FALSE(rig.send_short(3)) << "no such rank";
    EXPECT_FALSE(rig.send_short(0)) << "itself";
    EXPECT_TRUE(rig.send_short(1)) << "the world did not change";
}

TEST(SendQueue, a_whole_message_in_the_arena_takes_the_fast_path_if_a_packet_holds_it) {
    constexpr std::uint8_t kWhole = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitNotify;
    Rig rig;
    ASSERT_EQ(rig.world.send(0, 1, "makes the stream"), urtp::Admission::kYes);
    const std::uint32_t most = rig.world.members[0]->short_octets_max();
    EXPECT_FALSE(rig.send_block(kWhole, most + 1, most + 1)) << "more than a packet holds";
    EXPECT_FALSE(rig.send_block(kWhole, 64, 65)) << "only a part";
    EXPECT_FALSE(rig.send_block(kWhole, 64, 64, UINT32_MAX - 32)) << "outside of the arena";
    EXPECT_FALSE(rig.send_block(kWhole & ~abi::kSubmitLast, 64, 64));
    EXPECT_FALSE(rig.send_block(kWhole | abi::kSubmitNotifyAcked, 64, 64));
    EXPECT_FALSE(rig.send_block(kWhole | abi::kSubmitHasSubset, 64, 64));
    EXPECT_FALSE(rig.send_block(kWhole | abi::kSubmitDirect, 64, 64));
    EXPECT_TRUE(rig.send_block(kWhole, 0, 0));
    EXPECT_TRUE(rig.send_block(kWhole, 64, 64));
    EXPECT_TRUE(rig.send_block(kWhole | abi::kSubmitHasTag, most, most));
    rig.world.run_for(kMillisecond);
    const auto got = rig.world.receive(1, 0);
    ASSERT_EQ(got.size(), 4U);
    EXPECT_EQ(got[1].size(), 0U);
    EXPECT_EQ(got[2].size(), 64U);
    EXPECT_EQ(got[3].size(), most);
}

TEST(SendQueue, messages_of_one_packet_that_waited_keep_their_order_and_answers) {
    constexpr std::uint8_t kWhole = abi::kSubmitFirst | abi::kSubmitLast;
    Rig rig;
    ASSERT_EQ(rig.world.send(0, 1, "makes the stream"), urtp::Admission::kYes);
    rig.world.run_for(kMillisecond);
    ASSERT_EQ(rig.world.receive(1, 0).size(), 1U);
    rig.queue(abi::kSubmitInline, 9, 'A');
    rig.queue(kWhole, 300, 'B');
    rig.queue(kWhole | abi::kSubmitHasTag, 40, 'C');
    rig.queue(kWhole | abi::kSubmitNotify | abi::kSubmitNotifyAcked, 50, 'D');
    rig.queue(kWhole | abi::kSubmitDirect, 200, 'E');
    rig.pump();
    EXPECT_EQ(rig.answers(), "BCE");
    rig.world.run_for(20 * kMillisecond);
    rig.pump();
    EXPECT_EQ(rig.answers(), "D") << "answered when its receiver has it";
    const std::vector<std::string> got = rig.world.receive(1, 0);
    ASSERT_EQ(got.size(), rig.texts().size());
    for (std::size_t n = 0; n < got.size(); ++n)
        EXPECT_EQ(got[n], rig.texts()[n]) << n;
}

TEST(SendQueue, a_repetition_that_waits_for_the_port_reads_no_payload_that_is_done) {
    Rig rig;
    rig.send(1);
    rig.keep_frames(3);
    EXPECT_EQ(rig.run(kSecond), static_cast<int>(Err::kOk));
    EXPECT_TRUE(rig.is_whole(1));
    rig.open_port();
}

TEST(SendQueue, a_frame_that_waits_for_the_port_reads_no_payload_of_a_send_that_failed) {
    Rig rig;
    rig.send(1);
    rig.keep_frames(3);
    rig.world.dead[1] = true;
    rig.world.members[0]->peer_gone(1, urtp::EventKind::kPeerDied, rig.world.now);
    EXPECT_EQ(rig.run(kSecond), static_cast<int>(Err::kPeerDied));
    EXPECT_EQ(rig.failed(), (std::map<Rank, std::uint32_t>{{1, 1}}));
    rig.open_port();
}

TEST(SendQueue, counts_the_messages_that_end_because_their_receiver_is_gone) {
    Rig rig;
    rig.world.dead[1] = true;
    rig.world.members[0]->peer_gone(1, urtp::EventKind::kPeerDied, rig.world.now);
    for (const std::uint32_t stream : {1U, 2U, 1U, kWorld}) {
        rig.queue_short(stream);
        rig.pump();
    }
    EXPECT_EQ(rig.failed(), (std::map<Rank, std::uint32_t>{{1, 2}}));
    EXPECT_TRUE(rig.failed().empty()) << "they are taken once";
}

TEST(SendQueue, counts_rests_of_messages_to_ranks_of_the_job_only) {
    Rig rig;
    rig.queue_rest(1, Err::kOk);
    rig.queue_rest(2, Err::kOk);
    for (const std::uint32_t lacks : {3U, 40U, 63U, 64U, 0xffffU, kWorld})
        rig.queue_rest(lacks, Err::kInvalid);
    rig.queue_rest(2, Err::kOk);
    EXPECT_EQ(rig.failed(), (std::map<Rank, std::uint32_t>{{1, kRest}, {2, 2 * kRest}}));
}

TEST(SendQueue, forgets_the_messages_that_failed_when_its_job_ends) {
    Rig rig;
    rig.queue_rest(2, Err::kOk);
    rig.leave();
    EXPECT_TRUE(rig.failed().empty());
}

TEST(SendQueue, an_operation_of_the_engine_may_change_what_it_has_sent_so_it_is_copied) {
    EXPECT_GT(Rig().send_from_arena(false), 0U);
    EXPECT_EQ(Rig().send_from_arena(true), 0U);
}

// The retransmission goes to that member's address. The first frame is still held, so the second is
// a copy.
TEST(SendQueue, one_member_that_misses_the_end_of_a_multicast_gets_all_of_it) {
    Rig rig;
    unsigned lost = 0;
    rig.world.hook = [&lost](const wire::FrameView& view, Rank to) {
        if (to != 2 || view.body == nullptr || (view.flags & wire::kFlagLast) == 0 || lost > 0)
            return Fate::kPass;
        ++lost;
        return Fate::kLose;
    };
    rig.send(kWorld);
    EXPECT_EQ(rig.run(kSecond), static_cast<int>(Err::kOk));
    EXPECT_EQ(lost, 1U);
    EXPECT_GT(rig.world.count(0, Counter::repair_unicast), 0U);
    EXPECT_TRUE(rig.is_whole(1));
    EXPECT_TRUE(rig.is_whole(2));
}

}  // namespace
}  // namespace ulc::endpoint
