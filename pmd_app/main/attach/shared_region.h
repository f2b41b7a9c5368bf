// SPDX-License-Identifier: BSD-3-Clause
// The sealed memory of one endpoint, and the read-only page of counters (decision D4; see
// README.md).
//
// The order matters: the size is sealed before the client has the descriptor, since each side could
// cut off the memory of the other. The client must map before F_SEAL_FUTURE_WRITE, and nothing of
// the region is trusted to stay in place before all seals are on. Size seals alone would permit
// hole punching (FALLOC_FL_PUNCH_HOLE, MADV_REMOVE) to any process that maps it writable;
// FUTURE_WRITE refuses that too.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "abi/endpoint_row.h"
#include "abi/region.h"
#include "base/counters.h"
#include "base/error.h"

namespace ulc::daemon {

/// A memfd of one endpoint, mapped here. Movable; unmaps and closes at its end.
class SharedRegion {
public:
    SharedRegion() = default;
    ~SharedRegion();
    SharedRegion(SharedRegion&& other) noexcept { swap(other); }
    SharedRegion& operator=(SharedRegion&& other) noexcept {
        swap(other);
        return *this;
    }

    /// Makes, sizes and maps the memory, zeroed. Its size is sealed before others have the
    /// descriptor. Errors: kNoMemory, kLimit, kSystem; `why`: the advice.
    static Result<SharedRegion> make(const abi::RegionLayout& layout, std::string& why);
    /// Seals, then populates, then locks; call it after the client mapped it. Errors: kSystem (a
    /// seal was refused: the client must not be admitted), kNoMemory (the pages are not there).
    /// locked(): whether mlock succeeded.
    Err seal_and_populate(std::string& why);

    [[nodiscard]] void* memory() const noexcept { return memory_; }
    [[nodiscard]] int fd() const noexcept { return fd_; }
    [[nodiscard]] bool locked() const noexcept { return locked_; }
    [[nodiscard]] const abi::RegionLayout& layout() const noexcept { return layout_; }
    /// Closes the descriptor, which has been passed on and is not needed any more.
    void close_fd() noexcept;

private:
    void swap(SharedRegion& other) noexcept;

    void* memory_ = nullptr;
    int fd_ = -1;
    bool locked_ = false;
    abi::RegionLayout layout_{};
};

/// Makes a page of streams, sealed against changes (abi/attach.h). all: rows that there are; rows:
/// the first of them, at most abi::kStreamRowsMax. Returns its read-only descriptor, which the
/// caller closes, or -1.
[[nodiscard]] int make_stream_page(std::span<const abi::StreamRow> rows, std::size_t all) noexcept;

/// The counters of an engine in memory that others can read.
class CounterPage {
public:
    CounterPage() = default;
    ~CounterPage();
    CounterPage(const CounterPage&) = delete;
    CounterPage& operator=(const CounterPage&) = delete;

    /// `ports`: for readers, in the header. Errors: kSystem, kNoMemory.
    Err make(const std::string& ports, std::string& why);
    [[nodiscard]] Counters* counters() const noexcept { return counters_; }
    /// Returns a read-only descriptor, which the caller closes. -1: failed.
    [[nodiscard]] int open_read_only() const noexcept;
    [[nodiscard]] std::uint32_t octets() const noexcept { return octets_; }
    void set_endpoints(std::uint32_t endpoints) noexcept;
    /// Replaces the rows of endpoints; at most abi::kRowsMax. One thread.
    void set_rows(std::span<const abi::EndpointRow> rows) noexcept;

private:
    void* memory_ = nullptr;
    Counters* counters_ = nullptr;
    int fd_ = -1;
    std::uint32_t octets_ = 0;
};

}  // namespace ulc::daemon
