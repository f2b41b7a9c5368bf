// SPDX-License-Identifier: BSD-3-Clause
// The parts of libexpress without I/O: the checks of arriving messages, and the pool of buffers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "express/message.h"
#include "express/pool.h"

namespace ulc::express {
namespace {

constexpr unsigned kHandlers = 3;

TEST(ExpressMessage, only_messages_of_the_three_kinds_are_taken) {
    const auto reason = [](std::uint64_t tag, std::uint64_t length, bool known = true) {
        const Checked checked = check(tag, length, kHandlers, known);
        return checked.is_dropped ? static_cast<int>(checked.reason) : -1;
    };
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2), 1), -1);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2), EXPRESS_MESSAGE_MAX), -1);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2), EXPRESS_MESSAGE_MAX + 1), EXPRESS_DROP_LENGTH);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2), 0), EXPRESS_DROP_LENGTH);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 3), 1), EXPRESS_DROP_HANDLER);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2), 1, false), EXPRESS_DROP_STRANGER);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2, true), 1), -1);
    EXPECT_EQ(reason(tag_of(Kind::kUser, 2) | 1U << 17, 1), EXPRESS_DROP_KIND);
    EXPECT_EQ(reason(tag_of(Kind::kHello), 8, false), -1);
    EXPECT_EQ(reason(tag_of(Kind::kHello), 9), EXPRESS_DROP_LENGTH);
    EXPECT_EQ(reason(tag_of(Kind::kEnter), 1), -1);
    EXPECT_EQ(reason(tag_of(Kind::kEnter), 24), -1);
    EXPECT_EQ(reason(tag_of(Kind::kEnter), 8, false), EXPRESS_DROP_STRANGER);
    EXPECT_EQ(reason(tag_of(Kind::kEnter), 0), EXPRESS_DROP_LENGTH);
    EXPECT_EQ(reason(tag_of(Kind::kEnter), 25), EXPRESS_DROP_LENGTH);
    EXPECT_EQ(reason(std::uint64_t{4} << kKindShift, 1), EXPRESS_DROP_KIND);
    EXPECT_EQ(reason(0, 1), EXPRESS_DROP_KIND);
}

/// Memory of a bounded number of pages.
struct Memory {
    std::size_t left;
    std::size_t given = 0;
    std::set<void*> kept{};

    ~Memory() {
        for (void* memory : kept)
            std::free(memory);
    }
    static void* take(void* self, std::size_t bytes) {
        auto& own = *static_cast<Memory*>(self);
        const std::size_t pages = bytes / Pool::kPage;
        if (bytes % Pool::kPage != 0 || pages > own.left) return nullptr;
        own.left -= pages;
        return *own.kept.insert(std::malloc(bytes)).first;
    }
    static void give(void* self, void* memory) {
        auto& own = *static_cast<Memory*>(self);
        ++own.given;
        own.kept.erase(memory);
        std::free(memory);
    }
};

TEST(ExpressPool, short_buffers_come_from_a_list_that_is_bounded) {
    Memory memory{1000};
    Pool pool({&memory, Memory::take, Memory::give});
    std::vector<Buffer*> buffers;
    while (Buffer* buffer = pool.allocate(EXPRESS_SHORT_MAX))
        buffers.push_back(buffer);
    EXPECT_EQ(buffers.size(), Pool::kShortPagesMax * Pool::kPage / Pool::kShortRoom);
    EXPECT_EQ(memory.left, 1000 - Pool::kShortPagesMax);
    std::vector<void*> places;
    places.reserve(buffers.size());
    for (const Buffer* buffer : buffers)
        places.push_back(buffer->memory);
    std::sort(places.begin(), places.end());
    for (std::size_t n = 1; n < places.size(); ++n)
        EXPECT_GE(static_cast<char*>(places[n]) - static_cast<char*>(places[n - 1]),
                  EXPRESS_SHORT_MAX);
    pool.release(*buffers[7]);
    EXPECT_EQ(pool.find(buffers[7]->memory), nullptr);
    EXPECT_EQ(pool.allocate(1), buffers[7]);
    EXPECT_EQ(pool.find(buffers[7]->memory), buffers[7]);
}

TEST(ExpressPool, longer_buffers_are_pages_and_go_back) {
    Memory memory{3};
    Pool pool({&memory, Memory::take, Memory::give});
    Buffer* const two = pool.allocate(Pool::kPage + 1);
    Buffer* const one = pool.allocate(EXPRESS_SHORT_MAX + 1);
    ASSERT_TRUE(two != nullptr && one != nullptr);
    EXPECT_EQ(memory.left, 0U);
    EXPECT_EQ(pool.allocate(Pool::kPage), nullptr);
    EXPECT_EQ(pool.allocate(1), nullptr);
    EXPECT_EQ(pool.in_use(), 2U);
    two->state = Buffer::State::kSent;
    EXPECT_EQ(pool.find(two->memory), nullptr);
    pool.release(*two);
    pool.release(*one);
    EXPECT_EQ(memory.given, 2U);
    EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace ulc::express
