// SPDX-License-Identifier: BSD-3-Clause
// The checks of a target before a peer reaches its memory: keys, ranges and rights of regions, the
// form of requests and responses; and the arithmetic of atomic operations.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <array>
#include <complex>
#include <cstring>
#include <set>
#include <vector>

#include "ofi/rma/atomics.h"
#include "ofi/rma/regions.h"
#include "ofi/rma/rma_wire.h"

namespace ulc::ofi {
namespace {

constexpr std::uint64_t kBoth = FI_REMOTE_READ | FI_REMOTE_WRITE;

class Regions : public testing::Test {
protected:
    Regions() {
        region_.base = memory_.data() + 8;
        region_.length = 100;
        region_.access = kBoth;
    }
    RmaResult find(RegionTable& table, std::uint64_t key, std::uint64_t address,
                   std::uint64_t length, std::uint64_t access = kBoth) {
        const std::lock_guard hold(table.mutex);
        found_ = nullptr;
        first_ = nullptr;
        return table.find(key, address, length, access, found_, first_);
    }

    std::array<unsigned char, 128> memory_{};
    Region region_{};
    Region* found_ = nullptr;
    unsigned char* first_ = nullptr;
};

TEST_F(Regions, a_range_inside_is_found_and_no_other) {
    RegionTable table({false, false});
    std::uint64_t key = 7;
    ASSERT_EQ(table.add(region_, key), 0);
    EXPECT_EQ(key, 7U);
    for (const auto& [address, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
             {0, 0}, {0, 100}, {99, 1}, {100, 0}, {40, 60}}) {
        EXPECT_EQ(find(table, 7, address, length), RmaResult::kDone) << address << ' ' << length;
        EXPECT_EQ(found_, &region_);
        EXPECT_EQ(first_, region_.base + address);
    }
    for (const auto& [address, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
             {0, 101},
             {100, 1},
             {101, 0},
             {1, 100},
             {1, UINT64_MAX},  // sums that wrap round
             {UINT64_MAX, 1},
             {UINT64_MAX - 7, 16}}) {
        EXPECT_EQ(find(table, 7, address, length), RmaResult::kOutside) << address << ' ' << length;
        EXPECT_EQ(first_, nullptr);
    }
}

TEST_F(Regions, a_key_that_was_not_granted_finds_nothing) {
    RegionTable table({false, false});
    std::uint64_t key = 7;
    EXPECT_EQ(find(table, 7, 0, 1), RmaResult::kNoKey);
    ASSERT_EQ(table.add(region_, key), 0);
    EXPECT_EQ(find(table, 8, 0, 1), RmaResult::kNoKey);
    EXPECT_EQ(find(table, 0, 0, 0), RmaResult::kNoKey);
    Region other{};
    EXPECT_EQ(table.add(other, key), -FI_ENOKEY);
    table.remove(7);
    EXPECT_EQ(find(table, 7, 0, 1), RmaResult::kNoKey);
}

TEST_F(Regions, a_right_that_was_not_granted_is_refused) {
    RegionTable table({false, false});
    std::uint64_t key = 7;
    region_.access = FI_REMOTE_READ;
    ASSERT_EQ(table.add(region_, key), 0);
    EXPECT_EQ(find(table, 7, 0, 1, FI_REMOTE_READ), RmaResult::kDone);
    EXPECT_EQ(find(table, 7, 0, 1, FI_REMOTE_WRITE), RmaResult::kNotGranted);
    EXPECT_EQ(find(table, 7, 0, 1, kBoth), RmaResult::kNotGranted);
}

TEST_F(Regions, addresses_of_the_process_count_from_its_memory) {
    RegionTable table({true, false});
    std::uint64_t key = 7;
    ASSERT_EQ(table.add(region_, key), 0);
    const std::uint64_t base = reinterpret_cast<std::uintptr_t>(region_.base);
    EXPECT_EQ(find(table, 7, base + 3, 97), RmaResult::kDone);
    EXPECT_EQ(first_, region_.base + 3);
    for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{3}, base - 1, base + 101})
        EXPECT_EQ(find(table, 7, address, 1), RmaResult::kOutside);
    EXPECT_EQ(find(table, 7, base + 3, 98), RmaResult::kOutside);
}

