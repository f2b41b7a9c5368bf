// SPDX-License-Identifier: BSD-3-Clause
// The engine alone, for budgets of docs/benchmarks/METHOD.md: messages per second and core with two
// engines and both of their clients in one thread, and the latency between two endpoints of one
// engine. The wire is a queue of pointers, so the measurement covers submission, transport,
// demultiplexing and delivery, twice; each message is counted once.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "abi/region.h"
#include "base/bounded.h"
#include "engine/engine.h"

namespace {

using namespace ulc;  // NOLINT(google-build-using-namespace): a program of one file

constexpr std::uint32_t kSegmentOctets = 2048;

// One pool for all ports of the bench: a frame crosses the wire as a pointer.
class BenchPool {
public:
    explicit BenchPool(std::uint32_t count)
        : octets_(std::make_unique<std::byte[]>(std::size_t{count} * kSegmentOctets)),
          items_(count) {
        for (std::uint32_t n = 0; n < count; ++n) {
            items_[n].segment.frame = octets_.get() + std::size_t{n} * kSegmentOctets;
            items_[n].segment.capacity = kSegmentOctets;
            items_[n].segment.owner = &items_[n];
            free_.push_back(&items_[n]);
        }
    }
    SegmentPool table() {
        SegmentPool pool;
        pool.context = this;
        pool.allocate = [](void* context) -> Segment* {
            auto& free = static_cast<BenchPool*>(context)->free_;
            if (free.empty()) return nullptr;
            Item* item = free.back();
            free.pop_back();
            item->references = 1;
            return &item->segment;
        };
        pool.retain = [](void*, Segment* s) { ++static_cast<Item*>(s->owner)->references; };
        pool.release = [](void* context, Segment* s) {
            auto* item = static_cast<Item*>(s->owner);
            if (--item->references == 0) static_cast<BenchPool*>(context)->free_.push_back(item);
        };
        pool.references = [](void*, const Segment* s) {
            return static_cast<const Item*>(s->owner)->references;
        };
        pool.available = [](void* context) {
            return static_cast<std::uint32_t>(static_cast<BenchPool*>(context)->free_.size());
        };
        return pool;
    }

private:
    struct Item {
        Segment segment;
        std::uint32_t references = 0;
    };
    std::unique_ptr<std::byte[]> octets_;
    std::vector<Item> items_;
    std::vector<Item*> free_;
};

// An end of a wire without length. Frames to a group go to all other ends, by reference.
struct BenchPort {
    BoundedQueue<Segment*> rx_queue{1024};
    std::vector<BenchPort*> peers;
    Mac mac;
    SegmentPool pool;

    /// The frame goes to each end that it is for. False: the first has no space.
    bool put(Segment* frame) {
        if (peers.size() == 1) return peers[0]->rx_queue.push(frame);
        const auto& to = *reinterpret_cast<const Mac*>(frame->frame);
        bool kept = false;
        for (BenchPort* peer : peers) {
            if ((to.octets[0] & 1U) == 0 && to != peer->mac) continue;  // unicast
            if (!peer->rx_queue.push(frame)) continue;
            if (kept) pool.hold(frame);
            kept = true;
        }
        if (!kept) pool.drop(frame);
        return true;
    }

    Port port(std::uint8_t index, BenchPool& segments) {
        Port port;
        mac = Mac{{2, 0, 0, 0, 0, index}};
        pool = segments.table();
        port.context = this;
        port.info.mac = mac;
        port.info.tx_ring_frames = 512;
        port.pool = pool;
        port.rx = [](void* context, Segment** out, std::uint16_t n) {
            auto& queue = static_cast<BenchPort*>(context)->rx_queue;
            std::uint16_t count = 0;
            while (count < n && !queue.empty()) {
                out[count++] = queue.front();
                queue.pop();
            }
            return count;
        };
        port.tx = [](void* context, Segment* const* frames, std::uint16_t n) {
            auto& self = *static_cast<BenchPort*>(context);
            std::uint16_t count = 0;
            while (count < n && self.put(frames[count]))
                ++count;
            return count;
        };
        port.link_up = [](void*) { return true; };
        return port;
    }
};

// A client that sends messages of one size and gives back what it gets.
class BenchClient {
public:
    BenchClient(engine::Engine& engine, std::uint32_t octets,
                const abi::RegionSizes& sizes = {256, 512, 1U << 20, 1U << 20})
        : octets_(octets) {
        const auto layout = abi::compute_layout(sizes);
        memory_.reset(std::aligned_alloc(abi::kPageOctets, layout.value().region_octets));
        std::memset(memory_.get(), 0, layout.value().region_octets);
        const auto id = engine.attach(memory_.get(), layout.value(), 0);
        if (!id.ok()) std::abort();
        region_ = abi::Region(memory_.get(), layout.value());
        submissions_ = region_.submission_producer();
        completions_ = region_.completion_consumer();
        releases_ = region_.release_producer();
        sends_done_ = region_.send_done_consumer();
        for (std::uint32_t n = 0; n < kBlocks; ++n)
            free_blocks_.push_back(n);
    }

