// SPDX-License-Identifier: BSD-3-Clause
#include "bench/apps/dsm/protocol.h"

#include <utility>

namespace ulc::dsm {
namespace {

std::uint64_t bit(std::uint16_t process) { return std::uint64_t{1} << process; }

}  // namespace

void Counts::add(const Counts& other, int sign) {
    const auto one = [&](std::uint64_t Counts::*field) {
        this->*field += sign < 0 ? -(other.*field) : other.*field;
    };
    for (const auto field :
         {&Counts::read_faults, &Counts::write_faults, &Counts::messages, &Counts::pages_sent,
          &Counts::forwarded, &Counts::polled, &Counts::interrupts})
        one(field);
}

Node::Node(std::uint16_t self, std::uint32_t pages, Surroundings& around)
    : self_(self), around_(around), pages_(pages) {
    for (std::uint32_t page = 0; self == 0 && page < pages; ++page) {
        pages_[page].is_owned = true;
        pages_[page].access = Access::kWrite;
        around_.protect(page, Access::kWrite);
    }
}

void Node::send(std::uint16_t to, Message message) {
    ++counts_.messages;
    if (message.kind == Kind::kCopy || message.kind == Kind::kOwnership) ++counts_.pages_sent;
    around_.send(to, message);
}

void Node::request(std::uint32_t number) {
    const Page& page = pages_[number];
    const Kind kind = page.wants == Access::kWrite ? Kind::kWriteRequest : Kind::kReadRequest;
    send(page.probable_owner, {kind, self_, number, 0});
}

void Node::fault(std::uint32_t number, bool write) {
    Page& page = pages_[number];
    if (allows(number, write) || page.wants != Access::kNone) return;
    // Another thread's hold must not delay what this request waits for.
    if (page.is_held) resume(number);
    ++(write ? counts_.write_faults : counts_.read_faults);
    page.wants = write ? Access::kWrite : Access::kRead;
    if (page.is_owned) return invalidate_copies(number);
    request(number);
}

void Node::resume(std::uint32_t number) {
    Page& page = pages_[number];
    page.is_held = false;
    while (!page.deferred.empty() && page.wants != Access::kWrite) {
        const Deferred first = page.deferred.front();
        page.deferred.pop_front();
        if (first.message.kind == Kind::kInvalidate) {
            on_invalidate(first.from, number);
        } else {
            on_request(first.message);
        }
    }
}

bool Node::on_message(std::uint16_t from, const Message& message) {
    if (message.page >= pages_.size() || from >= kProcessesMax ||
        message.requester >= kProcessesMax)
        return false;
    const std::uint32_t number = message.page;
    Page& page = pages_[number];
    switch (message.kind) {
        case Kind::kReadRequest:
        case Kind::kWriteRequest:
            if (page.is_held || page.wants == Access::kWrite) {
                page.deferred.push_back({from, message});
            } else {
                on_request(message);
            }
            return true;
        case Kind::kCopy:
            if (page.wants != Access::kRead) return false;
            if (std::exchange(page.is_stale, false)) {
                request(number);
                return true;
            }
            around_.install(number);
            end_fault(number, Access::kRead);
            return true;
        case Kind::kOwnership:
            if (page.wants != Access::kWrite || page.is_owned) return false;
            around_.install(number);
            page.is_owned = true;
            page.copies = message.copies & ~bit(self_);
            invalidate_copies(number);
            return true;
        case Kind::kInvalidate:
            if (page.is_owned) return false;
            if (page.is_held) {
                page.deferred.push_back({from, message});
            } else {
                on_invalidate(from, number);
            }
            return true;
        case Kind::kInvalidated:
            if ((page.awaited & bit(from)) == 0) return false;
            page.awaited &= ~bit(from);
            if (page.awaited == 0) end_fault(number, Access::kWrite);
            return true;
    }
    return false;
}

/// Serves a request, or forwards it along the chain. Behind a write request the chain leads to its
/// sender, which will own the page.
void Node::on_request(const Message& message) {
    const std::uint32_t number = message.page;
    Page& page = pages_[number];
    const bool writes = message.kind == Kind::kWriteRequest;
    if (!page.is_owned) {
        ++counts_.forwarded;
        const std::uint16_t next = page.probable_owner;
        if (writes) page.probable_owner = message.requester;
        return send(next, message);
    }
    // The page is protected before its bytes are read.
    const Access left = writes ? Access::kNone : Access::kRead;
    page.access = left;
    around_.protect(number, left);
    if (!writes) {
        page.copies |= bit(message.requester);
        return send(message.requester, {Kind::kCopy, 0, number, 0});
    }
    page.is_owned = false;
    page.probable_owner = message.requester;
    const std::uint64_t copies = std::exchange(page.copies, 0);
    send(message.requester, {Kind::kOwnership, 0, number, copies});
}

/// An invalidation may overtake the copy that it concerns, which comes from another process.
void Node::on_invalidate(std::uint16_t from, std::uint32_t number) {
    Page& page = pages_[number];
    if (page.wants == Access::kRead) page.is_stale = true;
    if (page.wants != Access::kWrite) page.probable_owner = from;
    page.access = Access::kNone;
    around_.protect(number, Access::kNone);
    send(from, {Kind::kInvalidated, 0, number, 0});
}

void Node::invalidate_copies(std::uint32_t number) {
    Page& page = pages_[number];
    page.awaited = std::exchange(page.copies, 0);
    if (page.awaited == 0) return end_fault(number, Access::kWrite);
    const std::uint64_t awaited = page.awaited;
    for (std::uint16_t process = 0; process < kProcessesMax; ++process)
        if ((awaited & bit(process)) != 0) send(process, {Kind::kInvalidate, 0, number, 0});
}

void Node::end_fault(std::uint32_t number, Access access) {
    Page& page = pages_[number];
    page.access = access;
    page.wants = Access::kNone;
    page.is_held = true;
    around_.protect(number, access);
    around_.wake(number);
}

}  // namespace ulc::dsm