TEST_F(Regions, own_keys_are_drawn_and_differ) {
    RegionTable table({true, true});
    std::array<Region, 64> regions{};
    std::set<std::uint64_t> keys;
    for (Region& one : regions) {
        std::uint64_t key = 5;
        ASSERT_EQ(table.add(one, key), 0);
        keys.insert(key);
    }
    EXPECT_EQ(keys.size(), regions.size());
    EXPECT_FALSE(keys.contains(5));
}

RmaRequest request(RmaKind kind, std::uint64_t length) {
    RmaRequest made{};
    made.version = RmaRequest::kVersion;
    made.kind = static_cast<std::uint8_t>(kind);
    made.number = kRmaNumberMax;
    made.length = length;
    return made;
}

TEST(RmaRequests, their_length_follows_from_their_kind) {
    constexpr std::size_t kHead = sizeof(RmaRequest);
    EXPECT_TRUE(request(RmaKind::kWrite, 9).is_valid(kHead + 9));
    EXPECT_FALSE(request(RmaKind::kWrite, 9).is_valid(kHead + 8));
    EXPECT_FALSE(request(RmaKind::kWrite, 9).is_valid(kHead + 10));
    EXPECT_TRUE(request(RmaKind::kWrite, kRmaInlineMax).is_valid(kHead + kRmaInlineMax));
    EXPECT_FALSE(request(RmaKind::kWrite, kRmaInlineMax + 1).is_valid(kHead + kRmaInlineMax + 1));
    EXPECT_FALSE(request(RmaKind::kWrite, UINT64_MAX).is_valid(kHead - 1));
    EXPECT_TRUE(request(RmaKind::kLongWrite, UINT64_MAX).is_valid(kHead));
    EXPECT_TRUE(request(RmaKind::kRead, UINT64_MAX).is_valid(kHead));
    EXPECT_FALSE(request(RmaKind::kRead, 9).is_valid(kHead + 9));
    for (std::size_t octets = 0; octets < kHead; ++octets)
        EXPECT_FALSE(request(RmaKind::kRead, 9).is_valid(octets));
    RmaRequest atomic = request(RmaKind::kCompare, 16);
    atomic.operands = 2;
    EXPECT_TRUE(atomic.is_valid(kHead + 32));
    EXPECT_FALSE(atomic.is_valid(kHead + 16));
    atomic.operands = 3;
    EXPECT_FALSE(atomic.is_valid(kHead + 48));
    atomic.operands = 1;
    atomic.length = kAtomicBytesMax + 1;
    EXPECT_FALSE(atomic.is_valid(kHead + kAtomicBytesMax + 1));
}

TEST(RmaRequests, fields_that_do_not_belong_to_a_kind_are_refused) {
    const auto spoilt = [](auto change) {
        RmaRequest one = request(RmaKind::kRead, 9);
        change(one);
        return one.is_valid(sizeof one);
    };
    EXPECT_TRUE(spoilt([](RmaRequest&) {}));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.version = 2; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.kind = 0; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.kind = kRmaKinds; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.flags = RmaRequest::kHasData; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.data = 1; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.datatype = 1; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.op = 1; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.operands = 1; }));
    EXPECT_FALSE(spoilt([](RmaRequest& r) { r.number = kRmaNumberMax + 1; }));
}

TEST(RmaResponses, data_come_with_success_alone) {
    RmaResponse response{RmaResponse::kVersion, 0, 0};
    EXPECT_TRUE(response.is_valid(4, 0));
    EXPECT_TRUE(response.is_valid(13, 9));
    EXPECT_FALSE(response.is_valid(12, 9));
    EXPECT_FALSE(response.is_valid(14, 9));
    EXPECT_FALSE(response.is_valid(3, 0));
    response.result = static_cast<std::uint8_t>(RmaResult::kNoKey);
    EXPECT_TRUE(response.is_valid(4, 9));
    EXPECT_FALSE(response.is_valid(13, 9));
    response.result = kRmaResults;
    EXPECT_FALSE(response.is_valid(4, 9));
}

