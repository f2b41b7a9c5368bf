// SPDX-License-Identifier: BSD-3-Clause
// Receives that are cancelled while messages come: each receive completes once, cancelled or with
// its message, and its context may be used again. Also the sentence about a peer that died.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "base/prng.h"
#include "ofi/domain.h"
#include "ofi/message_header.h"
#include "ofi/peers/job.h"
#include "ofi/say.h"
#include "tests/fuzz/plain_ulc.h"

namespace ulc::ofi {
namespace {

std::vector<std::string> lines;

}  // namespace

/// Stands in for the provider's.
void say(const char* format, ...) noexcept {
    char text[512];
    std::va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    lines.emplace_back(text);
}

namespace {

/// An endpoint with one queue, whose peers are ranks 1 and 2.
class Cancel : public testing::Test {
protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(::setenv("ULC_JOB", "cancel", 1), 0);
        ASSERT_EQ(::setenv("ULC_RANK", "0", 1), 0);
        ASSERT_EQ(::setenv("ULC_SIZE", "3", 1), 0);
    }
    void SetUp() override {
        lines.clear();
        ep_attr_.type = FI_EP_RDM;
        info_.caps = FI_TAGGED | FI_DIRECTED_RECV;
        info_.tx_attr = &tx_;
        info_.rx_attr = &rx_;
        info_.ep_attr = &ep_attr_;
        info_.domain_attr = &domain_attr_;
        ASSERT_EQ(open_domain(nullptr, &info_, &domain_, nullptr), 0);
        fi_av_attr av{};
        ASSERT_EQ(fi_av_open(domain_, &av, &addresses_, nullptr), 0);
        fi_cq_attr cq{};
        ASSERT_EQ(fi_cq_open(domain_, &cq, &queue_, nullptr), 0);
        ASSERT_EQ(fi_endpoint(domain_, &info_, &ep_, nullptr), 0);
        ASSERT_EQ(fi_ep_bind(ep_, &addresses_->fid, 0), 0);
        ASSERT_EQ(fi_ep_bind(ep_, &queue_->fid, FI_RECV | FI_TRANSMIT), 0);
        ASSERT_EQ(fi_enable(ep_), 0);
        unsigned char name[kAddressBytes];
        std::size_t length = sizeof name;
        ASSERT_EQ(fi_getname(&ep_->fid, name, &length), 0);
        for (unsigned char rank = 1; rank < fuzz::kRanks; ++rank) {
            name[kRankAt] = rank;
            ASSERT_EQ(fi_av_insert(addresses_, name, 1, &peers_[rank], 0, nullptr), 1);
        }
    }
    void TearDown() override {
        for (fid* one : {&ep_->fid, &queue_->fid, &addresses_->fid, &domain_->fid})
            EXPECT_EQ(fi_close(one), 0);
    }
    static void arrive(std::uint16_t source, std::uint64_t tag, unsigned char value) {
        const MessageHeader header = MessageHeader::plain();
        std::vector<unsigned char> bytes(sizeof header + 1, value);
        std::memcpy(bytes.data(), &header, sizeof header);
        fuzz::arrive(source, kTaggedBit | tag, std::move(bytes));
    }

    static constexpr std::size_t kRankAt = 7;  ///< lower byte of the rank in an address

    fi_tx_attr tx_{};
    fi_rx_attr rx_{};
    fi_ep_attr ep_attr_{};
    fi_domain_attr domain_attr_{};
    fi_info info_{};
    fid_domain* domain_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_ep* ep_ = nullptr;
    std::array<fi_addr_t, fuzz::kRanks> peers_{FI_ADDR_UNSPEC};  ///< [0]: any source
};

TEST_F(Cancel, a_receive_with_a_message_that_was_not_read_yet_stays) {
    unsigned char value = 0;
    int context = 0;
    ASSERT_EQ(fi_trecv(ep_, &value, 1, nullptr, peers_[1], 5, 0, &context), 0);
    arrive(1, 5, 'x');
    EXPECT_EQ(fi_cancel(&ep_->fid, &context), -FI_EAGAIN);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_read(queue_, &entry, 1), 1);
    EXPECT_EQ(entry.op_context, &context);
    EXPECT_EQ(value, 'x');
    EXPECT_EQ(fi_cancel(&ep_->fid, &context), -FI_ENOENT);
    EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
}

/// A receive as the program knows it. Its address is the context.
struct Receive {
    enum class State { kIdle, kPosted, kMatched, kCancelled } state = State::kIdle;
    std::uint16_t from = 0;  ///< 0: any
    std::uint64_t tag = 0;
    unsigned char value = 0;
    unsigned char expected = 0;
};
struct Message {
    std::uint16_t source;
    std::uint64_t tag;
    unsigned char value;

    [[nodiscard]] bool fits(const Receive& receive) const {
        return tag == receive.tag && (receive.from == 0 || receive.from == source);
    }
};

