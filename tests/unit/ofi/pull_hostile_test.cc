// SPDX-License-Identifier: BSD-3-Clause
// Announcements of a rank that wants to read the memory of their receiver: it makes the receiver
// hold the seal of a descriptor, and names that place.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/process_start.h"
#include "ofi/endpoint.h"
#include "tests/fuzz/plain_ulc.h"
#include "tests/unit/ofi/reads.h"

namespace ulc::ofi {
namespace {

constexpr std::uint16_t kHostile = 1;
constexpr std::size_t kLength = 4096;

ulc_near_process process_of(pid_t process) {
    const auto pid = static_cast<std::uint32_t>(process);
    return {process_start_ticks(pid), pid};
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

class PullHostile : public testing::Test {
public:
    static void SetUpTestSuite() {
        ASSERT_EQ(::setenv("ULC_JOB", "pull", 1), 0);
        ASSERT_EQ(::setenv("ULC_RANK", "0", 1), 0);
        ASSERT_EQ(::setenv("ULC_SIZE", "3", 1), 0);
    }
    PullHostile() : hostile_(::fork()) {
        if (hostile_ == 0) {
            for (;;)
                ::pause();
        }
        fuzz::be_in(process_of(hostile_));
        reads_of.clear();
        domain_attr_.threading = FI_THREAD_DOMAIN;
        ep_attr_.type = FI_EP_RDM;
        info_.caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV;
        info_.tx_attr = &tx_;
        info_.rx_attr = &rx_;
        info_.ep_attr = &ep_attr_;
        info_.domain_attr = &domain_attr_;
        EXPECT_EQ(open_domain(nullptr, &info_, &domain_, nullptr), 0);
        fi_av_attr av{};
        EXPECT_EQ(fi_av_open(domain_, &av, &addresses_, nullptr), 0);
        fi_cq_attr cq{};
        EXPECT_EQ(fi_cq_open(domain_, &cq, &queue_, nullptr), 0);
        EXPECT_EQ(fi_endpoint(domain_, &info_, &ep_, nullptr), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &addresses_->fid, 0), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &queue_->fid, FI_RECV | FI_TRANSMIT), 0);
        EXPECT_EQ(fi_enable(ep_), 0);
    }
    ~PullHostile() override {
        for (fid* one : {&ep_->fid, &queue_->fid, &addresses_->fid, &domain_->fid})
            EXPECT_EQ(fi_close(one), 0);
        ::kill(hostile_, SIGKILL);
        EXPECT_EQ(::waitpid(hostile_, nullptr, 0), hostile_);
        fuzz::be_in({});
        fuzz::be_near(ULC_OK);
    }

    /// The hostile rank announces what lies at `piece`; 0: what its descriptor lists.
    void announce(const PullDescriptor& descriptor, const void* piece, bool proven) {
        EXPECT_EQ(fi_trecv(ep_, received_.data(), received_.size(), nullptr, FI_ADDR_UNSPEC, 5, 0,
                           &received_),
                  0);
        const MessageHeader header =
            MessageHeader::announcing(address_of(&descriptor), false, proven);
        const Announcement body{kLength, 0, address_of(piece)};
        std::vector<unsigned char> bytes(sizeof header + sizeof body);
        std::memcpy(bytes.data(), &header, sizeof header);
        std::memcpy(bytes.data() + sizeof header, &body, sizeof body);
        fuzz::arrive(kHostile, kTaggedBit | 5, std::move(bytes));
        fi_cq_tagged_entry entry;
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
    }
    [[nodiscard]] static PullAnswer answer() {
        PullAnswer answer{};
        EXPECT_EQ(fuzz::last_sent().bytes.size(), sizeof answer);
        std::memcpy(&answer, fuzz::last_sent().bytes.data(), sizeof answer);
        EXPECT_TRUE(answer.is_valid(sizeof answer));
        return answer;
    }

    pid_t hostile_;
    std::vector<char> received_ = std::vector<char>(kLength, '.');
    fi_tx_attr tx_{};
    fi_rx_attr rx_{};
    fi_ep_attr ep_attr_{};
    fi_domain_attr domain_attr_{};
    fi_info info_{};
    fid_domain* domain_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_ep* ep_ = nullptr;
};

TEST_F(PullHostile, a_rank_that_points_into_its_receiver_reads_nothing_of_it) {
    const std::vector<char> secret(kLength, 's');
    PullDescriptor planted{};
    announce(planted, secret.data(), false);
    const PullAnswer first = answer();
    EXPECT_EQ(first.what, PullAnswer::kSend);
    ASSERT_EQ(first.has_token, 1);
    // The rank knows all of the seal, and got the receiver to hold it.
    const ulc_near_process self = process_of(::getpid());
    const ulc_near_process other = process_of(hostile_);
    planted.seal.token = first.token;
    planted.seal.writer = {other.start_ticks, other.pid};
    planted.seal.reader = {self.start_ticks, self.pid};
    planted.length = kLength;
    planted.count = 1;
    planted.pieces[0] = {address_of(secret.data()), kLength};
    announce(planted, secret.data(), true);
    EXPECT_EQ(answer().what, PullAnswer::kNever);
    announce(planted, nullptr, true);
    EXPECT_EQ(answer().what, PullAnswer::kNever);
    EXPECT_NE(received_, secret);  // bytes of the rank itself may be there
    for (const pid_t read : reads_of)
        EXPECT_EQ(read, hostile_);
}

TEST_F(PullHostile, a_rank_that_the_engine_does_not_call_near_gets_no_token) {
    const PullDescriptor planted{};
    fuzz::be_near(ULC_ERR_AGAIN);
    announce(planted, nullptr, true);
    EXPECT_EQ(answer().what, PullAnswer::kSend);
    EXPECT_EQ(answer().has_token, 0);
    fuzz::be_near(ULC_ERR_UNSUPPORTED);
    announce(planted, nullptr, true);
    EXPECT_EQ(answer().what, PullAnswer::kNever);
    EXPECT_EQ(answer().has_token, 0);
    EXPECT_TRUE(reads_of.empty());
}

}  // namespace
}  // namespace ulc::ofi
