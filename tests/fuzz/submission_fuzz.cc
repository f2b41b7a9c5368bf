// SPDX-License-Identifier: BSD-3-Clause
// Uses arbitrary bytes as the actions of a hostile client: submission records, its control page,
// its arenas, its rings, all written while a real engine serves it. The region is one heap block of
// exactly its size, so the sanitizer detects an access of the engine outside it. An honest client
// of the same job must be neither closed nor misled.
//
//   input: operations until it ends: one byte says which (mod 8; from 250 on the hostile client
//   leaves, or dies if it is odd, and its later actions are left out), then
//     0  a record as it is          60 bytes (all but the mark)
//     1  a well-formed kind         kind, flags, stream (1), cookie (1), offset (4), length (4),
//                                   message length (4)
//     2  scribble                   offset (4), 8 bytes
//     3  control page               offset (1), 4 bytes
//     4  rounds of the engine       count (1)
//     5  the honest client sends to the hostile one: length (1)
//     6  a block given back         offset / 64 (2)
//     7  a schedule                 steps mod 16 (1), dependencies mod 16 (1), input (4),
//                                   output (4), seen (1), then each step: kind (1), buffer (1),
//                                   peer (1), dependencies from (1), count (1), offset (2), length
//                                   (2); each dependency (1)
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "abi/region.h"
#include "abi/schedule.h"
#include "base/check.h"
#include "engine/engine.h"
#include "heap_pool.h"
#include "input.h"
#include "poison.h"

namespace {

using namespace ulc;
using abi::SubmissionRecord;
using abi::SubmitKind;
using fuzz::Input;

constexpr std::uint32_t kSegments = 256;
constexpr std::uint32_t kSegmentOctets = 1600;

/// Segments from the heap, and a wire that discards every frame.
struct NullPort {
    fuzz::HeapPool pool{kSegmentOctets, kSegments};

    Port table() {
        Port port;
        port.context = this;
        port.info.mac = Mac{{2, 0, 0, 0, 0, 1}};
        port.info.tx_ring_frames = 64;
        port.pool = pool.table();
        port.rx = [](void*, Segment**, std::uint16_t) -> std::uint16_t { return 0; };
        port.tx = [](void*, Segment* const* frames, std::uint16_t n) -> std::uint16_t {
            for (std::uint16_t i = 0; i < n; ++i)
                fuzz::HeapPool::release(frames[i]);
            return n;
        };
        port.tx_pending = [](void*) -> std::uint32_t { return 0; };
        port.link_up = [](void*) { return true; };
        return port;
    }
};

struct Client {
    abi::RegionLayout layout = abi::compute_layout({16, 16, 4096, 65536}).value();
    std::unique_ptr<std::byte, void (*)(void*)> memory{
        static_cast<std::byte*>(std::aligned_alloc(abi::kPageOctets, layout.region_octets)),
        std::free};
    abi::Region region;
    abi::SubmissionProducer submissions;
    abi::CompletionConsumer completions;
    abi::ReleaseProducer releases;
    engine::EndpointId id = 0;

    explicit Client(engine::Engine& engine) {
        std::memset(memory.get(), 0, layout.region_octets);
        id = engine.attach(memory.get(), layout, 0).value();
        region = abi::Region(memory.get(), layout);
        submissions = region.submission_producer();
        completions = region.completion_consumer();
        releases = region.release_producer();
    }
    void join(std::uint16_t rank) {
        abi::JoinRequest request{};
        request.name[0] = 'f';
        request.name_length = 1;
        request.rank = rank;
        request.size = 2;
        std::memcpy(region.tx(0, sizeof request), &request, sizeof request);
        SubmissionRecord record{};
        record.kind = SubmitKind::kJoinJob;
        record.body.block = {0, sizeof request, sizeof request, 0, 0, 0};
        ULC_CHECK(submissions.push(record));
    }
    std::uint32_t world = 0;
    bool drain() {
        bool formed = false;
        while (const abi::CompletionRecord* record = completions.front()) {
            formed |= record->kind == abi::CompletionKind::kJobFormed;
            if (record->kind == abi::CompletionKind::kJobFormed) world = record->stream;
            completions.pop();
        }
        return formed;
    }
};

struct World {
    NullPort null_port;
    Port port = null_port.table();
    Nanos now = kSecond;
    bool leaving = false;
    engine::Engine engine{engine::EngineConfig{}, std::span<const Port>(&port, 1)};
    Client honest{engine};
    Client hostile{engine};

    void rounds(unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            now += 20 * kMicrosecond;
            engine.poll(now);
            if (leaving && engine.detached(hostile.id)) poison();
        }
    }
    void form() {
        honest.join(0);
        hostile.join(1);
        bool formed[2] = {false, false};
        for (int i = 0; i < 1000 && !(formed[0] && formed[1]); ++i) {
            rounds(1);
            formed[0] |= honest.drain();
            formed[1] |= hostile.drain();
        }
        ULC_CHECK(formed[0] && formed[1]);
        ULC_CHECK(is_group(hostile.world) && hostile.world == honest.world);
    }

    void detach(engine::DetachReason reason) {
        if (leaving) return;
        leaving = true;
        engine.detach(hostile.id, reason, now);
    }
    /// Marks the region as unmapped after the engine has released it, as in a daemon.
    void poison() { ASAN_POISON_MEMORY_REGION(hostile.memory.get(), hostile.layout.region_octets); }
    ~World() { ASAN_UNPOISON_MEMORY_REGION(hostile.memory.get(), hostile.layout.region_octets); }

