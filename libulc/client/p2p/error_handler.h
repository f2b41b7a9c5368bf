// SPDX-License-Identifier: BSD-3-Clause
// The handler that the application sets for events of no request (ulc_set_error_handler).
#pragma once

#include <cstdint>

#include "client/ulc.h"

namespace ulc::client {

struct ErrorHandler {
    ulc_error_handler call = nullptr;
    void* context = nullptr;

    /// Calls the handler, if there is one.
    void report(int error, std::uint16_t source, std::uint64_t count) const {
        if (call != nullptr) call(context, error, source, count);
    }
};

}  // namespace ulc::client
