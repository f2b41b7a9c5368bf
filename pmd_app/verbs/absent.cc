// SPDX-License-Identifier: BSD-3-Clause
// The port of a build without libibverbs' headers.
#include "verbs/verbs_port.h"

namespace ulc::verbs {

Err VerbsPort::open(const PortOptions& /*options*/, const Library* /*library*/,
                    std::unique_ptr<VerbsPort>& /*out*/, std::string& why) {
    why = "this engine was built without libibverbs; install libibverbs-dev and build again";
    return Err::kUnsupported;
}

}  // namespace ulc::verbs
