// SPDX-License-Identifier: BSD-3-Clause
// Sentences of the engine reach the client whole (abi/put_text.h, EndpointControl::failure). A
// sentence that a name makes too long shows that it was cut.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "abi/attach.h"
#include "abi/put_text.h"
#include "engine/engine.h"
#include "main/hello.h"
#include "tests/fuzz/heap_pool.h"
#include "urtp/policy.h"

namespace ulc::engine {
namespace {

/// Sentences without names leave space for those.
constexpr std::size_t kSentenceMax = abi::kTextOctetsMax / 3;

struct NullWire {
    fuzz::HeapPool pool{1600, 16};

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
        port.unanswered = [](void* context) { return static_cast<NullWire*>(context)->unanswered; };
        return port;
    }
    std::string unanswered;
};

class EngineTexts : public ::testing::Test {
protected:
    EngineTexts() {
        EngineConfig config;
        config.accounts.jobs_per_second = 1;
        const Port port = wire_.port();
        engine_ = std::make_unique<Engine>(config, std::span<const Port>(&port, 1));
        EXPECT_TRUE(engine_->attach(memory_.get(), layout_, 0).ok());
        submissions_ = region_.submission_producer();
        completions_ = region_.completion_consumer();
    }
    void submit(abi::SubmitKind kind, const void* request, std::uint32_t octets) {
        std::memcpy(region_.tx(0, octets), request, octets);
        abi::SubmissionRecord record{};
        record.kind = kind;
        record.body.block = {0, octets, octets, 0, 0, 0};
        ASSERT_TRUE(submissions_.push(record));
    }
    void join(const char* profile, std::uint16_t size = 2, std::uint64_t timeout_ns = 0) {
        abi::JoinRequest request{};
        request.name[0] = 'j';
        request.name_length = 1;
        request.size = size;
        request.timeout_ns = timeout_ns;
        std::strncpy(request.profile, profile, sizeof request.profile - 1);
        submit(abi::SubmitKind::kJoinJob, &request, sizeof request);
    }
    void open_links(std::uint16_t links, const char* profile) {
        abi::OpenLinksRequest request{};
        request.key[0] = 1;
        request.links = links;
        std::strncpy(request.profile, profile, sizeof request.profile - 1);
        submit(abi::SubmitKind::kOpenLinks, &request, sizeof request);
    }
    /// Takes rounds until the job has failed. Returns the error, and the sentence in `text`.
    Err failure() {
        abi::CompletionRecord record;
        for (int round = 0; round < 1000; ++round) {
            engine_->poll(now_ += kMillisecond);
            if (!completions_.take(record)) continue;
            EXPECT_EQ(record.kind, abi::CompletionKind::kJobFailed);
            text = region_.control().failure;
            EXPECT_LT(text.size(), kSentenceMax) << text;
            return static_cast<Err>(record.status);
        }
        return Err::kOk;
    }

    std::string text;

    NullWire wire_;

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<Engine> engine_;
    abi::RegionLayout layout_ = abi::compute_layout({8, 16, 4096, 4096}).value();
    std::unique_ptr<void, Free> memory_{std::memset(
        std::aligned_alloc(abi::kPageOctets, layout_.region_octets), 0, layout_.region_octets)};
    abi::Region region_{memory_.get(), layout_};
    abi::SubmissionProducer submissions_;
    abi::CompletionConsumer completions_;
    Nanos now_ = 1;
};

TEST_F(EngineTexts, name_all_profiles) {
    join("none such");
    ASSERT_EQ(failure(), Err::kProfile);
    EXPECT_EQ(text, "known: " + urtp::policy_words());
    open_links(2, "none such");
    ASSERT_EQ(failure(), Err::kProfile);
    EXPECT_EQ(text, "known: " + urtp::policy_words());
}

TEST_F(EngineTexts, say_what_the_port_knows_of_nodes_that_do_not_answer) {
    join("", 2, kMillisecond);
    ASSERT_EQ(failure(), Err::kTimeout);
    EXPECT_EQ(text.find("answers"), std::string::npos) << text;
    wire_.unanswered = "no engine answers at 10.0.0.8:4001: see there";
    join("", 2, kMillisecond);
    ASSERT_EQ(failure(), Err::kTimeout);
    EXPECT_NE(text.find("; no engine answers at 10.0.0.8:4001: see there"), std::string::npos)
        << text;
}

TEST_F(EngineTexts, name_the_limit_of_links) {
    open_links(UINT16_MAX, "");
    ASSERT_EQ(failure(), Err::kLimit);
    EXPECT_NE(text.find(" links"), std::string::npos) << text;
}

TEST_F(EngineTexts, name_the_ranks_that_are_missing) {
    join("", 8192, 20 * kMillisecond);
    ASSERT_EQ(failure(), Err::kTimeout);
    EXPECT_EQ(text, "still missing of 8192 ranks: 1-8191");
    bool refused = false;
    for (int n = 0; n < 200 && !refused; ++n) {
        join("", 2, kMillisecond);
        refused = failure() == Err::kLimit;
    }
    ASSERT_TRUE(refused);
    EXPECT_EQ(text, "this user began too many jobs lately; wait, or raise --jobs-per-second");
}

TEST(Texts, of_errors_leave_space_for_names) {
    for (int error = 0; error < 200; ++error)
        EXPECT_LT(text_of(static_cast<Err>(error)).size(), kSentenceMax) << error;
}

TEST(Texts, name_all_nets_of_an_engine) {
    daemon::HelloRules rules;
    for (std::size_t n = 0; n < kNetsMax; ++n)
        rules.nets.emplace_back(abi::kNetNameOctetsMax - 1, static_cast<char>('a' + n));
    abi::Hello hello{};
    hello.magic = abi::kHelloMagic;
    hello.abi_version = abi::kAbiVersion;
    hello.kind = abi::HelloKind::kAttach;
    std::memset(hello.net, 1, sizeof hello.net);  // each is printed as four
    daemon::HelloRequest request;
    std::string why;
    ASSERT_EQ(daemon::judge_hello(rules, &hello, sizeof hello, request, why), Err::kInvalid);
    const auto offer = daemon::reply_with<abi::Offer>(Err::kInvalid, why);
    EXPECT_EQ(offer.text, why);
    EXPECT_TRUE(why.ends_with(rules.nets.back())) << why;
}

TEST(PutText, writes_what_fits) {
    char field[16];
    std::memset(field, 'x', sizeof field);
    put_text(field, "fifteen letters");
    EXPECT_STREQ(field, "fifteen letters");
    put_text(field, "");
    EXPECT_STREQ(field, "");
}

TEST(PutText, shows_that_a_text_was_cut) {
    char field[16];
    put_text(field, "one two three four");
    EXPECT_STREQ(field, "one two ...");
    put_text(field, "withoutanyspacehere");
    EXPECT_STREQ(field, "withoutanys ...");
    char small[4];
    put_text(small, "abcdef");
    EXPECT_STREQ(small, "");
    put_text({small, 0}, "abcdef");
}

}  // namespace
}  // namespace ulc::engine
