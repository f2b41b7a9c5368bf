// SPDX-License-Identifier: BSD-3-Clause
// Limits that ranks of MPI meet on a node: endpoints of the engine, and ranks with links. Each is
// one sentence on the standard error, which says what to do.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ofi/domain.h"
#include "ofi/peers/strangers.h"
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

class OfiLimits : public testing::Test {
protected:
    void SetUp() override { lines.clear(); }
    void TearDown() override {
        fuzz::have_endpoints(true);
        fuzz::have_links(false);
    }
};

TEST_F(OfiLimits, the_last_rank_of_a_full_node_has_links) {
    fuzz::have_links(true);
    Strangers strangers;
    strangers.open(kRanksHereMax);
    EXPECT_NE(strangers.ep(), nullptr);
    strangers.close();
}

TEST_F(OfiLimits, links_of_one_rank_too_many_are_refused_in_one_sentence) {
    fuzz::have_links(true);
    Strangers strangers;
    strangers.open(kRanksHereMax + 1);
    EXPECT_EQ(strangers.ep(), nullptr);
    Rank rank = 0;
    for (fi_addr_t address = 0; address < 3; ++address)
        EXPECT_EQ(strangers.rank_of(address, Address{}, rank), -FI_EHOSTUNREACH);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0], std::string("an address was refused: ") + kNoLinks);
    strangers.close();
}

TEST_F(OfiLimits, an_endpoint_that_the_engine_refuses_is_told_in_its_words) {
    ASSERT_EQ(::setenv("ULC_JOB", "limits", 1), 0);
    ASSERT_EQ(::setenv("ULC_RANK", "0", 1), 0);
    ASSERT_EQ(::setenv("ULC_SIZE", "3", 1), 0);
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_ep_attr ep_attr{};
    fi_domain_attr domain_attr{};
    ep_attr.type = FI_EP_RDM;
    fi_info info{};
    info.caps = FI_TAGGED;
    info.tx_attr = &tx;
    info.rx_attr = &rx;
    info.ep_attr = &ep_attr;
    info.domain_attr = &domain_attr;
    fid_domain* domain = nullptr;
    ASSERT_EQ(open_domain(nullptr, &info, &domain, nullptr), 0);
    fi_av_attr av{};
    fid_av* addresses = nullptr;
    ASSERT_EQ(fi_av_open(domain, &av, &addresses, nullptr), 0);
    fi_cq_attr cq{};
    fid_cq* queue = nullptr;
    ASSERT_EQ(fi_cq_open(domain, &cq, &queue, nullptr), 0);
    fid_ep* ep = nullptr;
    ASSERT_EQ(fi_endpoint(domain, &info, &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &addresses->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &queue->fid, FI_RECV | FI_TRANSMIT), 0);
    fuzz::have_endpoints(false);
    EXPECT_LT(fi_enable(ep), 0);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0], std::string("the endpoint cannot be enabled: ") + fuzz::kNoEndpoint);
    for (fid* one : {&ep->fid, &queue->fid, &addresses->fid, &domain->fid})
        EXPECT_EQ(fi_close(one), 0);
}

}  // namespace
}  // namespace ulc::ofi
