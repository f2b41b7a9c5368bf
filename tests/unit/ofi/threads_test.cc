// SPDX-License-Identifier: BSD-3-Clause
// The provider for libfabric under several threads, over lists in memory that have no lock. The
// thread sanitizer sees each access that the provider does not serialise. FI_THREAD_SAFE serialises
// all calls, DOMAIN and COMPLETION take no lock. Also the thread of FI_PROGRESS_AUTO, yields of an
// idle queue, and poll sets.
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "ofi/domain.h"
#include "ofi/message_header.h"
#include "ofi/peers/job.h"
#include "ofi/queues/counter.h"
#include "ofi/say.h"
#include "tests/fuzz/plain_ulc.h"

namespace {

std::atomic<int> yields{0};
/// A time that stands and moves by hand, in ns; the system's while it is 0.
std::atomic<ulc::Nanos> told_time{0};
/// The length of a yield in the told time, in ns.
std::atomic<ulc::Nanos> yield_time{0};

}  // namespace

/// Stands in for the C library's.
extern "C" int sched_yield() noexcept {
    ++yields;
    if (told_time != 0) told_time += yield_time;
    return 0;
}

namespace ulc::ofi {

/// Stands in for the clock of the queues.
Nanos now() noexcept { return told_time != 0 ? told_time.load() : monotonic_now(); }

void say(const char*, ...) noexcept {}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLength = 64;

/// One endpoint with a completion queue and a counter. It sends to itself.
class Threads : public testing::Test {
public:
    ~Threads() override {
        for (fid* one : {&ep_->fid, &queue_->fid, &received_->fid, &addresses_->fid, &domain_->fid})
            EXPECT_EQ(fi_close(one), 0);
    }

protected:
    static void SetUpTestSuite() {
        ASSERT_EQ(::setenv("ULC_JOB", "threads", 1), 0);
        ASSERT_EQ(::setenv("ULC_RANK", "0", 1), 0);
        ASSERT_EQ(::setenv("ULC_SIZE", "3", 1), 0);
    }
    void open(fi_threading model, fi_progress progress = FI_PROGRESS_MANUAL) {
        domain_attr_.threading = model;
        domain_attr_.data_progress = progress;
        ep_attr_.type = FI_EP_RDM;
        info_.caps = FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | FI_SOURCE | more_caps_;
        info_.tx_attr = &tx_;
        info_.rx_attr = &rx_;
        info_.ep_attr = &ep_attr_;
        info_.domain_attr = &domain_attr_;
        ASSERT_EQ(open_domain(nullptr, &info_, &domain_, nullptr), 0);
        fi_av_attr av{};
        ASSERT_EQ(fi_av_open(domain_, &av, &addresses_, nullptr), 0);
        fi_cq_attr cq{};
        ASSERT_EQ(fi_cq_open(domain_, &cq, &queue_, &queue_), 0);
        fi_cntr_attr counter{};
        ASSERT_EQ(fi_cntr_open(domain_, &counter, &received_, &received_), 0);
        ASSERT_EQ(fi_endpoint(domain_, &info_, &ep_, nullptr), 0);
        ASSERT_EQ(fi_ep_bind(ep_, &addresses_->fid, 0), 0);
        ASSERT_EQ(fi_ep_bind(ep_, &queue_->fid, FI_RECV | FI_TRANSMIT), 0);
        ASSERT_EQ(fi_ep_bind(ep_, &received_->fid, FI_RECV), 0);
        ASSERT_EQ(fi_enable(ep_), 0);
        unsigned char name[kAddressBytes];
        std::size_t length = sizeof name;
        ASSERT_EQ(fi_getname(&ep_->fid, name, &length), 0);
        ASSERT_EQ(fi_av_insert(addresses_, name, 1, &self_, 0, nullptr), 1);
        fuzz::loop_back();
    }
    Lock& lock() { return static_cast<Domain*>(domain_)->lock; }

    /// Sends and receives messages of one tag until `count` have come. Whatever completes in the
    /// queue, also of another thread, has a flag as its context.
    void talk(std::uint64_t tag, int count) {
        std::array<unsigned char, kLength> out{};
        std::array<unsigned char, kLength> in{};
        for (int i = 0; i < count; ++i) {
            std::atomic<bool> received{false};
            std::atomic<bool> sent{false};
            out.fill(static_cast<unsigned char>(i));
            EXPECT_EQ(fi_trecv(ep_, in.data(), kLength, nullptr, self_, tag, 0, &received), 0);
            EXPECT_EQ(fi_tsend(ep_, out.data(), kLength, nullptr, self_, tag, &sent), 0);
            while (!received || !sent)
                read_one();
            EXPECT_EQ(in, out);
        }
    }
    void read_one() {
        fi_cq_tagged_entry entry{};
        if (fi_cq_read(queue_, &entry, 1) == 1)
            *static_cast<std::atomic<bool>*>(entry.op_context) = true;
    }
    /// True if another thread can read the queue within a time that is ample for it.
    bool can_read() {
        std::atomic<bool> done{false};
        std::thread reader([&] {
            fi_cq_tagged_entry entry{};
            EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
            done = true;
        });
        const auto until = std::chrono::steady_clock::now() + 2s;
        while (!done && std::chrono::steady_clock::now() < until && waits_)
            std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(20ms);
        const bool could = done;
        if (!could) lock().unlock();
        reader.join();
        if (!could) lock().lock();
        return could;
    }

