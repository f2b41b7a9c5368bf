// SPDX-License-Identifier: BSD-3-Clause
// The engine touches no memory of a client that it has let go of: the memory is taken away at that
// instant, at every instant of a conversation, and the engine runs on (engine/clients.cc).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <memory>

#include "abi/region.h"
#include "engine/engine.h"
#include "tests/fuzz/heap_pool.h"

namespace ulc::engine {
namespace {

/// A wire that swallows every frame: the clients are on one node.
struct NullWire {
    fuzz::HeapPool pool{1600, 256};

    Port port() {
        Port port;
        port.context = this;
        port.info.mac = Mac{{2, 0, 0, 0, 0, 1}};
        port.info.tx_ring_frames = 64;
        port.pool = pool.table();
        port.rx = [](void*, Segment**, std::uint16_t) -> std::uint16_t { return 0; };
        port.tx = [](void*, Segment* const* frames, std::uint16_t n) -> std::uint16_t {
            for (std::uint16_t i = 0; i < n; ++i)
                fuzz::HeapPool::release(frames[i]);
            return n;
        };
        port.tx_pending = [](void*) { return 0U; };
        port.link_up = [](void*) { return true; };
        return port;
    }
};

/// A client that writes records and takes completions, in memory that can be taken away.
class Client {
public:
    explicit Client(Engine& engine) {
        memory_ = mmap(nullptr, layout_.region_octets, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT_NE(memory_, MAP_FAILED);
        id = engine.attach(memory_, layout_, 0).value();
        region_ = abi::Region(memory_, layout_);
        submissions_ = region_.submission_producer();
        completions_ = region_.completion_consumer();
    }
    ~Client() { munmap(memory_, layout_.region_octets); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    /// Makes the next access to it end the process with SIGSEGV.
    void take_memory_away() {
        ASSERT_EQ(mprotect(memory_, layout_.region_octets, PROT_NONE), 0);
        gone = true;
    }
    void join(std::uint16_t rank) {
        abi::JoinRequest request{};
        request.name[0] = 'd';
        request.name_length = 1;
        request.rank = rank;
        request.size = 2;
        std::memcpy(region_.tx(0, sizeof request), &request, sizeof request);
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kJoinJob;
        record.body.block = {0, sizeof request, sizeof request, 0, 0, 0};
        ASSERT_TRUE(submissions_.push(record));
    }
    /// octets: up to 40 in the record, more from the arena.
    void send(std::uint32_t to, std::uint32_t octets) {
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.stream = to;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast;
        if (octets <= abi::kInlineOctetsMax) {
            record.flags |= abi::kSubmitInline;
            record.inline_length = static_cast<std::uint16_t>(octets);
        } else {
            record.body.block = {128, octets, octets, 0, 0, 0};
        }
        static_cast<void>(submissions_.push(record));  // full: enough is under way
    }
    /// Sends the first part of a message.
    void begin(std::uint32_t to, std::uint32_t octets, std::uint32_t of) {
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.stream = to;
        record.flags = abi::kSubmitFirst;
        record.body.block = {128, octets, of, 0, 0, 0};
        static_cast<void>(submissions_.push(record));
    }
    bool drain() {
        bool formed = false;
        while (const abi::CompletionRecord* record = completions_.front()) {
            if (record->kind == abi::CompletionKind::kJobFormed) {
                formed = true;
                world = record->stream;
            }
            const bool part = record->kind == abi::CompletionKind::kMessage;
            messages += part && (record->flags & abi::kCompleteLast) != 0 ? 1 : 0;
            ends += record->kind == abi::CompletionKind::kPeerLeft ||
                            record->kind == abi::CompletionKind::kPeerDied
                        ? 1
                        : 0;
            completions_.pop();
        }
        return formed;
    }
    [[nodiscard]] abi::EndpointControl& control() const { return region_.control(); }

    EndpointId id = 0;
    bool gone = false;
    std::uint32_t world = 0;
    unsigned messages = 0;  ///< whole ones that came
    unsigned ends = 0;      ///< reports of peers that left or died

private:
    abi::RegionLayout layout_ = abi::compute_layout({16, 16, 65536, 65536}).value();
    void* memory_ = nullptr;
    abi::Region region_;
    abi::SubmissionProducer submissions_;
    abi::CompletionConsumer completions_;
};

class Detach : public testing::Test {
protected:
    void SetUp() override {
        port_ = wire_.port();
        engine_ = std::make_unique<Engine>(EngineConfig{}, std::span<const Port>(&port_, 1));
        stays_ = std::make_unique<Client>(*engine_);
        goes_ = std::make_unique<Client>(*engine_);
        stays_->join(0);
        goes_->join(1);
        bool formed[2] = {false, false};
        for (int i = 0; i < 1000 && !(formed[0] && formed[1]); ++i) {
            round();
            formed[0] |= stays_->drain();
            formed[1] |= goes_->drain();
        }
        ASSERT_TRUE(formed[0] && formed[1]);
    }
    /// Runs one round as an engine's thread does, a nap included.
    void round() {
        engine_->poll(now_ += 20 * kMicrosecond);
        nap();
    }
    /// Beats and goes to sleep as the thread does between rounds.
    void nap() {
        engine_->beat();
        if (engine_->prepare_sleep()) engine_->awake();
    }
    /// Sends short and long messages both ways, with a round behind each pair. octets: of the long
    /// ones of the client that goes.
    void talk(int turns, std::uint32_t octets) {
        for (int n = 0; n < turns; ++n) {
            stays_->send(1, n % 3 == 0 ? 5000 : 8);
            goes_->send(0, n % 4 == 0 ? octets : 8);
            engine_->poll(now_ += 20 * kMicrosecond);
            if (n % 5 == 0) static_cast<void>(stays_->drain());
        }
    }

    NullWire wire_;
    Port port_;
    Nanos now_ = kSecond;
    std::unique_ptr<Client> stays_;
    std::unique_ptr<Client> goes_;
    std::unique_ptr<Engine> engine_;  // ends before their memory does
};

class DetachFor : public Detach, public testing::WithParamInterface<DetachReason> {};
INSTANTIATE_TEST_SUITE_P(Reasons, DetachFor,
                         testing::Values(DetachReason::kClosed, DetachReason::kDied));

TEST_P(DetachFor, memory_is_not_touched_any_more_once_the_engine_says_so) {
    for (int turns = 0; turns < 24; ++turns) {
        talk(turns, 5000);
        engine_->detach(goes_->id, GetParam(), now_);
        if (turns % 2 != 0) nap();  // a round comes first, or a nap
        for (int i = 0; i < 4000; ++i) {
            if (!goes_->gone && engine_->detached(goes_->id)) goes_->take_memory_away();
            stays_->send(1, i % 2 == 0 ? 8 : 5000);
            static_cast<void>(stays_->drain());
            round();
        }
        ASSERT_TRUE(goes_->gone);
        engine_.reset();
        SetUp();
    }
}

TEST_P(DetachFor, all_submitted_messages_arrive_before_peers_are_notified) {
    for (int n = 0; n < 10; ++n)
        goes_->send(0, n % 3 == 0 ? 5000 : 8);
    goes_->begin(0, 5000, 20'000);  // the rest never comes
    goes_->send(goes_->world, 8);
    engine_->detach(goes_->id, GetParam(), now_);
    for (int i = 0; i < 4000 && stays_->ends == 0; ++i) {
        round();
        static_cast<void>(stays_->drain());
    }
    EXPECT_EQ(stays_->messages, 11U);
    EXPECT_EQ(stays_->ends, 1U);
}

TEST_P(DetachFor, a_client_that_goes_while_nothing_moves_is_gone_at_once) {
    for (int i = 0; i < 2000; ++i) {
        engine_->poll(now_ += 20 * kMicrosecond);
        static_cast<void>(stays_->drain());
    }
    engine_->detach(goes_->id, GetParam(), now_);
    for (int i = 0; i < 5; ++i)
        engine_->poll(now_ += kMicrosecond);
    static_cast<void>(stays_->drain());
    EXPECT_EQ(stays_->ends, 1U);
}

TEST_P(DetachFor, nothing_is_delivered_to_a_client_that_has_gone_while_its_own_messages_wait) {
    for (int n = 0; n < 15; ++n)
        goes_->send(0, 50'000);
    engine_->detach(goes_->id, GetParam(), now_);
    for (int n = 0; n < 10; ++n) {
        stays_->send(1, 8);
        round();
    }
    ASSERT_FALSE(engine_->detached(goes_->id)) << "the other one takes nothing";
    static_cast<void>(goes_->drain());
    EXPECT_EQ(goes_->messages, 0U);
}

TEST_F(Detach, a_peer_that_takes_nothing_delays_the_report_of_a_death_by_half_a_second) {
    for (int n = 0; n < 15; ++n)
        goes_->send(0, 50'000);
    engine_->detach(goes_->id, DetachReason::kDied, now_);
    const Nanos since = now_;
    while (!engine_->detached(goes_->id) && now_ - since < 5 * kSecond)
        round();
    EXPECT_GE(now_ - since, kSecond / 2);
    EXPECT_LE(now_ - since, kSecond / 2 + kMillisecond);
}

TEST_F(Detach, beats_reach_attached_clients_alone) {
    const auto beats = [](const Client& client) { return client.control().engine_beats.load(); };
    const std::uint32_t before[] = {beats(*stays_), beats(*goes_)};
    goes_->send(0, 5000);
    engine_->detach(goes_->id, DetachReason::kClosed, now_);
    ASSERT_FALSE(engine_->detached(goes_->id)) << "what it sent is not delivered yet";
    engine_->beat();
    EXPECT_NE(beats(*stays_), before[0]);
    EXPECT_EQ(beats(*goes_), before[1])
        << "it is to ask, and to hear that its connection is closed";
}

}  // namespace
}  // namespace ulc::engine
