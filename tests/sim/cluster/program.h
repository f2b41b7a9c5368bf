// SPDX-License-Identifier: BSD-3-Clause
// The program of a simulated client: an application, on the rings themselves (ring_client.h) or on
// libulc.
#pragma once

#include "base/units.h"

namespace ulc::sim {

class Program {
public:
    virtual ~Program() = default;
    /// Takes the completions that have come and submits what is ready. It is called when the node's
    /// processor is free and the engine has written completions or taken records, or when the
    /// requested time has come. It is never called without news, so it continues until it would
    /// wait. Returns the time of its next call; kNever: when something has come.
    virtual Nanos act(Nanos now) = 0;
};

}  // namespace ulc::sim
