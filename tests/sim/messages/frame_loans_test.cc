// SPDX-License-Identifier: BSD-3-Clause
// Tests messages of one packet that an embedded engine hands over as the received frame
// (ulc_lend_frames). No byte of them is copied, a frame stays as it is until its view is released,
// and clients that keep their views take no more frames than the bound.
#include <gtest/gtest.h>
#include <ulc_upcall.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "abi/records.h"
#include "base/prng.h"
#include "endpoint/frame_loans.h"
#include "tests/sim/cluster/lib_cluster.h"
#include "tests/sim/programs/oracle.h"

namespace ulc::sim {
namespace {

constexpr std::size_t kLongest = 1'400;  // bytes; one packet, with any extensions
constexpr std::size_t kShortest = abi::kInlineOctetsMax + 1;

ClusterConfig config_of(std::uint64_t seed, double loss) {
    ClusterConfig config;
    config.net.ports = 2;
    config.net.faults = {.loss = loss, .duplicate = loss / 4, .reorder = loss / 2};
    config.net.seed = config.seed = seed;
    config.embedded = Embedded::kAll;
    return config;
}

/// Rank 0 sends numbered messages, rank 1 takes them and keeps up to `keeps` views, each until a
/// random later message has come.
class Views {
public:
    Views(const ClusterConfig& config, std::size_t messages, std::size_t keeps)
        : lib_(config), random_(config.seed), messages_(messages), keeps_(keeps) {}

    /// `asks`: the engine asks for the place of each message, so that frames take general steps;
    /// else most take the fast path.
    void form(bool asks = false) {
        ASSERT_TRUE(lib_.form());
        if (!asks) lib_.cluster().engine(1).set_placer(lib_.cluster().endpoint(1), nullptr);
        lend(true);
    }
    void lend(bool lends) {
        lib_.cluster().engine(1).lend_frames(lib_.cluster().endpoint(1), lends);
    }
    void run() {
        const auto over = [this] { return taken_ == messages_ && kept_.size() <= keeps_; };
        ASSERT_TRUE(lib_.run(60 * kSecond, over, [this](std::uint16_t rank, Nanos now) {
            if (rank == 0) {
                send();
            } else {
                take();
            }
            return now + 20 * kMicrosecond;
        }));
    }
    void release_all() {
        while (!kept_.empty())
            release(0);
    }
    void set_keeps(std::size_t keeps, std::size_t messages) {
        keeps_ = keeps;
        messages_ += messages;
    }
    [[nodiscard]] LibCluster& lib() noexcept { return lib_; }
    [[nodiscard]] std::uint64_t count(Counter counter) { return lib_.cluster().count(counter); }
    [[nodiscard]] std::uint64_t octets() const noexcept { return octets_; }
    [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }

private:
    struct View {
        const void* at;
        std::size_t length;
        std::uint64_t tag;
    };

    void send() {
        ulc_endpoint* ep = lib_.endpoint(0);
        while (sent_ < messages_) {
            const std::vector<std::byte> payload = payload_of(sent_);
            if (ulc_send(ep, 1, sent_, payload.data(), payload.size(), nullptr) != ULC_OK) return;
            octets_ += payload.size();
            ++sent_;
            if (random_.below(8) == 0) return;
        }
    }
    [[nodiscard]] static std::vector<std::byte> payload_of(std::uint64_t number) {
        return Oracle::payload(number, kShortest + number * 97 % (kLongest - kShortest + 1));
    }
    void take() {
        ulc_endpoint* ep = lib_.endpoint(1);
        ulc_status status;
        const void* view = nullptr;
        while (ulc_take(ep, 0, 0, ~std::uint64_t{0} << 62, &view, &status) == ULC_OK) {
            EXPECT_EQ(status.tag, taken_++);
            kept_.push_back({view, status.length, status.tag});
            while (kept_.size() > keeps_)
                release(random_.below(kept_.size()));
        }
    }
    void release(std::size_t index) {
        const View one = kept_[index];
        kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(index));
        const std::vector<std::byte> expected = payload_of(one.tag);
        ASSERT_EQ(one.length, expected.size());
        EXPECT_EQ(std::memcmp(one.at, expected.data(), one.length), 0) << "message " << one.tag;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.at) % 4, 0U);
        ulc_release(lib_.endpoint(1), one.at);
    }

    LibCluster lib_;
    Prng random_;
    std::uint64_t messages_;
    std::size_t keeps_;
    std::deque<View> kept_;
    std::uint64_t sent_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t octets_ = 0;
};

TEST(FrameLoans, no_byte_is_copied) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Views views(config_of(seed, seed % 3 == 0 ? 0 : 0.03), 400, 8);
        views.form(seed % 2 == 0);
        views.run();
        if (::testing::Test::HasFatalFailure()) return;
        EXPECT_EQ(views.count(Counter::frames_lent), views.messages());
        EXPECT_EQ(views.count(Counter::rx_copied_bytes), 0U);
        views.release_all();
        EXPECT_EQ(views.lib().shut_down(), 0U) << "frames were not given back";
    }
}

TEST(FrameLoans, a_client_that_does_not_ask_gets_copies) {
    Views views(config_of(7, 0), 100, 8);
    views.form();
    views.lend(false);
    views.run();
    EXPECT_EQ(views.count(Counter::frames_lent), 0U);
    EXPECT_EQ(views.count(Counter::rx_copied_bytes), views.octets());
    views.release_all();
    EXPECT_EQ(views.lib().shut_down(), 0U);
}

TEST(FrameLoans, views_that_are_kept_take_no_more_than_the_bound) {
    constexpr std::size_t kKept = 300;
    Views views(config_of(8, 0.02), kKept, kKept);
    views.form();
    views.run();
    EXPECT_EQ(views.count(Counter::frames_lent), endpoint::FrameLoans::kMost);
    EXPECT_GT(views.count(Counter::rx_copied_bytes), 0U);
    // Once they are released, frames are lent again.
    views.release_all();
    views.set_keeps(8, 100);
    views.run();
    EXPECT_EQ(views.count(Counter::frames_lent), endpoint::FrameLoans::kMost + 100);
    views.release_all();
    EXPECT_EQ(views.lib().shut_down(), 0U);
}

TEST(FrameLoans, a_port_with_few_frames_lends_an_eighth) {
    ClusterConfig config = config_of(9, 0.02);
    config.net.segments = 128;
    Views views(config, 200, 200);
    views.form();
    views.run();
    EXPECT_EQ(views.count(Counter::frames_lent), 16U);
    views.release_all();
    EXPECT_EQ(views.lib().shut_down(), 0U);
}

TEST(FrameLoans, an_endpoint_that_ends_gives_its_frames_back) {
    Views views(config_of(10, 0), 60, 60);
    views.form();
    views.run();
    EXPECT_EQ(views.count(Counter::frames_lent), 60U);
    views.lib().kill(1);
    EXPECT_EQ(views.lib().shut_down(), 0U);
}

}  // namespace
}  // namespace ulc::sim
