// SPDX-License-Identifier: BSD-3-Clause
// Joining and leaving, sends, and the promise to poll.
#include "express/process.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "express/build_id.h"
#include "express/fibers.h"

namespace ulc::express {
namespace {

constexpr Nanos kJoinMax = 60 * kSecond;
constexpr Nanos kLeaveMax = 15 * kSecond;
constexpr Nanos kLookEvery = 100 * kMillisecond;  ///< whether all processes live
constexpr Nanos kRetry = kMillisecond;

int complain(const char* what, int error) {
    std::fprintf(stderr, "express_init: %s: %s\n", what, ulc_error_text(error));
    return error;
}

}  // namespace

/// One call of a thread that uses the endpoint. Its end lets the server run, or revokes the
/// promise.
class Process::Call {
public:
    explicit Call(Process& process) : process_(process) {
        process_.scheduler_->enter();
        if (!process_.scheduler_->is_server()) process_.promise_to_poll();
    }
    ~Call() {
        if (!process_.scheduler_->is_server()) process_.scheduler_->reconsider();
        process_.scheduler_->leave();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

private:
    Process& process_;
};

Process::Process() noexcept
    : pool_(
          {this,
           [](void* self, std::size_t bytes) {
               return ulc_alloc(static_cast<Process*>(self)->ep_, bytes);
           },
           [](void* self, void* memory) { ulc_free(static_cast<Process*>(self)->ep_, memory); }}) {}

// ---------------------------------------------------------------- joining and leaving

int Process::open() {
    int error = ulc_open(nullptr, &ep_);
    if (error == ULC_OK) error = ulc_join_wait(ep_, nullptr, ULC_RANK_ANY, 0, kJoinMax);
    if (error == ULC_OK) {
        const auto upcall = [](ulc_endpoint*, void* self) {
            static_cast<Process*>(self)->on_upcall();
        };
        error = ulc_upcall(ep_, upcall, this);
    }
    if (error != ULC_OK)
        std::fprintf(stderr, "express_init: %s: %s; start the program with: ulc run -n N PROGRAM\n",
                     ulc_error_text(error), ulc_last_error_text());
    return error;
}

int Process::init(const express_handler* handlers, unsigned count) {
    if (scheduler_ != nullptr)
        return complain("it was called before; call it once in a program", ULC_ERR_INVALID);
    handlers_.assign(handlers, handlers + count);
    for (unsigned n = 0; n < count; ++n)
        numbers_.emplace(handlers[n], static_cast<std::uint16_t>(n));
    id_ = identity_of(handlers_);
    const Surroundings around{
        this, [](void*) { return monotonic_now(); },
        [](void* self) { return static_cast<Process*>(self)->may_compute(); },
        [](void* self, Nanos until) { static_cast<Process*>(self)->idle(until); }};
    scheduler_ = std::make_unique<Scheduler>(fiber_switch(), around);
    if (!scheduler_->start(serve, this))
        return complain("no memory for a stack; see ulimit -v", ULC_ERR_NO_MEMORY);
    first_ = &scheduler_->current();
    int error = open();
    if (error == ULC_OK) {
        thread_ = pthread_self();
        rank_ = ulc_rank(ep_);
        peers_.resize(ulc_size(ep_));
        rounds_.resize(static_cast<unsigned>(rank_), ulc_size(ep_));
        peers_[static_cast<std::size_t>(rank_)].is_known = true;
        error = agree();
    }
    if (error != ULC_OK) {
        if (ep_ != nullptr) static_cast<void>(ulc_promise(ep_, 1));
        if (!peers_.empty()) static_cast<void>(ulc_leave_wait(ep_, kLeaveMax));
        close();
    }
    return error;
}

int Process::has_agreed() const {
    if (mismatches_) return ULC_ERR_MISMATCH;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        if (peers_[rank].is_known) continue;
        const int state = ulc_peer_state(ep_, static_cast<std::uint16_t>(rank));
        return state == ULC_OK ? ULC_ERR_AGAIN : state;
    }
    return ULC_OK;
}

int Process::agree() {
    {
        const Call call(*this);
        const Hello hello{id_};
        for (std::size_t rank = 0; rank < peers_.size(); ++rank)
            if (static_cast<int>(rank) != rank_)
                tell(static_cast<std::uint16_t>(rank), Kind::kHello, &hello, sizeof hello);
    }
    const int error = wait_until([this] { return has_agreed(); }, kJoinMax);
    is_begun_ = error == ULC_OK;
    if (error == ULC_OK) return error;
    return complain(error == ULC_ERR_MISMATCH
                        ? "a process runs another build, or gave other handlers; start the same "
                          "program everywhere"
                        : "not all processes have come; look at what the others said",
                    error);
}

void Process::close() {
    static_cast<void>(ulc_upcall(ep_, nullptr, nullptr));
    ulc_close(ep_);
    ep_ = nullptr;
    rank_ = -1;
    peers_.clear();
}

int Process::exit() {
    if (&scheduler_->current() != first_ || scheduler_->threads() > 0) return ULC_ERR_INVALID;
    const auto sent = [this] { return sent_ == 0 ? ULC_OK : ULC_ERR_AGAIN; };
    static_cast<void>(wait_until(sent, kLeaveMax));
    is_begun_ = false;
    scheduler_->enter();
    promise_to_poll();
    const int error = ulc_leave_wait(ep_, kLeaveMax);
    close();
    return error;
}

void Process::end_program(const char* what, int error) const {
    std::fprintf(stderr, "express: process %d: %s: %s\n", rank_, what, ulc_error_text(error));
    std::fflush(stdout);
    std::_Exit(1);
}

/// Waits in a thread of the program until condition() is an error or ULC_OK.
template <typename Condition>
int Process::wait_until(Condition condition, Nanos at_most) {
    const Nanos begun = monotonic_now();
    for (;;) {
        const Call call(*this);
        collect();
        const int error = condition();
        if (error != ULC_ERR_AGAIN) return error;
        if (at_most < Scheduler::kNever && monotonic_now() - begun >= at_most)
            return ULC_ERR_TIMEOUT;
        scheduler_->block_in(changed_);
    }
}

int Process::lend_frames(bool lend) {
    const Call call(*this);
    return ulc_lend_frames(ep_, lend ? 1 : 0);
}

// ---------------------------------------------------------------- the promise to poll

int Process::let_interrupt(bool allowed) {
    const Call call(*this);
    may_interrupt_ = allowed;
    return ULC_OK;
}

void Process::promise_to_poll() {
    if (computes_) static_cast<void>(ulc_promise(ep_, 1));
    computes_ = false;
}

bool Process::wakes_server() {
    collect();
    if (!look()) return false;
    scheduler_->wake_server();
    return true;
}

void Process::poll() {
    const int events = ulc_poll(ep_);
    if (events < 0 && events != -ULC_ERR_LIMIT) end_program("the engine has ended", -events);
}

// An upcall that comes behind ulc_promise(ep, 0) takes `computes_` back, so it is set before.
bool Process::may_compute() {
    if (computes_ || in_upcall_ || scheduler_->server_is_busy()) return true;
    if (!may_interrupt_) {
        poll();
        return !wakes_server();
    }
    for (;;) {
        if (wakes_server()) return false;
        computes_ = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const int error = ulc_promise(ep_, 0);
        if (error == ULC_OK) return true;
        computes_ = false;
        if (error != ULC_ERR_AGAIN && error != ULC_ERR_LIMIT)
            end_program("the engine has ended", error);
        if (error == ULC_ERR_AGAIN) poll();
    }
}

// Runs on the stack of the interrupted thread. The server runs on its own, and returns here when it
// has no message, or when its handler has blocked. In the second case the promise stays.
void Process::on_upcall() {
    computes_ = false;
    in_upcall_ = true;
    const bool has_run = scheduler_->on_upcall();
    in_upcall_ = false;
    if (!has_run || scheduler_->server_is_busy()) {
        static_cast<void>(ulc_promise(ep_, 1));
    } else {
        computes_ = true;  // libulc revokes the promise when this returns
    }
}

void Process::idle(Nanos until) {
    ULC_CHECK(!in_upcall_);
    promise_to_poll();
    const auto has_work = [this] { return !scheduler_->server_is_busy() && look(); };
    collect();
    if (has_work()) return scheduler_->wake_server();
    const Nanos now = monotonic_now();
    const Nanos left =
        std::clamp<Nanos>(until == Scheduler::kNever ? kLookEvery : until - now, 0, kLookEvery);
    const int error = ulc_wait(ep_, left);
    if (error != ULC_OK && error != ULC_ERR_TIMEOUT && error != ULC_ERR_LIMIT)
        end_program("the engine has ended", error);
    if (monotonic_now() - looked_at_ >= kLookEvery) look_at_peers();
    collect();
    if (has_work()) scheduler_->wake_server();
}

void Process::look_at_peers() {
    looked_at_ = monotonic_now();
    for (std::size_t rank = 0; rank < peers_.size() && is_begun_; ++rank) {
        Peer& peer = peers_[rank];
        const int state = ulc_peer_state(ep_, static_cast<std::uint16_t>(rank));
        if (peer.is_dead || state != ULC_ERR_PEER_DIED) continue;
        peer.is_dead = true;
        ++deaths_to_handle_;
    }
    scheduler_->wake_all(changed_);
}

// ---------------------------------------------------------------- sends

void* Process::allocate(std::size_t length) {
    if (length == 0 || length > EXPRESS_MESSAGE_MAX) return nullptr;
    for (;;) {
        const Call call(*this);
        Buffer* buffer = pool_.allocate(length);
        if (buffer == nullptr) {
            collect();
            buffer = pool_.allocate(length);
        }
        if (buffer != nullptr) return buffer->memory;
        scheduler_->block_in(room_);
    }
}

int Process::free(const void* message) {
    const Call call(*this);
    Buffer* const buffer = pool_.find(message);
    if (buffer == nullptr) return ULC_ERR_INVALID;
    pool_.release(*buffer);
    scheduler_->wake_all(room_);
    return ULC_OK;
}

int Process::submit(Buffer& buffer) {
    const int error =
        ulc_send(ep_, buffer.to, buffer.tag, buffer.memory, buffer.length, &buffer.request);
    if (error == ULC_OK) static_cast<void>(ulc_collect(ep_, &buffer.request));
    return error;
}

void Process::release(Buffer& buffer) {
    pool_.release(buffer);
    --sent_;
}

int Process::send(std::uint16_t to, const void* message, express_handler handler) {
    const auto number = numbers_.find(handler);
    if (to >= peers_.size() || number == numbers_.end()) return ULC_ERR_INVALID;
    const Call call(*this);
    Buffer* const buffer = pool_.find(message);
    if (buffer == nullptr) return ULC_ERR_INVALID;
    buffer->state = Buffer::State::kSent;
    buffer->to = to;
    buffer->tag = tag_of(Kind::kUser, number->second, rounds_.begun() % 2 != 0);
    buffer->next = nullptr;
    ++sent_;
    int error = ulc_peer_state(ep_, to);
    if (error == ULC_OK) error = unsent_ == nullptr ? submit(*buffer) : ULC_ERR_AGAIN;
    if (error == ULC_OK || error == ULC_ERR_AGAIN) ++peers_[to].sent;
    if (error == ULC_OK) return error;
    if (error == ULC_ERR_AGAIN) {
        *unsent_end_ = buffer;
        unsent_end_ = &buffer->next;
        return ULC_OK;
    }
    release(*buffer);
    scheduler_->wake_all(room_);
    return error;
}

/// Gives libulc the messages for which it had no place, in order.
void Process::flush() {
    while (unsent_ != nullptr) {
        Buffer& buffer = *unsent_;
        Buffer* const next = buffer.next;
        const int error = submit(buffer);
        if (error == ULC_ERR_AGAIN) return;
        unsent_ = next;
        if (next == nullptr) unsent_end_ = &unsent_;
        if (error != ULC_OK) release(buffer);
    }
}

/// Frees the buffers of messages that were accepted.
void Process::collect() {
    const std::size_t before = sent_;
    ulc_status status;
    while (ulc_request* request = ulc_next_done(ep_, &status))
        release(*reinterpret_cast<Buffer*>(request));
    flush();
    if (sent_ == before) return;
    scheduler_->wake_all(room_);
    scheduler_->wake_all(changed_);
}

// ---------------------------------------------------------------- all processes

/// Sends a message without a buffer, behind earlier ones. None to a process that is gone.
void Process::tell(std::uint16_t to, Kind kind, const void* bytes, std::size_t length) {
    for (;;) {
        collect();
        const int error = unsent_ != nullptr
                              ? ULC_ERR_AGAIN
                              : ulc_send(ep_, to, tag_of(kind), bytes, length, nullptr);
        if (error != ULC_ERR_AGAIN) return;
        static_cast<void>(ulc_wait(ep_, kRetry));
    }
}

void Process::tell_round() {
    const auto counts = rounds_.counts();
    const std::vector<Be64> words(counts.begin(), counts.end());
    tell(rounds_.partner().to, Kind::kEnter, words.data(), words.size() * sizeof(Be64));
}

bool Process::is_any_dead() const {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank)
        if (ulc_peer_state(ep_, static_cast<std::uint16_t>(rank)) == ULC_ERR_PEER_DIED) return true;
    return false;
}

