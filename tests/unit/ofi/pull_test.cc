// SPDX-License-Identifier: BSD-3-Clause
// Reading a message from another process: descriptors that do not fit, seals, pieces, and a sender
// that ends or takes its message back.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/process_start.h"
#include "ofi/pull/pull_reader.h"
#include "tests/unit/ofi/reads.h"

namespace {

/// The process that has the number of the one that is to be read; 0: none other.
pid_t read_instead = 0;

}  // namespace

/// Stands in for the C library's.
extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* local, unsigned long locals,
                                    const iovec* remote, unsigned long remotes,
                                    unsigned long flags) noexcept {
    ulc::ofi::reads_of.push_back(pid);
    return ::syscall(SYS_process_vm_readv, read_instead != 0 ? read_instead : pid, local, locals,
                     remote, remotes, flags);
}

namespace ulc::ofi {
namespace {

constexpr std::uint64_t kMax = 1U << 20;

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

ulc_near_process process_of(pid_t process) {
    const auto pid = static_cast<std::uint32_t>(process);
    return {process_start_ticks(pid), pid};
}

PullSeal seal_of(unsigned char token) {
    PullSeal seal{};
    seal.token.fill(token);
    seal.writer = {1, 2};
    seal.reader = {3, 4};
    return seal;
}

/// Describes memory of this process in three pieces.
class Pull : public testing::Test {
protected:
    Pull() : memory_(1000) {
        std::iota(memory_.begin(), memory_.end(), static_cast<unsigned char>(0));
        EXPECT_TRUE(own_.open(process_of(::getpid())));
        descriptor_.seal = seal_of(7);
        descriptor_.length = 600;
        descriptor_.count = 3;
        // In another order than they lie in memory.
        descriptor_.pieces[0] = {address_of(memory_.data() + 500), 100};
        descriptor_.pieces[1] = {address_of(memory_.data()), 250};
        descriptor_.pieces[2] = {address_of(memory_.data() + 700), 250};
    }

    [[nodiscard]] unsigned char byte(std::size_t i) const {
        if (i < 100) return memory_[500 + i];
        return i < 350 ? memory_[i - 100] : memory_[700 + i - 350];
    }
    [[nodiscard]] bool read(std::uint64_t from, std::uint64_t bytes, std::vector<ulc_piece> pieces,
                            const PullDescriptor& copy) const {
        return read_bytes(own_, address_of(&descriptor_), copy, from, bytes, pieces.data(),
                          static_cast<unsigned>(pieces.size()));
    }

