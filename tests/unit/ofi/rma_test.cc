// SPDX-License-Identifier: BSD-3-Clause
// Writes, reads and atomic operations over lists in memory: the endpoint is its own target. Hostile
// requests, data and responses are dropped or refused, and counted.
#include <functional>

#include "base/clock.h"
#include "ofi/say.h"
#include "tests/unit/ofi/rma.h"

namespace {

/// Time that has passed for the provider, and not for others.
ulc::Nanos time_passed = 0;

/// A function that is called when the provider waits.
std::function<void()> while_it_waits;

}  // namespace

/// Stands in for the C library's.
extern "C" int sched_yield() noexcept {
    if (while_it_waits) while_it_waits();
    return 0;
}

namespace ulc::ofi {

void say(const char*, ...) noexcept {}
/// Stands in for the clock of the queues.
Nanos now() noexcept { return monotonic_now() + time_passed; }

namespace {

TEST_F(RmaTest, writes_of_all_lengths_are_there_when_they_complete) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{8}, kRmaInlineMax,
                                     kRmaInlineMax + 1, std::size_t{90000}}) {
        std::fill(memory_.begin(), memory_.end(), 0);
        EXPECT_EQ(write(length, 3, kKey), 0);
        EXPECT_EQ(std::memcmp(memory_.data() + 3, local_.data(), length), 0) << length;
        EXPECT_EQ(memory_[2], 0);
        EXPECT_EQ(memory_[3 + length], 0);
    }
    EXPECT_EQ(fi_cntr_read(writes_), 6U);
    EXPECT_EQ(fi_cntr_read(remote_writes_), 6U);
    EXPECT_EQ(fi_cntr_read(of_region_), 6U);
}

TEST_F(RmaTest, nothing_completes_before_it_is_applied) {
    for (const std::size_t length : {std::size_t{8}, kRmaInlineMax + 1}) {
        ASSERT_EQ(fi_write(ep_, local_.data(), length, nullptr, self_, 0, kKey, &local_), 0);
        fi_cq_tagged_entry entry{};
        while (fi_cq_read(queue_, &entry, 1) != 1)
            EXPECT_EQ(fi_cntr_read(writes_), 0U + (length > 8));
        EXPECT_EQ(std::memcmp(memory_.data(), local_.data(), length), 0);
    }
}

TEST_F(RmaTest, reads_of_all_lengths_fill_their_pieces) {
    std::iota(memory_.begin(), memory_.end(), static_cast<unsigned char>(7));
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{8}, kRmaInlineMax,
                                     kRmaInlineMax + 1, std::size_t{90000}}) {
        std::fill(local_.begin(), local_.end(), 0xee);
        const iovec pieces[] = {{local_.data() + 10, length / 3},
                                {local_.data() + 10 + length / 3, length - length / 3}};
        ASSERT_EQ(fi_readv(ep_, pieces, nullptr, 2, self_, 5, kKey, &local_), 0);
        EXPECT_EQ(completion(&local_, FI_RMA | FI_READ), 0);
        EXPECT_EQ(std::memcmp(memory_.data() + 5, local_.data() + 10, length), 0) << length;
        EXPECT_EQ(local_[10 + length], 0xee);
    }
    EXPECT_EQ(fi_cntr_read(reads_), 6U);
}

TEST_F(RmaTest, injected_data_may_change_at_once_and_completion_data_arrive) {
    std::uint64_t value = 5;
    ASSERT_EQ(fi_inject_write(ep_, &value, sizeof value, self_, 0, kKey), 0);
    value = 6;
    ASSERT_EQ(fi_inject_writedata(ep_, &value, sizeof value, 0xabcdef, self_, 8, kKey), 0);
    value = 7;
    fi_cq_tagged_entry entry{};
    while (fi_cq_read(queue_, &entry, 1) != 1) {
    }
    EXPECT_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
    EXPECT_EQ(entry.data, 0xabcdefU);
    EXPECT_EQ(entry.len, 8U);
    poll();
    EXPECT_EQ(fi_cq_read(queue_, &entry, 1), -FI_EAGAIN);
    EXPECT_EQ(memory_[0], 5);
    EXPECT_EQ(memory_[8], 6);
    EXPECT_EQ(fi_cntr_read(writes_), 2U);
    EXPECT_EQ(fi_inject_write(ep_, local_.data(), 4097, self_, 0, kKey), -FI_EINVAL);
}

