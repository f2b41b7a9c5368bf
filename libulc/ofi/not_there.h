// SPDX-License-Identifier: BSD-3-Clause
// Fills the entries of libfabric's tables that this provider does not have. libfabric's inline
// functions call through the tables without a check, so none may be null.
#pragma once

#include <rdma/fi_errno.h>

namespace ulc::ofi {

struct NotThere {
    template <class Result, class... Arguments>
    using Function = Result (*)(Arguments...);

    /// Converts to a function of any type that returns -FI_ENOSYS.
    template <class Result, class... Arguments>
    constexpr operator Function<Result, Arguments...>() const {
        return [](Arguments...) { return static_cast<Result>(-FI_ENOSYS); };
    }
};

}  // namespace ulc::ofi
