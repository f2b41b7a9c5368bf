// SPDX-License-Identifier: BSD-3-Clause
// The interface under an engine's port changes while a job of two nodes runs (engine/interface.cc).
// Two engines on a wire of the test, in virtual time; the interface is scripted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "abi/region.h"
#include "engine/engine.h"
#include "tests/fuzz/heap_pool.h"

namespace ulc::engine {
namespace {

const Mac kOther{{2, 0, 0, 0, 0, 9}};

/// A node's port. It hears frames for groups, for its interface's address, and for its own one if
/// the interface keeps that.
struct Station {
    explicit Station(std::uint8_t number) {
        state.name = "eth" + std::to_string(number);
        state.mac = state.own = Mac{{2, 0, 0, 0, 0, number}};
        state.mtu = 1500;
    }
    ~Station() {
        for (Segment* segment : came)
            fuzz::HeapPool::release(segment);
    }
    Station(const Station&) = delete;
    Station& operator=(const Station&) = delete;

    [[nodiscard]] bool hears(const Mac& to) const {
        return (to.octets[0] & 1U) != 0 || to == state.mac || (to == state.own && state.keeps_own);
    }
    void hear(const Segment& frame) {
        Mac to;
        std::memcpy(&to, frame.frame, sizeof to);
        if (!hears(to)) return;
        Segment* copy = pool.table().get();
        ASSERT_NE(copy, nullptr);
        copy_frame(copy->frame, frame);
        copy->length = frame.length;
        came.push_back(copy);
    }
    Port port() {
        Port port;
        port.context = this;
        port.info.mac = state.own;
        port.info.tx_ring_frames = 64;
        port.pool = pool.table();
        port.rx = [](void* context, Segment** out, std::uint16_t n) -> std::uint16_t {
            auto& self = *static_cast<Station*>(context);
            std::uint16_t count = 0;
            for (; count < n && !self.came.empty(); self.came.pop_front())
                out[count++] = self.came.front();
            return count;
        };
        port.tx = [](void* context, Segment* const* frames, std::uint16_t n) -> std::uint16_t {
            auto& self = *static_cast<Station*>(context);
            for (std::uint16_t i = 0; i < n; ++i) {
                if (frames[i]->length > self.state.mtu + 14U) {
                    ++self.unsendable;
                } else {
                    self.peer->hear(*frames[i]);
                }
                fuzz::HeapPool::release(frames[i]);
            }
            return n;
        };
        port.tx_pending = [](void*) { return 0U; };
        port.link_up = [](void*) { return true; };
        port.drops = [](void* context) {
            return PortDrops{.unsendable = static_cast<Station*>(context)->unsendable};
        };
        port.interface = [](void* context) -> const InterfaceState* {
            return &static_cast<Station*>(context)->state;
        };
        port.take_address = [](void* context) {
            auto& self = *static_cast<Station*>(context);
            self.state.own = self.state.mac;
            self.state.keeps_own = true;
            return self.state.own;
        };
        return port;
    }

    InterfaceState state;
    fuzz::HeapPool pool{1600, 512};
    std::deque<Segment*> came;
    Station* peer = nullptr;
    std::uint64_t unsendable = 0;  ///< frames longer than the interface takes
};

class Client {
public:
    explicit Client(Engine& engine) {
        memory_.reset(std::aligned_alloc(abi::kPageOctets, layout_.region_octets));
        std::memset(memory_.get(), 0, layout_.region_octets);
        id = engine.attach(memory_.get(), layout_, 0).value();
        region_ = abi::Region(memory_.get(), layout_);
        submissions_ = region_.submission_producer();
        completions_ = region_.completion_consumer();
    }
    void join(char job, std::uint16_t rank) {
        abi::JoinRequest request{};
        request.name[0] = job;
        request.name_length = 1;
        request.rank = rank;
        request.size = 2;
        std::memcpy(region_.tx(0, sizeof request), &request, sizeof request);
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kJoinJob;
        record.body.block = {0, sizeof request, sizeof request, 0, 0, 0};
        ASSERT_TRUE(submissions_.push(record));
    }
    void send(std::uint32_t to) {
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.stream = to;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitInline;
        record.inline_length = 8;
        ASSERT_TRUE(submissions_.push(record));
    }
    /// Sends a message of one packet of nearly full size.
    void send_long(std::uint32_t to) {
        constexpr std::uint32_t kOctets = 1440;
        std::memset(region_.tx(0, kOctets), 'x', kOctets);
        abi::SubmissionRecord record{};
        record.kind = abi::SubmitKind::kSend;
        record.stream = to;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast;
        record.body.block = {0, kOctets, kOctets, 0, 0, 0};
        ASSERT_TRUE(submissions_.push(record));
    }
    void take() {
        while (const abi::CompletionRecord* record = completions_.front()) {
            formed += record->kind == abi::CompletionKind::kJobFormed ? 1 : 0;
            messages += record->kind == abi::CompletionKind::kMessage ? 1 : 0;
            died += record->kind == abi::CompletionKind::kPeerDied ? 1 : 0;
            if (record->kind == abi::CompletionKind::kJobFailed) {
                failed = static_cast<Err>(record->status);
                failure = region_.control().failure;
            }
            completions_.pop();
        }
    }