    fi_tx_attr tx_{};
    fi_rx_attr rx_{};
    fi_ep_attr ep_attr_{};
    fi_domain_attr domain_attr_{};
    fi_info info_{};
    fid_domain* domain_ = nullptr;
    fid_cq* queue_ = nullptr;
    fid_cntr* received_ = nullptr;
    fid_av* addresses_ = nullptr;
    fid_ep* ep_ = nullptr;
    fi_addr_t self_ = FI_ADDR_NOTAVAIL;
    std::uint64_t more_caps_ = 0;
    bool waits_ = true;  ///< can_read() waits for a reader that is slow
};

TEST_F(Threads, safe_serialises_messages_and_all_other_calls) {
    open(FI_THREAD_SAFE);
    constexpr int kMessages = 300;
    std::atomic<bool> ends{false};
    std::thread others([&] {
        while (!ends) {
            std::atomic<bool> context{false};
            EXPECT_EQ(fi_trecv(ep_, nullptr, 0, nullptr, self_, 1000, 0, &context), 0);
            EXPECT_EQ(fi_cancel(&ep_->fid, &context), 0);
            fi_cq_err_entry error{};
            while (fi_cq_readerr(queue_, &error, 0) != 1) {
            }
            EXPECT_EQ(error.op_context, &context);
            static_cast<void>(fi_cntr_read(received_));
            std::size_t least = 64;
            EXPECT_EQ(
                fi_setopt(&ep_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
                0);
            unsigned char name[kAddressBytes];
            std::size_t length = sizeof name;
            EXPECT_EQ(fi_getname(&ep_->fid, name, &length), 0);
            name[7] = 2;
            fi_addr_t peer = 0;
            EXPECT_EQ(fi_av_insert(addresses_, name, 1, &peer, 0, nullptr), 1);
            EXPECT_EQ(fi_av_remove(addresses_, &peer, 1, 0), 0);
        }
    });
    std::vector<std::thread> talkers;
    for (std::uint64_t tag = 1; tag <= 3; ++tag)
        talkers.emplace_back([this, tag] { talk(tag, kMessages); });
    for (std::thread& talker : talkers)
        talker.join();
    ends = true;
    others.join();
    EXPECT_EQ(fi_cntr_read(received_), 3U * kMessages);
}

TEST_F(Threads, safe_serialises_atomic_operations) {
    more_caps_ = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    open(FI_THREAD_SAFE);
    constexpr std::uint64_t kDraws = 200;
    alignas(8) std::uint64_t word = 0;
    fid_mr* memory = nullptr;
    ASSERT_EQ(fi_mr_reg(domain_, &word, sizeof word, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
                        &memory, nullptr),
              0);
    std::atomic<std::uint64_t> sum{0};
    const auto draw = [&] {
        for (std::uint64_t i = 0; i < kDraws; ++i) {
            const std::uint64_t one = 1;
            std::uint64_t drawn = 0;
            std::atomic<bool> done{false};
            ssize_t error = -FI_EAGAIN;
            while (error == -FI_EAGAIN)
                error = fi_fetch_atomic(ep_, &one, 1, nullptr, &drawn, nullptr, self_, 0, 1,
                                        FI_UINT64, FI_SUM, &done);
            ASSERT_EQ(error, 0);
            while (!done)
                read_one();
            sum += drawn;
        }
    };
    std::thread other(draw);
    draw();
    other.join();
    EXPECT_EQ(word, 2 * kDraws);
    EXPECT_EQ(sum, kDraws * (2 * kDraws - 1));
    EXPECT_EQ(fi_close(&memory->fid), 0);
}

TEST_F(Threads, safe_waits_for_the_lock) {
    open(FI_THREAD_SAFE);
    waits_ = false;
    lock().lock();
    EXPECT_FALSE(can_read());
    lock().unlock();
}

TEST_F(Threads, domain_takes_no_lock) {
    open(FI_THREAD_DOMAIN);
    lock().lock();
    EXPECT_TRUE(can_read());
    lock().unlock();
}

TEST_F(Threads, completion_takes_no_lock) {
    open(FI_THREAD_COMPLETION);
    lock().lock();
    EXPECT_TRUE(can_read());
    lock().unlock();
}

TEST_F(Threads, automatic_progress_needs_no_call) {
    open(FI_THREAD_DOMAIN, FI_PROGRESS_AUTO);
    std::array<unsigned char, kLength> in{};
    std::atomic<bool> received{false};
    ASSERT_EQ(fi_trecv(ep_, in.data(), kLength, nullptr, self_, 7, 0, &received), 0);
    {
        // Comes from outside, in between the looks of the provider's thread.
        const Guard hold(lock());
        std::vector<unsigned char> bytes(sizeof(MessageHeader) + kLength, 9);
        const MessageHeader header = MessageHeader::plain();
        std::copy_n(reinterpret_cast<const unsigned char*>(&header), sizeof header, bytes.begin());
        fuzz::arrive(fuzz::kRank, kTaggedBit | 7, bytes);
    }
    // The counter is read as memory: fi_cntr_read() would move the endpoint.
    const auto& counter = *static_cast<Counter*>(received_);
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (counter.count == 0 && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(1ms);
    EXPECT_EQ(counter.count, 1U);
    talk(3, 50);
}

TEST_F(Threads, an_idle_queue_yields_and_more_often_on_a_shared_core) {
    open(FI_THREAD_DOMAIN);
    const auto yields_of = [this](int reads) {
        const int before = yields;
        for (int i = 0; i < reads; ++i)
            read_one();
        return yields - before;
    };
    constexpr Nanos kQuick = 300;
    constexpr Nanos kSlow = 5 * kMicrosecond;  // another process ran
    told_time = kMillisecond;
    yield_time = kQuick;
    talk(1, 1);  // something moves: a spin begins
    EXPECT_EQ(yields_of(640), 0);
    told_time += 2 * kMillisecond;  // longer than a spin
    EXPECT_EQ(yields_of(640), 10);
    yield_time = kSlow;
    static_cast<void>(yields_of(640));  // each lets another process run
    EXPECT_EQ(yields_of(640), 160);
    told_time = 0;
}

TEST_F(Threads, a_queue_does_not_yield_while_frames_of_a_long_message_come) {
    open(FI_THREAD_DOMAIN);
    told_time = kMillisecond;
    yield_time = 300;
    read_one();
    fuzz::move_frames(true);
    const int before = yields;
    for (int i = 0; i < 640; ++i, told_time += kMicrosecond)
        read_one();
    EXPECT_EQ(yields, before);
    fuzz::move_frames(false);
    told_time += kMillisecond;
    for (int i = 0; i < 640; ++i)
        read_one();
    EXPECT_EQ(yields, before + 10);
    told_time = 0;
}

TEST_F(Threads, a_poll_set_names_what_has_something) {
    open(FI_THREAD_DOMAIN);
    fid_poll* set = nullptr;
    fi_poll_attr attr{};
    ASSERT_EQ(fi_poll_open(domain_, &attr, &set), 0);
    EXPECT_EQ(fi_poll_add(set, &addresses_->fid, 0), -FI_EINVAL);
    ASSERT_EQ(fi_poll_add(set, &queue_->fid, 0), 0);
    ASSERT_EQ(fi_poll_add(set, &received_->fid, 0), 0);
    void* contexts[2] = {};
    EXPECT_EQ(fi_poll(set, contexts, 2), 0);
    std::array<unsigned char, kLength> bytes{};
    std::atomic<bool> received{false};
    ASSERT_EQ(fi_trecv(ep_, bytes.data(), kLength, nullptr, self_, 7, 0, &received), 0);
    ASSERT_EQ(fi_tinject(ep_, bytes.data(), kLength, self_, 7), 0);
    EXPECT_EQ(fi_poll(set, contexts, 1), 1);
    EXPECT_EQ(contexts[0], &queue_);
    EXPECT_EQ(fi_poll(set, contexts, 2), 2);
    EXPECT_EQ(contexts[1], &received_);
    EXPECT_EQ(fi_poll(set, contexts, 2), 1);  // the counter was seen, the queue was not read
    read_one();
    EXPECT_TRUE(received);
    EXPECT_EQ(fi_poll(set, contexts, 2), 0);
    EXPECT_EQ(fi_poll_del(set, &queue_->fid, 0), 0);
    EXPECT_EQ(fi_poll_del(set, &queue_->fid, 0), -FI_EINVAL);
    EXPECT_EQ(fi_close(&set->fid), 0);
}

}  // namespace
}  // namespace ulc::ofi
