// SPDX-License-Identifier: BSD-3-Clause
// Ports on a veth pair in network namespaces, between real processes: DPDK's af_packet driver, and
// the packet port that takes its place. Frames up to jumbo size arrive whole. A burst of the packet
// port is one system call, and each side copies a byte once. Frames that the kernel refused leave
// later without another send; those above the MTU of the path are given up. Frames for others,
// tagged and long ones are counted. Needs root, else skipped.
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include "packet/packet_port.h"
#include "tests/process/wires/port_peers.h"

namespace ulc::dpdk {
namespace {

/// A veth pair in two new namespaces, removed with the test.
class VethPair {
public:
    VethPair() {
        const std::string id = std::to_string(getpid());
        a_ = "ulca" + id;
        b_ = "ulcb" + id;
        made_ = run("ip netns add " + a_) && run("ip netns add " + b_) &&
                run("ip link add v0 netns " + a_ + " type veth peer name v0 netns " + b_) &&
                up(a_) && up(b_);
    }
    ~VethPair() {
        run("ip netns del " + a_);
        run("ip netns del " + b_);
    }
    VethPair(const VethPair&) = delete;
    VethPair& operator=(const VethPair&) = delete;
    [[nodiscard]] bool made() const { return made_; }
    /// Shapes what the first end sends: at 10 Mb/s, with a queue of about 8 frames of 1,514 bytes.
    [[nodiscard]] bool shape() const {
        return run("ip netns exec " + a_ +
                   " tc qdisc add dev v0 root tbf rate 10mbit burst 2k latency 10ms");
    }
    /// Lets the second end take no frame above 1,500 bytes, as a port of a bridge may.
    [[nodiscard]] bool narrow() const { return run("ip -n " + b_ + " link set v0 mtu 1500"); }
    /// Moves the calling process into one end's namespace.
    void enter(bool first) const {
        const std::string path = "/var/run/netns/" + (first ? a_ : b_);
        FILE* file = std::fopen(path.c_str(), "r");
        CHILD_CHECK(file != nullptr);
        CHILD_CHECK(setns(fileno(file), CLONE_NEWNET) == 0);
        std::fclose(file);
    }

private:
    static bool run(const std::string& command) {
        return std::system((command + " 2>/dev/null").c_str()) ==
               0;  // NOLINT(concurrency-mt-unsafe)
    }
    static bool up(const std::string& ns) {
        return run("ip -n " + ns + " link set v0 mtu 9000") &&
               run("ip -n " + ns + " link set v0 up");
    }
    std::string a_;
    std::string b_;
    bool made_ = false;
};

TEST(VethPort, frames_up_to_jumbo_cross_a_veth_by_af_packet) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    Children children;
    const auto options = [] {
        PortOptions o;
        o.device = "eth_af_packet,iface=v0";
        o.segments = 256;
        return o;
    };
    children.expect_success(children.start([&] {
        veth.enter(true);
        PortOptions o = options();
        o.mtu = 9001;
        std::unique_ptr<EthdevPort> port;
        std::string why;
        CHILD_CHECK(EthdevPort::open(o, port, why) == Err::kInvalid);
        CHILD_CHECK(why.find("ip link set v0 mtu 9001") != std::string::npos);
    }));
    const auto echo = children.start([&] {
        veth.enter(true);
        auto port = open_or_exit(options());
        CHILD_CHECK(port->port().info.mtu == 9000);
        echo_until_told(port->port());
    });
    const auto client = children.start([&] {
        veth.enter(false);
        auto owner = open_or_exit(options());
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (const std::uint32_t length : {60U, 100U, 1514U, 4000U, 9014U}) {
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 50;
                 ++tries) {  // the echo may not be up yet
                CHILD_CHECK(send_one(port, make_frame(port, length, 3)));
                do {
                    if (back != nullptr) port.pool.drop(back);
                    back = receive_one(port, 100);
                } while (back != nullptr && back->length != length);
            }
            CHILD_CHECK(back != nullptr);
            CHILD_CHECK(pattern_holds(*back, length, 3));
            port.pool.drop(back);
        }
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(echo);
}

std::unique_ptr<packet::PacketPort> open_packet_or_exit(std::uint16_t mtu = 0) {
    packet::PortOptions options;
    options.mtu = mtu;
    options.device.interface = "v0";
    options.ether_type = 0x88B6;  // of make_frame()
    options.segments = 256;
    std::unique_ptr<packet::PacketPort> port;
    std::string why;
    if (packet::PacketPort::open(options, port, why) == Err::kOk) return port;
    std::fprintf(stderr, "child: %s\n", why.c_str());
    _exit(1);
}

TEST(PacketPort, frames_up_to_jumbo_cross_a_veth) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    Children children;
    const auto echo = children.start([&] {
        veth.enter(true);
        auto port = open_packet_or_exit();
        CHILD_CHECK(port->port().info.mtu == 9000);
        echo_until_told(port->port());
    });
    const auto client = children.start([&] {
        veth.enter(false);
        auto owner = open_packet_or_exit();
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (const std::uint32_t length : {60U, 100U, 1514U, 4000U, 9014U}) {
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 50; ++tries) {  // until the echo is up
                CHILD_CHECK(send_one(port, make_frame(port, length, 3)));
                back = receive_one(port, 100);
            }
            CHILD_CHECK(back != nullptr && back->length == length);
            CHILD_CHECK(pattern_holds(*back, length, 3));
            port.pool.drop(back);
            while ((back = receive_one(port, 20)) != nullptr)  // what was echoed twice
                port.pool.drop(back);
        }
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(echo);
}

// The queue of the link holds 8 frames. DPDK's driver says "sent" of all 64, and those that the
// kernel refused leave with the next transmission, which does not come here.
TEST(PacketPort, frames_that_the_kernel_refused_at_first_arrive_without_another_send) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made() || !veth.shape())
        GTEST_SKIP() << "cannot make a shaped veth pair in network namespaces here (ip netns, tc)";
    constexpr std::uint16_t kFrames = 64;
    constexpr std::uint32_t kLength = 1514;
    Children children;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const auto receiver = children.start([&] {
        veth.enter(false);
        auto owner = open_packet_or_exit();
        CHILD_CHECK(write(ready[1], "r", 1) == 1);
        for (unsigned n = 0; n < kFrames; ++n) {
            Segment* frame = receive_one(owner->port(), 5000);
            CHILD_CHECK(frame != nullptr);
            CHILD_CHECK(pattern_holds(*frame, kLength, n));  // in order
            owner->port().pool.drop(frame);
        }
    });
    const auto sender = children.start([&] {
        veth.enter(true);
        char byte = 0;
        CHILD_CHECK(read(ready[0], &byte, 1) == 1);
        auto owner = open_packet_or_exit();
        const Port& port = owner->port();
        Segment* frames[kFrames];
        for (unsigned n = 0; n < kFrames; ++n)
            frames[n] = make_frame(port, kLength, n);
        CHILD_CHECK(port.tx(port.context, frames, kFrames) == kFrames);
        CHILD_CHECK(port.tx_pending(port.context) > kFrames / 2);
        const auto limit = Clock::now() + std::chrono::seconds(20);
        while (port.tx_pending(port.context) > 0)
            CHILD_CHECK(Clock::now() < limit);
        CHILD_CHECK(owner->ring_counts().refusals > 0);
    });
    children.expect_success(sender);
    children.expect_success(receiver);
    close(ready[0]);
    close(ready[1]);
}

