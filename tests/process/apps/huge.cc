// SPDX-License-Identifier: BSD-3-Clause
// Sends messages whose lengths do not fit into 31 and 32 bits, from rank 0 to rank 1: a broadcast
// of 2 GiB + 5 bytes from rank 0, a send of 3 GiB (embedded: one record, from the application's
// memory), a send of 4 GiB + 5. Rank 1 compares every byte.
//   huge             exit 0 if all was right
//   huge broadcast   only the broadcast
//   huge each        every other collective of 2 GiB + 5 bytes or elements from rank 0 to rank 1
// Rank 0 sends a pattern of little memory that is mapped repeatedly. Its period divides no power of
// two, so that bytes that are misplaced by 2 or 4 GiB differ.
#include <coll.h>
#include <sys/mman.h>
#include <ulc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::int64_t kLimit = 120'000'000'000;  // ns
constexpr std::size_t kPeriod = (std::size_t{64} << 20) + std::size_t{3} * 4096;
constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr std::size_t kLongest = 4 * kGiB + 5;
constexpr std::uint64_t kTag = 1;

void need(const char* what, int error) {
    if (error == ULC_OK) return;
    std::fprintf(stderr, "huge: %s: %s (%s)\n", what, ulc_error_text(error), ulc_last_error_text());
    std::exit(1);
}

void need_map(const void* mapped) {
    if (mapped != MAP_FAILED) return;
    std::perror("huge: mmap");
    std::exit(1);
}

