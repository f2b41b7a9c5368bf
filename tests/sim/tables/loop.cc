// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/tables/loop.h"

#include <algorithm>
#include <numeric>

#include "tests/sim/cluster/lib_cluster.h"

namespace ulc::sim {
namespace {

constexpr Nanos kLimit = 600 * kSecond;
constexpr Nanos kLookAgain =
    kMillisecond;  ///< as ulc_coll_wait(), which looks for members that died
constexpr std::uint64_t kTag = 1;

unsigned char octet_of(std::uint16_t source, std::size_t round, std::size_t i) {
    return static_cast<unsigned char>(source * 31 + round * 7 + i * 13 + i / 251);
}

/// One rank's calls.
class CallActor {
public:
    CallActor(ulc_endpoint* ep, std::uint16_t rank, const Round& round, std::size_t rounds)
        : ep_(ep), rank_(rank), round_(&round), rounds_(rounds), calls_(round(rank, 0)) {}

    [[nodiscard]] std::size_t at() const { return at_; }
    [[nodiscard]] bool good() const { return good_; }
    [[nodiscard]] bool ended() const { return at_ == rounds_ || !good_; }

    void run_until_waiting() {
        while (!ended()) {
            if (call_ == calls_.size()) {
                call_ = 0;
                if (++at_ < rounds_) calls_ = (*round_)(rank_, at_);
                continue;
            }
            if (!begun_) begin(calls_[call_]);
            if (!good_ || !done(calls_[call_])) return;
            ++call_;
            begun_ = false;
        }
    }

private:
    void begin(const Call& call) {
        begun_ = true;
        buffer_.assign(call.octets, 0);
        if (call.kind != Call::Kind::kReceive) {
            for (std::size_t i = 0; i < call.octets; ++i)
                buffer_[i] = octet_of(rank_, at_, i);
        }
        int error = ULC_OK;
        switch (call.kind) {
            case Call::Kind::kSend:
                error = ulc_send(ep_, call.peer, kTag, buffer_.data(), call.octets, &request_);
                break;
            case Call::Kind::kMulticast:
                error = ulc_multicast(ep_, ulc_world(ep_), ULC_SUBSET_ALL, kTag, buffer_.data(),
                                      call.octets, &request_);
                break;
            case Call::Kind::kReceive:
                error = ulc_receive(ep_, call.peer, kTag, UINT64_MAX, buffer_.data(), call.octets,
                                    &request_);
                break;
        }
        good_ = error == ULC_OK;
    }

    bool done(const Call& call) {
        ulc_status status{};
        const int state = ulc_test(ep_, &request_, &status);
        if (state == ULC_ERR_AGAIN) return false;
        good_ = state == ULC_OK && status.error == ULC_OK;
        if (call.kind != Call::Kind::kReceive) return true;
        good_ = good_ && status.length == call.octets;
        for (std::size_t i = 0; i < call.octets && good_; ++i)
            good_ = buffer_[i] == octet_of(call.peer, at_, i);
        return true;
    }

    ulc_endpoint* ep_;
    std::uint16_t rank_;
    const Round* round_;
    std::size_t rounds_;
    std::vector<Call> calls_;
    std::vector<unsigned char> buffer_;
    ulc_request request_{};
    std::size_t at_ = 0;
    std::size_t call_ = 0;
    bool begun_ = false;
    bool good_ = true;
};

bool good(const CallActor& actor) { return actor.good(); }
bool good(const CollectiveActor& actor) { return actor.done() && actor.wrong().empty(); }

std::vector<std::uint64_t> counters_of(const SimCluster& cluster) {
    std::vector<std::uint64_t> counters;
    for (std::size_t id = 0; id < kCounterCount; ++id)
        counters.push_back(cluster.count(static_cast<Counter>(id)));
    return counters;
}

double median_gap(std::vector<Nanos> ended, std::size_t warm_up) {
    std::vector<Nanos> gaps;
    for (std::size_t n = std::max<std::size_t>(warm_up, 1); n < ended.size(); ++n)
        gaps.push_back(ended[n] - ended[n - 1]);
    if (gaps.empty()) return 0;
    std::ranges::sort(gaps);
    return static_cast<double>(gaps[gaps.size() / 2]) / kMicrosecond;
}

template <typename Actor>
LoopTimes run_loop(LibCluster& lib, std::vector<Actor>& actors, std::size_t rounds,
                   std::size_t warm_up) {
    SimCluster& cluster = lib.cluster();
    const std::size_t ranks = actors.size();
    std::vector<Nanos> begun(ranks, -1);
    std::vector<Nanos> over(ranks, 0);
    std::vector<Nanos> ended(rounds, 0);  ///< by round, at the last rank
    std::vector<std::size_t> passed(ranks);
    std::size_t warm = 0;
    std::vector<std::uint64_t> before = counters_of(cluster);
    const auto act = [&](std::uint16_t rank, Nanos now) {
        Actor& actor = actors[rank];
        if (warm_up == 0 && begun[rank] < 0) begun[rank] = now;
        actor.run_until_waiting();
        for (std::size_t& n = passed[rank]; n < actor.at(); ++n) {
            ended[n] = now;
            over[rank] = now;
            if (n + 1 != warm_up) continue;
            begun[rank] = now;
            if (++warm == ranks) before = counters_of(cluster);
        }
        return actor.ended() ? kNever : now + kLookAgain;
    };
    const auto all_ended = [&] {
        return std::ranges::all_of(actors, [](const Actor& a) { return a.ended(); });
    };
    LoopTimes times;
    times.ok = lib.run(kLimit, all_ended, act) &&
               std::ranges::all_of(actors, [](const Actor& a) { return good(a); });
    times.rounds = static_cast<double>(rounds - warm_up);
    Nanos sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank)
        sum += over[rank] - begun[rank];
    times.us = static_cast<double>(sum) / static_cast<double>(ranks) / times.rounds / kMicrosecond;
    times.median_us = median_gap(ended, warm_up);
    const std::vector<std::uint64_t> after = counters_of(cluster);
    for (std::size_t id = 0; id < kCounterCount; ++id)
        times.counters[id] = after[id] - before[id];
    return times;
}

constexpr Nanos kFormLimit = 60 * kSecond;

}  // namespace

LoopTimes loop_of_calls(const ClusterConfig& config, const Round& round, std::size_t rounds,
                        std::size_t warm_up) {
    LibCluster lib(config);
    if (!lib.form(kFormLimit)) return {};
    std::vector<CallActor> actors;
    for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
        actors.emplace_back(lib.endpoint(rank), rank, round, rounds + warm_up);
    return run_loop(lib, actors, rounds + warm_up, warm_up);
}

LoopTimes loop_of_collectives(const ClusterConfig& config, const std::vector<Operation>& operations,
                              std::size_t warm_up) {
    LibCluster lib(config);
    if (!lib.form(kFormLimit)) return {};
    std::vector<CollectiveActor> actors;
    for (std::uint16_t rank = 0; rank < lib.ranks(); ++rank)
        actors.emplace_back(lib.endpoint(rank), ulc_world(lib.endpoint(rank)), operations, rank);
    return run_loop(lib, actors, operations.size(), warm_up);
}

}  // namespace ulc::sim
