// SPDX-License-Identifier: BSD-3-Clause
// This file reads the counters and endpoints of an engine without stopping it. Used by `ulc stat`,
// `ulc top` and `ulc exporter`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/endpoint_row.h"
#include "base/counters.h"

namespace ulc::tools {

class CounterPage {
public:
    CounterPage() = default;
    ~CounterPage();
    CounterPage(const CounterPage&) = delete;
    CounterPage& operator=(const CounterPage&) = delete;

    /// Opens the page of the engine at the socket, once an object. False: `error` names the fault
    /// and what to do. The page stays readable after the engine has gone.
    [[nodiscard]] bool open(const std::string& socket, std::string* error);

    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
    /// Returns the values in the order of names(), each whole, not of a common instant.
    [[nodiscard]] std::vector<std::uint64_t> values() const;
    /// Returns the endpoints as they were when the page was opened, or a tenth of a second before.
    [[nodiscard]] std::vector<abi::EndpointRow> rows() const;
    [[nodiscard]] unsigned engine_pid() const;
    [[nodiscard]] unsigned endpoints() const;
    [[nodiscard]] std::string ports() const;
    [[nodiscard]] bool engine_lives() const;

    /// Takes the page from a descriptor that an engine passed; as open(). Refuses memory that can
    /// get shorter, since that would end this process.
    [[nodiscard]] bool map(int fd, std::string* error);

private:
    const unsigned char* page_ = nullptr;
    std::size_t octets_ = 0;
    std::uint32_t values_offset_ = 0;
    std::uint32_t rows_offset_ = 0;
    std::vector<std::string> names_;
};

/// Finds unit and help of a counter. Both are empty for one that only the engine's build knows.
[[nodiscard]] CounterInfo info_of(const std::string& name);

/// Returns `named`, or else the socket of ULC_ENGINE, or else the default. Empty: that engine is
/// inside an application and has no socket; `error` says so.
[[nodiscard]] std::string counter_socket(const std::string& named, std::string* error);

}  // namespace ulc::tools
