// SPDX-License-Identifier: BSD-3-Clause
// Joining, leaving and peers of an endpoint (docs/PROTOCOL.md §7 is the engine's part).
#include <algorithm>
#include <cstring>
#include <new>

#include "client/attach/defaults.h"
#include "client/blocking.h"
#include "client/endpoint.h"
#include "client/error_text.h"

namespace ulc::client {

int Endpoint::set_profile(std::string_view profile) {
    if (ended_ != 0) return ended_;
    if (state_ != State::kIdle && state_ != State::kFailed) return ULC_ERR_INVALID;
    if (profile.size() > abi::kProfileOctetsMax) return ULC_ERR_INVALID;
    recall_.profile = profile;
    return ULC_OK;
}

int Endpoint::join(const char* job, std::size_t job_octets, std::uint16_t rank, std::uint16_t size,
                   const unsigned char* nonce, Nanos timeout) {
    if (ended_ != 0) return ended_;
    if (state_ != State::kIdle && state_ != State::kFailed) return ULC_ERR_INVALID;
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
    const std::uint32_t block = outbox_.arena().allocate(sizeof(abi::JoinRequest));
    if (block == TxArena::kNone) return ULC_ERR_AGAIN;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kJoinJob);
    if (record == nullptr) {
        outbox_.arena().free(block);
        return ULC_ERR_AGAIN;
    }
    abi::JoinRequest request{};
    std::memcpy(request.name, job, job_octets);
    request.name_length = static_cast<std::uint16_t>(job_octets);
    request.rank = rank;
    request.size = size;
    request.medium = medium_said_;
    if (nonce != nullptr) std::memcpy(request.nonce, nonce, sizeof request.nonce);
    request.timeout_ns = timeout > 0 && timeout != kNever ? static_cast<std::uint64_t>(timeout) : 0;
    std::memcpy(request.profile, recall_.profile.data(), recall_.profile.size());
    const Nanos patience = std::max({Nanos{0}, recall_.patience, patience_of_debugging()});
    request.patience_ns = static_cast<std::uint64_t>(patience);
    std::memcpy(outbox_.arena().at(block), &request, sizeof request);
    record->body.block = {block, sizeof request, sizeof request, 0, 0, 0};
    submitter_.publish();
    recall_.join = request;
    join_block_ = block;
    job_error_ = ULC_ERR_AGAIN;
    job_text_.clear();
    rank_ = rank;
    state_ = State::kForming;
    return ULC_OK;
}

