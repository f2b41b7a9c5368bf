// SPDX-License-Identifier: BSD-3-Clause
// The interfaces under the links of a bond (bond_port.h, interface/watch.h), as one.
#include "port/bond_port.h"
#include "port/interface/merge.h"

namespace ulc::port {

const InterfaceState* BondPort::interface() noexcept {
    interface_ = {};
    for (std::size_t n = 0; n < count_; ++n)
        merge_interface(links_[n].port, n == 0, interface_);
    return interface_.name.empty() ? nullptr : &interface_;
}

/// True if frames for the link's address do not reach it: it is left, as if it were down.
bool BondPort::lost_address(const Link& link) const noexcept {
    return count_ > 1 && has_lost_address(link.port);
}

Mac BondPort::take_address() noexcept {
    for (std::size_t n = 0; n < count_; ++n) {
        Link& link = links_[n];
        if (link.port.take_address == nullptr) continue;
        link.port.info.mac = link.port.take_address(link.port.context);
        own_[n].mac = link.port.info.mac;
    }
    info_.mac = own_[0].mac;
    forget_nodes();
    return info_.mac;
}

}  // namespace ulc::port