/// Passes the rounds whose messages have come.
int Process::pass_rounds() {
    while (!rounds_.is_over()) {
        const SyncRounds::Partner& partner = rounds_.partner();
        if (!rounds_.has_come()) {
            if (partner.error != ULC_OK) return partner.error;
            const int state = ulc_peer_state(ep_, partner.source);
            return state == ULC_OK ? ULC_ERR_AGAIN : state;
        }
        rounds_.pass();
        if (!rounds_.is_over()) tell_round();
    }
    if (finished_[(rounds_.begun() - 1) % 2] >= rounds_.expected()) return ULC_OK;
    return is_any_dead() ? ULC_ERR_PEER_DIED : ULC_ERR_AGAIN;
}

int Process::synchronise() {
    if (syncs_ || scheduler_->is_server()) return ULC_ERR_INVALID;
    if (broken_ != ULC_OK) return broken_;
    syncs_ = true;
    {
        const Call call(*this);
        SyncRounds::Counts sent;
        for (Peer& peer : peers_)
            sent.push_back(std::exchange(peer.sent, 0));
        rounds_.begin(sent);
        if (!rounds_.is_over()) tell_round();
    }
    broken_ = wait_until([this] { return pass_rounds(); }, Scheduler::kNever);
    if (broken_ != ULC_OK) tell_broken();
    finished_[(rounds_.begun() - 1) % 2] = 0;
    syncs_ = false;
    return broken_;
}

/// Tells the partners of all rounds that this process passes no barrier any more, and they theirs.
/// So each process looks at its own partners alone.
void Process::tell_broken() {
    const Call call(*this);
    const auto octet = static_cast<std::uint8_t>(broken_);
    for (const SyncRounds::Partner& partner : rounds_.partners())
        tell(partner.to, Kind::kEnter, &octet, sizeof octet);
}

}  // namespace ulc::express
