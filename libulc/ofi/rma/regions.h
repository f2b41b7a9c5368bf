// SPDX-License-Identifier: BSD-3-Clause
// The memory of a domain that peers may reach, by keys: struct fid_mr.
#pragma once

#include <rdma/fi_domain.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "ofi/rma/rma_wire.h"

namespace ulc::ofi {

class Counter;

struct Region {
    unsigned char* base;
    std::uint64_t length;
    std::uint64_t access;                   ///< FI_REMOTE_READ, FI_REMOTE_WRITE
    std::atomic<unsigned> users{0};         ///< long transfers in progress
    std::atomic<Counter*> writes{nullptr};  ///< counts accesses of peers
    std::atomic<Counter*> reads{nullptr};
};

class RegionTable {
public:
    /// The choice of keys and addresses (fi_mr(3)).
    struct Mode {
        bool virtual_addresses;  ///< peers give addresses of this process, else offsets
        bool own_keys;           ///< keys are random, else the application's
    };

    explicit RegionTable(Mode mode) noexcept : mode_(mode) {}

    /// Adds a region and sets its key, which is the wanted one unless keys are random. Returns 0,
    /// -FI_ENOKEY if the key is in use, or -FI_ENOMEM.
    [[nodiscard]] int add(Region& region, std::uint64_t& key) noexcept;
    void remove(std::uint64_t key) noexcept;

    /// Finds `length` bytes that a peer names. Returns kDone and sets the region and the address
    /// of the first byte, or the reason why the peer has no access. The caller has the lock.
    [[nodiscard]] RmaResult find(std::uint64_t key, std::uint64_t address, std::uint64_t length,
                                 std::uint64_t access, Region*& region,
                                 unsigned char*& first) noexcept;

    /// The lock of the table and of the memory of regions without users.
    std::mutex mutex;

private:
    const Mode mode_;
    std::unordered_map<std::uint64_t, Region*> regions_;
};

/// The entries of struct fid_domain for memory.
[[nodiscard]] fi_ops_mr& memory_entries() noexcept;

}  // namespace ulc::ofi
