// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mpi/session.h"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client/ulc_meeting.h"
#include "coll/mpi/operation.h"

namespace ulc::mpi {
namespace {

constexpr std::uint32_t kCardVersion = 3;
constexpr std::uint32_t kRanksMax = 65534;
constexpr Nanos kJoinMax = 30 * kSecond;
constexpr Nanos kLeaveMax = 15 * kSecond;  ///< the engine gives up earlier, and says why
/// Ranks of MPI share busy processors, and one that counts as dead ends the job.
constexpr Nanos kPatience = 15 * kSecond;
constexpr Nanos kFarewellMax = 1 * kSecond;

bool flag(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read only
    return value != nullptr && std::strcmp(value, "1") == 0;
}

constexpr const char* kOpNames[] = {"MPI_Barrier",
                                    "MPI_Bcast",
                                    "MPI_Gather",
                                    "MPI_Gatherv",
                                    "MPI_Scatter",
                                    "MPI_Scatterv",
                                    "MPI_Allgather",
                                    "MPI_Allgatherv",
                                    "MPI_Alltoall",
                                    "MPI_Alltoallv",
                                    "MPI_Alltoallw",
                                    "MPI_Reduce",
                                    "MPI_Allreduce",
                                    "MPI_Reduce_scatter",
                                    "MPI_Reduce_scatter_block",
                                    "MPI_Scan",
                                    "MPI_Exscan",
                                    "MPI_Neighbor_allgather",
                                    "MPI_Neighbor_allgatherv",
                                    "MPI_Neighbor_alltoall",
                                    "MPI_Neighbor_alltoallv",
                                    "MPI_Neighbor_alltoallw"};
static_assert(sizeof kOpNames / sizeof *kOpNames == ULC_MPI_BLOCKING_OPS);
constexpr const char* kWayTexts[ULC_MPI_WAYS] = {
    "by ULC",
    "by the MPI: the job of all ranks did not form",
    "by the MPI: a member could not make the group",
    "by the MPI: all members are on one node (ULC_MPI_SAME_NODE=1 changes that)",
    "by the MPI: elements of a reduction above 64 KiB",
    "by the MPI: before the first blocking collective of the communicator",
    "by the MPI: non-blocking, which this MPI's waits would not move"};

/// MPI_Bcast, MPI_Ibcast or MPI_Bcast_init.
std::string name_of(unsigned op) {
    std::string name = kOpNames[op % ULC_MPI_BLOCKING_OPS];
    if (op >= ULC_MPI_PERSISTENT) return name + "_init";
    if (op < ULC_MPI_BLOCKING_OPS) return name;
    name[4] = static_cast<char>(name[4] - 'A' + 'a');
    return name.insert(4, "I");
}

}  // namespace

thread_local unsigned Session::Waiting::depth = 0;

Nanos now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Session& session() {
    static Session one;
    return one;
}

int Session::open(const ulc_mpi_hooks* hooks, ulc_mpi_card& card) {
    hooks_ = hooks;
    card = {};
    card.version = kCardVersion;
    card.same_node = flag("ULC_MPI_SAME_NODE") ? 1 : 0;
    if (ulc_open(nullptr, &ep_) != ULC_OK) {
        why_not_ = ulc_last_error_text();
        return -1;
    }
    if (::getrandom(card.nonce, sizeof card.nonce, 0) != sizeof card.nonce) {
        why_not_ = "no random bytes for a nonce";
        ulc_close(ep_);
        ep_ = nullptr;
        return -1;
    }
    static_assert(sizeof card.meeting == ULC_MEETING_MAX);
    static_cast<void>(ulc_meeting(ep_, card.meeting, sizeof card.meeting));
    card.able = 1;
    return 0;
}

void Session::decline(const char* why) {
    const std::lock_guard<std::mutex> hold(lock_);
    why_not_ = why;
}

int Session::join(const char* job, std::uint32_t rank, std::uint32_t size,
                  const ulc_mpi_card* cards) {
    if (size == 0 || size > kRanksMax || rank >= size) {
        why_not_ = "the job has " + std::to_string(size) + " ranks, more than ULC's 65534";
        return -1;
    }
    for (std::uint32_t r = 0; r < size; ++r) {
        if (cards[r].version == kCardVersion && cards[r].able != 0) continue;
        why_not_ = "rank " + std::to_string(r) +
                   (cards[r].version == 0              ? " has no ULC component"
                    : cards[r].version != kCardVersion ? " has another version of ULC"
                                                       : " has no engine that answers");
        return -1;
    }
    same_node_ = cards[0].same_node != 0;
    const std::lock_guard<std::mutex> hold(lock_);
    static_cast<void>(ulc_set_patience(ep_, kPatience));
    const std::string meeting(cards[0].meeting, ::strnlen(cards[0].meeting, ULC_MEETING_MAX));
    static_cast<void>(ulc_meet(ep_, meeting.c_str()));
    const int error = ulc_join(ep_, job, static_cast<std::uint16_t>(rank),
                               static_cast<std::uint16_t>(size), cards[0].nonce);
    joining_ = error == ULC_OK;
    why_not_ = joining_ ? "" : std::string("the job was not joined: ") + ulc_error_text(error);
    return joining_ ? 0 : -1;
}

int Session::progress() {
    if (Waiting::depth > 0 || !lock_.try_lock()) return 0;
    const int events = ep_ != nullptr ? ulc_poll(ep_) : 0;
    Operation* finished = advance();
    lock_.unlock();
    complete(finished);
    return (events > 0 ? events : 0) + (finished != nullptr ? 1 : 0);
}

int Session::perform(std::unique_ptr<Operation> operation) {
    ulc_mpi_pending* const pending = operation->pending();
    int state = ULC_ERR_AGAIN;
    if (operation->is_persistent()) {
        const std::lock_guard<std::mutex> hold(lock_);
        ++operation->comm().persistent;
        pending->operation = operation.release();
        return ULC_OK;
    }
    if (pending != nullptr) {
        state = begin(*operation);
        if (state == ULC_ERR_AGAIN) {
            static_cast<void>(operation.release());
            return ULC_OK;
        }
    } else {
        {
            const std::lock_guard<std::mutex> hold(lock_);
            operation->queue();
        }
        static_cast<void>(drive(kNever, [&] {
            state = operation->step();
            return state != ULC_ERR_AGAIN;
        }));
    }
    return conclude(*operation, state);
}

int Session::begin(Operation& operation) {
    const std::lock_guard<std::mutex> hold(lock_);
    operation.queue();
    const int state = operation.step();
    if (state != ULC_ERR_AGAIN) return state;
    ++operation.comm().pending;
    operation.next = nullptr;
    *last_ = &operation;
    last_ = &operation.next;
    return state;
}

int Session::conclude(Operation& operation, int state) {
    if (state == ULC_OK && !operation.finish()) state = ULC_ERR_NO_MEMORY;
    if (state != ULC_OK) say_failure(operation.name(), state);
    // A persistent operation may be started again or freed by now, where another thread waits.
    if (ulc_mpi_pending* pending = operation.pending(); state == ULC_OK && pending != nullptr)
        pending->done(pending, ULC_OK);
    return state;
}

int Session::start(ulc_mpi_pending& pending) {
    auto* operation = static_cast<Operation*>(pending.operation);
    if (operation == nullptr) {  // no bytes to move
        pending.done(&pending, ULC_OK);
        return ULC_OK;
    }
    if (!operation->rewind()) return ULC_ERR_NO_MEMORY;
    const int state = begin(*operation);
    return state == ULC_ERR_AGAIN ? int{ULC_OK} : conclude(*operation, state);
}

void Session::release(ulc_mpi_pending& pending) {
    const std::unique_ptr<Operation> operation(static_cast<Operation*>(pending.operation));
    if (operation == nullptr) return;
    pending.operation = nullptr;
    ulc_mpi_comm& comm = operation->comm();
    bool was_last = false;
    {
        const std::lock_guard<std::mutex> hold(lock_);
        operation->drop_kept();
        was_last = --comm.persistent == 0 && comm.left;
    }
    if (was_last) end(comm);
}

Operation* Session::advance() {
    Operation* finished = nullptr;
    Operation** behind = &finished;
    for (Operation** at = &first_; *at != nullptr;) {
        Operation* one = *at;
        one->outcome = one->step();
        if (one->outcome == ULC_ERR_AGAIN) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        if (last_ == &one->next) last_ = at;
        one->next = nullptr;
        *behind = one;
        behind = &one->next;
        if (--one->comm().pending == 0 && one->comm().freed) forget(one->comm());
    }
    return finished;
}

void Session::complete(Operation* finished) {
    while (finished != nullptr) {
        Operation* const one = finished;
        const std::unique_ptr<Operation> owned(one->is_persistent() ? nullptr : one);
        ulc_mpi_pending* const pending = one->pending();
        finished = one->next;
        int outcome = one->outcome;
        if (outcome == ULC_OK && !one->finish()) outcome = ULC_ERR_NO_MEMORY;
        if (outcome != ULC_OK) say_failure(one->name(), outcome);
        pending->done(pending, outcome);  // the program may free a persistent one at once
    }
}

bool Session::wait_formed() {
    if (!joining_) return false;
    int state = ULC_ERR_AGAIN;
    static_cast<void>(drive(kJoinMax, [&] {
        state = ulc_job_state(ep_);
        return state != ULC_ERR_AGAIN;
    }));
    if (state == ULC_OK) return true;
    const std::lock_guard<std::mutex> hold(lock_);
    joining_ = false;  // a job that came later would be known to some ranks only
    why_not_ = std::string("the job did not form: ") +
               (state == ULC_ERR_AGAIN ? "not all ranks came in time" : ulc_error_text(state));
    return false;
}

void Session::close(std::uint32_t rank) {
    if (flag("ULC_MPI_VERBOSE") && rank == 0) print_account(rank);
    finish_operations();
    const std::lock_guard<std::mutex> hold(lock_);
    if (ep_ == nullptr) return;
    if (joining_ && ulc_leave_wait(ep_, kLeaveMax) == ULC_ERR_TIMEOUT)
        std::fprintf(stderr, "ulc: %s\n", ulc_last_error_text());
    ulc_close(ep_);
    ep_ = nullptr;
    joining_ = false;
    // The endpoint wrote into their buffers until here.
    while (first_ != nullptr) {
        Operation* const one = first_;
        first_ = one->next;
        if (!one->is_persistent()) delete one;
    }
    last_ = &first_;
}

void Session::finish_operations() {
    for (const Nanos deadline = now() + kFarewellMax; first_ != nullptr && now() < deadline;) {
        static_cast<void>(progress());
        ::sched_yield();
    }
}

Pace& Session::pace_of_thread() noexcept {
    static thread_local Pace pace;
    return pace;
}

Nanos Session::end_round(Pace& pace, Pace::Found found) {
    Nanos at = now();
    if (pace.mpi_is_due(at)) {
        hooks_->progress();
        at = now();
    }
    if (pace.yields(found, at)) {
        ::sched_yield();
        pace.yielded(at, now());
    }
    return at;
}

void Session::say_failure(const char* name, int error) {
    if (name == nullptr || failure_said_.exchange(true)) return;
    char host[256] = "";
    static_cast<void>(::gethostname(host, sizeof host - 1));
    const unsigned rank = ep_ != nullptr ? ulc_rank(ep_) : 0;
    const char* more = ulc_last_error_text();
    std::fprintf(stderr, "ulc: %s failed at rank %u on %s: %s%s%s\n", name, rank, host,
                 ulc_error_text(error), more[0] != '\0' ? "; " : "", more);
}

void Session::print_account(std::uint32_t rank) const {
    std::fprintf(stderr, "ulc: collectives of rank %u\n", unsigned{rank});
    if (!why_not_.empty()) std::fprintf(stderr, "ulc:   ULC is not used: %s\n", why_not_.c_str());
    for (unsigned op = 0; op < ULC_MPI_OPS; ++op) {
        const std::string name = name_of(op);
        for (unsigned way = 0; way < ULC_MPI_WAYS; ++way) {
            const std::uint64_t n = counts_[op][way].load();
            if (n == 0) continue;
            std::fprintf(stderr, "ulc:   %-29s %10llu %s\n", name.c_str(),
                         static_cast<unsigned long long>(n), kWayTexts[way]);
        }
    }
}

}  // namespace ulc::mpi

using ulc::mpi::session;

extern "C" {

int ulc_mpi_open(const ulc_mpi_hooks* hooks, ulc_mpi_card* card) {
    return session().open(hooks, *card);
}
void ulc_mpi_decline(const char* why) { session().decline(why); }
int ulc_mpi_join(const char* job, uint32_t rank, uint32_t size, const ulc_mpi_card* cards) {
    return session().join(job, rank, size, cards);
}
int ulc_mpi_start(ulc_mpi_pending* pending) { return session().start(*pending); }
void ulc_mpi_release(ulc_mpi_pending* pending) { session().release(*pending); }
int ulc_mpi_progress(void) { return session().progress(); }
void ulc_mpi_close(uint32_t rank) { session().close(rank); }
void ulc_mpi_count(ulc_mpi_op op, ulc_mpi_way way) { session().count(op, way); }

}  // extern "C"
