// SPDX-License-Identifier: BSD-3-Clause
// Tests two real daemons over memif with real client processes: messages of many lengths with every
// byte checked, and the reports to all others when a client or an engine is killed. One engine with
// a net on each end of the wire.
#include <gtest/gtest.h>
#include <ulc.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/process/daemons.h"

namespace ulc::test {
namespace {

constexpr std::int64_t kLimit = 30'000'000'000;

#define CLIENT_CHECK(condition)                                                               \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            std::fprintf(stderr, "client: %s is false (line %d): %s\n", #condition, __LINE__, \
                         ulc_last_error_text());                                              \
            return 1;                                                                         \
        }                                                                                     \
    } while (false)

std::vector<unsigned char> pattern(std::size_t octets, unsigned seed) {
    std::vector<unsigned char> data(octets);
    for (std::size_t i = 0; i < octets; ++i)
        data[i] = static_cast<unsigned char>((i * 131 + i / 251 + seed) & 0xff);
    return data;
}

/// Opens and joins; the rest of the client is `body`.
Process client(const std::string& socket, std::uint16_t rank, std::uint16_t size,
               const std::function<int(ulc_endpoint*)>& body) {
    return run_child([&] {
        ulc_endpoint* ep = nullptr;
        CLIENT_CHECK(ulc_open(socket.c_str(), &ep) == ULC_OK);
        CLIENT_CHECK(ulc_join_wait(ep, "test", rank, size, kLimit) == ULC_OK);
        return body(ep);
    });
}

int leave(ulc_endpoint* ep) {
    CLIENT_CHECK(ulc_leave_wait(ep, kLimit) == ULC_OK);
    ulc_close(ep);
    return 0;
}

int echo_lengths(ulc_endpoint* ep, const std::vector<std::size_t>& lengths) {
    const std::uint16_t rank = ulc_rank(ep);
    const auto other = static_cast<std::uint16_t>(1 - rank);
    unsigned seed = 0;
    for (const std::size_t octets : lengths) {
        const auto data = pattern(octets, ++seed);
        std::vector<unsigned char> got(octets + 1);
        ulc_request send;
        ulc_request receive;
        ulc_status status;
        CLIENT_CHECK(ulc_receive(ep, other, seed, UINT64_MAX, got.data(), got.size(), &receive) ==
                     ULC_OK);
        if (rank == 0)
            CLIENT_CHECK(ulc_send(ep, other, seed, data.data(), octets, &send) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &receive, &status, kLimit) == ULC_OK);
        CLIENT_CHECK(status.error == ULC_OK && status.length == octets);
        got.resize(octets);
        CLIENT_CHECK(got == data);
        if (rank == 1) CLIENT_CHECK(ulc_send(ep, other, seed, got.data(), octets, &send) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &send, nullptr, kLimit) == ULC_OK);
    }
    return leave(ep);
}

TEST(DaemonTraffic, every_length_up_to_4_MiB_and_back_octet_by_octet) {
    EnginePair engines;
    const std::vector<std::size_t> lengths = {0,    1,     104,    105,     1400,    1486,
                                              1487, 65536, 100000, 1048576, 4194304, 4194304};
    const auto body = [&](ulc_endpoint* ep) { return echo_lengths(ep, lengths); };
    Process zero = client(engines.socket('a'), 0, 2, body);
    Process one = client(engines.socket('b'), 1, 2, body);
    EXPECT_EQ(zero.wait(), 0);
    EXPECT_EQ(one.wait(), 0);
}

TEST(DaemonTraffic, both_flood_each_other_and_nobody_waits_for_ever) {
    EnginePair engines;
    const auto body = [](ulc_endpoint* ep) {
        constexpr unsigned kMessages = 64;
        constexpr std::size_t kOctets = 300'000;
        const auto other = static_cast<std::uint16_t>(1 - ulc_rank(ep));
        const auto data = pattern(kOctets, 1);
        std::vector<ulc_request> sends(kMessages);
        for (auto& request : sends)
            CLIENT_CHECK(ulc_send(ep, other, 0, data.data(), kOctets, &request) == ULC_OK);
        for (unsigned i = 0; i < kMessages; ++i) {  // nothing posted: all unexpected at first
            std::vector<unsigned char> got(kOctets);
            ulc_request receive;
            CLIENT_CHECK(ulc_receive(ep, ULC_RANK_ANY, 0, 0, got.data(), kOctets, &receive) ==
                         ULC_OK);
            CLIENT_CHECK(ulc_wait_for(ep, &receive, nullptr, kLimit) == ULC_OK);
            CLIENT_CHECK(got == data);
        }
        for (auto& request : sends)
            CLIENT_CHECK(ulc_wait_for(ep, &request, nullptr, kLimit) == ULC_OK);
        return leave(ep);
    };
    Process zero = client(engines.socket('a'), 0, 2, body);
    Process one = client(engines.socket('b'), 1, 2, body);
    EXPECT_EQ(zero.wait(), 0);
    EXPECT_EQ(one.wait(), 0);
}