TEST_F(RmaTest, an_access_that_was_not_granted_is_an_error_of_its_initiator) {
    for (const std::size_t length : {std::size_t{8}, std::size_t{50000}}) {
        EXPECT_EQ(write(length, 0, kKey + 2), FI_ENOKEY);
        EXPECT_EQ(write(length, memory_.size() - length + 1, kKey), FI_EFAULT);
        EXPECT_EQ(write(length, UINT64_MAX - 3, kKey), FI_EFAULT);
        EXPECT_EQ(write(length, 0, kKey + 1), FI_EACCES);
        EXPECT_EQ(read(length, 0, kKey + 2), FI_ENOKEY);
        EXPECT_EQ(read(length, memory_.size() - length + 1, kKey), FI_EFAULT);
    }
    EXPECT_EQ(read(8, 0, kKey + 1), 0);
    EXPECT_EQ(read(9, 0, kKey + 1), FI_EFAULT);
    EXPECT_TRUE(is_untouched());
    const RefusedAccesses& refused = static_cast<Endpoint*>(ep_)->remote_memory().refused();
    EXPECT_EQ(refused.count(RmaResult::kNoKey), 4U);
    EXPECT_EQ(refused.count(RmaResult::kOutside), 7U);
    EXPECT_EQ(refused.count(RmaResult::kNotGranted), 2U);
    EXPECT_EQ(refused.total(), 13U);
    EXPECT_EQ(fi_cntr_readerr(writes_), 8U);
    EXPECT_EQ(endpoint().dropped().total(), 0U);
}

TEST_F(RmaTest, atomic_operations_change_memory_and_return_what_was_there) {
    std::uint64_t values[] = {3, 4};
    std::uint64_t compare[] = {10, 0};
    std::uint64_t old[] = {9, 9};
    auto* there = reinterpret_cast<std::uint64_t*>(memory_.data());
    there[1] = 7;
    there[2] = 8;
    ASSERT_EQ(fi_atomic(ep_, values, 2, nullptr, self_, 8, kKey, FI_UINT64, FI_SUM, &old), 0);
    EXPECT_EQ(completion(&old, FI_ATOMIC | FI_WRITE), 0);
    EXPECT_EQ(there[1], 10U);
    EXPECT_EQ(there[2], 12U);
    ASSERT_EQ(fi_compare_atomic(ep_, values, 2, nullptr, compare, nullptr, old, nullptr, self_, 8,
                                kKey, FI_UINT64, FI_CSWAP, &old),
              0);
    EXPECT_EQ(completion(&old, FI_ATOMIC | FI_READ), 0);
    EXPECT_EQ(there[1], 3U);
    EXPECT_EQ(there[2], 12U);
    EXPECT_EQ(old[0], 10U);
    EXPECT_EQ(old[1], 12U);
    ASSERT_EQ(fi_fetch_atomic(ep_, nullptr, 2, nullptr, old, nullptr, self_, 8, kKey, FI_UINT64,
                              FI_ATOMIC_READ, &old),
              0);
    EXPECT_EQ(completion(&old, FI_ATOMIC | FI_READ), 0);
    EXPECT_EQ(old[0], 3U);
    ASSERT_EQ(fi_inject_atomic(ep_, values, 1, self_, 8, kKey, FI_UINT64, FI_BXOR), 0);
    poll();
    EXPECT_EQ(there[1], 0U);
    EXPECT_EQ(there[0], 0U);
    EXPECT_EQ(there[3], 0U);
}

