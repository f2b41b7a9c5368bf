// SPDX-License-Identifier: BSD-3-Clause
// Transitions of a membership (docs/PROTOCOL.md §7 is the engine's part), and the wait until a job
// has formed.
#include "client/jobs/membership.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "client/attach/defaults.h"
#include "client/blocking.h"
#include "client/error_text.h"

namespace ulc::client {

int Membership::may_begin() const noexcept {
    if (ended_ != 0) return ended_;
    return state_ == State::kIdle || state_ == State::kFailed ? int{ULC_OK} : int{ULC_ERR_INVALID};
}

int Membership::why_not() const noexcept {
    if (ended_ != 0) return ended_;
    return state_ == State::kLeaving ? ULC_ERR_CLOSED : ULC_ERR_NOT_FORMED;
}

int Membership::set_profile(std::string_view profile) {
    if (const int error = may_begin(); error != ULC_OK) return error;
    if (profile.size() > abi::kProfileOctetsMax) return ULC_ERR_INVALID;
    recall_.profile = profile;
    return ULC_OK;
}

void Membership::prepare_as(const Recall& other) {
    recall_.profile = other.profile;
    recall_.patience = other.patience;
}

// ---------------------------------------------------------------- joining

int Membership::join(const char* job, std::size_t job_octets, std::uint16_t rank,
                     std::uint16_t size, const unsigned char* nonce, Nanos timeout) {
    if (const int error = may_begin(); error != ULC_OK) return error;
    if (job_octets == 0 || job_octets > abi::kJobNameOctetsMax) {
        set_last_error("the job's name has %zu bytes; give it 1 to %zu (ULC_JOB)", job_octets,
                       std::size_t{abi::kJobNameOctetsMax});
        return ULC_ERR_INVALID;
    }
    if (size == 0 || size == ULC_RANK_ANY) {
        set_last_error("a job has 1 to %u ranks, not %u (ULC_SIZE)", ULC_RANK_ANY - 1U, size);
        return ULC_ERR_INVALID;
    }
    if (rank >= size) {
        set_last_error(
            "rank %u does not exist in a job of %u: ranks are 0 to %u; correct ULC_RANK or "
            "ULC_SIZE, or what the program gives instead",
            rank, size, size - 1U);
        return ULC_ERR_INVALID;
    }
    if (const int error = seal(nonce); error != ULC_OK) return error;
    abi::JoinRequest request{};
    std::memcpy(request.name, job, job_octets);
    request.name_length = static_cast<std::uint16_t>(job_octets);
    request.rank = rank;
    request.size = size;
    request.medium = medium_wanted_;
    if (nonce != nullptr) std::memcpy(request.nonce, nonce, sizeof request.nonce);
    request.timeout_ns = timeout > 0 && timeout != kNever ? static_cast<std::uint64_t>(timeout) : 0;
    std::memcpy(request.profile, recall_.profile.data(), recall_.profile.size());
    const Nanos patience = std::max({Nanos{0}, recall_.patience, patience_of_debugging()});
    request.patience_ns = static_cast<std::uint64_t>(patience);
    const int error = begin_forming(abi::SubmitKind::kJoinJob, &request, sizeof request);
    if (error != ULC_OK) return error;
    recall_.join = request;
    rank_ = rank;
    return ULC_OK;
}

int Membership::open_links(std::uint16_t links, const unsigned char* key) {
    abi::OpenLinksRequest request{};
    std::memcpy(request.key, key, sizeof request.key);
    const int error = open_links(links, request);
    if (error == ULC_OK) recall_.name = {};
    return error;
}

int Membership::open_links_as(std::uint16_t links, const ulc_link_address& name) {
    abi::NamedAddress named;
    static_assert(sizeof named == sizeof name.bytes);
    std::memcpy(&named, name.bytes, sizeof named);
    const unsigned char none[sizeof named.name] = {};
    if (named.mark != named.kMark || std::memcmp(named.name, none, sizeof none) == 0)
        return ULC_ERR_INVALID;
    abi::OpenLinksRequest request{};
    std::memcpy(request.key, named.secret, sizeof request.key);
    std::memcpy(request.name, named.name, sizeof request.name);
    const int error = open_links(links, request);
    if (error == ULC_OK) recall_.name = name;
    return error;
}

int Membership::open_links(std::uint16_t links, abi::OpenLinksRequest& request) {
    if (const int error = may_begin(); error != ULC_OK) return error;
    if (links == 0 || links >= ULC_RANK_ANY) return ULC_ERR_INVALID;
    if (const int error = seal(nullptr); error != ULC_OK) return error;
    std::memcpy(request.profile, recall_.profile.data(), recall_.profile.size());
    request.links = links;
    const int error = begin_forming(abi::SubmitKind::kOpenLinks, &request, sizeof request);
    if (error == ULC_OK) recall_.links = links;
    return error;
}

/// Submits a request to join or to open for links.
int Membership::begin_forming(abi::SubmitKind kind, const void* request, std::size_t octets) {
    const auto length = static_cast<std::uint32_t>(octets);
    const std::uint32_t block = arena_.allocate(length);
    if (block == TxArena::kNone) return ULC_ERR_AGAIN;
    abi::SubmissionRecord* record = submitter_.claim(kind);
    if (record == nullptr) {
        arena_.free(block);
        return ULC_ERR_AGAIN;
    }
    std::memcpy(arena_.at(block), request, octets);
    record->body.block = {block, length, length, 0, 0, 0};
    submitter_.publish();
    request_block_ = block;
    job_error_ = ULC_ERR_AGAIN;
    job_text_.clear();
    state_ = State::kForming;
    return ULC_OK;
}

/// Gives the nonce of a job to the engine's sealed wires. nullptr: there is none. Returns an error
/// of ulc.h: without a key such a wire reaches no node.
int Membership::seal(const unsigned char* nonce) const {
    constexpr unsigned char kNone[sizeof(abi::JoinRequest::nonce)] = {};
    if (hooks_.seal == nullptr) return ULC_OK;
    if (nonce != nullptr && std::memcmp(nonce, kNone, sizeof kNone) == 0) nonce = nullptr;
    const int error = hooks_.seal(hooks_.context, nonce);
    if (error == ULC_ERR_LIMIT)
        set_last_error(
            "the wire is sealed by the keys of 16 jobs of this process, and takes no other; join "
            "in "
            "another process, or give the ranks' devices key=FILE and join without a nonce");
    if (error == ULC_ERR_INVALID)
        set_last_error(
            "the wire is sealed, and there is no key: start with `ulc run`, mpirun or mpiexec; or "
            "set ULC_NONCE to the same 32 hexadecimal digits for all ranks; or add key=FILE to the "
            "device, or open where all who reach the net are trusted");
    return error;
}

// ---------------------------------------------------------------- the engine's answers

void Membership::free_request() noexcept {
    if (request_block_ != TxArena::kNone) arena_.free(request_block_);
    request_block_ = TxArena::kNone;
}

void Membership::form(std::uint16_t rank, std::uint32_t size, int peer_error) {
    rank_ = rank;
    size_ = static_cast<std::uint16_t>(size);
    peer_errors_.assign(size, static_cast<std::uint8_t>(peer_error));
    // A job can form that this rank has begun to leave.
    if (state_ == State::kForming) state_ = State::kFormed;
}

bool Membership::on_formed(const abi::CompletionRecord& record) {
    if (request_block_ == TxArena::kNone) return false;
    free_request();
    const std::uint32_t size = record.body.block.length;
    if (size == 0 || size >= ULC_RANK_ANY || record.source >= size) return false;
    world_ = record.stream;
    const std::uint64_t medium = record.body.block.message_offset;
    medium_ = medium < kMediaSaid ? static_cast<Medium>(medium) : Medium::kSwitch;
    form(record.source, size, 0);
    return true;
}

bool Membership::on_links_open(const abi::CompletionRecord& record) {
    if (request_block_ == TxArena::kNone) return false;
    free_request();
    const std::uint32_t size = record.stream;
    if (size == 0 || size >= ULC_RANK_ANY) return false;
    form(ULC_RANK_ANY, size, ULC_ERR_INVALID);
    return true;
}

bool Membership::on_failed(const abi::CompletionRecord& record) {
    if (state_ != State::kForming && state_ != State::kLeaving && state_ != State::kFormed)
        return false;
    free_request();
    job_error_ = record.status != 0 ? int{record.status} : int{ULC_ERR_SYSTEM};
    if (state_ == State::kForming) state_ = State::kFailed;
    const char* text = region_.control().failure;
    job_text_.assign(text, strnlen(text, abi::kTextOctetsMax));
    return true;
}

// ---------------------------------------------------------------- leaving

bool Membership::begin_leaving() noexcept {
    if (state_ == State::kIdle || state_ == State::kFailed) return false;
    if (state_ == State::kForming || state_ == State::kFormed) state_ = State::kLeaving;
    return true;
}

// kLeave goes behind everything that was sent.
void Membership::submit_leave() noexcept {
    leave_submitted_ = submitter_.submit(abi::SubmitKind::kLeave);
}

void Membership::on_left(const abi::CompletionRecord& record) noexcept {
    left_error_ = record.status;
    if (left_error_ != ULC_ERR_TIMEOUT) return;
    char most[48] = "";
    if (record.source != ULC_RANK_ANY)
        std::snprintf(most, sizeof most, ", most of them to rank %u", unsigned{record.source});
    set_last_error("rank %u left, and %llu bytes of its last messages were not delivered%s",
                   unsigned{rank_}, static_cast<unsigned long long>(record.tag), most);
}

// ---------------------------------------------------------------- state

int Membership::job_state() const noexcept {
    switch (state_) {
        case State::kIdle:
            return ULC_ERR_NOT_FORMED;
        case State::kForming:
        case State::kLeaving:
            return ULC_ERR_AGAIN;
        case State::kFormed:
            return ULC_OK;
        case State::kFailed:
            return job_error_;
        case State::kClosed:
            return ended_;
    }
    return ULC_ERR_CLOSED;
}

int Membership::peer_state(std::uint16_t rank) const noexcept {
    if (ended_ != 0) return ended_;
    if (rank >= size_) return size_ == 0 ? ULC_ERR_NOT_FORMED : ULC_ERR_INVALID;
    return peer_errors_[rank];
}

void Membership::check_invariants() const {
    ULC_CHECK((state_ == State::kClosed) == (ended_ != 0));
    const bool requested = request_block_ != TxArena::kNone;
    ULC_CHECK(requested == (state_ == State::kForming) || state_ == State::kLeaving ||
              state_ == State::kClosed);
    ULC_CHECK(!leave_submitted_ || state_ == State::kLeaving || state_ == State::kClosed);
    ULC_CHECK(peer_errors_.size() == size_);
    ULC_CHECK(state_ != State::kFormed || size_ != 0);
    ULC_CHECK(state_ != State::kFormed || rank_ < size_ || rank_ == ULC_RANK_ANY);
}

// ---------------------------------------------------------------- the wait

int wait_until_formed(ulc_endpoint& ep, const char* job, Nanos deadline) {
    // The engine has the same deadline, and knows which ranks did not come and why.
    constexpr Nanos kEngineSpeaks = 100 * kMillisecond;
    const Nanos give_up = deadline == ULC_WAIT_FOREVER ? deadline : deadline + kEngineSpeaks;
    int error = ULC_OK;
    while ((error = ep.membership().job_state()) == ULC_ERR_AGAIN) {
        error = ep.waiter.wait(left_of(ep, give_up));
        if (error == ULC_ERR_TIMEOUT && ep.membership().job_state() == ULC_ERR_AGAIN) {
            set_last_error("job %s: not all ranks came in time", job);
            return ULC_ERR_TIMEOUT;
        }
    }
    if (error != ULC_OK) {
        const std::string& more = ep.membership().job_text();
        const bool repeats = more.empty() || more == ulc_error_text(error);
        set_last_error("job %s: %s%s%s", job, ulc_error_text(error), repeats ? "" : ": ",
                       repeats ? "" : more.c_str());
    }
    return error;
}

}  // namespace ulc::client