    void join(Rank rank, std::uint16_t size) {
        abi::JoinRequest request{};
        request.name_length = 5;
        std::memcpy(request.name, "bench", 5);
        request.rank = rank;
        request.size = size;
        std::memcpy(region_.tx(0, sizeof request), &request, sizeof request);
        abi::SubmissionRecord* record = submissions_.claim();
        record->kind = abi::SubmitKind::kJoinJob;
        record->body.block = {0, sizeof request, 0, 0, 0, 0};
        submissions_.publish();
    }

    void open_links(std::uint16_t slots) {
        abi::OpenLinksRequest request{};
        request.key[0] = 1;
        request.links = slots;
        std::memcpy(region_.tx(0, sizeof request), &request, sizeof request);
        abi::SubmissionRecord* record = submissions_.claim();
        record->kind = abi::SubmitKind::kOpenLinks;
        record->body.block = {0, sizeof request, 0, 0, 0, 0};
        submissions_.publish();
    }
    void link(const BenchClient& to) {
        abi::LinkCall call{};
        std::memcpy(call.address, to.address, sizeof call.address);
        abi::SubmissionRecord* record = submissions_.claim();
        record->kind = abi::SubmitKind::kLink;
        std::memcpy(record->body.inline_octets, &call, sizeof call);
        submissions_.publish();
    }

    bool send(std::uint32_t stream) {
        abi::SubmissionRecord* record = submissions_.claim();
        if (record == nullptr) return false;
        record->kind = abi::SubmitKind::kSend;
        record->stream = stream;
        record->tag = 0;
        record->flags = abi::kSubmitFirst | abi::kSubmitLast;
        if (octets_ <= abi::kInlineOctetsMax) {
            record->flags |= abi::kSubmitInline;
            record->inline_length = static_cast<std::uint16_t>(octets_);
            std::memset(record->body.inline_octets, 1, octets_);
        } else {
            if (free_blocks_.empty()) return false;
            const std::uint32_t block = free_blocks_.back();
            free_blocks_.pop_back();
            std::memset(region_.tx(block * kBlockOctets, octets_), 1, octets_);
            record->cookie = block;
            record->body.block = {block * kBlockOctets, octets_, octets_, 0, 0, 0};
        }
        submissions_.publish();
        return true;
    }

    /// Messages taken.
    unsigned poll() {
        unsigned messages = 0;
        for (abi::SendDone done{}; sends_done_.take(done);)
            free_blocks_.push_back(done.cookie);
        while (const abi::CompletionRecord* record = completions_.front()) {
            switch (record->kind) {
                case abi::CompletionKind::kMessage:
                    ++messages;
                    if ((record->flags & abi::kCompleteInline) == 0)
                        releases_.push(record->body.block.offset);
                    break;
                case abi::CompletionKind::kJobFormed:
                    formed = true;
                    world = record->stream;
                    break;
                case abi::CompletionKind::kLinksOpen:
                    formed = true;
                    std::memcpy(address, record->body.inline_octets, sizeof address);
                    break;
                case abi::CompletionKind::kLinked:
                    ++peers;
                    break;
                case abi::CompletionKind::kLinkDone:
                    if (record->status != 0) std::abort();
                    break;
                default:
                    std::abort();
            }
            completions_.pop();
        }
        return messages;
    }
    bool formed = false;  ///< the job, or open for links
    unsigned char address[abi::kAddressOctets] = {};
    std::size_t peers = 0;    ///< linked
    std::uint32_t world = 0;  ///< the group of all ranks

private:
    static constexpr std::uint32_t kBlocks = 256;
    static constexpr std::uint32_t kBlockOctets = 2048;
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };

    std::uint32_t octets_;
    std::unique_ptr<void, Free> memory_;
    abi::Region region_;
    abi::SubmissionProducer submissions_;
    abi::CompletionConsumer completions_;
    abi::ReleaseProducer releases_;
    abi::SendDoneConsumer sends_done_;
    std::vector<std::uint32_t> free_blocks_;
};