TEST_F(RmaTest, atomic_operations_have_the_limits_that_the_queries_tell) {
    std::size_t count = 0;
    EXPECT_EQ(fi_atomicvalid(ep_, FI_UINT64, FI_SUM, &count), 0);
    EXPECT_EQ(count, kAtomicBytesMax / 8);
    EXPECT_EQ(fi_fetch_atomicvalid(ep_, FI_UINT8, FI_ATOMIC_READ, &count), 0);
    EXPECT_EQ(count, kAtomicBytesMax);
    EXPECT_EQ(fi_compare_atomicvalid(ep_, FI_DOUBLE, FI_MSWAP, &count), -FI_EOPNOTSUPP);
    fi_atomic_attr attr{};
    EXPECT_EQ(fi_query_atomic(domain_, FI_FLOAT, FI_CSWAP, &attr, FI_COMPARE_ATOMIC), 0);
    EXPECT_EQ(attr.size, 4U);
    EXPECT_EQ(attr.count, kAtomicBytesMax / 4);
    EXPECT_EQ(fi_atomic(ep_, local_.data(), kAtomicBytesMax / 8 + 1, nullptr, self_, 0, kKey,
                        FI_UINT64, FI_SUM, nullptr),
              -FI_EINVAL);
    EXPECT_EQ(fi_atomic(ep_, local_.data(), 1, nullptr, self_, 0, kKey, FI_DOUBLE, FI_BOR, nullptr),
              -FI_EOPNOTSUPP);
    ASSERT_EQ(fi_atomic(ep_, local_.data(), kAtomicBytesMax, nullptr, self_, 0, kKey, FI_UINT8,
                        FI_ATOMIC_WRITE, &local_),
              0);
    EXPECT_EQ(completion(&local_, FI_ATOMIC | FI_WRITE), 0);
    EXPECT_EQ(std::memcmp(memory_.data(), local_.data(), kAtomicBytesMax), 0);
    // To read needs no right to write.
    std::uint64_t old = 0;
    ASSERT_EQ(fi_fetch_atomic(ep_, nullptr, 1, nullptr, &old, nullptr, self_, 0, kKey + 1,
                              FI_UINT64, FI_ATOMIC_READ, &old),
              0);
    EXPECT_EQ(completion(&old, FI_ATOMIC | FI_READ), 0);
    ASSERT_EQ(fi_fetch_atomic(ep_, &old, 1, nullptr, &old, nullptr, self_, 0, kKey + 1, FI_UINT64,
                              FI_SUM, &old),
              0);
    EXPECT_EQ(completion(&old, FI_ATOMIC | FI_READ), FI_EACCES);
}

TEST_F(RmaTest, malformed_requests_are_dropped) {
    request(made(RmaKind::kWrite, 0, 8), 7);
    request(made(RmaKind::kWrite, 0, 8), 9);
    request(made(RmaKind::kRead, 0, 8), 8);
    request(made(static_cast<RmaKind>(99), 0, 8), 8);
    fuzz::arrive(1, kRmaTag, {});
    fuzz::arrive(1, kRmaTag, std::vector<unsigned char>(47, 1));
    fuzz::arrive(1, kRmaTag, std::vector<unsigned char>(70000, 1));
    poll();
    EXPECT_EQ(endpoint().dropped().count(HeaderFault::kRequest), 7U);
    EXPECT_TRUE(is_untouched());
    for (int i = 0; i < 20; ++i)  // all slots are posted again
        request(made(RmaKind::kWrite, 0, 8), 8);
    EXPECT_EQ(memory_[7], 0x77);
    EXPECT_EQ(endpoint().dropped().total(), 7U);
    RmaRequest odd = made(RmaKind::kAtomic, 0, 7);
    odd.datatype = FI_UINT64;
    odd.operands = 1;
    request(odd, 7);
    EXPECT_EQ(last_result(), RmaResult::kNoSuchOp);
    odd.datatype = 200;
    request(odd, 7);
    EXPECT_EQ(last_result(), RmaResult::kNoSuchOp);
}