// G-9
TEST(DaemonTraffic, groups_form_and_multicast_and_different_orders_are_a_mismatch) {
    EnginePair engines;
    const auto body = [](ulc_endpoint* ep) {
        const std::uint16_t rank = ulc_rank(ep);
        const std::uint16_t ranks[] = {2, 0, 1};
        const std::uint16_t reversed[] = {1, 0, 2};
        ulc_request request;
        ulc_status status;
        CLIENT_CHECK(ulc_group_create(ep, ranks, 3, &request) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &request, &status, kLimit) == ULC_OK);
        CLIENT_CHECK(status.error == ULC_OK);
        const ulc_group group = status.group;
        CLIENT_CHECK(ulc_group_size(ep, group) == 3 && ulc_group_rank(ep, group, 0) == 2);
        char got[8] = "";
        if (rank == 2) {
            CLIENT_CHECK(ulc_multicast(ep, group, 0, 5, "hello", 6, nullptr) == ULC_OK);
        } else {
            CLIENT_CHECK(ulc_receive(ep, 2, 5, UINT64_MAX, got, sizeof got, &request) == ULC_OK);
            CLIENT_CHECK(ulc_wait_for(ep, &request, &status, kLimit) == ULC_OK);
            CLIENT_CHECK(std::string(got) == "hello" && status.group == group);
        }
        CLIENT_CHECK(ulc_group_create(ep, rank == 1 ? reversed : ranks, 3, &request) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &request, &status, kLimit) == ULC_OK);
        CLIENT_CHECK(status.error == ULC_ERR_MISMATCH);
        CLIENT_CHECK(ulc_group_free(ep, group) == ULC_OK);
        return leave(ep);
    };
    Process zero = client(engines.socket('a'), 0, 3, body);
    Process one = client(engines.socket('b'), 1, 3, body);
    Process two = client(engines.socket('b'), 2, 3, body);
    EXPECT_EQ(zero.wait(), 0);
    EXPECT_EQ(one.wait(), 0);
    EXPECT_EQ(two.wait(), 0);
}

TEST(DaemonTraffic, a_killed_client_is_reported_to_its_peer_and_its_place_is_free_again) {
    EnginePair engines({"--endpoints", "1"});
    const auto victim_body = [](ulc_endpoint* ep) {
        const std::vector<unsigned char> data(8 << 20);
        ulc_request request;  // dies during a message
        CLIENT_CHECK(ulc_send(ep, 0, 0, data.data(), data.size(), &request) == ULC_OK);
        for (;;)
            ulc_poll(ep);
    };
    Process victim = client(engines.socket('b'), 1, 2, victim_body);
    Process survivor = client(engines.socket('a'), 0, 2, [](ulc_endpoint* ep) {
        std::vector<unsigned char> got(8 << 20);
        char last[1];
        ulc_request large;
        ulc_request never;
        ulc_status status;
        CLIENT_CHECK(ulc_receive(ep, 1, 7, UINT64_MAX, last, 1, &never) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &never, &status, kLimit) == ULC_OK);
        CLIENT_CHECK(status.error == ULC_ERR_PEER_DIED || status.error == ULC_ERR_PEER_LEFT);
        CLIENT_CHECK(ulc_peer_state(ep, 1) == ULC_ERR_PEER_DIED);
        CLIENT_CHECK(ulc_send(ep, 1, 0, "x", 1, nullptr) == ULC_ERR_PEER_DIED);
        CLIENT_CHECK(ulc_receive(ep, 1, 0, UINT64_MAX, got.data(), got.size(), &large) == ULC_OK);
        CLIENT_CHECK(ulc_wait_for(ep, &large, &status, kLimit) == ULC_OK);
        ulc_close(ep);
        return 0;
    });
    ASSERT_TRUE(eventually([&] {
        return text_of(engines.log('b')).find("attached") != std::string::npos &&
               text_of(engines.log('a')).find("attached") != std::string::npos;
    }));
    usleep(300'000);
    victim.kill_now();
    EXPECT_EQ(survivor.wait(), 0);
    // --endpoints 1: an endpoint is free for us only if the victim's was freed.
    EXPECT_TRUE(eventually([&] {
        ulc_endpoint* ep = nullptr;
        const int error = ulc_open(engines.socket('b').c_str(), &ep);
        ulc_close(ep);
        return error == ULC_OK;
    }));
}