int Endpoint::seal(const unsigned char* nonce) const {
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

void Endpoint::prepare_as(const Recall& other) {
    recall_.profile = other.profile;
    recall_.patience = other.patience;
    set_error_handler(other.handler);
    static_cast<void>(set_rendezvous(other.announce_from, other.held_max));
}

void Endpoint::take_collected(Endpoint& other) noexcept {
    while (Request* request = other.next_done())
        collector_.ended.push_back(*request);
}

int Endpoint::job_state() const noexcept {
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

std::uint16_t Endpoint::per_node_of(const abi::CompletionRecord& record) const noexcept {
    const std::uint64_t ranks = record.body.block.message_length;
    return ranks >= 1 && ranks <= size_ ? static_cast<std::uint16_t>(ranks) : std::uint16_t{1};
}

void Endpoint::on_formed(const abi::CompletionRecord& record) {
    outbox_.arena().free(join_block_);
    join_block_ = TxArena::kNone;
    const std::uint32_t size = record.body.block.length;
    if (size == 0 || size >= ULC_RANK_ANY || record.source >= size) {
        end(ULC_ERR_CORRUPT);
        return;
    }
    rank_ = record.source;
    size_ = static_cast<std::uint16_t>(size);
    world_ = record.stream;
    const std::uint64_t medium = record.body.block.message_offset;
    medium_ = medium < kMediaSaid ? static_cast<Medium>(medium) : Medium::kSwitch;
    try {
        peer_errors_.assign(size, 0);
        groups_.begin_job(world_, rank_, size_, per_node_of(record));
        if (near_ != nullptr) near_->begin_job(size_);
    } catch (const std::bad_alloc&) {
        end(ULC_ERR_NO_MEMORY);
        return;
    }
    if (!inbox_.begin_job(size_) || !outbox_.begin_job(size_)) {
        end(ULC_ERR_NO_MEMORY);
        return;
    }
    state_ = State::kFormed;
}

void Endpoint::on_job_failed(const abi::CompletionRecord& record) {
    if (join_block_ != TxArena::kNone) outbox_.arena().free(join_block_);
    join_block_ = TxArena::kNone;
    job_error_ = record.status != 0 ? int{record.status} : int{ULC_ERR_SYSTEM};
    if (state_ == State::kForming) state_ = State::kFailed;
    const char* text = region_.control().failure;
    job_text_.assign(text, strnlen(text, abi::kTextOctetsMax));
    if (state_ != State::kFormed) return;
    set_last_error("%s", job_text_.c_str());
    end(job_error_);
}

int Endpoint::leave() noexcept {
    if (ended_ != 0) return ended_;
    switch (state_) {
        case State::kIdle:
        case State::kFailed:
            end(ULC_ERR_CLOSED);  // nothing to leave
            return ULC_OK;
        case State::kForming:
        case State::kFormed:
            state_ = State::kLeaving;
            push_announced();
            push_leave();
            return ULC_OK;
        case State::kLeaving:
        case State::kClosed:
            return ULC_OK;
    }
    return ULC_OK;
}

// kLeave goes behind everything that was sent.
void Endpoint::push_leave() noexcept {
    if (!outbox_.all_submitted()) return;
    abi::SubmissionRecord* record = submitter_.claim(abi::SubmitKind::kLeave);
    if (record == nullptr) return;
    submitter_.publish();
    leave_pushed_ = true;
}

int Endpoint::peer_state(std::uint16_t rank) const noexcept {
    if (ended_ != 0) return ended_;
    if (rank >= size_) return size_ == 0 ? ULC_ERR_NOT_FORMED : ULC_ERR_INVALID;
    return peer_errors_[rank];
}

/// absence: how long the engine was stopped before, which may be why; 0: it was not.
void Endpoint::on_peer_gone(std::uint16_t rank, int error, Nanos absence) {
    if (rank == rank_ || peer_errors_[rank] != 0) return;  // also of a peer that was let go
    peer_errors_[rank] = static_cast<std::uint8_t>(error);
    if (absence > 0)
        set_last_error("%s was stopped for %.1f s, which may be why others ended the job",
                       region_.reaches_process() ? "this process" : "the engine of this node",
                       static_cast<double>(absence) / static_cast<double>(kSecond));
    if (near_ != nullptr) near_->forget(rank);
    const unsigned failed = outbox_.peer_gone(rank, error);
    if (failed > 0) recall_.handler.report(error, rank, failed);
    inbox_.peer_gone(rank, error);
    groups_.peer_gone(rank, error);
}

int wait_until_formed(ulc_endpoint& ep, const char* job, Nanos deadline) {
    // The engine has the same deadline, and knows which ranks did not come and why.
    constexpr Nanos kEngineSpeaks = 100 * kMillisecond;
    const Nanos give_up = deadline == ULC_WAIT_FOREVER ? deadline : deadline + kEngineSpeaks;
    int error = ULC_OK;
    while ((error = ep.job_state()) == ULC_ERR_AGAIN) {
        error = ep.waiter.wait(left_of(ep, give_up));
        if (error == ULC_ERR_TIMEOUT && ep.job_state() == ULC_ERR_AGAIN) {
            set_last_error("job %s: not all ranks came in time", job);
            return ULC_ERR_TIMEOUT;
        }
    }
    if (error != ULC_OK) {
        const std::string& more = ep.job_text();
        const bool repeats = more.empty() || more == ulc_error_text(error);
        set_last_error("job %s: %s%s%s", job, ulc_error_text(error), repeats ? "" : ": ",
                       repeats ? "" : more.c_str());
    }
    return error;
}

}  // namespace ulc::client