TEST_F(RmaTest, requests_are_applied_in_their_order) {
    for (const int order : {3, 1, 2}) {
        order_ = static_cast<std::uint16_t>(order);
        request(made(RmaKind::kWrite, 0, 8), 8, static_cast<unsigned char>(order + 1));
        EXPECT_TRUE(is_untouched());
    }
    order_ = 0;
    request(made(RmaKind::kWrite, 0, 9), 9, 1);
    EXPECT_EQ(memory_[0], 4);
    EXPECT_EQ(memory_[8], 1);
    EXPECT_EQ(fi_cntr_read(remote_writes_), 4U);
    order_ = 4;
    for (int i = 0; i < 20; ++i)  // there are as many slots as before
        request(made(RmaKind::kWrite, 0, 8), 8);
    EXPECT_EQ(fi_cntr_read(remote_writes_), 24U);
    EXPECT_EQ(endpoint().dropped().total(), 0U);
    // An order that no honest source reaches, and one of the past.
    for (const int order : {24 + 1024, 23}) {
        order_ = static_cast<std::uint16_t>(order);
        request(made(RmaKind::kWrite, 0, 8), 8);
    }
    EXPECT_EQ(endpoint().dropped().count(HeaderFault::kRequest), 2U);
    order_ = 25;
    for (int i = 0; i < 1100; ++i)
        request(made(RmaKind::kWrite, 0, 8), 8);
    EXPECT_EQ(endpoint().dropped().count(HeaderFault::kRequest), 2U + 1100 - 1023);
    EXPECT_EQ(write(8, 0, kKey), 0);  // another source
}

TEST_F(RmaTest, data_of_another_length_than_announced_are_refused) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{4999}, std::size_t{5001}}) {
        request(made(RmaKind::kLongWrite, length, 5000), 0);
        EXPECT_EQ(last_result(), RmaResult::kGo);
        fuzz::arrive(1, write_data_tag(length), std::vector<unsigned char>(length, 0x55));
        poll();
        EXPECT_EQ(last_result(), RmaResult::kMalformed);
        EXPECT_EQ(memory_[5000], 0);
    }
    EXPECT_EQ(fi_cntr_read(remote_writes_), 0U);
}

// One request and silence, or data that come when the memory is another's.
TEST_F(RmaTest, a_write_that_was_granted_neither_delays_the_close_nor_touches_the_memory_later) {
    for (int i = 0; i < 3; ++i) {
        request(made(RmaKind::kLongWrite, static_cast<std::size_t>(i), 5000), 0);
        ASSERT_EQ(last_result(), RmaResult::kGo);
    }
    while_it_waits = [] { ADD_FAILURE() << "a peer holds up the close"; };
    EXPECT_EQ(fi_close(&region_->fid), 0);
    while_it_waits = nullptr;
    EXPECT_EQ(last_result(), RmaResult::kNoKey) << "the peer knows";
    for (const std::size_t number : {0, 2}) {
        fuzz::arrive(1, write_data_tag(number), std::vector<unsigned char>(5000, 0x55));
        poll();
    }
    EXPECT_TRUE(is_untouched());
    EXPECT_EQ(fi_cntr_read(remote_writes_), 0U);
    EXPECT_EQ(fuzz::unexpected(), 0U) << "the data do not wait for another receive";
    EXPECT_EQ(static_cast<Endpoint*>(ep_)->remote_memory().refused().count(RmaResult::kNoKey), 3U);
    EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_REMOTE_READ, 0, kKey, 0, &region_, nullptr),
              0);
}