struct Pair {
    explicit Pair(std::uint32_t octets) : pool(8192) {
        ports[0].peers = {&ports[1]};
        ports[1].peers = {&ports[0]};
        for (std::uint8_t n = 0; n < 2; ++n) {
            engine::EngineConfig config;
            config.seed = n + 1U;
            const Port port = ports[n].port(n, pool);
            engines[n] = std::make_unique<engine::Engine>(config, std::span<const Port>(&port, 1));
            clients[n] = std::make_unique<BenchClient>(*engines[n], octets);
        }
        clients[0]->join(0, 2);
        clients[1]->join(1, 2);
        while (!clients[0]->formed || !clients[1]->formed)
            round();
    }
    unsigned round() {
        now += kMicrosecond;
        engines[0]->poll(now);
        engines[1]->poll(now);
        return clients[0]->poll() + clients[1]->poll();
    }
    BenchPool pool;
    BenchPort ports[2];
    std::unique_ptr<engine::Engine> engines[2];
    std::unique_ptr<BenchClient> clients[2];
    Nanos now = 0;
};

// So that two runs under callgrind differ in their messages alone (docs/benchmarks/COSTS.md).
void count_from_environment(benchmark::internal::Benchmark* bench) {
    if (const char* count = std::getenv("ULC_BENCH_ITERATIONS"))
        bench->Iterations(std::strtoll(count, nullptr, 10));
}

// Both directions at once, a burst a round.
void BM_messages_per_core(benchmark::State& state) {
    Pair pair(static_cast<std::uint32_t>(state.range(0)));
    std::uint64_t messages = 0;
    for (auto _ : state) {
        for (int n = 0; n < 32; ++n) {
            (void)pair.clients[0]->send(1);
            (void)pair.clients[1]->send(0);
        }
        messages += pair.round();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(messages));
}
BENCHMARK(BM_messages_per_core)->Arg(32)->Arg(64)->Arg(1024)->Apply(count_from_environment);

