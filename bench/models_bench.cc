// SPDX-License-Identifier: BSD-3-Clause
// The measures of GAMMA ch. 2, each under its name; rank 0 is "ping", rank 1 "pong", further ranks
// wait. S is the size in bytes.
//
//   latency                   §2.1.1: half the round trip of an empty message
//   end_to_end/single/S       §2.1.2: half the round trip of one message of S
//   end_to_end/burst/S        the same of 64 messages of S there, then 64 back; time of the 64
//   sender_side/single/S      §2.1.2, one-sided: from the begin of the send until pong's short
//                             acknowledgement is here, not halved
//   sender_side/burst/S       of 64 messages
//   sender_side/stream/S      of 16 MiB, at most 16 messages pending
//   receiver_side/…           the same by pong's clock: from its report that it is ready until the
//                             last byte is there
//   half_power                §2.1.3: S_h with T(S_h) = B/2, T(S) = S/D(S) of end_to_end/single,
//                             B = T(4 MiB); interpolated between sizes that differ by √2 at most
//   logp/S                    §2.2, as [CLMY96] of its references: o_s, time in a send that waits
//                             for nothing; o_r, time in a receive of a message that came 100 µs ago
//                             (medians); g, time a message in a stream. L = round trip/2 − o_s −
//                             o_r, or 0: then the method does not resolve L, and overlap says by
//                             how much o_s + o_r exceed half the round trip. A daemon's work is in
//                             L: it is not CPU time of the process that communicates
//   bsp                       §2.3 ([SHM96]): l, a barrier; g, ns a byte that each rank sends and
//                             receives when all ranks send 64 KiB to all others at once, each in a
//                             random order that changes, less the barrier that ends the superstep
//   collective/OPERATION      §2.4 ([XH96]): D(N, m) = L(N) + m/B(N), with L(N) = D(N, 8), B(N)
//                             from 64 KiB to 256 KiB; aggregate bandwidth B_A(N): bytes delivered
//                             at all ranks in a second at 256 KiB. Each call is timed alone, until
//                             the last rank is done (ulc-bench-collective: single)
//
//   ulc run -n 2 --embedded ulc-bench-models
//   mpirun -np 2 --mca btl tcp,self ulc-bench-models-mpi
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bench/collective_operations.h"
#include "bench/common/median.h"

namespace {

using namespace ulc::bench;
using Clock = std::chrono::steady_clock;

enum What : std::uint32_t { kRoundTrip, kSender, kReceiver, kHalfPower, kLogP, kBsp, kCollective };
enum Technique : std::uint32_t { kSingle, kBurst, kStream };

constexpr unsigned kBurstMessages = 64;
constexpr std::uint64_t kStreamOctets = 16U << 20;
constexpr std::uint64_t kAsymptotic = 4U << 20;
constexpr std::uint64_t kExchangeOctets = 65536;
constexpr std::uint64_t kSlopeFrom = 65536;
constexpr std::uint64_t kSlopeTo = 262144;
constexpr std::chrono::microseconds kArrived{100};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

unsigned messages_of(Technique technique, std::uint64_t octets) {
    if (technique == kSingle) return 1;
    if (technique == kBurst) return kBurstMessages;
    return static_cast<unsigned>(std::max<std::uint64_t>(kBurstMessages, kStreamOctets / octets));
}

/// One transfer from `from` to the other of the first two ranks, and the bytes that it must bring.
class Transfer {
public:
    Transfer(Transport& transport, std::uint64_t octets, unsigned messages)
        : transport_(transport),
          messages_(messages),
          payload_(payload_of(7, octets)),
          memory_(octets * (messages == 1 ? 1 : kStreamWindow)),
          peer_(transport.rank() == 0 ? 1 : 0) {}