// The region stays open. One write has no data, and those of another come in time.
TEST_F(RmaTest, a_granted_write_whose_data_do_not_come_is_refused) {
    request(made(RmaKind::kLongWrite, 0, 5000), 0);
    ASSERT_EQ(last_result(), RmaResult::kGo);
    const auto pass = [&](Nanos time) {
        time_passed += time;
        for (int i = 0; i < 512; ++i)
            poll();
    };
    const auto refused = [&] {
        return static_cast<Endpoint*>(ep_)->remote_memory().refused().count(RmaResult::kLate);
    };
    pass(3590 * kSecond);
    EXPECT_EQ(refused(), 0U) << "its initiator may compute for long";
    request(made(RmaKind::kLongWrite, 1, 5000), 0);
    pass(20 * kSecond);
    EXPECT_EQ(refused(), 1U);
    EXPECT_EQ(last_result(), RmaResult::kLate) << "the peer knows";
    for (const std::size_t number : {0, 1}) {
        fuzz::arrive(1, write_data_tag(number), std::vector<unsigned char>(5000, 0x55));
        poll();
        EXPECT_EQ(is_untouched(), number == 0) << "late data are dropped, others are taken";
    }
    EXPECT_EQ(last_result(), RmaResult::kDone);
    EXPECT_EQ(fuzz::unexpected(), 0U);
    EXPECT_EQ(fi_cntr_read(remote_writes_), 1U);
    pass(7200 * kSecond);
    EXPECT_EQ(refused(), 1U) << "a write that is over is late no more";
}

TEST_F(RmaTest, memory_stays_in_use_until_a_reply_from_it_is_sent) {
    fuzz::hold_sends(true);
    request(made(RmaKind::kRead, 1, 5000), 0);
    int waits = 0;
    while_it_waits = [&waits] {
        if (++waits == 3) fuzz::hold_sends(false);
    };
    EXPECT_EQ(fi_close(&region_->fid), 0);
    while_it_waits = nullptr;
    EXPECT_GE(waits, 3);
    EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_REMOTE_READ, 0, kKey, 0, &region_, nullptr),
              0);
}

TEST_F(RmaTest, writes_that_were_withdrawn_count_for_their_source_until_their_data_come) {
    for (std::size_t i = 0; i < kRmaHeldMax; ++i)
        request(made(RmaKind::kLongWrite, i, 5000), 0);
    ASSERT_EQ(last_result(), RmaResult::kGo);
    EXPECT_EQ(fi_close(&region_->fid), 0);
    EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), memory_.size(), FI_REMOTE_WRITE, 0, kKey, 0,
                        &region_, nullptr),
              0);
    request(made(RmaKind::kLongWrite, kRmaHeldMax, 5000), 0);
    EXPECT_EQ(last_result(), RmaResult::kTooMany);
    fuzz::arrive(1, write_data_tag(3), std::vector<unsigned char>(5000, 0x55));
    poll();
    request(made(RmaKind::kLongWrite, kRmaHeldMax, 5000), 0);
    EXPECT_EQ(last_result(), RmaResult::kGo);
}

