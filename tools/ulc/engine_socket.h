// SPDX-License-Identifier: BSD-3-Clause
// This file connects to the attach socket of a running engine (abi/attach.h). Used by
// `ulc upgrade` and by the readers of the counter page.
#pragma once

#include <string>

#include "abi/attach.h"

namespace ulc::tools {

/// A descriptor that closes itself.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    ~Descriptor() { reset(-1); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return fd_; }
    void reset(int fd);

private:
    int fd_;
};

/// Connects to an engine and says Hello of that kind. A receive waits `seconds`. False: `error`
/// names the fault and what to do.
[[nodiscard]] bool greet_engine(const std::string& socket, abi::HelloKind kind, int seconds,
                                Descriptor* fd, std::string* error);

/// Asks an engine for a page that it shows to readers, and receives its descriptor within 5 s.
/// False: `error` names the fault and what to do.
[[nodiscard]] bool ask_for_page(const std::string& socket, abi::HelloKind kind, Descriptor* memory,
                                std::string* error);

}  // namespace ulc::tools