    EndpointId id = 0;
    int formed = 0;
    int messages = 0;
    int died = 0;
    Err failed = Err::kOk;
    std::string failure;

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    abi::RegionLayout layout_ = abi::compute_layout({16, 16, 65536, 65536}).value();
    std::unique_ptr<void, Free> memory_;
    abi::Region region_;
    abi::SubmissionProducer submissions_;
    abi::CompletionConsumer completions_;
};

struct Node {
    explicit Node(std::uint8_t number) : station(number) {
        EngineConfig config;
        config.seed = number;
        config.report_context = this;
        config.report = [](void* context, const char* sentence) {
            static_cast<Node*>(context)->sentences.emplace_back(sentence);
        };
        const Port port = station.port();
        engine = std::make_unique<Engine>(config, std::span<const Port>(&port, 1));
    }
    [[nodiscard]] std::uint64_t count(Counter id) const { return engine->counters().get(id); }

    Station station;
    std::vector<std::string> sentences;
    std::unique_ptr<Engine> engine;
};

class Interface : public testing::Test {
protected:
    Interface() {
        one_.station.peer = &two_.station;
        two_.station.peer = &one_.station;
    }
    /// Runs both engines for a time, in steps that are short against all timers.
    void run(Nanos time, const std::vector<Client*>& clients) {
        for (const Nanos end = now_ + time; now_ < end; now_ += 20 * kMicrosecond) {
            one_.engine->poll(now_);
            two_.engine->poll(now_);
            for (Client* client : clients)
                client->take();
        }
    }
    void form(char job, Client& a, Client& b) {
        const int formed = a.formed + b.formed;
        a.join(job, 0);
        b.join(job, 1);
        run(50 * kMillisecond, {&a, &b});
        EXPECT_EQ(a.formed + b.formed, formed + 2) << "job " << job << " formed at both nodes";
    }
    void expect_messages_pass(Client& a, Client& b) {
        const int before = a.messages + b.messages;
        a.send(1);
        b.send(0);
        run(50 * kMillisecond, {&a, &b});
        EXPECT_EQ(a.messages + b.messages, before + 2);
    }