TEST_F(RmaTest, an_answer_for_memory_that_was_closed_is_dropped_and_counted) {
    fi_addr_t other = FI_ADDR_NOTAVAIL;
    unsigned char name[kAddressBytes];
    std::size_t length = sizeof name;
    ASSERT_EQ(fi_getname(&ep_->fid, name, &length), 0);
    name[7] = 1;  // the rank
    ASSERT_EQ(fi_av_insert(addresses_, name, 1, &other, 0, nullptr), 1);
    auto gone = std::make_unique<std::vector<unsigned char>>(512);
    fid_mr* local = nullptr;
    ASSERT_EQ(fi_mr_reg(domain_, gone->data(), gone->size(), FI_READ, 0, 0, 0, &local, nullptr), 0);
    ASSERT_EQ(fi_read(ep_, gone->data(), 512, fi_mr_desc(local), other, 0, kKey, &local_), 0);
    ASSERT_EQ(fi_fetch_atomic(ep_, nullptr, 1, nullptr, gone->data(), fi_mr_desc(local), other, 0,
                              kKey, FI_UINT64, FI_ATOMIC_READ, &local_),
              0);
    ASSERT_EQ(fi_read(ep_, local_.data(), 512, nullptr, other, 0, kKey, &local_), 0);
    EXPECT_EQ(fi_close(&local->fid), 0);
    gone.reset();  // the address sanitizer finds a later write
    std::vector<unsigned char> answer(4 + 512, 0x55);
    std::fill(answer.begin(), answer.begin() + 4, 0);
    answer[0] = 1;
    fuzz::arrive(1, response_tag(0), answer);
    EXPECT_EQ(completion(&local_, FI_RMA | FI_READ), 0) << "it completes all the same";
    answer.resize(4 + 8);
    fuzz::arrive(1, response_tag(1), answer);
    EXPECT_EQ(completion(&local_, FI_ATOMIC | FI_READ), 0);
    EXPECT_EQ(static_cast<Endpoint*>(ep_)->remote_memory().given_back(), 2U);
    answer.resize(4 + 512, 0x55);
    fuzz::arrive(1, response_tag(2), answer);
    EXPECT_EQ(completion(&local_, FI_RMA | FI_READ), 0);
    EXPECT_EQ(local_[511], 0x55) << "memory that was not closed is filled";
}

TEST_F(RmaTest, an_endpoint_that_is_closed_lets_go_of_memory) {
    request(made(RmaKind::kLongWrite, 1, 5000), 0);
    ASSERT_EQ(last_result(), RmaResult::kGo);
    EXPECT_EQ(fi_close(&ep_->fid), 0);
    while_it_waits = [] { ADD_FAILURE() << "memory is in use"; };
    EXPECT_EQ(fi_close(&region_->fid), 0);
    while_it_waits = nullptr;
    EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_REMOTE_READ, 0, kKey, 0, &region_, nullptr),
              0);
    EXPECT_EQ(fi_endpoint(domain_, &info_, &ep_, nullptr), 0);
}

TEST_F(RmaTest, one_source_has_a_bounded_number_of_long_writes) {
    for (std::size_t i = 0; i < kRmaHeldMax; ++i) {
        request(made(RmaKind::kLongWrite, i, 5000), 0);
        ASSERT_EQ(last_result(), RmaResult::kGo);
    }
    request(made(RmaKind::kLongWrite, kRmaHeldMax, 5000), 0);
    EXPECT_EQ(last_result(), RmaResult::kTooMany);
    EXPECT_EQ(write(5000, 0, kKey), 0);  // another source
    fuzz::arrive(1, write_data_tag(0), std::vector<unsigned char>(5000, 0x55));
    poll();
    request(made(RmaKind::kLongWrite, kRmaHeldMax, 5000), 0);
    EXPECT_EQ(last_result(), RmaResult::kGo);
    for (std::size_t i = 1; i <= kRmaHeldMax; ++i)
        fuzz::arrive(1, write_data_tag(i), std::vector<unsigned char>(5000, 0x55));
    poll();
}

