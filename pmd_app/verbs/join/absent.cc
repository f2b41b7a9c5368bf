// SPDX-License-Identifier: BSD-3-Clause
// Memberships of a build without librdmacm's headers: there are none.
#include "verbs/join/membership.h"

namespace ulc::verbs {

Err open_membership(const Library& /*library*/, const CmLibrary* /*cm*/, const Adapter& adapter,
                    std::uint16_t /*ether_type*/, std::unique_ptr<Membership>& /*out*/,
                    std::string& why) {
    why = adapter.port_text() +
          ": this engine was built without librdmacm, which joins groups at a subnet manager; "
          "install librdmacm-dev and build again";
    return Err::kUnsupported;
}

}  // namespace ulc::verbs
