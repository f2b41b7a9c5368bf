// SPDX-License-Identifier: BSD-3-Clause
// Two ranks that write, read and change each other's memory with the provider (fi_rma.h,
// fi_atomic.h).
//   remote FOLDER [basic|auto|kill]
// basic: addresses of the process and keys of the provider. auto: the target computes meanwhile.
// kill: the target is killed while it is written to.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "fabric_ranks.h"

namespace {

using namespace ulc::test;

constexpr int kMemoryBasic = 1;            // FI_MR_BASIC, of which libfabric 2 warns
constexpr std::size_t kBytes = 24U << 20;  // more than is sent before a receive matches
constexpr std::size_t kWord = 64;          // of the counters, behind the first bytes

std::vector<unsigned char> memory(kBytes);
std::vector<unsigned char> local(kBytes);
fid_mr* registered = nullptr;
fid_mr* read_only = nullptr;

/// The other rank's memory.
struct Place {
    std::uint64_t key;
    std::uint64_t read_only_key;
    std::uint64_t address;
} there;

void exchange_places() {
    const bool basic = memory_mode == kMemoryBasic;
    NEED(fi_mr_reg(f.domain, memory.data(), kBytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 11, 0,
                   &registered, nullptr));
    NEED(fi_mr_reg(f.domain, memory.data(), 64, FI_REMOTE_READ, 0, 12, 0, &read_only, nullptr));
    CHECK(basic || fi_mr_key(registered) == 11);
    const Place here{fi_mr_key(registered), fi_mr_key(read_only),
                     basic ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0};
    post(&there, sizeof there, 1, 0, &there, f.peer);
    inject(std::string(reinterpret_cast<const char*>(&here), sizeof here), 1);
    CHECK(next().op_context == &there);
}

template <class Call>
int outcome(Call call) {
    until_taken(call);
    for (;;) {
        Entry entry{};
        const ssize_t got = fi_cq_read(f.queue, &entry, 1);
        if (got == 1) {
            CHECK(entry.op_context == &local);
            return 0;
        }
        if (got == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            CHECK(fi_cq_readerr(f.queue, &error, 0) == 1 && error.op_context == &local);
            return error.err;
        }
        CHECK(got == -FI_EAGAIN);
        check_time(__LINE__);
    }
}
int moved(bool reads, std::size_t length, std::uint64_t offset, std::uint64_t key) {
    const iovec piece{local.data(), length};
    const fi_rma_iov remote{there.address + offset, length, key};
    const fi_msg_rma message{&piece, nullptr, 1, f.peer, &remote, 1, &local, 0};
    return outcome([&] {
        return reads ? fi_readmsg(f.ep, &message, FI_COMPLETION)
                     : fi_writemsg(f.ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    });
}

unsigned char byte(std::size_t i, std::size_t salt) {
    return static_cast<unsigned char>(i * 7 + salt + i / 251);
}

/// Rank 0 writes and reads again; rank 1 only makes progress.
void lengths() {
    for (const std::size_t length :
         {std::size_t{1}, std::size_t{8}, std::size_t{1000}, std::size_t{4096}, std::size_t{4097},
          std::size_t{65536}, std::size_t{1} << 20, kBytes - 1000}) {
        for (std::size_t i = 0; i < length; ++i)
            local[i] = byte(i, length);
        CHECK(moved(false, length, 1000, there.key) == 0);
        std::fill(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(length), 0);
        CHECK(moved(true, length, 1000, there.key) == 0);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < length; ++i)
            wrong += local[i] != byte(i, length);
        CHECK(wrong == 0);
    }
}

void refused() {
    for (const std::size_t length : {std::size_t{8}, std::size_t{1} << 20}) {
        CHECK(moved(false, length, 0, there.key ^ 0x10000) == FI_ENOKEY);
        CHECK(moved(false, length, kBytes - length + 1, there.key) == FI_EFAULT);
        CHECK(moved(true, length, kBytes, there.key) == FI_EFAULT);
        CHECK(moved(false, length, 0, there.read_only_key) == FI_EACCES);
    }
    CHECK(moved(true, 64, 0, there.read_only_key) == 0);
}

/// Many writes of both kinds are under way at once; they are read again afterwards.
void many() {
    constexpr int kMany = 3000;
    for (int i = 0; i < kMany; ++i) {
        const std::size_t length = i % 10 == 0 ? 9000 : 8;
        const auto offset = static_cast<std::uint64_t>(i) * 1000;
        std::memcpy(local.data() + offset, &i, sizeof i);
        const iovec piece{local.data() + offset, length};
        const fi_rma_iov remote{there.address + offset, length, there.key};
        const fi_msg_rma message{&piece, nullptr, 1, f.peer, &remote, 1, &local, 0};
        until_taken([&] {
            const ssize_t error = fi_writemsg(f.ep, &message, FI_COMPLETION);
            if (error == -FI_EAGAIN) static_cast<void>(fi_cntr_read(f.sent));
            return error;
        });
    }
    for (int i = 0; i < kMany; ++i)
        CHECK(next().op_context == &local);
    for (int i = 0; i < kMany; ++i) {
        int was = -1;
        CHECK(moved(true, sizeof was, static_cast<std::uint64_t>(i) * 1000, there.key) == 0);
        std::memcpy(&was, local.data(), sizeof was);
        if (was != i) {
            CHECK(was == i);
            break;
        }
    }
}

/// Both ranks draw numbers from one counter of rank 1: each number comes once.
void tickets() {
    constexpr std::uint64_t kTickets = 500;
    const bool own = rank == 1;
    const Place here{
        fi_mr_key(registered), 0,
        memory_mode == kMemoryBasic ? reinterpret_cast<std::uintptr_t>(memory.data()) : 0};
    const Place at = own ? here : there;
    std::uint64_t sum = 0;
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < kTickets; ++i) {
        const std::uint64_t one = 1;
        std::uint64_t drawn = 0;
        const fi_ioc value{const_cast<std::uint64_t*>(&one), 1};
        fi_ioc result{&drawn, 1};
        const fi_rma_ioc remote{at.address + kWord, 1, at.key};
        const fi_msg_atomic message{
            &value, nullptr, 1, own ? f.self : f.peer, &remote, 1, FI_UINT64, FI_SUM, &local, 0};
        CHECK(outcome([&] {
                  return fi_fetch_atomicmsg(f.ep, &message, &result, nullptr, 1, FI_COMPLETION);
              }) == 0);
        CHECK(i == 0 || drawn > last);
        last = drawn;
        sum += drawn;
    }
    std::uint64_t other = 0;
    post(&other, sizeof other, 2, 0, &other, f.peer);
    inject(std::string(reinterpret_cast<const char*>(&sum), sizeof sum), 2);
    CHECK(next().op_context == &other);
    CHECK(sum + other == kTickets * (2 * kTickets - 1));
}

