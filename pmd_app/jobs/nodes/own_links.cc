// SPDX-License-Identifier: BSD-3-Clause
#include "jobs/nodes/own_links.h"

#include <algorithm>

#include "base/check.h"

namespace ulc::jobs {

void OwnLinks::set(std::span<const NodeAddress> links, Nanos now) {
    ULC_CHECK(!links.empty() && links.size() <= kNodeLinksMax && links[0].mac == mac_);
    if (std::ranges::equal(links, links_)) return;
    if (links.size() == 1 && links_.size() <= 1) return;
    links_.clear();
    for (const NodeAddress& link : links)
        (void)links_.push_back(link);
    ++number_;
    due_ = true;
    repeat_at_ = now + kRepeat;
}

void OwnLinks::greet(Nanos now) noexcept {
    if (links_.empty() || now - sent_at_ < kGreetGap) return;
    due_ = true;
}

bool OwnLinks::has(const Mac& mac) const noexcept {
    return mac == mac_ || std::ranges::find(links_, mac, &NodeAddress::mac) != links_.end();
}

std::size_t OwnLinks::announce(std::byte* body, wire::NodeBody head, Nanos now) {
    due_ = false;
    sent_at_ = now;
    head.token = number_;
    return wire::put_links(body, head, links_);
}

std::size_t OwnLinks::put_reply(std::byte* body, const wire::NodeBody& head) const {
    const NodeAddress alone{mac_, kMegabitsUnknown, 0};
    const std::span<const NodeAddress> links =
        links_.empty() ? std::span(&alone, 1) : std::span(links_.begin(), links_.size());
    return wire::put_links_reply(body, head, number_, links);
}

void OwnLinks::on_timer(Nanos now) noexcept {
    if (repeat_at_ > now) return;
    due_ = true;
    repeat_at_ = now + kRepeat;
}

void OwnLinks::check_invariants() const {
    ULC_CHECK(links_.empty() == (repeat_at_ == kNever) && (!links_.empty() || !due_));
}

}  // namespace ulc::jobs
