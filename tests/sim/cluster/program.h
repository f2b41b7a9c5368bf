// What runs on a simulated client: an application, on the rings themselves (ring_client.h) or on libulc.
#pragma once

#include "base/units.h"

namespace ulc::sim {

class Program {
public:
    virtual ~Program() = default;
    /// Takes what has come and submits what there is to submit. Called when the node's processor is free and the engine has
    /// written completions or taken records, or when the time it asked for has come; never when there is nothing new, so it
    /// goes on until it would wait. Returns when it wants to act again by itself; kNever: when something has come.
    virtual Nanos act(Nanos now) = 0;
};

}  // namespace ulc::sim
