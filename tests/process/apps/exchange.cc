// SPDX-License-Identifier: BSD-3-Clause
// A small real application for the process tests: every rank sends numbered messages of many
// lengths to every other rank and multicasts some to all; every byte that arrives is checked, and
// the order too.
//   exchange [ROUNDS]     exit 0 if all was right, 1 if not
// exchange groups ROUNDS  also makes a group of all ranks, the last first, and multicasts in it, in
//                           odd rounds to one member
// exchange bursts ROUNDS  sends each unicast kBurst times, without a pause
//   exchange exit STATUS  forms the job, then rank 1 exits with STATUS while the others wait for it
//   exchange hang         forms the job, reports it, then waits without end
//   exchange outlive      the same for the last rank; the others wait for a message of it, and end
//                         with 0 when they are notified that it died
// EXCHANGE_THEN=COMMAND: a shell runs it in the middle of the traffic, before round kThen.
#include <ulc.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t kLimit = 60'000'000'000;  // ns
constexpr std::uint64_t kUnicast = 1;
constexpr std::uint64_t kMulticast = 2;
constexpr std::uint64_t kInGroup = 3;
constexpr std::size_t kLengths[] = {0,    1,    104,  105,  1000, 1469,   1470,
                                    1478, 1479, 1486, 1487, 5000, 100'000};
constexpr std::size_t kLongest = 100'000;
constexpr unsigned kBurst = 12;
constexpr unsigned kThen = 100;

/// Messages of a round.
struct Plan {
    ulc_group group = 0;  ///< 0: no multicast in a group
    unsigned copies = 1;  ///< number of each unicast
};

[[noreturn]] void die(const char* what, int error) {
    std::fprintf(stderr, "rank %s: %s: %s (%s)\n", std::getenv("ULC_RANK"), what,
                 ulc_error_text(error), ulc_last_error_text());
    std::exit(1);
}

void need(const char* what, int error) {
    if (error != ULC_OK) die(what, error);
}

std::vector<unsigned char> payload_of(unsigned source, unsigned round, std::uint64_t tag) {
    std::vector<unsigned char> octets(kLengths[round % std::size(kLengths)]);
    for (std::size_t i = 0; i < octets.size(); ++i)
        octets[i] = static_cast<unsigned char>(source * 31 + round * 7 + tag * 101 + i);
    return octets;
}

/// Starts a send and lets the endpoint progress until it is accepted.
template <typename Start>
void start(ulc_endpoint* ep, const char* what, Start&& send) {
    int error = ULC_OK;
    while ((error = send()) == ULC_ERR_AGAIN) {
        if (const int n = ulc_poll(ep); n < 0) die(what, -n);
    }
    need(what, error);
}

/// Makes a group of all ranks, the last first.
ulc_group make_group(ulc_endpoint* ep) {
    std::vector<std::uint16_t> ranks;
    for (std::uint16_t rank = ulc_size(ep); rank > 0; --rank)
        ranks.push_back(static_cast<std::uint16_t>(rank - 1));
    ulc_request request;
    ulc_status status{};
    need("group", ulc_group_create(ep, ranks.data(), ulc_size(ep), &request));
    need("wait", ulc_wait_for(ep, &request, &status, kLimit));
    need("group", status.error);
    return status.group;
}

/// Returns the receivers of the message in the group: one member in odd rounds, if that is not the
/// source itself; else all.
std::uint64_t subset_of(const ulc_endpoint* ep, std::uint16_t source, unsigned round) {
    const unsigned index = round % ulc_size(ep);
    const bool to_all = round % 2 == 0 || ulc_size(ep) - 1 - index == source;
    return to_all ? ULC_SUBSET_ALL : std::uint64_t{1} << index;
}

bool is_for(const ulc_endpoint* ep, std::uint64_t subset) {
    const unsigned own = ulc_size(ep) - 1U - ulc_rank(ep);
    return subset == ULC_SUBSET_ALL || (subset >> own & 1U) != 0;
}

void send_round(ulc_endpoint* ep, const Plan& plan, unsigned round) {
    const std::uint16_t me = ulc_rank(ep);
    const auto one = payload_of(me, round, kUnicast);
    for (std::uint16_t to = 0; to < ulc_size(ep); ++to) {
        for (unsigned n = 0; to != me && n < plan.copies; ++n)
            start(ep, "send",
                  [&] { return ulc_send(ep, to, kUnicast, one.data(), one.size(), nullptr); });
    }
    const auto all = payload_of(me, round, kMulticast);
    start(ep, "multicast", [&] {
        return ulc_multicast(ep, ulc_world(ep), ULC_SUBSET_ALL, kMulticast, all.data(), all.size(),
                             nullptr);
    });
    if (plan.group == 0) return;
    const auto some = payload_of(me, round, kInGroup);
    start(ep, "multicast in the group", [&] {
        return ulc_multicast(ep, plan.group, subset_of(ep, me, round), kInGroup, some.data(),
                             some.size(), nullptr);
    });
}

/// Receives the next messages of a source, which must be its unicasts and its multicasts of this
/// round, in this order.
void receive_round(ulc_endpoint* ep, const Plan& plan, std::uint16_t from, unsigned round) {
    std::vector<unsigned char> buffer(kLongest);
    std::vector<std::uint64_t> tags(plan.copies, kUnicast);
    tags.push_back(kMulticast);
    if (plan.group != 0 && is_for(ep, subset_of(ep, from, round))) tags.push_back(kInGroup);
    for (const std::uint64_t tag : tags) {
        ulc_request request;
        ulc_status status{};
        need("receive", ulc_receive(ep, from, 0, 0, buffer.data(), buffer.size(), &request));
        need("wait", ulc_wait_for(ep, &request, &status, kLimit));
        need("message", status.error);
        const auto expected = payload_of(from, round, tag);
        const bool right =
            status.tag == tag && status.source == from && status.length == expected.size() &&
            (expected.empty() || std::memcmp(buffer.data(), expected.data(), expected.size()) == 0);
        if (!right) {
            std::fprintf(
                stderr,
                "rank %u: message of round %u from rank %u is wrong: tag %llu, %llu octets\n",
                ulc_rank(ep), round, from, static_cast<unsigned long long>(status.tag),
                static_cast<unsigned long long>(status.length));
            std::exit(1);
        }
    }
}

void wait_for_ever(ulc_endpoint* ep) {
    std::puts("formed");
    std::fflush(stdout);
    for (;;) {
        const int error = ulc_wait(ep, kLimit);
        if (error == ULC_ERR_CLOSED || error == ULC_ERR_CORRUPT) die("wait", error);
    }
}

int outlive(ulc_endpoint* ep) {
    const auto last = static_cast<std::uint16_t>(ulc_size(ep) - 1);
    if (ulc_rank(ep) == last) wait_for_ever(ep);
    std::puts("formed");
    std::fflush(stdout);
    char octet = 0;
    ulc_request request;
    ulc_status status;
    need("receive", ulc_receive(ep, last, kUnicast, UINT64_MAX, &octet, sizeof octet, &request));
    need("wait", ulc_wait_for(ep, &request, &status, kLimit));
    if (status.error != ULC_ERR_PEER_DIED) die("the last rank's death was not told", status.error);
    std::printf("rank %u got: %s\n", ulc_rank(ep), ulc_error_text(status.error));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "100";
    ulc_endpoint* ep = nullptr;
    need("open", ulc_open(nullptr, &ep));
    need("join", ulc_join_wait(ep, nullptr, ULC_RANK_ANY, 0, kLimit));
    if (mode == "exit" && ulc_rank(ep) == 1) {
        std::fflush(nullptr);
        std::_Exit(std::atoi(
            argv[2]));  // the endpoint stays open: for a leak check that would be another status
    }
    if (mode == "exit" || mode == "hang") wait_for_ever(ep);
    if (mode == "outlive") return outlive(ep);
    Plan plan;
    if (mode == "groups") plan.group = make_group(ep);
    if (mode == "bursts") plan.copies = kBurst;
    const bool is_named = mode == "groups" || mode == "bursts";
    const auto rounds = static_cast<unsigned>(std::atoi(argc > 1 ? argv[is_named ? 2 : 1] : "100"));
    for (unsigned round = 0; round < rounds; ++round) {
        const char* const then = round == kThen ? std::getenv("EXCHANGE_THEN") : nullptr;
        if (then != nullptr && std::system(then) != 0) die("the command failed", ULC_ERR_SYSTEM);
        send_round(ep, plan, round);
        for (std::uint16_t from = 0; from < ulc_size(ep); ++from) {
            if (from != ulc_rank(ep)) receive_round(ep, plan, from, round);
        }
    }
    std::printf("rank %u of %u: %u rounds right\n", ulc_rank(ep), ulc_size(ep), rounds);
    need("leave", ulc_leave_wait(ep, kLimit));
    ulc_close(ep);
    return 0;
}
