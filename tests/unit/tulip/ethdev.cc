// SPDX-License-Identifier: BSD-3-Clause
// Replaces the access to a card's registers by one to the model.
#include "drivers/tulip/net_tulip.h"
#include "tests/unit/tulip/model.h"

namespace ulc::tulip {

std::uint32_t MemoryBus::read(Csr csr) noexcept {
    return reinterpret_cast<TulipModel*>(bar_)->read(csr);
}
void MemoryBus::write(Csr csr, std::uint32_t value) noexcept {
    reinterpret_cast<TulipModel*>(bar_)->write(csr, value);
}
void MemoryBus::wait(Nanos span) noexcept { reinterpret_cast<TulipModel*>(bar_)->wait(span); }

}  // namespace ulc::tulip
