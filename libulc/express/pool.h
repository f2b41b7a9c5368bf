// SPDX-License-Identifier: BSD-3-Clause
// Buffers of messages to send [Express §4.2.1]: short ones from a free list, which grows by pages,
// others by pages. The memory is an argument. Used by Process.
#pragma once

#include <ulc.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>

#include "base/check.h"
#include "express/express.h"

namespace ulc::express {

struct Buffer {
    enum class State : std::uint8_t { kFree, kOwned, kSent };

    ulc_request request{};  ///< first: a request that is done names its buffer
    Buffer* next = nullptr;
    void* memory = nullptr;
    std::size_t length = 0;
    std::uint64_t tag = 0;  ///< set when it is sent
    std::uint16_t to = 0;
    State state = State::kFree;
};

class Pool {
public:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::size_t kShortRoom = 128;     ///< bytes of a short buffer
    static constexpr std::size_t kShortPagesMax = 64;  ///< 2,048 short buffers
    static_assert(kShortRoom >= EXPRESS_SHORT_MAX);

    /// Memory of whole pages.
    struct Source {
        void* self;
        void* (*take)(void* self, std::size_t bytes);  ///< nullptr: none left
        void (*give)(void* self, void* memory);
    };

    explicit Pool(const Source& source) noexcept : source_(source) {}

    /// Returns a buffer that the caller owns; nullptr: no memory.
    [[nodiscard]] Buffer* allocate(std::size_t length) {
        Buffer* const buffer = length <= EXPRESS_SHORT_MAX ? take_short() : take_pages(length);
        if (buffer == nullptr) return nullptr;
        buffer->length = length;
        buffer->state = Buffer::State::kOwned;
        ++in_use_;
        return buffer;
    }

    /// Returns the buffer that the caller owns at that place; nullptr: none.
    [[nodiscard]] Buffer* find(const void* memory) {
        const auto found = buffers_.find(memory);
        if (found == buffers_.end() || found->second->state != Buffer::State::kOwned)
            return nullptr;
        return found->second.get();
    }

    void release(Buffer& buffer) {
        ULC_CHECK(buffer.state != Buffer::State::kFree && in_use_ > 0);
        --in_use_;
        buffer.state = Buffer::State::kFree;
        if (buffer.length <= EXPRESS_SHORT_MAX) {
            buffer.next = free_;
            free_ = &buffer;
            return;
        }
        void* const memory = buffer.memory;
        buffers_.erase(memory);
        source_.give(source_.self, memory);
    }

    /// Returns the number of buffers that are owned or sent.
    [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }

private:
    Buffer* take_short() {
        if (free_ == nullptr && short_pages_ < kShortPagesMax) add_short_page();
        Buffer* const buffer = free_;
        if (buffer != nullptr) free_ = buffer->next;
        return buffer;
    }

    void add_short_page() {
        auto* const page = static_cast<char*>(source_.take(source_.self, kPage));
        if (page == nullptr) return;
        ++short_pages_;
        for (std::size_t at = 0; at < kPage; at += kShortRoom) {
            Buffer* const buffer = add(page + at);
            if (buffer == nullptr) continue;
            buffer->next = free_;
            free_ = buffer;
        }
    }

    Buffer* take_pages(std::size_t length) {
        void* const memory = source_.take(source_.self, (length + kPage - 1) / kPage * kPage);
        if (memory == nullptr) return nullptr;
        Buffer* const buffer = add(memory);
        if (buffer == nullptr) source_.give(source_.self, memory);
        return buffer;
    }

    Buffer* add(void* memory) {
        std::unique_ptr<Buffer> buffer(new (std::nothrow) Buffer);
        if (buffer == nullptr) return nullptr;
        buffer->memory = memory;
        return (buffers_[memory] = std::move(buffer)).get();
    }

    Source source_;
    std::unordered_map<const void*, std::unique_ptr<Buffer>> buffers_;  ///< by place
    Buffer* free_ = nullptr;
    std::size_t short_pages_ = 0;
    std::size_t in_use_ = 0;
};

}  // namespace ulc::express