    void go(std::uint16_t from) {
        const std::size_t octets = payload_.size();
        if (transport_.rank() == from) {
            if (messages_ == 1) return transport_.send(peer_, payload_.data(), octets);
            return transport_.stream_out(peer_, payload_.data(), octets, messages_);
        }
        if (messages_ == 1) return transport_.receive(peer_, memory_.data(), octets);
        // It compares each message, which is a part of the time of every system alike.
        right_ = transport_.stream_in(peer_, memory_.data(), payload_.data(), octets, messages_) &&
                 right_;
    }
    [[nodiscard]] bool right() const {
        return right_ && (messages_ > 1 || memory_ == payload_ || !received_);
    }
    void received() { received_ = true; }

private:
    Transport& transport_;
    unsigned messages_;
    std::vector<unsigned char> payload_;
    std::vector<unsigned char> memory_;
    std::uint16_t peer_;
    bool received_ = false;
    bool right_ = true;
};

/// Half the round trip of a message, mean over rounds.
double half_round_trip(Transport& transport, std::uint64_t octets, unsigned rounds,
                       unsigned messages, bool& right) {
    Transfer transfer(transport, octets, messages);
    const auto start = Clock::now();
    for (unsigned i = 0; i < rounds; ++i) {
        transfer.go(0);
        transfer.go(1);
    }
    const double seconds = seconds_since(start);
    transfer.received();
    right = transfer.right() && right;
    return seconds / rounds / 2;
}

Outcome one_sided(Transport& transport, const Command& command, unsigned messages) {
    Transfer transfer(transport, command.octets, messages);
    const bool by_receiver = command.what == kReceiver;
    unsigned char word = 1;
    Outcome outcome;
    for (std::uint32_t i = 0; i < command.rounds; ++i) {
        if (by_receiver && transport.rank() == 0) transport.receive(1, &word, 1);
        const auto start = Clock::now();
        if (by_receiver && transport.rank() == 1) transport.send(0, &word, 1);
        transfer.go(0);
        if (transport.rank() == 1) {
            transfer.received();
            if (by_receiver) outcome.seconds += seconds_since(start);
            transport.send(0, &word, 1);
        } else {
            transport.receive(1, &word, 1);
            if (!by_receiver) outcome.seconds += seconds_since(start);
        }
    }
    outcome.right = transfer.right();
    return outcome;
}

/// T(S) at sizes from 1 on; the first S beyond which T exceeds half of the asymptotic,
/// interpolated.
Outcome half_power(Transport& transport) {
    Outcome outcome;
    const auto delay = [&](std::uint64_t octets) {
        const unsigned rounds = octets <= 65536 ? 100 : 4;
        static_cast<void>(half_round_trip(transport, octets, 2, 1, outcome.right));
        return half_round_trip(transport, octets, rounds, 1, outcome.right);
    };
    const double bandwidth = kAsymptotic / delay(kAsymptotic);
    double before_size = 0;
    double before = 0;
    for (double size = 1; size < kAsymptotic; size = std::max(size + 1, size * std::sqrt(2.0))) {
        const auto octets = static_cast<std::uint64_t>(size);
        const double throughput = static_cast<double>(octets) / delay(octets);
        if (outcome.values[0] == 0 && throughput >= bandwidth / 2) {
            const double part = (bandwidth / 2 - before) / (throughput - before);
            outcome.values[0] = before_size + part * (static_cast<double>(octets) - before_size);
        }
        before_size = static_cast<double>(octets);
        before = throughput;
    }
    outcome.values[1] = bandwidth / 1e6;
    return outcome;
}

void compute(std::chrono::microseconds time) {
    const auto start = Clock::now();
    while (Clock::now() - start < time) {
    }
}

Outcome logp(Transport& transport, const Command& command) {
    Outcome outcome;
    const double half = half_round_trip(transport, command.octets, 200, 1, outcome.right);
    Transfer one(transport, command.octets, 1);
    std::vector<double> in_send;
    std::vector<double> in_receive;
    unsigned char word = 1;
    for (std::uint32_t i = 0; i < command.rounds; ++i) {
        const auto start = Clock::now();
        if (transport.rank() == 0) {
            one.go(0);
            in_send.push_back(seconds_since(start));
            transport.receive(1, &word, 1);
            compute(kArrived);  // the next send finds nothing to wait for
        } else {
            compute(2 * kArrived);
            const auto arrived = Clock::now();
            one.go(0);
            in_receive.push_back(seconds_since(arrived));
            transport.send(0, &word, 1);
        }
    }
    if (transport.rank() == 1) one.received();
    Transfer many(transport, command.octets, 5000);
    const auto start = Clock::now();
    many.go(0);
    const double gap = seconds_since(start) / 5000;
    outcome.right = outcome.right && one.right() && many.right();
    // Each side knows its own overhead; rank 0 reports.
    double mine[2] = {median(in_send), median(in_receive)};
    if (transport.rank() == 1) {
        transport.send(0, mine, sizeof mine);
    } else {
        double theirs[2];
        transport.receive(1, theirs, sizeof theirs);
        // Back to back the overheads overlap with the way. If nothing of it is left, the method
        // does not resolve L, and says by how much it misses.
        const double left = 1e6 * (half - mine[0] - theirs[1]);
        outcome.values = {std::max(left, 0.0), 1e6 * mine[0], 1e6 * theirs[1], 1e6 * gap,
                          std::max(-left, 0.0)};
    }
    outcome.seconds = half * command.rounds;
    return outcome;
}

/// Time of a call alone until the last rank is done, mean over rounds.
double alone(Transport& transport, const Operation& operation, unsigned rounds) {
    std::vector<double> own(rounds);
    for (unsigned i = 0; i < rounds; ++i) {
        transport.barrier(nullptr);
        const auto start = Clock::now();
        operation.once(static_cast<std::uint16_t>(i % transport.size()));
        own[i] = seconds_since(start);
    }
    std::vector<double> all(rounds * std::size_t{transport.size()});
    transport.allgather(own.data(), all.data(), rounds * sizeof(double), nullptr);
    double sum = 0;
    for (unsigned i = 0; i < rounds; ++i) {
        double last = 0;
        for (std::size_t at = i; at < all.size(); at += rounds)
            last = std::max(last, all[at]);
        sum += last;
    }
    return sum / rounds;
}

/// BSP's supersteps: every rank sends to all others at once in a random order, then a barrier.
class Supersteps {
public:
    Supersteps(Transport& transport, std::size_t octets)
        : transport_(transport), octets_(octets), random_(transport.rank()) {
        for (std::uint16_t rank = 0; rank < transport.size(); ++rank) {
            const std::vector<unsigned char> to = payload_of(stamp(transport.rank(), rank), octets);
            out_.insert(out_.end(), to.begin(), to.end());
            if (rank != transport.rank()) order_.push_back(rank);
        }
        in_.resize(out_.size());
    }
    void once() {
        std::shuffle(order_.begin(), order_.end(), random_);
        transport_.exchange(order_, out_.data(), in_.data(), octets_);
        transport_.barrier(nullptr);
    }
    [[nodiscard]] bool right() const {
        return std::ranges::all_of(order_, [this](std::uint16_t source) {
            const auto expected = payload_of(stamp(source, transport_.rank()), octets_);
            return std::equal(expected.begin(), expected.end(), &in_[source * octets_]);
        });
    }

private:
    [[nodiscard]] std::uint64_t stamp(std::uint16_t from, std::uint16_t to) const {
        return std::uint64_t{from} * transport_.size() + to;
    }