/// Sends frames until the kernel has freed or refused each.
void settle(const Port& port) {
    const auto limit = Clock::now() + std::chrono::seconds(20);
    while (port.tx_pending(port.context) > 0)
        CHILD_CHECK(Clock::now() < limit);
}

// The kernel of the sender refuses the long frame each time, and stays at its slot.
TEST(PacketPort, a_frame_that_the_path_does_not_take_is_given_up_and_those_behind_it_leave) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made() || !veth.narrow())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    constexpr unsigned kRounds = 20;
    Children children;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const auto receiver = children.start([&] {
        veth.enter(false);
        auto owner = open_packet_or_exit();
        CHILD_CHECK(write(ready[1], "r", 1) == 1);
        for (unsigned n = 0; n < kRounds; ++n) {
            Segment* frame = receive_one(owner->port(), 20'000);
            CHILD_CHECK(frame != nullptr && pattern_holds(*frame, 100, n));
            owner->port().pool.drop(frame);
        }
    });
    const auto sender = children.start([&] {
        veth.enter(true);
        char byte = 0;
        CHILD_CHECK(read(ready[0], &byte, 1) == 1);
        auto owner = open_packet_or_exit();
        const Port& port = owner->port();
        for (unsigned n = 0; n < kRounds; ++n) {
            Segment* frames[] = {make_frame(port, 9014, n), make_frame(port, 100, n)};
            CHILD_CHECK(port.tx(port.context, frames, 2) == 2);
            if (n == 0) settle(port);  // later ones are given up after one refusal
        }
        settle(port);
        CHILD_CHECK(port.drops(port.context).unsendable == kRounds);
        CHILD_CHECK(port.pool.available(port.pool.context) == 256);
    });
    children.expect_success(sender);
    children.expect_success(receiver);
    close(ready[0]);
    close(ready[1]);
}