/// Maps one period, as the file behind it.
int pattern(unsigned char*& octets) {
    const int file = memfd_create("pattern", 0);
    if (file < 0 || ftruncate(file, kPeriod) != 0) {
        std::perror("huge: memfd");
        std::exit(1);
    }
    void* mapped = mmap(nullptr, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    need_map(mapped);
    octets = static_cast<unsigned char*>(mapped);
    for (std::size_t i = 0; i < kPeriod; i += sizeof i) {
        const std::size_t word = (i + 1) * 0x9E3779B97F4A7C15U;
        std::memcpy(octets + i, &word, sizeof word);
    }
    return file;
}

/// Returns a buffer longer than the longest message: at rank 0 the pattern repeated, to be read; at
/// rank 1 empty.
unsigned char* buffer(bool sends, int file) {
    const std::size_t periods = kLongest / kPeriod + 1;
    void* mapped = mmap(nullptr, periods * kPeriod, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need_map(mapped);
    auto* octets = static_cast<unsigned char*>(mapped);
    if (!sends) (void)madvise(octets, kLongest, MADV_HUGEPAGE);  // fewer faults, if available
    for (std::size_t n = 0; sends && n < periods; ++n)
        need_map(mmap(octets + n * kPeriod, kPeriod, PROT_READ,
                      MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0));
    return octets;
}

/// Compares every byte of the message, and checks that none behind it was written.
void compare(const char* what, const unsigned char* expected, const unsigned char* got,
             std::size_t octets) {
    for (std::size_t at = 0; at < octets; at += kPeriod) {
        if (std::memcmp(got + at, expected, std::min(kPeriod, octets - at)) == 0) continue;
        std::fprintf(stderr, "huge: %s: wrong octets behind %zu\n", what, at);
        std::exit(1);
    }
    if (got[octets] != 0) {
        std::fprintf(stderr, "huge: %s: more than %zu octets\n", what, octets);
        std::exit(1);
    }
}

/// Spoils each page, so that only the next operation can make it right.
void spoil(unsigned char* got, std::size_t octets) {
    for (std::size_t at = 0; at < octets; at += 4096)
        got[at] = static_cast<unsigned char>(~got[at]);
}

/// Runs every other collective of 2 GiB + 5 bytes from rank 0 to rank 1, which gives nothing, or
/// zeros: the maximum of each pair is the pattern again. Each receiver compares.
void each(ulc_endpoint* ep, const unsigned char* pattern, int file) {
    constexpr std::size_t kOctets = 2 * kGiB + 5;
    constexpr ulc_reduction kMax{ULC_UINT8, ULC_MAX, nullptr, nullptr, 0};
    const ulc_group world = ulc_world(ep);
    const bool first = ulc_rank(ep) == 0;
    const unsigned char* in = buffer(first, file);
    unsigned char* out = buffer(false, file);
    const std::size_t from_first[] = {kOctets, 0};
    const std::size_t to_second[] = {0, kOctets};
    const std::size_t nothing[] = {0, 0};
    const std::size_t given = first ? kOctets : 0;
    using Clock = std::chrono::steady_clock;
    auto done = [&, start = Clock::now()](const char* what, int error, bool gets) mutable {
        need(what, error);
        const std::chrono::duration<double> took = Clock::now() - start;
        if (gets) {
            compare(what, pattern, out, kOctets);
            spoil(out, kOctets);
        }
        if (!first) std::printf("huge: %s of %zu octets in %.1f s\n", what, kOctets, took.count());
        need("barrier", ulc_barrier(ep, world));
        start = Clock::now();
    };
    done("gatherv", ulc_gatherv(ep, world, 1, in, given, out, from_first, nullptr), !first);
    done("scatterv", ulc_scatterv(ep, world, 0, in, to_second, nullptr, out, first ? 0 : kOctets),
         !first);
    done("allgatherv", ulc_allgatherv(ep, world, in, out, from_first, nullptr), true);
    done("alltoallv",
         ulc_alltoallv(ep, world, in, first ? to_second : nothing, nullptr, out,
                       first ? nothing : from_first, nullptr),
         !first);
    done("reduce", ulc_reduce(ep, world, 1, in, out, kOctets, kMax), !first);
    done("allreduce", ulc_allreduce(ep, world, in, out, kOctets, kMax), true);
    done("reduce_scatter", ulc_reduce_scatter(ep, world, in, out, to_second, kMax), !first);
    done("scan", ulc_scan(ep, world, in, out, kOctets, kMax), true);
    done("exscan", ulc_exscan(ep, world, in, out, kOctets, kMax), !first);
}

}  // namespace

int main(int argc, char** argv) {
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    const bool sends = ulc_rank(ep) == 0;
    unsigned char* expected = nullptr;
    const int file = pattern(expected);
    if (argc == 2 && std::strcmp(argv[1], "each") == 0) {
        each(ep, expected, file);
        need("leave", ulc_leave_wait(ep, kLimit));
        ulc_close(ep);
        return 0;
    }
    unsigned char* octets = buffer(sends, file);
    using Clock = std::chrono::steady_clock;
    auto report = [&, start = Clock::now()](const char* what, std::size_t length) mutable {
        const std::chrono::duration<double> took = Clock::now() - start;
        if (!sends) {
            compare(what, expected, octets, length);
            if (madvise(octets, kLongest, MADV_DONTNEED) != 0) std::abort();
            std::printf("huge: %s of %zu octets in %.1f s\n", what, length, took.count());
        }
        need("barrier", ulc_barrier(ep, ulc_world(ep)));
        start = Clock::now();
    };
    constexpr std::size_t kBroadcast = 2 * kGiB + 5;
    need("broadcast", ulc_broadcast(ep, ulc_world(ep), 0, octets, kBroadcast));
    report("broadcast", kBroadcast);
    const bool all = argc < 2 || std::strcmp(argv[1], "broadcast") != 0;
    for (const std::size_t length : {3 * kGiB, kLongest}) {
        if (!all) break;
        ulc_request request;
        ulc_status status{};
        if (sends) {
            need("send", ulc_send(ep, 1, kTag, octets, length, &request));
        } else {
            need("receive", ulc_receive(ep, 0, kTag, UINT64_MAX, octets, length, &request));
        }
        need("wait", ulc_wait_for(ep, &request, &status, kLimit));
        need("message", status.error);
        if (!sends && status.length != length) need("length", ULC_ERR_TRUNCATED);
        report("send", length);
    }
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
    return 0;
}
