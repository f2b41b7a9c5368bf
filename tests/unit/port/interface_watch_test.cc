// SPDX-License-Identifier: BSD-3-Clause
// An interface under a port that is renamed, removed, made again, or gets another address or MTU
// (port/interface/watch.h). The kernel's answers are scripted.
#include "port/interface/watch.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace ulc::port {
namespace {

const Mac kFirst{{2, 0, 0, 0, 0, 1}};
const Mac kSecond{{2, 0, 0, 0, 0, 2}};

/// The interfaces of a machine, by index.
struct Machine {
    std::map<int, InterfaceReading> interfaces{
        {7, {.name = "eth0", .mac = kFirst, .mtu = 1500, .running = true}}};
    bool keeps = true;       ///< an interface passes frames for other addresses
    std::vector<int> bound;  ///< indices, in their order
    std::vector<std::pair<int, Mac>> kept;

    InterfaceCalls calls() {
        InterfaceCalls calls;
        calls.context = calls.bind_context = this;
        calls.read = [](void* context, int index, InterfaceReading& out) {
            const auto& all = static_cast<Machine*>(context)->interfaces;
            const auto at = all.find(index);
            if (at == all.end()) return false;
            out = at->second;
            return true;
        };
        calls.find = [](void* context, const std::string& name) {
            for (const auto& [index, reading] : static_cast<Machine*>(context)->interfaces)
                if (reading.name == name) return index;
            return 0;
        };
        calls.bind = [](void* context, int index) {
            static_cast<Machine*>(context)->bound.push_back(index);
            return true;
        };
        calls.keep_address = [](void* context, int index, const Mac& address) {
            auto& self = *static_cast<Machine*>(context);
            if (self.keeps) self.kept.emplace_back(index, address);
            return self.keeps;
        };
        return calls;
    }
};

class InterfaceWatchTest : public testing::Test {
protected:
    void SetUp() override { watch_.begin(machine_.calls(), "eth0", 7, kFirst, 1500); }
    InterfaceReading& eth0() { return machine_.interfaces.at(7); }
    [[nodiscard]] const InterfaceState& state() const { return watch_.state(); }

    Machine machine_;
    InterfaceWatch watch_;
};

TEST_F(InterfaceWatchTest, a_link_that_stays_as_it_is_needs_nothing) {
    EXPECT_TRUE(watch_.look());
    eth0().running = false;
    EXPECT_FALSE(watch_.look());
    eth0().running = true;
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(state().mac, kFirst);
    EXPECT_EQ(state().mtu, 1500);
    EXPECT_TRUE(machine_.bound.empty());
    EXPECT_TRUE(machine_.kept.empty());
}

TEST_F(InterfaceWatchTest, a_renamed_interface_is_followed_by_its_index) {
    eth0().name = "lan0";
    machine_.interfaces[9] = {.name = "eth0", .mac = kSecond, .mtu = 1500, .running = true};
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(state().name, "lan0");
    EXPECT_EQ(state().mac, kFirst) << "another interface has the old name";
    EXPECT_TRUE(machine_.bound.empty());
}

TEST_F(InterfaceWatchTest, an_interface_that_is_made_again_is_bound_to_by_its_name) {
    const InterfaceReading was = eth0();
    machine_.interfaces.clear();
    EXPECT_FALSE(watch_.look());
    EXPECT_TRUE(machine_.bound.empty());
    machine_.interfaces[12] = was;
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(machine_.bound, std::vector<int>{12});
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(machine_.bound.size(), 1U) << "the new index is remembered";
    EXPECT_TRUE(machine_.kept.empty()) << "it has the port's address";
}

TEST_F(InterfaceWatchTest, one_made_again_under_the_last_name_is_found) {
    eth0().name = "lan0";
    EXPECT_TRUE(watch_.look());
    machine_.interfaces = {{9, {.name = "lan0", .mac = kFirst, .mtu = 1500, .running = true}}};
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(machine_.bound, std::vector<int>{9});
}

TEST_F(InterfaceWatchTest, the_old_address_is_kept_once_where_the_interface_can) {
    eth0().mac = kSecond;
    EXPECT_TRUE(watch_.look());
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(machine_.kept, (std::vector<std::pair<int, Mac>>{{7, kFirst}}));
    EXPECT_EQ(state().mac, kSecond);
    EXPECT_EQ(state().own, kFirst);
    EXPECT_TRUE(state().keeps_own);
}

TEST_F(InterfaceWatchTest, it_is_kept_again_at_an_interface_that_is_made_again) {
    eth0().mac = kSecond;
    EXPECT_TRUE(watch_.look());
    const InterfaceReading was = eth0();
    machine_.interfaces = {{9, was}};
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(machine_.kept, (std::vector<std::pair<int, Mac>>{{7, kFirst}, {9, kFirst}}));
}

TEST_F(InterfaceWatchTest, an_interface_that_passes_its_own_address_alone_has_lost_the_old_one) {
    machine_.keeps = false;
    eth0().mac = kSecond;
    EXPECT_TRUE(watch_.look());
    EXPECT_FALSE(state().keeps_own);
    eth0().mac = kFirst;  // given back
    EXPECT_TRUE(watch_.look());
    EXPECT_TRUE(state().keeps_own);
    eth0().mac = kSecond;
    EXPECT_TRUE(watch_.look());
    EXPECT_FALSE(state().keeps_own);
    watch_.take_address();
    EXPECT_TRUE(state().keeps_own);
    EXPECT_EQ(state().own, kSecond);
}

TEST_F(InterfaceWatchTest, the_mtu_is_the_least_of_the_interface_and_the_port) {
    eth0().mtu = 1400;
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(state().mtu, 1400);
    eth0().mtu = 0;  // the kernel does not tell: nothing is known to have changed
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(state().mtu, 1400);
    eth0().mtu = 9000;
    EXPECT_TRUE(watch_.look());
    EXPECT_EQ(state().mtu, 1500);
}

}  // namespace
}  // namespace ulc::port
