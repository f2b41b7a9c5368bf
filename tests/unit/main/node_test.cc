// SPDX-License-Identifier: BSD-3-Clause
// A node reads the addresses of another one, whether its wire needs them or not.
#include "main/node.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ulc::daemon {
namespace {

TEST(Node, refuses_addresses_that_it_cannot_read_on_a_wire_that_needs_none) {
    const std::string wire = testing::TempDir() + "ulc-node-" + std::to_string(getpid());
    NodeOptions options;
    options.nets.push_back({"", {.device = "shm,path=" + wire + ",stations=2,station=0"}});
    std::unique_ptr<Node> node;
    std::vector<std::string> notes;
    std::string why;
    ASSERT_EQ(Node::open(options, nullptr, node, notes, why), Err::kOk) << why;
    EXPECT_EQ(node->addresses(), "");
    EXPECT_TRUE(node->meet("10.0.0.1:4001,[fd00::1]:4001"));
    EXPECT_FALSE(node->meet("02:00:00:00:00:01"));
    EXPECT_FALSE(node->meet(""));
    EXPECT_EQ(unlink(wire.c_str()), 0);
}

}  // namespace
}  // namespace ulc::daemon
