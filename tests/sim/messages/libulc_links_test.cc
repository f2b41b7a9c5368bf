// SPDX-License-Identifier: BSD-3-Clause
// Links by ulc.h on the simulated cluster: real endpoints of libulc, engines of both kinds, loss.
#include <gtest/gtest.h>
#include <ulc.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sim/cluster/libulc_cluster.h"

namespace ulc::sim {
namespace {

constexpr std::uint16_t kLinks = 8;

/// Endpoints that are open for links, run by polls and tests alone.
class LinkedCluster {
public:
    LinkedCluster(const ClusterConfig& config, std::uint16_t endpoints) : lib_(config, endpoints) {
        for (std::uint16_t n = 0; n < endpoints; ++n) {
            unsigned char key[16] = {1};
            key[1] = static_cast<unsigned char>(n);
            EXPECT_EQ(lib_.endpoint(n)->membership().open_links(kLinks, key), ULC_OK);
        }
        EXPECT_TRUE(run([this] {
            for (std::uint16_t n = 0; n < lib_.ranks(); ++n)
                if (ulc_job_state(ep(n)) != ULC_OK) return false;
            return true;
        }));
    }
    [[nodiscard]] ulc_endpoint* ep(std::size_t n) {
        return lib_.endpoint(static_cast<std::uint16_t>(n));
    }
    bool run(const std::function<bool()>& done, Nanos limit = 20 * kSecond) {
        return lib_.run(limit, done, [](std::uint16_t, Nanos) { return kNever; });
    }
    bool done(std::size_t n, ulc_request& request, ulc_status& status) {
        return run([&] { return ulc_test(ep(n), &request, &status) == ULC_OK; });
    }
    /// Links a to b; gives b's number at a, and a's at b.
    std::pair<std::uint16_t, std::uint16_t> link(std::size_t a, std::size_t b) {
        ulc_link_address address;
        EXPECT_EQ(ulc_address(ep(b), &address), ULC_OK);
        ulc_request request;
        EXPECT_EQ(ulc_link(ep(a), &address, 0, &request), ULC_OK);
        ulc_status status{};
        EXPECT_TRUE(done(a, request, status));
        EXPECT_EQ(status.error, ULC_OK);
        std::uint16_t back = ULC_RANK_ANY;
        EXPECT_TRUE(run([&] { return ulc_next_peer(ep(b), &back) == ULC_OK; }));
        return {status.source, back};
    }
    LibCluster& lib() { return lib_; }

private:
    LibCluster lib_;
};

std::string text_of(std::size_t from, unsigned number, std::size_t octets) {
    std::string text(octets, static_cast<char>('a' + from));
    for (std::size_t at = 0; at < octets; at += 97)
        text[at] = static_cast<char>('0' + number % 10);
    return text;
}

constexpr std::size_t kLengths[] = {0, 5, 104, 105, 1486, 4000, 60'000, 200'000};

/// Every endpoint sends to every other one; receives name any source. from: rendezvous.
void exchange(std::uint64_t from) {
    constexpr std::size_t kEndpoints = 4;
    constexpr unsigned kMessages = 16;
    LinkedCluster w(lossy(3), kEndpoints);
    std::uint16_t number[kEndpoints][kEndpoints];  // of the second at the first
    for (std::size_t a = 0; a < kEndpoints; ++a) {
        for (std::size_t b = a + 1; b < kEndpoints; ++b)
            std::tie(number[a][b], number[b][a]) = w.link(a, b);
        ASSERT_EQ(ulc_set_rendezvous(w.ep(a), from, UINT64_MAX), ULC_OK);
    }
    struct Send {
        ulc_request request;
        std::string text;
    };
    std::vector<std::unique_ptr<Send>> sends;
    for (unsigned n = 0; n < kMessages; ++n) {
        for (std::size_t a = 0; a < kEndpoints; ++a) {
            for (std::size_t b = 0; b < kEndpoints; ++b) {
                if (a == b) continue;
                sends.push_back(std::make_unique<Send>());
                Send& send = *sends.back();
                send.text = text_of(a, n, kLengths[n % 8]);
                ASSERT_EQ(ulc_send(w.ep(a), number[a][b], n, send.text.data(), send.text.size(),
                                   &send.request),
                          ULC_OK);
            }
        }
    }
    for (std::size_t b = 0; b < kEndpoints; ++b) {
        unsigned next[kEndpoints] = {};
        for (unsigned n = 0; n < (kEndpoints - 1) * kMessages; ++n) {
            std::string buffer(200'000, '?');
            ulc_request request;
            ASSERT_EQ(
                ulc_receive(w.ep(b), ULC_RANK_ANY, 0, 0, buffer.data(), buffer.size(), &request),
                ULC_OK);
            ulc_status status{};
            ASSERT_TRUE(w.done(b, request, status));
            ASSERT_EQ(status.error, ULC_OK);
            std::size_t a = 0;
            while (a == b || number[b][a] != status.source)
                ASSERT_LT(++a, kEndpoints) << "a source that is no peer";
            EXPECT_EQ(status.tag, next[a]) << a << " to " << b;
            buffer.resize(status.length);
            EXPECT_EQ(buffer, text_of(a, next[a], kLengths[next[a] % 8])) << a << " to " << b;
            ++next[a];
        }
    }
    for (const auto& send : sends)
        EXPECT_TRUE(w.run([&] { return ulc_test(w.ep(0), &send->request, nullptr) == ULC_OK; }));
    EXPECT_EQ(w.lib().shut_down(), 0U);
}

TEST(LibulcLinks, exchange_messages_of_all_lengths_under_loss) { exchange(UINT64_MAX); }
TEST(LibulcLinks, exchange_announced_messages_under_loss) { exchange(30'000); }

TEST(LibulcLinks, a_number_means_the_next_peer_and_nothing_of_the_one_before) {
    LinkedCluster w(lossy(3), 3);
    for (unsigned turn = 0; turn < 20; ++turn) {
        const std::size_t other = 1 + turn % 2;
        const auto [there, here] = w.link(other, 0);
        const std::string text = text_of(other, turn, 3000);
        for (int copies = 0; copies < 2; ++copies)
            ASSERT_EQ(ulc_send(w.ep(other), there, turn, text.data(), text.size(), nullptr),
                      ULC_OK);
        std::string buffer(3000, '?');
        ulc_request request;
        ASSERT_EQ(ulc_receive(w.ep(0), here, 0, 0, buffer.data(), buffer.size(), &request), ULC_OK);
        ulc_status status{};
        ASSERT_TRUE(w.done(0, request, status));
        EXPECT_EQ(status.tag, turn) << "the second message of each peer is never received";
        EXPECT_EQ(buffer, text);
        ulc_request ends[2];
        ASSERT_EQ(ulc_unlink(w.ep(0), here, &ends[0]), ULC_OK);
        ASSERT_TRUE(
            w.run([&, there = there] { return ulc_peer_state(w.ep(other), there) != ULC_OK; }));
        EXPECT_EQ(ulc_peer_state(w.ep(other), there), ULC_ERR_PEER_LEFT);
        ASSERT_EQ(ulc_unlink(w.ep(other), there, &ends[1]), ULC_OK);
        ASSERT_TRUE(w.done(0, ends[0], status));
        ASSERT_TRUE(w.done(other, ends[1], status));
    }
    EXPECT_EQ(w.lib().shut_down(), 0U);
}

TEST(LibulcLinks, a_killed_peer_ends_what_names_it) {
    LinkedCluster w(lossy(2), 2);
    const auto [there, here] = w.link(1, 0);
    char buffer[8];
    ulc_request request;
    ASSERT_EQ(ulc_receive(w.ep(0), here, 0, 0, buffer, sizeof buffer, &request), ULC_OK);
    w.lib().kill(1);
    ulc_status status{};
    ASSERT_TRUE(w.done(0, request, status));
    EXPECT_EQ(status.error, ULC_ERR_PEER_DIED);
    EXPECT_EQ(ulc_send(w.ep(0), here, 1, "x", 1, nullptr), ULC_ERR_PEER_DIED);
    ulc_request ending;
    ASSERT_EQ(ulc_unlink(w.ep(0), here, &ending), ULC_OK);
    ASSERT_TRUE(w.done(0, ending, status));
    EXPECT_EQ(ulc_peer_state(w.ep(0), here), ULC_ERR_INVALID);
    EXPECT_EQ(w.lib().shut_down(), 0U);
}

TEST(LibulcLinks, an_endpoint_that_leaves_delivers_first) {
    LinkedCluster w(lossy(2), 2);
    const auto [there, here] = w.link(1, 0);
    const std::string text = text_of(1, 1, 150'000);
    ASSERT_EQ(ulc_send(w.ep(1), there, 1, text.data(), text.size(), nullptr), ULC_OK);
    ASSERT_EQ(ulc_leave(w.ep(1)), ULC_OK);
    std::string buffer(150'000, '?');
    ulc_request request;
    ASSERT_EQ(ulc_receive(w.ep(0), here, 0, 0, buffer.data(), buffer.size(), &request), ULC_OK);
    ulc_status status{};
    ASSERT_TRUE(w.done(0, request, status));
    EXPECT_EQ(status.error, ULC_OK);
    EXPECT_EQ(buffer, text);
    ASSERT_TRUE(w.run([&, here = here] { return ulc_peer_state(w.ep(0), here) != ULC_OK; }));
    EXPECT_EQ(ulc_peer_state(w.ep(0), here), ULC_ERR_PEER_LEFT);
    EXPECT_EQ(ulc_job_state(w.ep(1)), ULC_ERR_CLOSED);
    EXPECT_EQ(w.lib().shut_down(), 0U);
}

TEST(LibulcLinks, a_synchronous_send_ends_when_its_link_does) {
    LinkedCluster w(lossy(2), 2);
    const auto [there, here] = w.link(1, 0);
    ulc_request request;
    ulc_piece piece{const_cast<char*>("x"), 1};
    ASSERT_EQ(ulc_sendv(w.ep(1), there, 1, &piece, 1, ULC_SEND_MATCHED, &request), ULC_OK);
    ASSERT_FALSE(
        w.run([&] { return ulc_test(w.ep(1), &request, nullptr) == ULC_OK; }, 100 * kMillisecond));
    ASSERT_EQ(ulc_unlink(w.ep(1), there, nullptr), ULC_OK);
    ulc_status status{};
    ASSERT_EQ(ulc_test(w.ep(1), &request, &status), ULC_OK);
    EXPECT_EQ(status.error, ULC_ERR_CLOSED);
    EXPECT_EQ(w.lib().shut_down(), 0U);
    (void)here;
}

}  // namespace
}  // namespace ulc::sim