/// A cable that inserts tags: a socket that sends octets as they are.
class RawCable {
public:
    RawCable() : fd_(socket(AF_PACKET, SOCK_RAW, 0)) {
        address_.sll_family = AF_PACKET;
        address_.sll_ifindex = static_cast<int>(if_nametoindex("v0"));
        CHILD_CHECK(fd_ >= 0 && address_.sll_ifindex > 0);
    }
    ~RawCable() { close(fd_); }
    RawCable(const RawCable&) = delete;
    RawCable& operator=(const RawCable&) = delete;
    /// tag: type and control of a tag; none without.
    void send(const Mac& to, const std::vector<std::uint16_t>& tag, std::uint32_t length) {
        std::vector<std::uint8_t> frame(to.octets.begin(), to.octets.end());
        for (const unsigned octet : {2, 9, 9, 9, 9, 9})
            frame.push_back(static_cast<std::uint8_t>(octet));
        std::vector<std::uint16_t> words(tag);
        words.push_back(0x88B6);
        for (const std::uint16_t word : words) {
            frame.push_back(static_cast<std::uint8_t>(word >> 8U));
            frame.push_back(static_cast<std::uint8_t>(word));
        }
        frame.resize(length);
        CHILD_CHECK(sendto(fd_, frame.data(), frame.size(), 0,
                           reinterpret_cast<const sockaddr*>(&address_),
                           sizeof address_) == static_cast<ssize_t>(frame.size()));
    }

private:
    int fd_;
    sockaddr_ll address_{};
};

// The kernel removes the tag before the socket sees the frame. Untagged frames are those without a
// tag, and those whose tag names VLAN 0.
TEST(PacketPort, frames_of_a_vlan_for_others_and_too_long_are_dropped_and_counted) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    constexpr std::uint32_t kLast = 77;
    Children children;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const auto receiver = children.start([&] {
        veth.enter(false);
        auto owner = open_packet_or_exit(1500);
        const Port& port = owner->port();
        CHILD_CHECK(write(ready[1], &port.info.mac, sizeof(Mac)) == sizeof(Mac));
        std::vector<std::uint32_t> lengths;
        while (lengths.empty() || lengths.back() != kLast) {
            Segment* frame = receive_one(port, 20'000);
            CHILD_CHECK(frame != nullptr);
            lengths.push_back(frame->length);
            port.pool.drop(frame);
        }
        CHILD_CHECK((lengths == std::vector<std::uint32_t>{101, 106, 107, kLast}));
        const PortDrops drops = port.drops(port.context);
        CHILD_CHECK(drops.vlan == 4);
        CHILD_CHECK(drops.other_station == 1);
        CHILD_CHECK(drops.too_long == 1);
    });
    const auto sender = children.start([&] {
        veth.enter(true);
        Mac mac;
        CHILD_CHECK(read(ready[0], &mac, sizeof mac) == sizeof mac);
        const Mac group{{0x03, 0x55, 0x4c, 1, 2, 3}};
        RawCable cable;
        cable.send(mac, {}, 101);
        cable.send(mac, {0x8100, 7}, 102 + 4);
        cable.send(group, {0x8100, 7}, 103 + 4);
        cable.send(kBroadcastMac, {0x8100, 0xe007}, 104 + 4);
        cable.send(mac, {0x88A8, 7}, 105 + 4);
        cable.send(mac, {0x8100, 0xe000}, 106 + 4);
        cable.send(group, {0x8100, 0}, 107 + 4);
        cable.send(Mac{{2, 0, 0, 0, 0, 9}}, {}, 108);
        cable.send(mac, {}, 3014);
        cable.send(kBroadcastMac, {}, kLast);
    });
    children.expect_success(sender);
    children.expect_success(receiver);
    close(ready[0]);
    close(ready[1]);
}

