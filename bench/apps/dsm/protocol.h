// SPDX-License-Identifier: BSD-3-Clause
// Distributed shared memory by pages: which process holds which page, and how it moves. One writer
// or many readers at a time make it sequentially consistent. The owner of a page is found by a
// chain of probable owners; a page is copied to readers and invalidated before it is written.
//
//   fault(page, write) ──ReadRequest, WriteRequest──▶ probable owner ──▶ … ──▶ owner
//   reader ◀──Copy── owner        writer ◀──Ownership── owner        writer ──Invalidate──▶ readers
//
// Pure: messages, page protection and page contents are arguments. Used by Memory, and by the model
// test of random programs. Invariants: the owners and those that will own form the roots of the
// chains, so a request reaches one; a process defers what comes for a page while it waits to write
// it, and until its thread has used a page that came.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace ulc::dsm {

inline constexpr unsigned kProcessesMax = 64;  ///< bits of Message::copies

enum class Access : std::uint8_t { kNone, kRead, kWrite };

enum class Kind : std::uint8_t {
    kReadRequest,
    kWriteRequest,
    kCopy,       ///< with the page
    kOwnership,  ///< with the page
    kInvalidate,
    kInvalidated,
};

struct Message {
    Kind kind = Kind::kReadRequest;
    std::uint16_t requester = 0;  ///< the process that faults, in requests
    std::uint32_t page = 0;
    std::uint64_t copies = 0;  ///< kOwnership: a bit for each process that has a copy
};

/// Effects of a node on its surroundings.
class Surroundings {
public:
    virtual ~Surroundings() = default;
    /// Sends; kCopy and kOwnership with the bytes that the page has at this time.
    virtual void send(std::uint16_t to, const Message& message) = 0;
    virtual void protect(std::uint32_t page, Access access) = 0;
    /// Puts the bytes that came with the message under way into the page.
    virtual void install(std::uint32_t page) = 0;
    /// A fault may have ended: threads that wait for the page look again.
    virtual void wake(std::uint32_t page) = 0;
};

struct Counts {
    std::uint64_t read_faults = 0;
    std::uint64_t write_faults = 0;
    std::uint64_t messages = 0;
    std::uint64_t pages_sent = 0;
    std::uint64_t forwarded = 0;
    // Messages that the process has handled, counted by Memory.
    std::uint64_t polled = 0;
    std::uint64_t interrupts = 0;  ///< those that interrupted a thread

    /// Adds, or takes away (sign −1).
    void add(const Counts& other, int sign = 1);
};

/// One process's part. Process 0 owns all pages at first.
class Node {
public:
    Node(std::uint16_t self, std::uint32_t pages, Surroundings& around);

    [[nodiscard]] bool allows(std::uint32_t page, bool write) const {
        return pages_[page].access >= (write ? Access::kWrite : Access::kRead);
    }
    /// Asks for the page, unless it is under way. wake() follows.
    void fault(std::uint32_t page, bool write);
    /// The thread that waited goes on: what was deferred for it may come next.
    void resume(std::uint32_t page);
    /// True if resume() has something to do.
    [[nodiscard]] bool is_held(std::uint32_t page) const { return pages_[page].is_held; }
    /// False: the message is not one that this state allows; nothing was done.
    [[nodiscard]] bool on_message(std::uint16_t from, const Message& message);

    [[nodiscard]] const Counts& counts() const { return counts_; }
    [[nodiscard]] bool is_quiet(std::uint32_t page) const {
        return pages_[page].wants == Access::kNone && pages_[page].deferred.empty();
    }

private:
    struct Deferred {
        std::uint16_t from;
        Message message;
    };
    struct Page {
        Access access = Access::kNone;
        Access wants = Access::kNone;  ///< by the fault under way
        bool is_owned = false;
        bool is_held = false;   ///< came for a thread that has not gone on yet
        bool is_stale = false;  ///< the copy in progress was invalidated already
        std::uint16_t probable_owner = 0;
        std::uint64_t copies = 0;   ///< the owner knows which others have one
        std::uint64_t awaited = 0;  ///< processes that have not confirmed the invalidation
        std::deque<Deferred> deferred;
    };

    void send(std::uint16_t to, Message message);
    void request(std::uint32_t number);
    void on_request(const Message& message);
    void on_invalidate(std::uint16_t from, std::uint32_t number);
    void invalidate_copies(std::uint32_t number);
    void end_fault(std::uint32_t number, Access access);

    std::uint16_t self_;
    Surroundings& around_;
    std::vector<Page> pages_;
    Counts counts_;
};

}  // namespace ulc::dsm
