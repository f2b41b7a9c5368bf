// SPDX-License-Identifier: BSD-3-Clause
// Port over ethdev between real processes: memif.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/process/wires/port_peers.h"

namespace ulc::dpdk {
namespace {

TEST(DpdkPort, eal_leaves_the_affinity_and_no_files) {
    Children children;
    children.expect_success(children.start([] {
        cpu_set_t before;
        cpu_set_t after;
        sched_getaffinity(0, sizeof before, &before);
        EalReport report;
        std::string why;
        EalOptions options;
        options.memory_mb = 64;
        options.hugepages = Hugepages::kNever;
        CHILD_CHECK(start_eal(options, report, why) == Err::kOk);
        sched_getaffinity(0, sizeof after, &after);
        CHILD_CHECK(CPU_EQUAL(&before, &after));
        CHILD_CHECK(start_eal(options, report, why) == Err::kOk);
        stop_eal();
        CHILD_CHECK(access(("/var/run/dpdk/ulc-" + std::to_string(getpid())).c_str(), F_OK) != 0);
    }));
}

TEST(DpdkPort, frames_of_every_size_cross_a_memif_and_come_back) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    const auto client = children.start([&] {
        auto owner =
            open_or_exit(memif_options(socket, false));  // perhaps before the server: it waits
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (std::uint32_t length = 14; length <= 1514; length += length < 70 ? 1 : 97) {
            if (length == 61) continue;
            Segment* sent = make_frame(port, length, static_cast<std::uint8_t>(length));
            CHILD_CHECK(sent != nullptr);
            CHILD_CHECK(send_one(port, sent));
            Segment* back = receive_one(port);
            CHILD_CHECK(back != nullptr);
            CHILD_CHECK(back->length == std::max<std::uint32_t>(length, 60));
            CHILD_CHECK(pattern_holds(*back, length, static_cast<std::uint8_t>(length)));
            for (std::uint32_t i = length; i < back->length; ++i)
                CHILD_CHECK(back->frame[i] == std::byte{0});
            port.pool.drop(back);
        }
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_retained_frame_survives_transmission_and_is_sent_again_unchanged) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    const auto client = children.start([&] {
        auto owner = open_or_exit(memif_options(socket, false));
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        const std::uint32_t before = port.pool.available(port.pool.context);
        Segment* kept = make_frame(port, 300, 7);
        CHILD_CHECK(port.pool.holders(kept) == 1);
        for (int round = 0; round < 1000; ++round) {
            port.pool.hold(kept);
            CHILD_CHECK(port.pool.holders(kept) == 2);
            CHILD_CHECK(send_one(port, kept));
            CHILD_CHECK(port.tx_pending(port.context) == 0);
            CHILD_CHECK(port.pool.holders(kept) == 1);
            Segment* back = receive_one(port);
            CHILD_CHECK(back != nullptr && back != kept);
            CHILD_CHECK(back->length == 300 && pattern_holds(*back, 300, 7));
            port.pool.drop(back);
        }
        port.pool.drop(kept);
        CHILD_CHECK(port.pool.available(port.pool.context) == before);
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, frames_for_other_stations_are_dropped_and_counted) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] {
        auto owner = open_or_exit(memif_options(socket, true));
        echo_until_told(owner->port());
        CHILD_CHECK(owner->port().drops(owner->port().context).other_station == 3);
    });
    const auto client = children.start([&] {
        auto owner = open_or_exit(memif_options(socket, false));
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        for (unsigned n = 0; n < 3; ++n) {
            Segment* frame = make_frame(port, 300, 7);
            frame->frame[0] = std::byte{2};  // a unicast for no node here
            CHILD_CHECK(send_one(port, frame));
        }
        CHILD_CHECK(send_one(port, make_frame(port, 301, 7)));
        Segment* back = receive_one(port);
        CHILD_CHECK(back != nullptr && back->length == 301);
        port.pool.drop(back);
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, an_exhausted_pool_gives_null_and_recovers) {
    const std::string dir = scratch_directory();
    Children children;
    children.expect_success(children.start([&] {
        auto owner = open_or_exit(memif_options(dir + "/a", true));
        const Port& port = owner->port();
        std::vector<Segment*> all;
        while (Segment* segment = port.pool.get())
            all.push_back(segment);
        CHILD_CHECK(all.size() == 512);
        CHILD_CHECK(port.pool.available(port.pool.context) == 0);
        CHILD_CHECK(port.pool.get() == nullptr);
        for (Segment* segment : all)
            port.pool.drop(segment);
        CHILD_CHECK(port.pool.available(port.pool.context) == 512);
        CHILD_CHECK(port.pool.get() != nullptr);
    }));
    unlink((dir + "/a").c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_client_finds_its_server_again_after_kill_9) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    auto server = children.start([&] { echo_server(socket); });
    const auto client = children.start([&] {
        close(ready[0]);
        auto owner = open_or_exit(memif_options(socket, false));
        const Port& port = owner->port();
        for (int life = 0; life < 4; ++life) {
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 100; ++tries) {
                CHILD_CHECK(wait_for_link(port));
                Segment* frame = make_frame(port, 100, 1);
                if (port.tx(port.context, &frame, 1) == 0) port.pool.drop(frame);
                back = receive_one(port, 50);
            }
            CHILD_CHECK(back != nullptr);
            port.pool.drop(back);
            CHILD_CHECK(write(ready[1], "x", 1) == 1);
            const auto until = Clock::now() + std::chrono::seconds(5);
            // Keep polling hard while the peer dies: this is what must not crash.
            while (port.link_up(port.context) && Clock::now() < until) {
                for (int i = 0; i < 1000; ++i) {
                    Segment* segment = nullptr;
                    if (port.rx(port.context, &segment, 1) != 0) port.pool.drop(segment);
                }
            }
            CHILD_CHECK(Clock::now() < until);
        }
    });
    close(ready[1]);
    for (int life = 0; life < 4; ++life) {
        char byte = 0;
        ASSERT_EQ(read(ready[0], &byte, 1), 1);
        children.kill_hard(server);
        children.wait(server);
        if (life < 3)
            server = children.start([&] { echo_server(socket); });  // over the stale socket
    }
    children.expect_success(client);
    close(ready[0]);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_server_can_be_closed_and_opened_again_in_one_process) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] {
        for (int life = 0; life < 3; ++life)
            echo_server(socket);
    });
    const auto client = children.start([&] {
        for (int life = 0; life < 3; ++life) {
            auto owner = open_or_exit(memif_options(socket, false));
            const Port& port = owner->port();
            Segment* back = nullptr;
            for (int tries = 0; back == nullptr && tries < 100; ++tries) {
                CHILD_CHECK(wait_for_link(port));
                CHILD_CHECK(send_one(port, make_frame(port, 100, 1)));
                back = receive_one(port, 50);  // nothing, while the server is between two lives
            }
            CHILD_CHECK(back != nullptr);
            port.pool.drop(back);
            tell_to_stop(port);
        }
    });
    children.expect_success(client);
    children.expect_success(server);
    EXPECT_NE(access(socket.c_str(), F_OK), 0) << "the socket stayed";
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_frame_above_the_mtu_is_dropped_and_counted) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] {
        auto owner = open_or_exit(memif_options(socket, true));
        const Port& port = owner->port();
        Segment* whole = receive_one(port, 20'000);
        CHILD_CHECK(whole != nullptr && whole->length == 1000 && pattern_holds(*whole, 1000, 6));
        port.pool.drop(whole);
        CHILD_CHECK(port.drops(port.context).too_long == 1);
    });
    const auto client = children.start([&] {
        PortOptions options = memif_options(socket, false);
        options.mtu = 9000;
        auto owner = open_or_exit(options);
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port));
        CHILD_CHECK(send_one(port, make_frame(port, 5000, 5)));
        CHILD_CHECK(send_one(port, make_frame(port, 1000, 6)));
        usleep(200'000);  // what is in the ring is lost when either side leaves
    });
    children.expect_success(server);
    children.expect_success(client);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_memif_socket_may_have_a_long_path) {
    const std::string dir = scratch_directory();
    const std::string longest(107, 'a');  // what an address of a socket holds
    const std::string socket = (dir + "/" + longest).substr(0, longest.size());
    Children children;
    children.expect_success(children.start([&] {
        auto owner = open_or_exit(memif_options(socket, true));
        CHILD_CHECK(access(socket.c_str(), F_OK) == 0);
    }));
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, errors_say_what_to_do) {
    const std::string dir = scratch_directory();
    Children children;
    children.expect_success(children.start([&] {
        auto first = open_or_exit(memif_options(dir + "/a", true));
        const auto why_of = [](const std::string& device) {
            PortOptions options;
            options.device = device;
            options.segments = 256;
            std::unique_ptr<EthdevPort> port;
            std::string why;
            CHILD_CHECK(EthdevPort::open(options, port, why) != Err::kOk);
            CHILD_CHECK(port == nullptr);
            return why;
        };
        CHILD_CHECK(why_of("eth0").find("ip link") != std::string::npos ||
                    why_of("eth0").find("PCI address") != std::string::npos);
        CHILD_CHECK(why_of("net_af_packet,iface=nosuch0").find("no network interface") !=
                    std::string::npos);
        CHILD_CHECK(why_of("net_af_packet").find("iface=") != std::string::npos);
        CHILD_CHECK(why_of("0000:ff:1f.7").find("dpdk-devbind.py") != std::string::npos);
        CHILD_CHECK(why_of("net_nosuchdriver").find("did not open") != std::string::npos);
    }));
    unlink((dir + "/a").c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_socket_in_use_is_named_and_left_alone) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    for (int i = 0; i < 500 && access(socket.c_str(), F_OK) != 0; ++i)
        usleep(10'000);
    children.expect_success(children.start([&] {
        EalReport report;
        std::string why;
        EalOptions eal;
        eal.memory_mb = 64;
        CHILD_CHECK(start_eal(eal, report, why) == Err::kOk);
        std::unique_ptr<EthdevPort> port;
        CHILD_CHECK(EthdevPort::open(memif_options(socket, true), port, why) == Err::kInvalid);
        CHILD_CHECK(why.find("in use") != std::string::npos);
        auto owner = open_or_exit(memif_options(socket, false));
        CHILD_CHECK(wait_for_link(owner->port()));
        tell_to_stop(owner->port());
    }));
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

/// Connects to a memif server and hangs up, perhaps before its greeting. False: it does not listen.
bool hang_up(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool connected =
        connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return connected;
}

TEST(DpdkPort, peers_that_hang_up_before_the_greeting_do_not_end_the_server) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    const auto server = children.start([&] { echo_server(socket); });
    for (int i = 0; i < 2000 && !hang_up(socket); ++i)
        usleep(10'000);
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(hang_up(socket)) << "the server ended at hang-up " << i;
    const auto client = children.start([&] {
        auto owner = open_or_exit(memif_options(socket, false));
        const Port& port = owner->port();
        CHILD_CHECK(wait_for_link(port, 20'000));
        CHILD_CHECK(send_one(port, make_frame(port, 100, 1)));
        Segment* back = receive_one(port);
        CHILD_CHECK(back != nullptr);
        port.pool.drop(back);
        tell_to_stop(port);
    });
    children.expect_success(client);
    children.expect_success(server);
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

TEST(DpdkPort, a_memif_socket_is_a_file_of_its_owner) {
    const std::string dir = scratch_directory();
    const std::string socket = dir + "/a";
    Children children;
    children.expect_success(children.start([&] {
        umask(0);
        PortOptions options;
        options.segments = 256;
        options.device = "net_memif,role=server,socket=" + socket;
        auto owner = open_or_exit(options);
        struct stat status {};
        CHILD_CHECK(stat(socket.c_str(), &status) == 0 && S_ISSOCK(status.st_mode));
        CHILD_CHECK((status.st_mode & 077) == 0);
        std::unique_ptr<EthdevPort> port;
        std::string why;
        options.device = "net_memif,role=server,socket-abstract=yes,socket=" + dir + "/b";
        CHILD_CHECK(EthdevPort::open(options, port, why) == Err::kInvalid);
        CHILD_CHECK(why.find("secret=") != std::string::npos);
        options.device += ",secret=word";
        CHILD_CHECK(EthdevPort::open(options, port, why) == Err::kOk);
    }));
    unlink(socket.c_str());
    rmdir(dir.c_str());
}

}  // namespace
}  // namespace ulc::dpdk