TEST_F(Cancel, each_receive_completes_once_whatever_comes_when) {
    constexpr int kSteps = 200'000;
    std::array<Receive, 6> receives{};
    std::list<Receive*> posted;
    std::list<Message> unexpected;
    Prng random(1);
    unsigned cancelled = 0;
    unsigned refused = 0;
    unsigned char next_value = 0;
    const auto read_one = [&] {
        fi_cq_tagged_entry entry{};
        const ssize_t got = fi_cq_read(queue_, &entry, 1);
        if (got == -FI_EAGAIN) return false;
        if (got == 1) {
            auto& one = *static_cast<Receive*>(entry.op_context);
            EXPECT_EQ(one.state, Receive::State::kMatched);
            EXPECT_EQ(one.value, one.expected);
            one.state = Receive::State::kIdle;
            return true;
        }
        fi_cq_err_entry error{};
        EXPECT_EQ(fi_cq_readerr(queue_, &error, 0), 1);
        EXPECT_EQ(error.err, FI_ECANCELED);
        auto& one = *static_cast<Receive*>(error.op_context);
        EXPECT_EQ(one.state, Receive::State::kCancelled);
        one.state = Receive::State::kIdle;
        return true;
    };
    const auto post = [&](Receive& one) {
        one.from = static_cast<std::uint16_t>(random.below(fuzz::kRanks));
        one.tag = random.below(2);
        one.state = Receive::State::kPosted;
        const auto there =
            std::ranges::find_if(unexpected, [&](const Message& m) { return m.fits(one); });
        if (there != unexpected.end()) {
            one.state = Receive::State::kMatched;
            one.expected = there->value;
            unexpected.erase(there);
        } else {
            posted.push_back(&one);
        }
        ASSERT_EQ(fi_trecv(ep_, &one.value, 1, nullptr, peers_[one.from], one.tag, 0, &one), 0);
    };
    const auto cancel = [&](Receive& one) {
        const ssize_t error = fi_cancel(&ep_->fid, &one);
        if (one.state == Receive::State::kPosted) {
            EXPECT_EQ(error, 0);
            one.state = Receive::State::kCancelled;
            posted.remove(&one);
            ++cancelled;
        } else {
            EXPECT_NE(error, 0);
            ++refused;
        }
    };
    const auto send = [&] {
        const Message message{static_cast<std::uint16_t>(1 + random.below(2)), random.below(2),
                              ++next_value};
        const auto to =
            std::ranges::find_if(posted, [&](const Receive* r) { return message.fits(*r); });
        if (to == posted.end()) {
            unexpected.push_back(message);
        } else {
            (*to)->state = Receive::State::kMatched;
            (*to)->expected = message.value;
            posted.erase(to);
        }
        arrive(message.source, message.tag, message.value);
    };
    for (int n = 0; n < kSteps && !HasFailure(); ++n) {
        Receive& one = receives[random.below(receives.size())];
        const std::uint64_t choice = random.below(8);
        if (choice == 0) {
            static_cast<void>(read_one());
        } else if (choice == 1) {
            if (unexpected.size() < 8) send();
        } else if (one.state == Receive::State::kIdle) {
            post(one);
        } else if (choice < 4) {
            cancel(one);
        }
    }
    for (Receive& one : receives)
        if (one.state == Receive::State::kPosted) cancel(one);
    while (!HasFailure() && read_one()) {
    }
    for (const Receive& one : receives)
        EXPECT_EQ(one.state, Receive::State::kIdle);
    EXPECT_GT(cancelled, 1000U);
    EXPECT_GT(refused, 1000U);
    EXPECT_TRUE(lines.empty());
}

TEST_F(Cancel, the_first_receive_from_a_peer_that_died_says_so) {
    unsigned char values[3] = {};
    int contexts[3] = {};
    for (std::size_t n = 0; n < 3; ++n)
        ASSERT_EQ(fi_trecv(ep_, &values[n], 1, nullptr, peers_[n < 2 ? 2 : 1], 5, 0, &contexts[n]),
                  0);
    fuzz::end_peer(1, ULC_ERR_PEER_LEFT);
    fi_cq_tagged_entry entry{};
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAVAIL);
    ASSERT_EQ(fi_cq_readerr(queue_, &error, 0), 1);
    EXPECT_EQ(error.err, FI_ECONNRESET);
    EXPECT_EQ(error.op_context, &contexts[2]);
    EXPECT_TRUE(lines.empty()) << "a peer that leaves is no fault";
    fuzz::end_peer(2, ULC_ERR_PEER_DIED);
    for (std::size_t n = 0; n < 2; ++n) {
        EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAVAIL);
        ASSERT_EQ(fi_cq_readerr(queue_, &error, 0), 1);
        EXPECT_EQ(error.err, FI_EHOSTUNREACH);
        EXPECT_EQ(error.op_context, &contexts[n]);
    }
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].find("rank 0: a message from rank 2 failed"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace ulc::ofi
