// SPDX-License-Identifier: BSD-3-Clause
// Packet ports whose interfaces change under them, in a network namespace of the test: renamed,
// removed and made again, with another MAC address. A change is there when `ip` returns, but for
// links that begin to run, which are waited for; so nothing here depends on time but the limits of
// waits. Needs root, else skipped.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "packet/packet_port.h"
#include "wire/header.h"

namespace ulc::packet {
namespace {

constexpr std::uint32_t kLength = 100;
const Mac kNew{{2, 0, 0, 0, 0, 0x77}};
constexpr char kNewText[] = "02:00:00:00:00:77";

bool run(const std::string& command) {
    return std::system((command + " 2>/dev/null").c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
}

std::unique_ptr<PacketPort> open_port(const std::string& interface) {
    PortOptions options;
    options.device.interface = interface;
    options.ether_type = 0x88B6;
    options.segments = 64;
    std::unique_ptr<PacketPort> port;
    std::string why;
    EXPECT_EQ(PacketPort::open(options, port, why), Err::kOk) << why;
    return port;
}

void send(const Port& port, const Mac& to, std::uint8_t number, std::uint32_t length = kLength) {
    Segment* segment = port.pool.get();
    ASSERT_NE(segment, nullptr);
    auto* header = reinterpret_cast<wire::EthernetHeader*>(segment->frame);
    header->destination = to;
    header->source = port.info.mac;
    header->type = 0x88B6;
    segment->frame[sizeof *header] = std::byte{number};
    segment->length = length;
    ASSERT_EQ(port.tx(port.context, &segment, 1), 1);
}

/// Returns the number of the next frame; -1: none came within the limit.
int receive(const Port& port) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    Segment* segment = nullptr;
    while (port.rx(port.context, &segment, 1) == 0) {
        if (std::chrono::steady_clock::now() > limit) return -1;
        sched_yield();
    }
    const int number = std::to_integer<int>(segment->frame[sizeof(wire::EthernetHeader)]);
    port.pool.drop(segment);
    return number;
}

/// The kernel tells that a link runs up to a second after it does (its link watch).
bool comes_up(const Port& port) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!port.link_up(port.context))
        if (std::chrono::steady_clock::now() > limit) return false;
    return true;
}
bool is_up(const Port& port) { return port.link_up(port.context); }
const InterfaceState& state_of(const Port& port) { return *port.interface(port.context); }

/// Runs the body in a child in a new network namespace with a veth pair v0, v1 that is up.
template <typename Body>
void in_namespace(Body body) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNET) != 0 || !run("ip link add v0 type veth peer name v1") ||
            !run("ip link set v0 up") || !run("ip link set v1 up"))
            _exit(77);
        body();
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no veth pairs in a network namespace here";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the child has said why";
}

TEST(PacketInterface, a_renamed_one_is_followed) {
    in_namespace([] {
        const auto here = open_port("v0");
        const auto there = open_port("v1");
        const Port& port = here->port();
        if (!run("ip link set v0 name lan0")) _exit(77);  // Linux 6.2 renames what is up
        EXPECT_TRUE(comes_up(port));
        EXPECT_EQ(state_of(port).name, "lan0");
        send(there->port(), port.info.mac, 1);
        EXPECT_EQ(receive(port), 1);
        send(port, there->port().info.mac, 2);
        EXPECT_EQ(receive(there->port()), 2);
    });
}

TEST(PacketInterface, one_made_again_is_bound_to_and_keeps_the_ports_address) {
    in_namespace([] {
        const auto here = open_port("v0");
        const Port& port = here->port();
        EXPECT_TRUE(run("ip link del v0"));
        EXPECT_FALSE(is_up(port));
        EXPECT_TRUE(run("ip link add v0 type veth peer name v1"));
        EXPECT_TRUE(run("ip link set v0 up") && run("ip link set v1 up"));
        EXPECT_TRUE(comes_up(port));
        EXPECT_NE(state_of(port).mac, port.info.mac) << "the kernel draws another one";
        EXPECT_TRUE(state_of(port).keeps_own);
        const auto there = open_port("v1");
        send(there->port(), port.info.mac, 1);
        EXPECT_EQ(receive(port), 1);
    });
}

TEST(PacketInterface, frames_for_the_old_address_still_come) {
    in_namespace([] {
        const auto here = open_port("v0");
        const auto there = open_port("v1");
        const Port& port = here->port();
        const Mac old = port.info.mac;
        EXPECT_TRUE(run(std::string("ip link set v0 address ") + kNewText));
        EXPECT_TRUE(comes_up(port));
        EXPECT_EQ(state_of(port).mac, kNew);
        EXPECT_TRUE(state_of(port).keeps_own);
        send(there->port(), old, 1);
        EXPECT_EQ(receive(port), 1);
        EXPECT_EQ(port.take_address(port.context), kNew);
        send(there->port(), old, 2);
        send(there->port(), kNew, 3);
        EXPECT_EQ(receive(here->port()), 3) << "it has one address";
    });
}

TEST(PacketInterface, a_macvlan_loses_the_old_address) {
    in_namespace([] {
        if (!run("ip link add m0 link v0 type macvlan mode bridge") || !run("ip link set m0 up"))
            _exit(77);
        const auto here = open_port("m0");
        const auto there = open_port("v1");
        const Port& port = here->port();
        const Mac old = port.info.mac;
        send(there->port(), old, 1);
        EXPECT_EQ(receive(port), 1);
        EXPECT_TRUE(run(std::string("ip link set m0 address ") + kNewText));
        EXPECT_TRUE(comes_up(port));
        EXPECT_FALSE(state_of(port).keeps_own);
        send(there->port(), old, 2);
        send(there->port(), kBroadcastMac, 3);
        EXPECT_EQ(receive(port), 3) << "the interface did not pass frame 2";
        EXPECT_EQ(port.take_address(port.context), kNew);
        send(there->port(), kNew, 5);
        EXPECT_EQ(receive(port), 5);
        send(port, there->port().info.mac, 4);
        EXPECT_EQ(receive(there->port()), 4);
    });
}

TEST(PacketInterface, frames_above_the_mtu_that_it_has_now_are_dropped_and_counted) {
    in_namespace([] {
        const auto here = open_port("v0");
        const auto there = open_port("v1");
        const Port& port = here->port();
        EXPECT_TRUE(run("ip link set v0 mtu 1400"));
        EXPECT_TRUE(comes_up(port));
        EXPECT_EQ(state_of(port).mtu, 1400);
        send(port, there->port().info.mac, 1, 1415);
        send(port, there->port().info.mac, 2, 1414);
        EXPECT_EQ(receive(there->port()), 2);
        EXPECT_EQ(port.drops(port.context).unsendable, 1U);
        EXPECT_TRUE(run("ip link set v0 mtu 9000"));
        EXPECT_TRUE(comes_up(port));
        EXPECT_EQ(state_of(port).mtu, 1500);
    });
}

}  // namespace
}  // namespace ulc::packet