TEST(DaemonTraffic, a_killed_engine_is_an_error_for_its_clients_and_death_for_their_peers) {
    EnginePair engines({"--peer-dead", "500000"});
    const auto wait_for_end = [](ulc_endpoint* ep) {
        char got[1];
        ulc_request request;
        ulc_status status;
        CLIENT_CHECK(ulc_receive(ep, static_cast<std::uint16_t>(1 - ulc_rank(ep)), 0, 0, got, 1,
                                 &request) == ULC_OK);
        const int waited = ulc_wait_for(ep, &request, &status, kLimit);
        CLIENT_CHECK(waited == ULC_OK);
        ulc_close(ep);
        return 100 + status.error;
    };
    Process own = client(engines.socket('b'), 1, 2, wait_for_end);
    Process peer = client(engines.socket('a'), 0, 2, wait_for_end);
    ASSERT_TRUE(eventually([&] {
        return text_of(engines.log('b')).find("attached") != std::string::npos &&
               text_of(engines.log('a')).find("attached") != std::string::npos;
    }));
    usleep(500'000);
    engines.engine('b').kill_now();
    EXPECT_EQ(own.wait(), 100 + ULC_ERR_NO_ENGINE);
    EXPECT_EQ(peer.wait(), 100 + ULC_ERR_PEER_DIED);
}

/// Two endpoints of one process as ranks of a separate job, progressed by one thread.
class BothEnds {
public:
    /// Returns false if the job did not form within the limit.
    bool open(const std::string& zero, const std::string& one, int seconds = 20) {
        if (ulc_open(zero.c_str(), &ends[0]) != ULC_OK) return false;
        if (ulc_open(one.c_str(), &ends[1]) != ULC_OK) return false;
        for (std::uint16_t rank = 0; rank < 2; ++rank)
            if (ulc_join(ends[rank], "both", rank, 2, nullptr) != ULC_OK) return false;
        return poll_until(seconds, [&] {
            return ulc_job_state(ends[0]) == ULC_OK && ulc_job_state(ends[1]) == ULC_OK;
        });
    }
    ~BothEnds() {
        for (ulc_endpoint* end : ends)
            if (end != nullptr) static_cast<void>(ulc_leave(end));
        static_cast<void>(poll_until(10, [&] {
            return std::ranges::all_of(ends, [](ulc_endpoint* end) {
                return end == nullptr || ulc_job_state(end) == ULC_ERR_CLOSED;
            });
        }));
        for (ulc_endpoint* end : ends)
            ulc_close(end);
    }
    BothEnds() = default;
    BothEnds(const BothEnds&) = delete;
    BothEnds& operator=(const BothEnds&) = delete;
    /// Sends one message from rank `from` to the other, and compares it.
    void move(std::uint16_t from, std::size_t octets, unsigned seed) {
        const auto to = static_cast<std::uint16_t>(1 - from);
        const auto data = pattern(octets, seed);
        std::vector<unsigned char> got(octets + 1);
        ulc_request receive;
        ulc_request send;
        ulc_status status{};
        ASSERT_EQ(ulc_receive(ends[to], from, seed, UINT64_MAX, got.data(), got.size(), &receive),
                  ULC_OK);
        ASSERT_EQ(ulc_send(ends[from], to, seed, data.data(), octets, &send), ULC_OK);
        ASSERT_TRUE(
            poll_until(20, [&] { return ulc_test(ends[to], &receive, &status) != ULC_ERR_AGAIN; }));
        ASSERT_TRUE(
            poll_until(20, [&] { return ulc_test(ends[from], &send, nullptr) != ULC_ERR_AGAIN; }));
        got.resize(octets);
        EXPECT_EQ(status.error, ULC_OK);
        EXPECT_EQ(status.length, octets);
        EXPECT_TRUE(got == data);
    }

private:
    bool poll_until(int seconds, const std::function<bool()>& done) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
        while (!done()) {
            if (std::chrono::steady_clock::now() > limit) return false;
            for (ulc_endpoint* end : ends)
                if (end != nullptr) static_cast<void>(ulc_poll(end));
        }
        return true;
    }
    ulc_endpoint* ends[2] = {nullptr, nullptr};
};

