// SPDX-License-Identifier: BSD-3-Clause
// An endpoint that is its own target, over lists in memory, for tests of writes, reads and atomic
// operations.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "ofi/endpoint.h"
#include "tests/fuzz/plain_ulc.h"

namespace ulc::ofi {

inline constexpr std::uint64_t kKey = 42;

class RmaTest : public testing::Test {
public:
    ~RmaTest() override {
        for (fid* one :
             {&region_->fid, &read_only_->fid, &ep_->fid, &queue_->fid, &writes_->fid, &reads_->fid,
              &remote_writes_->fid, &of_region_->fid, &addresses_->fid, &domain_->fid})
            EXPECT_EQ(fi_close(one), 0);
    }

protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(::setenv("ULC_JOB", "rma", 1), 0);
        ASSERT_EQ(::setenv("ULC_RANK", "0", 1), 0);
        ASSERT_EQ(::setenv("ULC_SIZE", "3", 1), 0);
    }
    RmaTest() : memory_(100000), local_(100000) {
        domain_attr_.threading = FI_THREAD_DOMAIN;
        ep_attr_.type = FI_EP_RDM;
        info_.caps = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |
                     FI_RMA_EVENT;
        info_.tx_attr = &tx_;
        info_.rx_attr = &rx_;
        info_.ep_attr = &ep_attr_;
        info_.domain_attr = &domain_attr_;
        EXPECT_EQ(open_domain(nullptr, &info_, &domain_, nullptr), 0);
        fi_av_attr av{};
        EXPECT_EQ(fi_av_open(domain_, &av, &addresses_, nullptr), 0);
        fi_cq_attr cq{};
        EXPECT_EQ(fi_cq_open(domain_, &cq, &queue_, nullptr), 0);
        fi_cntr_attr attr{};
        for (fid_cntr** one : {&writes_, &reads_, &remote_writes_, &of_region_})
            EXPECT_EQ(fi_cntr_open(domain_, &attr, one, nullptr), 0);
        EXPECT_EQ(fi_endpoint(domain_, &info_, &ep_, nullptr), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &addresses_->fid, 0), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &queue_->fid, FI_RECV | FI_TRANSMIT), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &writes_->fid, FI_WRITE), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &reads_->fid, FI_READ), 0);
        EXPECT_EQ(fi_ep_bind(ep_, &remote_writes_->fid, FI_REMOTE_WRITE), 0);
        EXPECT_EQ(fi_enable(ep_), 0);
        unsigned char name[kAddressBytes];
        std::size_t length = sizeof name;
        EXPECT_EQ(fi_getname(&ep_->fid, name, &length), 0);
        EXPECT_EQ(fi_av_insert(addresses_, name, 1, &self_, 0, nullptr), 1);
        fuzz::loop_back();
        EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), memory_.size(),
                            FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region_, nullptr),
                  0);
        EXPECT_EQ(fi_mr_bind(region_, &of_region_->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), 0);
        EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_REMOTE_READ, 0, kKey + 1, 0, &read_only_,
                            nullptr),
                  0);
        std::iota(local_.begin(), local_.end(), static_cast<unsigned char>(1));
        poll();
    }
    void poll() {
        for (int i = 0; i < 4; ++i)
            static_cast<void>(fi_cq_read(queue_, nullptr, 0));
    }
    /// Returns 0 after a completion with this context, or the FI_E… of its error.
    int completion(void* context, std::uint64_t flags) {
        fi_cq_tagged_entry entry{};
        for (int i = 0; i < 10; ++i) {
            const ssize_t got = fi_cq_read(queue_, &entry, 1);
            if (got == -FI_EAGAIN) continue;
            if (got == 1) {
                EXPECT_EQ(entry.op_context, context);
                EXPECT_EQ(entry.flags, flags);
                return 0;
            }
            fi_cq_err_entry error{};
            EXPECT_EQ(fi_cq_readerr(queue_, &error, 0), 1);
            EXPECT_EQ(error.op_context, context);
            EXPECT_EQ(error.flags, flags);
            return error.err;
        }
        return -1;
    }
    int write(std::size_t length, std::uint64_t address, std::uint64_t key) {
        EXPECT_EQ(fi_write(ep_, local_.data(), length, nullptr, self_, address, key, &local_), 0);
        return completion(&local_, FI_RMA | FI_WRITE);
    }
    int read(std::size_t length, std::uint64_t address, std::uint64_t key) {
        EXPECT_EQ(fi_read(ep_, local_.data(), length, nullptr, self_, address, key, &local_), 0);
        return completion(&local_, FI_RMA | FI_READ);
    }
    [[nodiscard]] const Endpoint& endpoint() const { return *static_cast<const Endpoint*>(ep_); }
    [[nodiscard]] bool is_untouched() const {
        return memory_ == std::vector<unsigned char>(memory_.size());
    }
    /// A request of rank 1 arrives.
    void request(RmaRequest made, std::size_t behind, unsigned char filler = 0x77) {
        made.order = order_;
        order_ += made.is_valid(sizeof made + behind) ? 1 : 0;
        std::vector<unsigned char> bytes(sizeof made + behind, filler);
        std::memcpy(bytes.data(), &made, sizeof made);
        fuzz::arrive(1, kRmaTag, std::move(bytes));
        poll();
    }
    static RmaRequest made(RmaKind kind, std::uint64_t number, std::uint64_t length) {
        RmaRequest one{};
        one.version = RmaRequest::kVersion;
        one.kind = static_cast<std::uint8_t>(kind);
        one.number = number;
        one.key = kKey;
        one.length = length;
        return one;
    }
    static RmaResult last_result() {
        const fuzz::Sent& sent = fuzz::last_sent();
        return sent.bytes.size() < 2 ? RmaResult::kMalformed
                                     : static_cast<RmaResult>(sent.bytes[1]);
    }

    std::uint16_t order_ = 0;  ///< order of the next request of rank 1
    fi_tx_attr tx_{};
    fi_rx_attr rx_{};
    fi_ep_attr ep_attr_{};
    fi_domain_attr domain_attr_{};
    fi_info info_{};
    fid_domain* domain_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_cntr* writes_ = nullptr;
    fid_cntr* reads_ = nullptr;
    fid_cntr* remote_writes_ = nullptr;
    fid_cntr* of_region_ = nullptr;
    fid_ep* ep_ = nullptr;
    fid_mr* region_ = nullptr;
    fid_mr* read_only_ = nullptr;
    fi_addr_t self_ = FI_ADDR_NOTAVAIL;
    std::vector<unsigned char> memory_;
    std::vector<unsigned char> local_;
};

}  // namespace ulc::ofi