    Transport& transport_;
    std::size_t octets_;
    std::minstd_rand random_;
    std::vector<std::uint16_t> order_;
    std::vector<unsigned char> out_;
    std::vector<unsigned char> in_;
};

Outcome bsp(Transport& transport, const Command& command) {
    const auto repeat = [&](const auto& step, unsigned rounds) {
        step();
        transport.barrier(nullptr);
        const auto start = Clock::now();
        for (unsigned i = 0; i < rounds; ++i)
            step();
        return seconds_since(start) / rounds;
    };
    Supersteps supersteps(transport, kExchangeOctets);
    const double l = repeat([&] { transport.barrier(nullptr); }, 200);
    const double total = repeat([&] { supersteps.once(); }, 20);
    Outcome outcome{.seconds = (l + total) * command.rounds, .right = supersteps.right()};
    outcome.values = {1e6 * l, 1e9 * (total - l) / static_cast<double>(kExchangeOctets) /
                                   (transport.size() - 1.0)};
    return outcome;
}

/// Bytes that arrive at ranks other than their source's.
double delivered(Collective collective, std::uint64_t octets, double ranks) {
    const bool pairs = collective == Collective::kAllgather ||
                       collective == Collective::kAlltoall ||
                       collective == Collective::kReduceScatter;
    return (pairs ? ranks : 1) * (ranks - 1) * static_cast<double>(octets);
}

Outcome collective(Transport& transport, const Command& command) {
    const auto what = static_cast<Collective>(command.mode);
    const unsigned rounds = std::max<unsigned>(20, transport.size());
    Outcome outcome;
    const auto delay = [&](std::uint64_t octets) {
        const Operation operation = make_operation(transport, what, octets, nullptr);
        static_cast<void>(alone(transport, operation, transport.size()));
        const double seconds = alone(transport, operation, rounds);
        outcome.right = operation.right() && outcome.right;
        return seconds;
    };
    const double least = delay(8);
    const double from = delay(kSlopeFrom);
    const double to = delay(kSlopeTo);
    outcome.seconds = least * command.rounds;
    outcome.values = {1e6 * least, (kSlopeTo - kSlopeFrom) / (to - from) / 1e6,
                      delivered(what, kSlopeTo, transport.size()) / to / 1e6};
    return outcome;
}

Outcome execute(Transport& transport, const Command& command) {
    switch (static_cast<What>(command.what)) {
        case kBsp:
            return bsp(transport, command);
        case kCollective:
            return collective(transport, command);
        default:
            break;
    }
    if (transport.rank() > 1) return {};
    const unsigned messages = messages_of(static_cast<Technique>(command.mode), command.octets);
    switch (static_cast<What>(command.what)) {
        case kSender:
        case kReceiver:
            return one_sided(transport, command, messages);
        case kHalfPower:
            return half_power(transport);
        case kLogP:
            return logp(transport, command);
        default:
            break;
    }
    Outcome outcome;
    outcome.seconds = command.rounds * half_round_trip(transport, command.octets, command.rounds,
                                                       messages, outcome.right);
    return outcome;
}

Case make_case(std::string name, What what, std::uint32_t mode, std::uint64_t octets,
               std::uint32_t rounds) {
    Case one;
    one.name = std::move(name);
    one.command.what = what;
    one.command.mode = mode;
    one.command.octets = octets;
    one.command.rounds = rounds;
    return one;
}

void add_transfers(std::vector<Case>& all) {
    constexpr const char* kTechniques[] = {"single", "burst", "stream"};
    constexpr std::pair<What, const char*> kSides[] = {
        {kRoundTrip, "end_to_end/"}, {kSender, "sender_side/"}, {kReceiver, "receiver_side/"}};
    for (const auto& [what, side] : kSides) {
        for (const Technique technique : {kSingle, kBurst, kStream}) {
            if (what == kRoundTrip && technique == kStream) continue;  // a stream has one direction
            for (const std::uint64_t octets :
                 {8U, 64U, 256U, 1024U, 4096U, 16384U, 65536U, 262144U, 1048576U}) {
                const unsigned messages = messages_of(technique, octets);
                const std::uint64_t total = octets * messages;
                Case one = make_case(
                    side + std::string(kTechniques[technique]) + '/' + std::to_string(octets), what,
                    technique, octets,
                    total <= 65536 && messages == 1 ? 200
                    : total <= (1U << 20)           ? 20
                                                    : 2);
                one.iterations = 5;
                one.octets_processed = total * one.command.rounds;
                all.push_back(one);
            }
        }
    }
}

std::vector<Case> cases(const Transport&) {
    std::vector<Case> all;
    all.push_back(make_case("latency", kRoundTrip, kSingle, 0, 500));
    add_transfers(all);
    all.push_back(make_case("half_power", kHalfPower, kSingle, 0, 1));
    all.back().value_names = {"half_power_octets", "asymptotic_MBps"};
    all.back().iterations = 3;
    for (const std::uint64_t octets : {8U, 1024U, 16384U}) {
        all.push_back(make_case("logp/" + std::to_string(octets), kLogP, kSingle, octets, 50));
        all.back().value_names = {"L_us", "os_us", "or_us", "g_us", "overlap_us"};
        all.back().iterations = 5;
    }
    all.push_back(make_case("bsp", kBsp, kSingle, 0, 1));
    all.back().value_names = {"l_us", "g_ns_per_octet"};
    for (const Collective what :
         {Collective::kBroadcast, Collective::kGather, Collective::kScatter, Collective::kAllgather,
          Collective::kAlltoall, Collective::kReduce, Collective::kAllreduce,
          Collective::kReduceScatter, Collective::kScan, Collective::kExscan}) {
        all.push_back(make_case("collective/" + std::string(name_of(what)), kCollective,
                                static_cast<std::uint32_t>(what), 0, 1));
        all.back().value_names = {"L_us", "B_MBps", "BA_MBps"};
        all.back().iterations = 5;
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) { return run_benchmarks(argc, argv, 2, cases, execute); }