    PeerProcess own_;
    std::vector<unsigned char> memory_;
    PullDescriptor descriptor_{};
};

TEST_F(Pull, a_descriptor_must_fit_its_message) {
    EXPECT_TRUE(descriptor_.is_valid(kMax));
    EXPECT_FALSE(descriptor_.is_valid(599));
    const auto spoil = [this](auto change) {
        PullDescriptor spoiled = descriptor_;
        change(spoiled);
        return spoiled.is_valid(kMax);
    };
    EXPECT_FALSE(spoil([](PullDescriptor& d) { d.length = 601; }));
    EXPECT_FALSE(spoil([](PullDescriptor& d) { d.length = 599; }));
    EXPECT_FALSE(spoil([](PullDescriptor& d) { d.count = 2; }));
    EXPECT_FALSE(spoil([](PullDescriptor& d) { d.count = 8; }));
    EXPECT_FALSE(spoil([](PullDescriptor& d) { d.has_data = 2; }));
    EXPECT_FALSE(spoil([](PullDescriptor& d) { d.pieces[1].length = UINT64_MAX; }));
    EXPECT_FALSE(spoil([](PullDescriptor& d) {  // a sum that wraps round
        d.pieces[0].length = UINT64_MAX - 400;
        d.pieces[1].length = 751;
    }));
    EXPECT_TRUE(spoil([](PullDescriptor& d) { d.count = 0, d.length = 0; }));
}

/// Seals that differ from a descriptor's in one field.
std::vector<PullSeal> others_of(const PullSeal& seal) {
    std::vector<PullSeal> others(5, seal);
    others[0].token[15] ^= 1U;
    ++others[1].writer.pid;
    ++others[2].writer.start_ticks;
    ++others[3].reader.pid;
    ++others[4].reader.start_ticks;
    return others;
}

TEST_F(Pull, a_descriptor_with_another_seal_is_not_read) {
    PullDescriptor copy{};
    EXPECT_TRUE(read_descriptor(own_, address_of(&descriptor_), descriptor_.seal, copy));
    EXPECT_EQ(copy.pieces[2].length, 250U);
    for (const PullSeal& other : others_of(descriptor_.seal))
        EXPECT_FALSE(read_descriptor(own_, address_of(&descriptor_), other, copy));
    EXPECT_FALSE(read_descriptor(own_, 4096, descriptor_.seal, copy));
}

// A token that a peer chose, and that this process wrote into a descriptor for it, does not make
// that descriptor one of the peer's.
TEST_F(Pull, bytes_behind_another_seal_are_not_taken) {
    std::array<unsigned char, 600> buffer{};
    const PullSeal own = descriptor_.seal;
    const PullDescriptor copy = descriptor_;
    for (const PullSeal& other : others_of(own)) {
        descriptor_.seal = other;
        EXPECT_FALSE(read(0, 600, {{buffer.data(), 600}}, copy));
    }
    descriptor_.seal = own;
    EXPECT_TRUE(read(0, 600, {{buffer.data(), 600}}, copy));
}

TEST_F(Pull, any_part_goes_into_its_place_and_nowhere_else) {
    for (std::uint64_t from : {0, 99, 100, 101, 349, 350, 599}) {
        for (std::uint64_t bytes : {1, 2, 250, 251, 600}) {
            if (from + bytes > 600) continue;
            std::array<unsigned char, 700> buffer{};
            buffer.fill(0xee);
            // Three pieces with gaps, 600 bytes in all.
            const std::vector<ulc_piece> pieces = {
                {buffer.data() + 10, 200}, {buffer.data() + 220, 1}, {buffer.data() + 250, 399}};
            ASSERT_TRUE(read(from, bytes, pieces, descriptor_));
            std::size_t changed = 0;
            for (const unsigned char one : buffer)
                changed += one != 0xee;
            std::size_t at = 0;
            for (const ulc_piece& piece : pieces) {
                for (std::size_t i = 0; i < piece.length; ++i, ++at) {
                    const bool inside = at >= from && at < from + bytes;
                    const unsigned char expected = inside ? byte(at) : 0xee;
                    ASSERT_EQ(static_cast<unsigned char*>(piece.base)[i], expected);
                }
            }
            EXPECT_LE(changed, bytes);
        }
    }
}

TEST_F(Pull, a_message_that_was_taken_back_is_not_read) {
    std::array<unsigned char, 600> buffer{};
    const PullDescriptor copy = descriptor_;
    EXPECT_TRUE(read(0, 600, {{buffer.data(), 600}}, copy));
    descriptor_.seal.token.fill(0);
    EXPECT_FALSE(read(0, 600, {{buffer.data(), 600}}, copy));
}

TEST_F(Pull, memory_that_is_not_there_is_refused) {
    std::array<unsigned char, 600> buffer{};
    descriptor_.pieces[1].address = 4096;
    EXPECT_FALSE(read(0, 600, {{buffer.data(), 600}}, descriptor_));
    EXPECT_TRUE(read(0, 100, {{buffer.data(), 600}}, descriptor_));
}

TEST_F(Pull, a_sender_that_has_ended_is_refused) {
    const pid_t sender = ::fork();
    if (sender == 0) {
        for (;;)
            ::pause();
    }
    std::array<unsigned char, 600> buffer{};
    const ulc_piece piece{buffer.data(), buffer.size()};
    ulc_near_process row = process_of(sender);
    PeerProcess process;
    ASSERT_TRUE(process.open(row));
    const auto read_it = [&] {
        return read_bytes(process, address_of(&descriptor_), descriptor_, 0, 600, &piece, 1);
    };
    EXPECT_TRUE(read_it());
    EXPECT_EQ(buffer[100], byte(100));
    ++row.start_ticks;  // the process that had the number before
    PeerProcess earlier;
    EXPECT_FALSE(earlier.open(row));
    ulc_piece none{buffer.data(), 0};
    EXPECT_FALSE(read_bytes(earlier, address_of(&descriptor_), descriptor_, 0, 0, &none, 1));
    ::kill(sender, SIGKILL);
    ASSERT_EQ(::waitpid(sender, nullptr, 0), sender);
    EXPECT_FALSE(read_it());
    PeerProcess late;
    EXPECT_FALSE(late.open(process_of(sender)));
}

// Another process has the sender's number by now, and the same seal at the same address.
TEST_F(Pull, what_was_read_after_the_end_of_the_sender_is_not_taken) {
    const pid_t sender = ::fork();
    if (sender == 0) {
        for (;;)
            ::pause();
    }
    PeerProcess process;
    ASSERT_TRUE(process.open(process_of(sender)));
    read_instead = ::getpid();
    std::array<unsigned char, 600> buffer{};
    const ulc_piece piece{buffer.data(), buffer.size()};
    EXPECT_TRUE(read_bytes(process, address_of(&descriptor_), descriptor_, 0, 600, &piece, 1));
    ::kill(sender, SIGKILL);
    ASSERT_EQ(::waitpid(sender, nullptr, 0), sender);
    EXPECT_FALSE(read_bytes(process, address_of(&descriptor_), descriptor_, 0, 600, &piece, 1));
    read_instead = 0;
}

}  // namespace
}  // namespace ulc::ofi
