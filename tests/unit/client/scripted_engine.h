// SPDX-License-Identifier: BSD-3-Clause
// The engine's side of one endpoint, written out by a test: it sees each submission record and
// writes each completion.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/region.h"
#include "client/endpoint.h"

namespace ulc::client {

inline constexpr std::uint32_t kWorld = 0x80000001U;

class ScriptedEngine {
public:
    explicit ScriptedEngine(const abi::RegionSizes& sizes, const Limits& limits = {},
                            Hooks hooks = {}, abi::Reach reach = abi::Reach::kRegion) {
        layout_ = abi::compute_layout(sizes).value();
        memory_.reset(std::aligned_alloc(abi::kPageOctets, layout_.region_octets));
        std::memset(memory_.get(), 0, layout_.region_octets);
        abi::initialise_control(memory_.get(), layout_, 1, 1);
        region = abi::Region(memory_.get(), layout_, reach);
        submissions = region.submission_consumer();
        releases = region.release_consumer();
        completions = region.completion_producer();
        sends_done = region.send_done_producer();
        if (hooks.now == nullptr) hooks.now = [](void*) -> Nanos { return 0; };
        endpoint = make_endpoint(region, hooks, limits);
    }

    /// Returns the next submission, which must be of this kind; nullopt if there is none.
    std::optional<abi::SubmissionRecord> take(abi::SubmitKind kind) {
        abi::SubmissionRecord record;
        if (!submissions.take(record)) return std::nullopt;
        EXPECT_EQ(record.kind, kind);
        return record;
    }
    std::optional<abi::SubmissionRecord> take_any() {
        abi::SubmissionRecord record;
        if (!submissions.take(record)) return std::nullopt;
        return record;
    }
    /// Returns the blocks given back since the last call.
    std::vector<std::uint32_t> released() {
        std::vector<std::uint32_t> offsets;
        for (std::uint32_t offset = 0; releases.take(offset);)
            offsets.push_back(offset);
        return offsets;
    }
    abi::CompletionRecord& claim(abi::CompletionKind kind) {
        abi::CompletionRecord* record = completions.claim();
        EXPECT_NE(record, nullptr);
        *record = abi::CompletionRecord{.mark = record->mark, .kind = kind};
        return *record;
    }
    void form(std::uint16_t rank, std::uint16_t size) {
        ASSERT_EQ(endpoint->membership().join("job", 3, rank, size, nullptr, 0), ULC_OK);
        const auto join = take(abi::SubmitKind::kJoinJob);
        ASSERT_TRUE(join.has_value());
        abi::CompletionRecord& formed = claim(abi::CompletionKind::kJobFormed);
        formed.source = rank;
        formed.stream = kWorld;
        formed.body.block.length = size;
        completions.publish();
        ASSERT_EQ(endpoint->poll(), 1);
        ASSERT_EQ(endpoint->membership().job_state(), ULC_OK);
    }
    void send_done(std::uint32_t cookie, Err status = Err::kOk) { sends_done.push(cookie, status); }
    void deliver_inline(std::uint16_t source, std::uint64_t tag, const std::string& text) {
        deliver_inline(source, tag, text, endpoint->membership().rank());
    }
    /// `stream`: the endpoint's rank, or the group of a multicast.
    void deliver_inline(std::uint16_t source, std::uint64_t tag, const std::string& text,
                        std::uint32_t stream) {
        abi::CompletionRecord& message = claim(abi::CompletionKind::kMessage);
        message.flags =
            abi::kCompleteInline | abi::kCompleteFirst | abi::kCompleteLast | abi::kCompleteHasTag;
        message.source = source;
        message.stream = stream;
        message.tag = tag;
        message.inline_length = static_cast<std::uint16_t>(text.size());
        std::memcpy(message.body.inline_octets, text.data(), text.size());
        completions.publish();
    }
    /// Delivers a chunk at `offset` of the rx arena.
    void deliver_block(std::uint16_t source, std::uint64_t tag, std::uint32_t offset,
                       const std::string& chunk, std::uint64_t at, std::uint64_t total) {
        std::memcpy(region.rx(offset, static_cast<std::uint32_t>(chunk.size())), chunk.data(),
                    chunk.size());
        abi::CompletionRecord& message = claim(abi::CompletionKind::kMessage);
        unsigned flags = abi::kCompleteHasTag;
        if (at == 0) flags |= abi::kCompleteFirst;
        if (at + chunk.size() == total) flags |= abi::kCompleteLast;
        message.flags = static_cast<std::uint8_t>(flags);
        message.source = source;
        message.stream = endpoint->membership().rank();
        message.tag = tag;
        message.body.block = {offset, static_cast<std::uint32_t>(chunk.size()), total, 0, at, 0};
        completions.publish();
    }
    void peer_gone(std::uint16_t rank, bool died) {
        claim(died ? abi::CompletionKind::kPeerDied : abi::CompletionKind::kPeerLeft).source = rank;
        completions.publish();
    }

    abi::Region region;
    abi::SubmissionConsumer submissions;
    abi::CompletionProducer completions;
    abi::SendDoneProducer sends_done;
    abi::ReleaseConsumer releases;

private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    abi::RegionLayout layout_{};
    std::unique_ptr<void, Free> memory_;

public:
    std::unique_ptr<ulc_endpoint> endpoint;  ///< ends before its memory
};

}  // namespace ulc::client