// One message there and back between two engines, all in one thread: half a round trip of software.
void BM_ping_pong_two_engines(benchmark::State& state) {
    Pair pair(static_cast<std::uint32_t>(state.range(0)));
    for (auto _ : state) {
        (void)pair.clients[0]->send(1);
        do {
            pair.now += 100;
            pair.engines[0]->poll(pair.now);
            pair.engines[1]->poll(pair.now);
        } while (pair.clients[1]->poll() == 0);
        (void)pair.clients[1]->send(0);
        do {
            pair.now += 100;
            pair.engines[1]->poll(pair.now);
            pair.engines[0]->poll(pair.now);
        } while (pair.clients[0]->poll() == 0);
    }
    state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(BM_ping_pong_two_engines)->Arg(8)->Arg(64)->Apply(count_from_environment);

// One way between two endpoints of one engine, one thread holding both.
void BM_local_one_way(benchmark::State& state) {
    BenchPool pool(4096);
    BenchPort end;
    end.peers = {&end};
    engine::EngineConfig config;
    const Port port = end.port(1, pool);
    engine::Engine engine(config, std::span<const Port>(&port, 1));
    const auto octets = static_cast<std::uint32_t>(state.range(0));
    BenchClient a(engine, octets);
    BenchClient b(engine, octets);
    a.join(0, 2);
    b.join(1, 2);
    Nanos now = 0;
    while (!a.formed || !b.formed) {
        engine.poll(now += 1000);
        (void)a.poll();
        (void)b.poll();
    }
    for (auto _ : state) {
        (void)a.send(1);
        do
            engine.poll(now += 100);
        while (b.poll() == 0);
        (void)b.send(0);
        do
            engine.poll(now += 100);
        while (a.poll() == 0);
    }
    state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(BM_local_one_way)->Arg(8)->Arg(64)->Apply(count_from_environment);

/// Engines of one rank each, on one wire.
struct Cluster {
    explicit Cluster(std::uint32_t octets) : pool(8192) {
        for (BenchPort& end : ports) {
            for (BenchPort& other : ports)
                if (&other != &end) end.peers.push_back(&other);
        }
        for (std::uint8_t n = 0; n < kRanks; ++n) {
            engine::EngineConfig config;
            config.seed = n + 1U;
            const Port port = ports[n].port(n, pool);
            engines[n] = std::make_unique<engine::Engine>(config, std::span<const Port>(&port, 1));
            clients[n] = std::make_unique<BenchClient>(*engines[n], octets);
            clients[n]->join(n, kRanks);
        }
        for (bool formed = false; !formed;) {
            formed = true;
            now += kMicrosecond;
            for (unsigned n = 0; n < kRanks; ++n) {
                engines[n]->poll(now);
                (void)clients[n]->poll();
                formed &= clients[n]->formed;
            }
        }
    }
    static constexpr unsigned kRanks = 4;
    BenchPool pool;
    BenchPort ports[kRanks];
    std::unique_ptr<engine::Engine> engines[kRanks];
    std::unique_ptr<BenchClient> clients[kRanks];
    Nanos now = 0;
};

// Separate functions, so that callgrind can count their cost alone.
[[gnu::noinline]] void multicast_sender(Cluster& cluster) {
    (void)cluster.clients[0]->send(cluster.clients[0]->world);
    cluster.engines[0]->poll(cluster.now);
}
[[gnu::noinline]] unsigned multicast_receiver(Cluster& cluster, unsigned rank) {
    cluster.engines[rank]->poll(cluster.now);
    return cluster.clients[rank]->poll();
}

// One message to three engines, on one wire, all in one thread.
void BM_multicast(benchmark::State& state) {
    Cluster cluster(static_cast<std::uint32_t>(state.range(0)));
    std::uint64_t messages = 0;
    for (auto _ : state) {
        cluster.now += kMicrosecond;
        multicast_sender(cluster);
        for (unsigned rank = 1; rank < Cluster::kRanks; ++rank)
            messages += multicast_receiver(cluster, rank);
    }
    const auto sent = static_cast<std::uint64_t>(state.iterations());
    if (messages + 16 < 3 * sent) state.SkipWithError("messages were lost");
    state.SetItemsProcessed(static_cast<std::int64_t>(messages));
}
BENCHMARK(BM_multicast)->Arg(8)->Arg(64)->Apply(count_from_environment);

// A round without work: the cost of an idle endpoint.
void BM_idle_round(benchmark::State& state) {
    BenchPool pool(256);
    BenchPort end;
    end.peers = {&end};
    engine::EngineConfig config;
    config.endpoints_max = 256;
    const Port port = end.port(1, pool);
    engine::Engine engine(config, std::span<const Port>(&port, 1));
    std::vector<std::unique_ptr<BenchClient>> clients;
    for (std::int64_t n = 0; n < state.range(0); ++n)
        clients.push_back(std::make_unique<BenchClient>(engine, 8));
    Nanos now = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(engine.poll(now += 100));
}
BENCHMARK(BM_idle_round)->Arg(1)->Arg(64)->Apply(count_from_environment);

// A round without work of an endpoint with that number of links to endpoints of another engine.
void BM_idle_round_links(benchmark::State& state) {
    const auto links = static_cast<std::size_t>(state.range(0));
    BenchPool pool(8192);
    BenchPort ports[2];
    ports[0].peers = {&ports[1]};
    ports[1].peers = {&ports[0]};
    std::unique_ptr<engine::Engine> engines[2];
    for (std::uint8_t n = 0; n < 2; ++n) {
        engine::EngineConfig config;
        config.seed = n + 1U;
        config.endpoints_max = 1024;
        const Port port = ports[n].port(n, pool);
        engines[n] = std::make_unique<engine::Engine>(config, std::span<const Port>(&port, 1));
    }
    Nanos now = 0;
    BenchClient server(*engines[0], 8);
    std::vector<std::unique_ptr<BenchClient>> peers;
    Nanos step = kMicrosecond;
    const auto run_until = [&](const auto& done) {
        while (!done()) {
            now += step;
            engines[0]->poll(now);
            engines[1]->poll(now);
            server.poll();
            for (const auto& peer : peers)
                peer->poll();
        }
    };
    server.open_links(1000);
    run_until([&] { return server.formed; });
    for (std::size_t n = 0; n < links; ++n) {
        peers.push_back(std::make_unique<BenchClient>(
            *engines[1], 8, abi::RegionSizes{32, 32, 8U << 10, 16U << 10}));
        peers.back()->open_links(1);
        run_until([&] { return peers.back()->formed; });
        peers.back()->link(server);
        run_until([&] { return server.peers > n; });
    }
    const Nanos settled = now + 20 * kMillisecond;  // an ACCEPT is repeated for 10 ms
    step = 100 * kMicrosecond;
    run_until([&] { return now >= settled; });
    for (auto _ : state)
        benchmark::DoNotOptimize(engines[0]->poll(now += 100));
}
BENCHMARK(BM_idle_round_links)->Arg(1)->Arg(1000)->Apply(count_from_environment);

}  // namespace

BENCHMARK_MAIN();