/// Applies an operation to one element that lies at an odd address. Returns what is there then.
template <class T>
T after(fi_datatype datatype, fi_op op, T there, T value, T compare = {}) {
    std::vector<unsigned char> target(sizeof(T) + 1);
    std::vector<unsigned char> operands(2 * sizeof(T));
    std::vector<unsigned char> old(sizeof(T));
    std::memcpy(target.data() + 1, &there, sizeof(T));
    std::memcpy(operands.data(), &value, sizeof(T));
    std::memcpy(operands.data() + sizeof(T), &compare, sizeof(T));
    apply_atomic(static_cast<std::uint8_t>(datatype), static_cast<std::uint8_t>(op), 1,
                 target.data() + 1, operands.data(), old.data());
    T was{};
    T result{};
    std::memcpy(&was, old.data(), sizeof(T));
    std::memcpy(&result, target.data() + 1, sizeof(T));
    EXPECT_EQ(was, there);
    return result;
}

TEST(Atomics, each_operation_does_what_its_name_says) {
    const auto of = [](fi_op op, std::int32_t there, std::int32_t value, std::int32_t compare = 0) {
        return after<std::int32_t>(FI_INT32, op, there, value, compare);
    };
    EXPECT_EQ(of(FI_MIN, -3, 2), -3);
    EXPECT_EQ(of(FI_MAX, -3, 2), 2);
    EXPECT_EQ(of(FI_SUM, INT32_MAX, 1), INT32_MIN);
    EXPECT_EQ(of(FI_PROD, -3, 5), -15);
    EXPECT_EQ(of(FI_LOR, 0, 6), 1);
    EXPECT_EQ(of(FI_LOR, 0, 0), 0);
    EXPECT_EQ(of(FI_LAND, 4, 2), 1);
    EXPECT_EQ(of(FI_LAND, 4, 0), 0);
    EXPECT_EQ(of(FI_LXOR, 4, 2), 0);
    EXPECT_EQ(of(FI_LXOR, 4, 0), 1);
    EXPECT_EQ(of(FI_BOR, 5, 2), 7);
    EXPECT_EQ(of(FI_BAND, 5, 4), 4);
    EXPECT_EQ(of(FI_BXOR, 5, 1), 4);
    EXPECT_EQ(of(FI_ATOMIC_READ, 5, 1), 5);
    EXPECT_EQ(of(FI_ATOMIC_WRITE, 5, 1), 1);
    EXPECT_EQ(of(FI_CSWAP, 5, 1, 5), 1);
    EXPECT_EQ(of(FI_CSWAP, 5, 1, 4), 5);
    EXPECT_EQ(of(FI_CSWAP_NE, 5, 1, 4), 1);
    EXPECT_EQ(of(FI_CSWAP_NE, 5, 1, 5), 5);
    EXPECT_EQ(of(FI_CSWAP_LE, 5, 1, 5), 1);
    EXPECT_EQ(of(FI_CSWAP_LE, 5, 1, 6), 5);
    EXPECT_EQ(of(FI_CSWAP_LT, 5, 1, 4), 1);
    EXPECT_EQ(of(FI_CSWAP_LT, 5, 1, 5), 5);
    EXPECT_EQ(of(FI_CSWAP_GE, 5, 1, 5), 1);
    EXPECT_EQ(of(FI_CSWAP_GE, 5, 1, 4), 5);
    EXPECT_EQ(of(FI_CSWAP_GT, 5, 1, 6), 1);
    EXPECT_EQ(of(FI_CSWAP_GT, 5, 1, 5), 5);
    EXPECT_EQ(of(FI_MSWAP, 0x55, 0x0f, 0x3c), 0x4d);
}