// A frame lies in the sender's memory in two pieces, as the payload of an embedded client does.
TEST(PacketPort, a_burst_is_one_system_call_and_a_byte_is_copied_once_a_side) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
    const VethPair veth;
    if (!veth.made())
        GTEST_SKIP() << "cannot make veth pairs in network namespaces here (ip netns)";
    constexpr std::uint16_t kFrames = 32;
    constexpr std::uint32_t kLength = 1514;
    Children children;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const auto receiver = children.start([&] {
        veth.enter(false);
        auto owner = open_packet_or_exit();
        const Port& port = owner->port();
        CHILD_CHECK(write(ready[1], "r", 1) == 1);
        for (unsigned n = 0; n < kFrames; ++n) {
            Segment* frame = receive_one(port, 5000);
            CHILD_CHECK(frame != nullptr && pattern_holds(*frame, kLength, n));
            port.pool.drop(frame);
        }
        const PortCosts costs = port.costs(port.context);
        CHILD_CHECK(costs.calls == 0);
        CHILD_CHECK(costs.copied_bytes == std::uint64_t{kFrames} * kLength);
    });
    const auto sender = children.start([&] {
        veth.enter(true);
        char byte = 0;
        CHILD_CHECK(read(ready[0], &byte, 1) == 1);
        auto owner = open_packet_or_exit();
        const Port& port = owner->port();
        Segment* frames[kFrames];
        std::vector<std::byte> payloads[kFrames];
        for (unsigned n = 0; n < kFrames; ++n) {
            Segment& frame = *(frames[n] = make_frame(port, kLength, n));
            payloads[n].assign(frame.frame + 40, frame.frame + kLength);
            std::memset(frame.frame + 40, 0, kLength - 40);
            frame.tail = payloads[n].data();
            frame.tail_octets = kLength - 40;
        }
        CHILD_CHECK(port.tx(port.context, frames, kFrames) == kFrames);
        const auto limit = Clock::now() + std::chrono::seconds(20);
        while (port.tx_pending(port.context) > 0)
            CHILD_CHECK(Clock::now() < limit);
        const PortCosts costs = port.costs(port.context);
        CHILD_CHECK(costs.calls == 1 && costs.refusals == 0);
        CHILD_CHECK(costs.copied_bytes == std::uint64_t{kFrames} * kLength);
    });
    children.expect_success(sender);
    children.expect_success(receiver);
    close(ready[0]);
    close(ready[1]);
}

TEST(PacketPort, errors_say_what_to_do) {
    packet::PortOptions options;
    options.device.interface = "nosuch0";
    std::unique_ptr<packet::PacketPort> port;
    std::string why;
    const Err error = packet::PacketPort::open(options, port, why);
    if (geteuid() != 0) {
        EXPECT_EQ(error, Err::kPermission);
        EXPECT_NE(why.find("setcap cap_net_raw+ep"), std::string::npos) << why;
        return;
    }
    EXPECT_EQ(error, Err::kInvalid);
    EXPECT_NE(why.find("no network interface 'nosuch0'"), std::string::npos) << why;
    options.device.interface = "lo";
    EXPECT_EQ(packet::PacketPort::open(options, port, why), Err::kInvalid);
    EXPECT_NE(why.find("no Ethernet interface"), std::string::npos) << why;
}

}  // namespace
}  // namespace ulc::dpdk
