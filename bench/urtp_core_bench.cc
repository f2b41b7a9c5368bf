// SPDX-License-Identifier: BSD-3-Clause
// The transport core alone, no port and no client: nanoseconds a packet of 64 octets, in bursts of
// 16.
//   send:    may_send, plan, the copy, commit, next_tx
//   receive: on_frame of a parsed frame, front, pop
//   whole:   both, the parse, and the acknowledgements
// The argument is the number of members of the job; 0 stands for unicast between two.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "urtp/transport.h"
#include "wire/parse.h"

namespace {

using namespace ulc;

constexpr int kBurst = 16;
constexpr std::uint32_t kPayload = 64;

class Pool {
public:
    explicit Pool(std::size_t n) : segments_(n) {
        for (auto& segment : segments_)
            free_.push_back(&segment);
    }
    SegmentPool table() {
        return {this,
                [](void* self) -> Segment* {
                    auto& free = static_cast<Pool*>(self)->free_;
                    if (free.empty()) return nullptr;
                    Counted* segment = free.back();
                    free.pop_back();
                    segment->references = 1;
                    segment->frame = segment->bytes;
                    segment->capacity = sizeof segment->bytes;
                    return segment;
                },
                [](void*, Segment* s) { ++static_cast<Counted*>(s)->references; },
                [](void* self, Segment* s) {
                    auto* segment = static_cast<Counted*>(s);
                    if (--segment->references == 0)
                        static_cast<Pool*>(self)->free_.push_back(segment);
                },
                [](void*, const Segment* s) { return static_cast<const Counted*>(s)->references; },
                [](void* self) {
                    return static_cast<std::uint32_t>(static_cast<Pool*>(self)->free_.size());
                }};
    }

private:
    struct Counted : Segment {
        std::uint32_t references = 0;
        alignas(kCacheLine) std::byte bytes[256];
    };
    std::vector<Counted> segments_;
    std::vector<Counted*> free_;
};

class Job {
public:
    explicit Job(std::uint16_t size) : pool_(8192), table_(pool_.table()), counters_(size) {
        std::vector<urtp::Peer> roster(size);
        for (Rank r = 0; r < size; ++r) {
            roster[r].mac = Mac{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(r)}};
            roster[r].handle = r;
        }
        for (Rank r = 0; r < size; ++r) {
            urtp::TransportConfig config;
            config.rank = r;
            config.mac = roster[r].mac;
            config.world = kWorld;
            members_.push_back(
                std::make_unique<urtp::Transport>(config, roster, table_, counters_[r]));
        }
    }

    int send(StreamId stream) {
        now_ += 5 * kMicrosecond;
        const urtp::PacketMeta meta{.stream = stream, .message_length = kPayload};
        urtp::Transport& source = *members_[0];
        for (int i = 0; i < kBurst; ++i) {
            if (source.may_send(stream, 0, false, now_) != urtp::Admission::kYes) break;
            const urtp::PacketPlan plan = source.plan(meta, now_);
            Segment* segment = table_.get();
            std::memset(segment->frame + plan.payload_offset, i, kPayload);
            source.commit(meta, plan, segment, kPayload, now_);
        }
        count_ = 0;
        while (count_ < 2 * kBurst) {
            Segment* segment = source.next_tx(now_);
            if (segment == nullptr) break;
            out_[count_++] = segment;
        }
        return count_;
    }
    void parse() {
        for (int i = 0; i < count_; ++i) {
            benchmark::DoNotOptimize(
                wire::parse(out_[i]->frame, out_[i]->length, wire::kEtherTypeDefault, views_[i]));
        }
    }
    void receive(Rank rank) {
        urtp::Transport& member = *members_[rank];
        for (int i = 0; i < count_; ++i) {
            table_.hold(out_[i]);
            member.on_frame(views_[i], out_[i], now_);
        }
        urtp::ReadyPacket packet;
        while (member.front(0, packet)) {
            benchmark::DoNotOptimize(packet.payload);
            member.pop(0, now_);
        }
    }
    void acknowledge() {
        for (int i = 0; i < count_; ++i)
            table_.drop(out_[i]);
        wire::FrameView view;
        for (auto& member : members_) {
            if (member->next_timer() <= now_) member->on_timer(now_);
            if (member == members_[0]) continue;
            while (Segment* segment = member->next_tx(now_)) {
                (void)wire::parse(segment->frame, segment->length, wire::kEtherTypeDefault, view);
                members_[0]->on_frame(view, segment, now_);
            }
        }
    }
    [[nodiscard]] Rank size() const { return static_cast<Rank>(members_.size()); }

    static constexpr GroupHandle kWorld = kGroupBit | 1;

private:
    Pool pool_;
    SegmentPool table_;
    std::vector<Counters> counters_;
    std::vector<std::unique_ptr<urtp::Transport>> members_;
    Nanos now_ = kSecond;
    int count_ = 0;
    Segment* out_[2 * kBurst] = {};
    wire::FrameView views_[2 * kBurst];
};

enum class Part { kSend, kReceive, kWhole };

void core(benchmark::State& state, Part part) {
    using Clock = std::chrono::steady_clock;
    const auto members = static_cast<std::uint16_t>(state.range(0));
    Job job(members == 0 ? 2 : members);
    const StreamId stream = members == 0 ? unicast_to(1) : Job::kWorld;
    std::int64_t packets = 0;
    for (auto _ : state) {
        const auto start = Clock::now();
        packets += job.send(stream);
        const auto sent = Clock::now();
        job.parse();
        const auto parsed = Clock::now();
        job.receive(1);
        const auto received = Clock::now();
        for (Rank r = 2; r < job.size(); ++r)
            job.receive(r);
        const auto others = Clock::now();
        job.acknowledge();
        const auto end = Clock::now();
        const auto span = part == Part::kSend      ? sent - start
                          : part == Part::kReceive ? received - parsed
                                                   : (end - start) - (others - received);
        state.SetIterationTime(std::chrono::duration<double>(span).count());
    }
    state.SetItemsProcessed(packets);
    state.counters["ns_per_packet"] =
        benchmark::Counter(static_cast<double>(packets) * 1e-9,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(core, send, Part::kSend)->Arg(0)->Arg(2)->Arg(16)->UseManualTime();
BENCHMARK_CAPTURE(core, receive, Part::kReceive)->Arg(0)->Arg(2)->Arg(16)->UseManualTime();
BENCHMARK_CAPTURE(core, whole, Part::kWhole)->Arg(0)->Arg(2)->Arg(16)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