TEST(Atomics, they_work_on_every_datatype) {
    EXPECT_EQ(after<std::int8_t>(FI_INT8, FI_SUM, 127, 1), -128);
    EXPECT_EQ(after<std::uint8_t>(FI_UINT8, FI_PROD, 200, 200), 64);
    EXPECT_EQ(after<std::int16_t>(FI_INT16, FI_MIN, -5, 3), -5);
    EXPECT_EQ(after<std::uint16_t>(FI_UINT16, FI_PROD, 65535, 65535), 1);
    EXPECT_EQ(after<std::uint32_t>(FI_UINT32, FI_MAX, UINT32_MAX, 3), UINT32_MAX);
    EXPECT_EQ(after<std::int64_t>(FI_INT64, FI_SUM, 1LL << 40, -1), (1LL << 40) - 1);
    EXPECT_EQ(after<std::uint64_t>(FI_UINT64, FI_BXOR, UINT64_MAX, 1), UINT64_MAX - 1);
    EXPECT_EQ(after<float>(FI_FLOAT, FI_SUM, 1.5F, 2.F), 3.5F);
    EXPECT_EQ(after<double>(FI_DOUBLE, FI_PROD, 1.5, 2.), 3.);
    EXPECT_EQ(after<long double>(FI_LONG_DOUBLE, FI_MAX, 1.5L, 2.L), 2.L);
    EXPECT_EQ((after<std::complex<float>>(FI_FLOAT_COMPLEX, FI_PROD, {0, 1}, {0, 1})),
              std::complex<float>(-1, 0));
    EXPECT_EQ((after<std::complex<double>>(FI_DOUBLE_COMPLEX, FI_CSWAP, {0, 1}, {2, 1}, {0, 1})),
              std::complex<double>(2, 1));
    EXPECT_EQ((after<std::complex<long double>>(FI_LONG_DOUBLE_COMPLEX, FI_SUM, {0, 1}, {2, 1})),
              std::complex<long double>(2, 2));
    EXPECT_EQ(element_bytes(FI_LONG_DOUBLE_COMPLEX), sizeof(std::complex<long double>));
    EXPECT_EQ(element_bytes(FI_DATATYPE_LAST), 0U);
    EXPECT_EQ(element_bytes(255), 0U);
}

TEST(Atomics, what_makes_no_sense_is_not_there) {
    EXPECT_TRUE(is_there(RmaKind::kAtomic, FI_DOUBLE, FI_MIN));
    EXPECT_TRUE(is_there(RmaKind::kFetch, FI_DOUBLE_COMPLEX, FI_ATOMIC_READ));
    EXPECT_TRUE(is_there(RmaKind::kCompare, FI_UINT8, FI_MSWAP));
    EXPECT_FALSE(is_there(RmaKind::kAtomic, FI_DOUBLE, FI_BAND));
    EXPECT_FALSE(is_there(RmaKind::kAtomic, FI_DOUBLE_COMPLEX, FI_MIN));
    EXPECT_FALSE(is_there(RmaKind::kAtomic, FI_INT32, FI_ATOMIC_READ));
    EXPECT_FALSE(is_there(RmaKind::kAtomic, FI_INT32, FI_CSWAP));
    EXPECT_FALSE(is_there(RmaKind::kFetch, FI_INT32, FI_CSWAP));
    EXPECT_FALSE(is_there(RmaKind::kCompare, FI_INT32, FI_SUM));
    EXPECT_FALSE(is_there(RmaKind::kCompare, FI_FLOAT, FI_MSWAP));
    EXPECT_FALSE(is_there(RmaKind::kCompare, FI_DOUBLE_COMPLEX, FI_CSWAP_LT));
    EXPECT_FALSE(is_there(RmaKind::kFetch, FI_DATATYPE_LAST, FI_SUM));
    EXPECT_FALSE(is_there(RmaKind::kFetch, FI_INT32, FI_ATOMIC_OP_LAST));
    EXPECT_FALSE(is_there(RmaKind::kFetch, FI_INT32, 255));
}

}  // namespace
}  // namespace ulc::ofi
