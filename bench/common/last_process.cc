// SPDX-License-Identifier: BSD-3-Clause
#include "bench/common/last_process.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "bench/common/median.h"

namespace ulc::bench {
namespace {

using Clock = std::function<double()>;

/// Returns, at rank 0, the mean time of a word from `rank` to it. Ranks 0 and `rank` call it.
double way_of_word(Transport& transport, std::uint16_t rank, unsigned rounds, const Clock& clock) {
    unsigned char word = 1;
    const double start = clock();
    for (unsigned n = 0; n < rounds; ++n) {
        if (transport.rank() == 0) {
            transport.send(rank, &word, 1);
            transport.receive(rank, &word, 1);
        } else {
            transport.receive(0, &word, 1);
            transport.send(0, &word, 1);
        }
    }
    return (clock() - start) / rounds / 2;
}

/// Times of one rank's end at rank 0, medians; zeros at other ranks.
struct End {
    double since_start = 0;  ///< since rank 0 called
    double behind_own = 0;   ///< since rank 0 ended its own call
};

End end_of(Transport& transport, std::uint16_t rank, const std::function<void()>& call,
           unsigned calls, double way, const Clock& clock) {
    unsigned char word = 1;
    std::vector<double> since_start, behind_own;
    for (unsigned n = 0; n < calls; ++n) {
        transport.barrier(nullptr);
        const double start = clock();
        call();
        if (rank != 0 && transport.rank() == rank) transport.send(0, &word, 1);
        if (transport.rank() != 0) continue;
        const double own = clock();
        if (rank != 0) transport.receive(rank, &word, 1);
        since_start.push_back(clock() - start - way);
        behind_own.push_back(clock() - own - way);
    }
    return {median(since_start), median(behind_own)};
}

}  // namespace

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

LastProcess time_to_last(Transport& transport, const std::function<void()>& call, unsigned looks,
                         unsigned calls, const Clock& clock) {
    const std::uint16_t self = transport.rank();
    LastProcess found;
    // Rank 0 ends 0 s behind its own end.
    double latest = 0, second = -std::numeric_limits<double>::infinity(), way_of_latest = 0;
    for (std::uint16_t rank = 1; rank < transport.size(); ++rank) {
        double way = 0;
        if (self == 0 || self == rank) {
            static_cast<void>(way_of_word(transport, rank, 1, clock));
            way = way_of_word(transport, rank, looks, clock);
        }
        const double behind = end_of(transport, rank, call, looks, way, clock).behind_own;
        second = std::max(second, std::min(behind, latest));
        if (behind <= latest) continue;
        latest = behind;
        way_of_latest = way;
        found.rank = rank;
    }
    // Rank 0 has the clock; the others follow its choice.
    transport.broadcast(0, &found.rank, sizeof found.rank, nullptr);
    found.seconds =
        std::max(0.0, end_of(transport, found.rank, call, calls, way_of_latest, clock).since_start);
    if (self != 0) return {};
    found.ahead_seconds = latest - second;
    return found;
}

}  // namespace ulc::bench