    void shaped_record(Input& in) {
        SubmissionRecord record{};
        record.kind = static_cast<SubmitKind>(in.get<std::uint8_t>() % 16);
        record.flags = in.get<std::uint8_t>();
        const auto stream = in.get<std::uint8_t>();
        record.stream = stream < 128 ? stream % 3 : hostile.world + stream % 2;
        record.cookie = in.get<std::uint8_t>();
        record.inline_length = record.cookie;
        record.body.block.offset = in.get<std::uint32_t>();
        record.body.block.length = in.get<std::uint32_t>();
        record.body.block.message_length = in.get<std::uint32_t>();
        (void)hostile.submissions.push(record);
    }

    /// Writes a schedule that the engine almost accepts.
    void schedule(Input& in) {
        abi::OffloadRequest request{};
        request.step_count = in.get<std::uint8_t>() % 16U;
        request.depends_count = in.get<std::uint8_t>() % 16U;
        request.input_offset = in.get<std::uint16_t>();
        request.input_octets = in.get<std::uint16_t>();
        request.output_offset = in.get<std::uint16_t>();
        request.output_octets = in.get<std::uint16_t>();
        // The buffers overlap at random.
        request.scratch_offset = request.output_offset / 2U;
        request.scratch_octets = request.input_octets;
        request.seen = in.get<std::uint8_t>();
        request.flags = request.seen >> 6U;
        request.tag_mask = ~std::uint64_t{0};
        std::vector<std::byte> octets(sizeof request);
        std::memcpy(octets.data(), &request, sizeof request);
        const auto append = [&](const auto& what) {
            octets.resize(octets.size() + sizeof what);
            std::memcpy(octets.data() + octets.size() - sizeof what, &what, sizeof what);
        };
        for (std::uint32_t i = 0; i < request.step_count; ++i) {
            abi::Step step{};
            step.kind = static_cast<abi::StepKind>(in.get<std::uint8_t>() % 7);
            step.buffer = static_cast<abi::BufferId>(in.get<std::uint8_t>() % 4);
            step.peer = in.get<std::uint8_t>() % 3;
            step.depends_first = in.get<std::uint8_t>() % 17;
            step.depends_count = in.get<std::uint8_t>() % 4;
            step.offset = in.get<std::uint16_t>();
            step.length = in.get<std::uint16_t>();
            append(step);
        }
        for (std::uint32_t i = 0; i < request.depends_count; ++i)
            append(std::uint32_t{in.get<std::uint8_t>()} % 17U);
        std::memcpy(hostile.region.tx(512, static_cast<std::uint32_t>(octets.size())),
                    octets.data(), octets.size());
        SubmissionRecord record{};
        record.kind = SubmitKind::kOffload;
        record.stream = hostile.world;
        record.tag = std::uint64_t{2} << 62;
        record.body.block = {512, static_cast<std::uint32_t>(octets.size()), 0, 0, 0, 0};
        (void)hostile.submissions.push(record);
    }

    void honest_send(Input& in) {
        SubmissionRecord record{};
        record.kind = SubmitKind::kSend;
        record.stream = 1;
        const std::uint32_t length = in.get<std::uint8_t>() * 5U;
        record.flags = abi::kSubmitFirst | abi::kSubmitLast | abi::kSubmitHasTag;
        record.tag = std::uint64_t{2} << 62;  // a schedule may wait for it
        if (length <= abi::kInlineOctetsMax) {
            record.flags |= abi::kSubmitInline;
            record.inline_length = static_cast<std::uint16_t>(length);
        } else {
            record.body.block = {128, length, length, 0, 0, 0};
        }
        (void)honest.submissions.push(record);
    }

    void step(Input& in) {
        const unsigned op = in.octet();
        if (op >= 250)
            return detach(op % 2 != 0 ? engine::DetachReason::kDied
                                      : engine::DetachReason::kClosed);
        if (leaving && op % 8 != 4 && op % 8 != 5) return;
        switch (op % 8) {
            case 0: {
                SubmissionRecord record{};
                in.read(reinterpret_cast<char*>(&record) + sizeof record.mark,
                        sizeof record - sizeof record.mark);
                (void)hostile.submissions.push(record);
                break;
            }
            case 1:
                shaped_record(in);
                break;
            case 2: {
                const auto offset = in.get<std::uint32_t>() % (hostile.layout.region_octets - 8);
                in.read(hostile.memory.get() + offset, 8);
                break;
            }
            case 3: {
                const std::size_t offset =
                    in.get<std::uint8_t>() % (sizeof(abi::EndpointControl) - 4);
                in.read(hostile.memory.get() + offset, 4);
                break;
            }
            case 4:
                rounds(in.get<std::uint8_t>() % 16U + 1);
                (void)honest.drain();
                break;
            case 5:
                honest_send(in);
                break;
            case 7:
                schedule(in);
                break;
            case 6:
                hostile.releases.push(in.get<std::uint16_t>() * abi::kReleaseUnit);
                break;
        }
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    World world;
    world.form();
    Input in(data, size);
    for (int steps = 0; !in.done() && steps < 200; ++steps)
        world.step(in);
    world.rounds(32);
    (void)world.honest.drain();
    // Whatever the hostile client did, the honest one continues.
    ULC_CHECK(world.engine.closed(world.honest.id) == Err::kOk);
    ULC_CHECK(world.honest.region.control().closed.load() == 0);
    ULC_CHECK(!world.honest.submissions.corrupt());
    // If it has closed, its memory stays until the engine releases it (rounds()).
    world.detach(engine::DetachReason::kDied);
    world.rounds(32);
    return 0;
}
