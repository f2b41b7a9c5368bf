// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/peers/peers.h"

#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "client/near/ulc_near.h"
#include "client/ulc_meeting.h"
#include "ofi/queues/completions.h"
#include "ofi/say.h"

namespace ulc::ofi {
namespace {

constexpr Nanos kLeaveMax = 15 * kSecond;  ///< the engine gives up earlier, and says why
/// Ranks of MPI share busy processors, and one that counts as dead ends the job.
constexpr Nanos kPatience = 15 * kSecond;
constexpr int kJoinTries = 1000;

/// The number of the next endpoint of this process. Numbers are not used again: the other ranks
/// count too.
std::atomic<std::uint32_t> next_number{0};

}  // namespace

int fi_error_of(int error) noexcept {
    switch (error) {
        case ULC_OK:
            return 0;
        case ULC_ERR_AGAIN:
            return FI_EAGAIN;
        case ULC_ERR_INVALID:
            return FI_EINVAL;
        case ULC_ERR_NO_MEMORY:
            return FI_ENOMEM;
        case ULC_ERR_PERMISSION:
            return FI_EACCES;
        case ULC_ERR_NO_ENGINE:
        case ULC_ERR_CLOSED:
        case ULC_ERR_PORT_DOWN:
            return FI_ENETDOWN;
        case ULC_ERR_PEER_LEFT:
            return FI_ECONNRESET;
        case ULC_ERR_PEER_DIED:
            return FI_EHOSTUNREACH;
        case ULC_ERR_TIMEOUT:
            return FI_ETIMEDOUT;
        case ULC_ERR_VERSION:
            return FI_EOTHER;
        case ULC_ERR_TRUNCATED:
            return FI_ETRUNC;
        case ULC_ERR_LIMIT:
            return FI_ENOSPC;
        case ULC_ERR_UNSUPPORTED:
            return FI_EOPNOTSUPP;
        default:
            return FI_EIO;
    }
}

int Peers::join(ulc_endpoint* ep, const AddressVector& addresses) {
    std::string reason;
    job_ = Job::of_process(&reason);
    if (job_ == nullptr) {
        say("the endpoint cannot be enabled: %s", reason.c_str());
        return -FI_ENODATA;
    }
    ep_ = ep;
    addresses_ = &addresses;
    number_ = next_number++;
    by_rank_.assign(job_->size(), FI_ADDR_NOTAVAIL);
    // With an engine in this process there is no such way, and no peer is near.
    static_cast<void>(ulc_near_prepare(ep));
    static_cast<void>(ulc_set_patience(ep, kPatience));
    const std::string name = job_->name_for(number_);
    int error = ULC_ERR_AGAIN;
    for (int i = 0; i < kJoinTries && error == ULC_ERR_AGAIN; ++i) {
        error = ulc_join(ep, name.c_str(), job_->rank(), job_->size(), job_->nonce());
        if (error == ULC_ERR_AGAIN) static_cast<void>(ulc_wait(ep, kMillisecond));
    }
    addresses.each([this](const Address& peer) { meet(peer); });
    if (error == ULC_OK) strangers_.open(job_->ranks_here());
    return -fi_error_of(error);
}

int Peers::look_at_state() noexcept {
    const int state = ulc_job_state(ep_);
    formed_ = state == ULC_OK;
    for (std::size_t rank = 0; formed_ && rank < by_rank_.size(); ++rank)
        if (by_rank_[rank] != FI_ADDR_NOTAVAIL)
            static_cast<void>(ulc_near_peer(ep_, static_cast<std::uint16_t>(rank)));
    return -fi_error_of(state);
}

void Peers::leave() noexcept {
    if (state() == 0 && ulc_leave_wait(ep_, kLeaveMax) == ULC_ERR_TIMEOUT)
        say("%s", ulc_last_error_text());
    strangers_.close();
}

int Peers::learn(fi_addr_t address, Rank& rank) noexcept try {
    Address found;
    if (!addresses_->find(address, found)) return -FI_EINVAL;
    if (!job_->has_member(found, number_)) return strangers_.rank_of(address, found, rank);
    rank = Job::fields_of(found).rank;
    remember(address, found);
    return 0;
} catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
}

void Peers::remember(fi_addr_t address, const Address& peer) {
    const std::uint16_t rank = Job::fields_of(peer).rank;
    if (address >= ranks_.size()) ranks_.resize(address + 1, ULC_RANK_ANY);
    ranks_[address] = rank;
    if (by_rank_[rank] == FI_ADDR_NOTAVAIL) by_rank_[rank] = address;
    static_cast<void>(ulc_near_peer(ep_, rank));  // before the job has formed: look_at_state() does
}

bool Peers::is_near(Rank rank) const noexcept {
    ulc_near_process self;
    ulc_near_process other;
    return !is_stranger(rank) && ulc_near_processes(ep_, number_of(rank), &self, &other) == ULC_OK;
}

fi_addr_t Peers::address_of(Rank rank) noexcept {
    if (is_stranger(rank)) return strangers_.address_of(rank);
    if (rank >= by_rank_.size()) return FI_ADDR_NOTAVAIL;
    if (by_rank_[rank] != FI_ADDR_NOTAVAIL) [[likely]]
        return by_rank_[rank];
    // Its address may come later, so only a found one is kept.
    const fi_addr_t found = addresses_->index_of(job_->address_of(number_of(rank), number_));
    Address address;
    if (found == FI_ADDR_NOTAVAIL || !addresses_->find(found, address)) return FI_ADDR_NOTAVAIL;
    try {
        remember(found, address);
    } catch (const std::bad_alloc&) {  // it is found again by the next message
    }
    return found;
}

void Peers::forget(fi_addr_t address) noexcept {
    strangers_.forget(address);
    if (address < ranks_.size()) ranks_[address] = ULC_RANK_ANY;
    for (fi_addr_t& known : by_rank_) {
        if (known == address) known = FI_ADDR_NOTAVAIL;
    }
}

Address Peers::own_address() const noexcept {
    Address own = job_->address_of(job_->rank(), number_);
    strangers_.put_address(own.data() + offsetof(AddressFields, link));
    put_meeting(own);
    return own;
}

/// Writes the first IPv4 address of ulc_meeting(), if there is one. The others do not fit.
void Peers::put_meeting(Address& own) const noexcept {
    char text[ULC_MEETING_MAX] = "";
    static_cast<void>(ulc_meeting(ep_, text, sizeof text));
    AddressFields fields = Job::fields_of(own);
    unsigned port = 0;
    unsigned char* const ip = fields.meeting_ip;
    if (std::sscanf(text, "%hhu.%hhu.%hhu.%hhu:%u", ip, ip + 1, ip + 2, ip + 3, &port) != 5) return;
    fields.meeting_port = static_cast<std::uint16_t>(port);
    std::memcpy(own.data(), &fields, sizeof fields);
}

// All engines of a job ask that of rank 0, by which they find each other. Those of other jobs are
// asked one by one.
void Peers::meet(const Address& peer) const noexcept {
    const AddressFields fields = Job::fields_of(peer);
    if (ep_ == nullptr || (job_->has_member(peer, number_) && fields.rank != 0)) return;
    const unsigned port = fields.meeting_port;
    if (port == 0) return;
    const unsigned char* const ip = fields.meeting_ip;
    char text[32] = "";
    std::snprintf(text, sizeof text, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], port);
    static_cast<void>(ulc_meet(ep_, text));
}

}  // namespace ulc::ofi