/// Rank 1 hears of a write by its completion data.
void told() {
    if (rank == 0) {
        std::fill(local.begin(), local.begin() + 5000, 0x3c);
        for (const std::size_t length : {std::size_t{8}, std::size_t{5000}})
            until_taken([&] {
                return fi_writedata(f.ep, local.data(), length, nullptr, length, f.peer,
                                    there.address, there.key, &local);
            });
        meet();
        return;
    }
    for (int i = 0; i < 2; ++i) {
        fi_addr_t source = FI_ADDR_UNSPEC;
        const Entry entry = next(&source);
        CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
        CHECK(entry.data == entry.len && source == f.peer);
        CHECK(memory[entry.len - 1] == 0x3c);
    }
    meet();
}

/// Rank 1 computes, and enters the library not once until its memory has changed.
void computes() {
    std::atomic_ref<unsigned char> flag(memory[0]);
    if (rank == 0) {
        local[0] = 0x99;
        CHECK(moved(false, 1, 0, there.key) == 0);
        meet();
        return;
    }
    while (flag != 0x99)
        check_time(__LINE__);
    meet();
}

/// Each access to the memory of a rank that was killed ends with an error.
int killed() {
    if (rank == 1) {
        for (;;) {
            static_cast<void>(fi_cntr_read(f.sent));
            if (memory[0] == 0x44) ::kill(::getpid(), SIGKILL);
            check_time(__LINE__);
        }
    }
    local[0] = 0x44;
    int errors = 0;
    const iovec word{local.data(), 8};
    const iovec all{local.data(), kBytes};
    while (errors < 3) {
        for (const iovec* piece : {&word, &all}) {
            const fi_rma_iov remote{there.address, piece->iov_len, there.key};
            const fi_msg_rma message{piece, nullptr, 1, f.peer, &remote, 1, &local, 0};
            ssize_t error = -FI_EAGAIN;
            while (error == -FI_EAGAIN)
                error = fi_writemsg(f.ep, &message, FI_COMPLETION);
            int end = static_cast<int>(-error);
            if (error == 0) end = outcome([] { return ssize_t{0}; });
            CHECK(end == 0 || end == FI_EHOSTUNREACH);
            errors += end != 0 ? 1 : 0;
        }
    }
    if (failures == 0) std::printf("rank %d: all right\n", rank);
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2 && argc != 3) return 2;
    const std::string how = argc == 3 ? argv[2] : "";
    automatic = how == "auto";
    memory_mode = how == "basic" ? kMemoryBasic : 0;
    more_caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
    rank = std::atoi(std::getenv("ULC_RANK"));
    open_endpoint();
    CHECK((f.info->caps & (FI_RMA | FI_ATOMIC | FI_REMOTE_WRITE | FI_READ)) ==
          (FI_RMA | FI_ATOMIC | FI_REMOTE_WRITE | FI_READ));
    exchange_addresses(argv[1]);
    exchange_places();
    if (how == "kill") return killed();
    if (automatic) computes();
    if (rank == 0) {
        lengths();
        refused();
        many();
    }
    meet();
    std::memset(memory.data(), 0, 100);
    meet();
    tickets();
    told();
    meet();
    CHECK(fi_close(&registered->fid) == 0 && fi_close(&read_only->fid) == 0);
    close_endpoint();
    if (failures == 0) std::printf("rank %d: all right\n", rank);
    return failures == 0 ? 0 : 1;
}