    Nanos now_ = kMillisecond;
    Node one_{1};
    Node two_{2};
    Client a_{*one_.engine};
    Client b_{*two_.engine};
};

TEST_F(Interface, a_job_goes_on_by_the_old_address_where_that_is_kept) {
    form('j', a_, b_);
    one_.station.state.mac = kOther;
    run(50 * kMillisecond, {&a_, &b_});
    EXPECT_EQ(one_.count(Counter::mac_changes), 1U);
    ASSERT_EQ(one_.sentences.size(), 1U);
    EXPECT_EQ(one_.sentences[0],
              "interface eth1 has the MAC address 02:00:00:00:00:09 instead of 02:00:00:00:00:01; "
              "it still passes frames for the old one, by which running jobs go on; jobs after "
              "them use the new one");
    expect_messages_pass(a_, b_);
    Client more_a(*one_.engine);
    Client more_b(*two_.engine);
    form('k', more_a, more_b);
    run(3 * kSecond, {&a_, &b_, &more_a, &more_b});
    EXPECT_EQ(a_.died + b_.died + more_a.died + more_b.died, 0);
    EXPECT_EQ(one_.station.state.own, (Mac{{2, 0, 0, 0, 0, 1}}));
}

TEST_F(Interface, the_new_address_is_taken_once_the_last_job_has_ended) {
    form('j', a_, b_);
    one_.station.state.mac = kOther;
    run(50 * kMillisecond, {&a_, &b_});
    one_.engine->detach(a_.id, DetachReason::kClosed, now_);
    two_.engine->detach(b_.id, DetachReason::kClosed, now_);
    run(kSecond, {});
    EXPECT_EQ(one_.station.state.own, kOther);
    Client a(*one_.engine);
    Client b(*two_.engine);
    form('k', a, b);
    expect_messages_pass(a, b);
}

TEST_F(Interface, jobs_end_at_once_where_the_old_address_is_lost_and_new_ones_use_the_new_one) {
    form('j', a_, b_);
    one_.station.state.mac = kOther;
    one_.station.state.keeps_own = false;
    run(30 * kMillisecond, {&a_, &b_});
    EXPECT_EQ(a_.failed, Err::kPortDown);
    EXPECT_EQ(b_.died, 1) << "the peer hears of it long before its own patience ends";
    EXPECT_EQ(one_.count(Counter::mac_changes), 1U);
    ASSERT_FALSE(one_.sentences.empty());
    EXPECT_EQ(one_.sentences[0],
              "interface eth1 has the MAC address 02:00:00:00:00:09 instead of 02:00:00:00:00:01, "
              "and passes no frames for the old one: the jobs of this net have ended; new jobs use "
              "the new one");
    Client a(*one_.engine);
    Client b(*two_.engine);
    form('k', a, b);
    expect_messages_pass(a, b);
}

TEST_F(Interface, a_job_that_is_forming_fails_with_a_sentence_where_the_address_is_lost) {
    a_.join('j', 0);
    run(5 * kMillisecond, {&a_});
    one_.station.state.mac = kOther;
    one_.station.state.keeps_own = false;
    run(30 * kMillisecond, {&a_});
    EXPECT_EQ(a_.failed, Err::kPortDown);
    EXPECT_EQ(one_.station.state.own, kOther);
}

TEST_F(Interface, an_mtu_that_falls_is_told_and_counted_once) {
    form('j', a_, b_);
    one_.station.state.mtu = 1400;
    run(50 * kMillisecond, {&a_, &b_});
    EXPECT_EQ(one_.count(Counter::mtu_falls), 1U);
    ASSERT_EQ(one_.sentences.size(), 1U);
    EXPECT_NE(one_.sentences[0].find("MTU of interface eth1 is 1400, less than the 1500"),
              std::string::npos)
        << one_.sentences[0];
    EXPECT_NE(one_.sentences[0].find("ip link set eth1 mtu 1500"), std::string::npos);
    one_.station.state.mtu = 1500;
    run(50 * kMillisecond, {&a_, &b_});
    EXPECT_EQ(one_.count(Counter::mtu_falls), 1U);
    ASSERT_EQ(one_.sentences.size(), 2U);
    EXPECT_NE(one_.sentences[1].find("again"), std::string::npos) << one_.sentences[1];
    expect_messages_pass(a_, b_);
}

TEST_F(Interface, a_job_ends_with_a_sentence_where_its_long_packets_are_refused) {
    form('j', a_, b_);
    one_.station.state.mtu = 1400;
    run(50 * kMillisecond, {&a_, &b_});
    a_.send_long(1);
    run(1900 * kMillisecond, {&a_, &b_});
    EXPECT_GT(one_.station.unsendable, 0U);
    EXPECT_EQ(a_.failed, Err::kOk) << "the MTU may come back";
    run(600 * kMillisecond, {&a_, &b_});
    EXPECT_EQ(a_.failed, Err::kPortDown);
    EXPECT_EQ(a_.failure,
              "interface eth1 has MTU 1400, and refuses the packets of 1500 bytes that this job "
              "sends; run: ip link set eth1 mtu 1500, and start the job again");
    EXPECT_EQ(b_.died, 1);
    ASSERT_EQ(one_.sentences.size(), 2U);
    EXPECT_NE(one_.sentences[1].find("the jobs that send such have ended"), std::string::npos);
    Client a(*one_.engine);
    Client b(*two_.engine);
    form('k', a, b);
    a.send_long(1);
    run(3 * kSecond, {&a, &b});
    EXPECT_EQ(b.messages, 1) << "a job after that sends shorter packets";
    EXPECT_EQ(a.failed, Err::kOk);
}

TEST_F(Interface, a_job_of_short_messages_outlives_a_fallen_mtu) {
    form('j', a_, b_);
    one_.station.state.mtu = 1400;
    for (int n = 0; n < 3; ++n) {
        run(kSecond, {&a_, &b_});
        expect_messages_pass(a_, b_);
    }
    EXPECT_EQ(one_.station.unsendable, 0U);
    EXPECT_EQ(a_.failed, Err::kOk);
}

TEST_F(Interface, refused_frames_of_no_job_end_nothing_and_are_reported_once) {
    one_.station.state.mtu = 1400;
    for (unsigned n = 0; n < 300; ++n) {
        ++one_.station.unsendable;
        run(20 * kMillisecond, {&a_, &b_});
    }
    EXPECT_EQ(one_.sentences.size(), 1U) << one_.sentences.back();
}

TEST_F(Interface, an_mtu_that_is_soon_as_before_ends_no_job) {
    form('j', a_, b_);
    for (int n = 1; n <= 3; ++n) {
        one_.station.state.mtu = 1400;
        run(50 * kMillisecond, {&a_, &b_});
        a_.send_long(1);
        run(kSecond, {&a_, &b_});
        EXPECT_EQ(b_.messages, n - 1);
        one_.station.state.mtu = 1500;
        run(kSecond, {&a_, &b_});
        EXPECT_EQ(b_.messages, n);
    }
    EXPECT_GT(one_.station.unsendable, 0U);
    EXPECT_EQ(a_.failed, Err::kOk);
    EXPECT_EQ(b_.died, 0);
}

}  // namespace
}  // namespace ulc::engine