/// One engine with both ends of a memif link: a net called 0 and one called lab.
struct OneEngineTwoNets : testing::Test {
    void SetUp() override {
        const std::string link = ",id=0,socket=" + (scratch / "wire");
        engine = start_engine(
            {"--device", "net_memif,role=server" + link, "--device",
             "lab:net_memif,role=client" + link, "--socket", socket, "--hugepages", "never"},
            log);
        ASSERT_TRUE(eventually([&] {
            return text_of(log).find("ulc-engine ready:") != std::string::npos;
        })) << text_of(log);
    }
    Scratch scratch;
    std::string socket = scratch / "engine.sock";
    std::string log = scratch / "log";
    Process engine;
};

TEST_F(OneEngineTwoNets, says_so_and_one_thread_plays_ping_pong_over_the_wire) {
    EXPECT_NE(text_of(log).find("ready: 0: net_memif"), std::string::npos) << text_of(log);
    EXPECT_NE(text_of(log).find(", lab: net_memif"), std::string::npos) << text_of(log);
    BothEnds ends;
    ASSERT_TRUE(ends.open(socket, socket + "#lab")) << ulc_last_error_text();
    for (const std::size_t octets : {0, 8, 105, 1486, 1487, 100'000, 1'000'000})
        for (unsigned round = 0; round < 4; ++round)
            ends.move(static_cast<std::uint16_t>(round % 2), octets, round + 1);
}

TEST_F(OneEngineTwoNets, endpoints_on_one_net_meet_without_the_wire) {
    BothEnds ends;
    ASSERT_TRUE(ends.open(socket + "#lab", socket + "#lab")) << ulc_last_error_text();
    ends.move(0, 1000, 1);
    ends.move(1, 1000, 2);
}

TEST_F(OneEngineTwoNets, the_environment_chooses_a_net_and_a_wrong_one_is_named) {
    ulc_endpoint* ep = nullptr;
    EXPECT_EQ(ulc_open((socket + "#labb").c_str(), &ep), ULC_ERR_INVALID);
    EXPECT_NE(std::string(ulc_last_error_text()).find("no net called labb; it has: 0 lab"),
              std::string::npos)
        << ulc_last_error_text();
    EXPECT_EQ(ulc_open((socket + "#" + std::string(32, 'x')).c_str(), &ep), ULC_ERR_INVALID);
    setenv("ULC_NET", "nowhere", 1);
    EXPECT_EQ(ulc_open(socket.c_str(), &ep), ULC_ERR_INVALID);
    EXPECT_EQ(ulc_open((socket + "#0").c_str(), &ep), ULC_OK) << "the string goes first";
    ulc_close(ep);
    setenv("ULC_NET", "lab", 1);
    {
        BothEnds ends;
        EXPECT_TRUE(ends.open(socket, socket + "#0")) << ulc_last_error_text();
    }
    unsetenv("ULC_NET");
}

TEST(EmbeddedNets, one_process_holds_both_ends_of_the_wire_in_one_engine) {
    Scratch scratch;
    Process child = run_child([&] {
        setenv("ULC_ENGINE_OPTIONS", "--hugepages never", 1);
        const std::string link = ",id=0,socket=" + (scratch / "wire");
        const std::string engine =
            "embedded:net_memif,role=server" + link + ";other:net_memif,role=client" + link;
        ulc_endpoint* ep = nullptr;
        {
            BothEnds ends;
            CLIENT_CHECK(ends.open(engine, engine + "#other"));
            CLIENT_CHECK(ulc_open((engine + "#third").c_str(), &ep) == ULC_ERR_INVALID);
            ends.move(0, 100'000, 1);
            ends.move(1, 8, 2);
        }
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(child.wait(), 0);
}

TEST(DaemonTraffic, sigterm_ends_an_engine_in_order) {
    EnginePair engines;
    engines.engine('a').signal(SIGTERM);
    EXPECT_EQ(engines.engine('a').wait(), 0);
    EXPECT_NE(access(engines.socket('a').c_str(), F_OK), 0) << "the socket is removed";
}

}  // namespace
}  // namespace ulc::test