TEST_F(RmaTest, wrong_responses_are_errors) {
    fi_addr_t other = FI_ADDR_NOTAVAIL;
    unsigned char name[kAddressBytes];
    std::size_t length = sizeof name;
    ASSERT_EQ(fi_getname(&ep_->fid, name, &length), 0);
    name[7] = 1;  // the rank
    ASSERT_EQ(fi_av_insert(addresses_, name, 1, &other, 0, nullptr), 1);
    std::uint64_t number = 0;
    const auto respond = [&](std::vector<unsigned char> bytes) {
        fuzz::arrive(1, response_tag(number++), std::move(bytes));
    };
    const auto write_to_it = [&](std::size_t bytes) {
        ASSERT_EQ(fi_write(ep_, local_.data(), bytes, nullptr, other, 0, kKey, &local_), 0);
    };
    write_to_it(8);
    respond({1, 1, 0, 0});  // go, to a short write
    EXPECT_EQ(completion(&local_, FI_RMA | FI_WRITE), FI_EIO);
    write_to_it(5000);
    respond({1, 0, 0, 0});  // done, without its data
    EXPECT_EQ(completion(&local_, FI_RMA | FI_WRITE), FI_EIO);
    write_to_it(8);
    respond({});
    EXPECT_EQ(completion(&local_, FI_RMA | FI_WRITE), FI_EIO);
    for (const std::size_t bytes : {7, 9}) {
        ASSERT_EQ(fi_read(ep_, local_.data(), 8, nullptr, other, 0, kKey, &local_), 0);
        std::vector<unsigned char> answer(4 + bytes);
        answer[0] = 1;
        respond(std::move(answer));
        EXPECT_EQ(completion(&local_, FI_RMA | FI_READ), FI_EIO);
    }
    write_to_it(5000);
    fuzz::arrive(1, response_tag(number), {1, 1, 0, 0});
    poll();
    EXPECT_EQ(fuzz::last_sent().bytes.size(), 48U);       // the data went with a request of libulc
    fuzz::arrive(1, response_tag(number), {1, 1, 0, 0});  // a second go
    EXPECT_EQ(completion(&local_, FI_RMA | FI_WRITE), FI_EIO);
    EXPECT_EQ(endpoint().dropped().count(HeaderFault::kResponse), 6U);
}

TEST_F(RmaTest, so_many_operations_are_under_way_at_most) {
    fi_addr_t other = FI_ADDR_NOTAVAIL;
    unsigned char name[kAddressBytes];
    std::size_t length = sizeof name;
    ASSERT_EQ(fi_getname(&ep_->fid, name, &length), 0);
    name[7] = 1;
    ASSERT_EQ(fi_av_insert(addresses_, name, 1, &other, 0, nullptr), 1);
    for (std::size_t i = 0; i < kRmaHeldMax; ++i)
        ASSERT_EQ(fi_inject_write(ep_, local_.data(), 8, other, 0, kKey), 0);
    EXPECT_EQ(fi_inject_write(ep_, local_.data(), 8, other, 0, kKey), -FI_EAGAIN);
    fuzz::arrive(1, response_tag(5), {1, 0, 0, 0});
    poll();
    EXPECT_EQ(fi_inject_write(ep_, local_.data(), 8, other, 0, kKey), 0);
}

TEST_F(RmaTest, a_counter_of_memory_alone_moves_the_endpoints) {
    ASSERT_EQ(fi_inject_write(ep_, local_.data(), 8, self_, 0, kKey), 0);
    EXPECT_EQ(fi_cntr_wait(of_region_, 1, 1000), 0);
    EXPECT_EQ(fi_close(&of_region_->fid), -FI_EBUSY);
}

TEST_F(RmaTest, memory_in_use_and_wrong_registrations_are_refused) {
    fid_mr* other = nullptr;
    EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_REMOTE_READ, 0, kKey, 0, &other, nullptr),
              -FI_ENOKEY);
    EXPECT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_TAGGED, 0, 9, 0, &other, nullptr),
              -FI_EINVAL);
    ASSERT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_SEND, 0, kKey, 0, &other, nullptr), 0);
    EXPECT_EQ(fi_close(&other->fid), 0);
    ASSERT_EQ(fi_mr_reg(domain_, memory_.data(), 8, FI_REMOTE_WRITE, 0, 9, 0, &other, nullptr), 0);
    EXPECT_EQ(write(8, 0, 9), 0);
    EXPECT_EQ(fi_close(&other->fid), 0);
    EXPECT_EQ(write(8, 0, 9), FI_ENOKEY);
}

}  // namespace
}  // namespace ulc::ofi
