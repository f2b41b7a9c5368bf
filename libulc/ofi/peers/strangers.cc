// SPDX-License-Identifier: BSD-3-Clause
#include "ofi/peers/strangers.h"

#include <rdma/fi_errno.h>

#include <cstring>
#include <new>
#include <utility>

#include "client/near/ulc_near.h"
#include "ofi/peers/peers.h"
#include "ofi/queues/completions.h"
#include "ofi/say.h"

namespace ulc::ofi {
namespace {

constexpr std::uint16_t kLinksMax = 1024;
constexpr Nanos kOpenMax = kSecond;
constexpr Nanos kLinkMax = 10 * kSecond;
constexpr Nanos kLeaveMax = 15 * kSecond;  ///< the engine gives up earlier, and says why
/// Calls of poll() between two looks while there is no link. An engine in the application has a
/// round at each look.
constexpr unsigned kLooksApart = 64;

static_assert(sizeof(AddressFields::link) == ULC_ADDRESS_BYTES);

}  // namespace

void Strangers::open(unsigned ranks_here) noexcept {
    if (ranks_here > kRanksHereMax) return;
    if (ulc_open(nullptr, &ep_) != ULC_OK) {
        ep_ = nullptr;
        return;
    }
    prepared_ = ulc_near_prepare(ep_) == ULC_OK;
    if (ulc_open_links_wait(ep_, kLinksMax, kOpenMax) == ULC_OK) return;
    ulc_close(ep_);
    ep_ = nullptr;
}

void Strangers::close() noexcept {
    if (ep_ == nullptr) return;
    if (in_use_ && ulc_leave_wait(ep_, kLeaveMax) == ULC_ERR_TIMEOUT)
        say("to processes of other jobs: %s", ulc_last_error_text());
    ulc_close(ep_);
    ep_ = nullptr;
}

void Strangers::put_address(unsigned char* out) const noexcept {
    ulc_link_address own{};
    if (ep_ == nullptr || ulc_address(ep_, &own) != ULC_OK) own = {};
    std::memcpy(out, own.bytes, sizeof own.bytes);
}

int Strangers::rank_of(fi_addr_t address, const Address& peer, Rank& rank) {
    if (ep_ == nullptr) {
        if (!std::exchange(told_, true)) say("an address was refused: %s", kNoLinks);
        return -FI_EHOSTUNREACH;
    }
    auto known = links_.find(address);
    if (known == links_.end()) {
        const AddressFields fields = Job::fields_of(peer);
        ulc_link_address to;
        std::memcpy(to.bytes, fields.link, sizeof to.bytes);
        auto link = std::make_unique<Link>(Link{});
        const int error = ulc_link(ep_, &to, kLinkMax, &link->request);
        if (error != ULC_OK) return -fi_error_of(error);
        in_use_ = true;
        known = links_.emplace(address, std::move(link)).first;
    }
    Link& link = *known->second;
    if (link.state == State::kLinking) {
        settle(link);
        if (link.state == State::kLinked) addresses_[link.number] = address;
    }
    if (link.state == State::kLinking) return -FI_EAGAIN;
    if (link.state == State::kFailed) return -fi_error_of(link.error);
    rank = kStranger | link.number;
    return 0;
}

void Strangers::settle(Link& link) noexcept {
    ulc_status status{};
    if (ulc_test(ep_, &link.request, &status) != ULC_OK) return;
    link.state = status.error == ULC_OK ? State::kLinked : State::kFailed;
    link.error = status.error;
    link.number = status.source;
    if (link.state == State::kLinked && prepared_)
        static_cast<void>(ulc_near_peer(ep_, link.number));
}

fi_addr_t Strangers::address_of(Rank rank) const noexcept {
    const auto known = addresses_.find(number_of(rank));
    return known == addresses_.end() ? FI_ADDR_NOTAVAIL : known->second;
}

bool Strangers::end(Link& link) noexcept {
    if (link.state == State::kLinking) settle(link);
    if (link.state == State::kLinking) return false;
    if (link.state == State::kFailed) return true;
    return ulc_unlink(ep_, link.number, nullptr) != ULC_ERR_AGAIN;
}

void Strangers::forget(fi_addr_t address) noexcept {
    const auto known = links_.find(address);
    if (known == links_.end()) return;
    std::unique_ptr<Link> link = std::move(known->second);
    links_.erase(known);
    if (link->state == State::kLinked) addresses_.erase(link->number);
    if (end(*link)) return;
    try {
        ending_.push_back(std::move(link));
    } catch (const std::bad_alloc&) {
        // libulc writes to the request when the link is made.
        static_cast<void>(link.release());
    }
}

bool Strangers::poll() noexcept {
    if (ep_ == nullptr || (!in_use_ && ++skipped_ % kLooksApart != 0)) return false;
    const bool moved = ulc_poll(ep_) > 0;
    if (!ending_.empty())
        std::erase_if(ending_, [this](const std::unique_ptr<Link>& link) { return end(*link); });
    if (!moved) return false;
    for (std::uint16_t peer = 0; ulc_next_peer(ep_, &peer) == ULC_OK;)
        in_use_ = true;
    return true;
}

}  // namespace ulc::ofi
