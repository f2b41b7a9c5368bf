// SPDX-License-Identifier: BSD-3-Clause
// Tests a rank that dies by SIGKILL during a collective. The others must get PEER_DIED for it, all
// the same and in time, and continue in a group without the dead rank: a barrier, and an allreduce
// of which every element is compared.
//   death OPERATION VICTIM LIMIT FILE
// OPERATION: broadcast (from the victim) or allreduce. LIMIT: seconds from the death until the last
// survivor knows. FILE: the victim writes there when it dies. The victim is a child of this
// program, which then exits with 0, so a launcher sees no rank fail.
#include <coll.h>
#include <sys/wait.h>
#include <ulc.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Numbers = std::vector<std::uint64_t>;

constexpr std::int64_t kLimit = 60'000'000'000;       // ns
constexpr std::size_t kCount = std::size_t{6} << 20;  // 48 MiB: some tens of milliseconds at least
constexpr auto kBegins = std::chrono::milliseconds(5);
constexpr ulc_reduction kSum{ULC_UINT64, ULC_SUM, nullptr, nullptr, 0};

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "death: %s\n", what.c_str());
    std::exit(1);
}
void need(const char* what, int error) {
    if (error == ULC_OK) return;
    fail(std::string(what) + ": " + ulc_error_text(error) + " (" + ulc_last_error_text() + ')');
}

std::uint64_t element_of(std::size_t rank, std::size_t i) { return (rank + 2) * (i * i + 1); }

/// Starts the operation over the whole job.
ulc_coll* start(ulc_endpoint* ep, bool broadcast, std::uint16_t victim, Numbers& in, Numbers& out) {
    ulc_coll* operation = nullptr;
    if (broadcast) {
        need("start", ulc_broadcast_start(ep, ulc_world(ep), victim, out.data(),
                                          out.size() * sizeof out[0], nullptr, &operation));
    } else {
        need("start", ulc_allreduce_start(ep, ulc_world(ep), in.data(), out.data(), in.size(), kSum,
                                          nullptr, &operation));
    }
    return operation;
}

/// Runs the operation for a while, then dies; never returns.
[[noreturn]] void die(ulc_endpoint* ep, ulc_coll* operation, const char* file) {
    const Clock::time_point begin = Clock::now();
    while (Clock::now() - begin < kBegins) {
        ulc_poll(ep);
        if (ulc_coll_test(ep, operation) != ULC_ERR_AGAIN) fail("it was over before the death");
    }
    const auto now = Clock::now().time_since_epoch().count();
    std::FILE* said = std::fopen(file, "wb");
    if (said == nullptr || std::fwrite(&now, sizeof now, 1, said) != 1 || std::fclose(said) != 0)
        fail("cannot write when it dies");
    std::raise(SIGKILL);
    std::abort();
}

/// Returns the seconds since the victim died.
double since_death(const char* file) {
    Clock::rep died = 0;
    std::FILE* said = std::fopen(file, "rb");
    if (said == nullptr || std::fread(&died, sizeof died, 1, said) != 1)
        fail("an error before anybody died");
    std::fclose(said);
    return std::chrono::duration<double>(Clock::now().time_since_epoch() - Clock::duration(died))
        .count();
}

void go_on(ulc_endpoint* ep, std::uint16_t victim, Numbers& in, Numbers& out) {
    std::vector<std::uint16_t> rest;
    for (std::uint16_t rank = 0; rank < ulc_size(ep); ++rank)
        if (rank != victim) rest.push_back(rank);
    ulc_request request;
    ulc_status made{};
    need("group",
         ulc_group_create(ep, rest.data(), static_cast<std::uint16_t>(rest.size()), &request));
    need("group", ulc_wait_for(ep, &request, &made, kLimit));
    need("group", made.error);
    need("barrier", ulc_barrier(ep, made.group));
    need("allreduce", ulc_allreduce(ep, made.group, in.data(), out.data(), in.size(), kSum));
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::uint64_t sum = 0;
        for (const std::uint16_t rank : rest)
            sum += element_of(rank, i);
        if (out[i] != sum) fail("element " + std::to_string(i) + " is wrong");
    }
    need("barrier", ulc_barrier(ep, made.group));
}

void play(bool broadcast, std::uint16_t victim, double limit, const char* file) {
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    Numbers in(kCount);
    for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = element_of(ulc_rank(ep), i);
    Numbers out(kCount, 0);
    need("barrier", ulc_barrier(ep, ulc_world(ep)));
    ulc_coll* operation = start(ep, broadcast, victim, in, out);
    if (ulc_rank(ep) == victim) die(ep, operation, file);
    const int error = ulc_coll_wait(ep, operation, kLimit);
    const double took = since_death(file);
    if (error != ULC_ERR_PEER_DIED)
        fail(std::string("the operation ends with ") + ulc_error_text(error));
    if (took > limit) fail("knows of it after " + std::to_string(took) + " s only");
    go_on(ep, victim, in, out);
    std::printf("death: rank %u went on without rank %u, of whose death it knew within %.2f s\n",
                unsigned{ulc_rank(ep)}, unsigned{victim}, took);
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) fail("death broadcast|allreduce VICTIM LIMIT FILE");
    const auto victim = static_cast<std::uint16_t>(std::atoi(argv[2]));
    const pid_t child = fork();
    if (child < 0) fail("no child");
    if (child == 0) {
        play(std::strcmp(argv[1], "broadcast") == 0, victim, std::atof(argv[3]), argv[4]);
        return 0;
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) fail("no end of the child");
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (WTERMSIG(status) != SIGKILL) fail("ended by signal " + std::to_string(WTERMSIG(status)));
    return 0;
}
