// SPDX-License-Identifier: BSD-3-Clause
// Memory of clients that the device reads payloads from: registered for reading alone, bounded in
// number, size and rate. Used by QueuePort. Memory that was removed stays registered until the
// frames that the device has have left, since a request without its memory fails the queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bounded.h"
#include "verbs/library.h"

namespace ulc::verbs {

class Memories {
public:
    static constexpr std::size_t kCountMax = 64;
    static constexpr std::size_t kOctetsMax = std::size_t{64} << 20;  ///< sum, pinned
    static constexpr std::size_t kEachMax = std::size_t{4} << 20;

    explicit Memories(const Library& library) : verbs_(library) {}

    /// Registers the memory, or finds it registered. `looks` counts the looks at the port, which
    /// are 10 ms apart. Returns the key; 0: a bound would be exceeded, this look has had a
    /// registration, or one failed less than a second ago. Cost of a registration: the kernel
    /// locks up to kEachMax.
    [[nodiscard]] std::uint32_t add(ibv_pd* pd, std::span<const std::byte> memory,
                                    std::uint32_t looks) noexcept;
    /// Ends the memory that begins there, if it was added. posted: number of the next frame.
    void remove(const std::byte* first, std::uint64_t posted) noexcept;
    /// Gives back what was removed and is not read any more: frames below `completed` have left.
    void settle(std::uint64_t completed) noexcept;
    /// Gives back all. The queue pair is gone.
    void drop_all() noexcept;

    /// Returns true if the key is of memory that was not removed, and these octets lie there.
    [[nodiscard]] bool hold(std::uint32_t key, const std::byte* first,
                            std::size_t octets) const noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return entries_.size(); }

private:
    struct Entry {
        ibv_mr* region = nullptr;
        const std::byte* first = nullptr;
        std::size_t octets = 0;
        bool is_removed = false;
        std::uint64_t until = 0;  ///< number of the frame before which all must have left
    };

    void forget(std::size_t at) noexcept;

    const Library& verbs_;
    FixedVector<Entry, kCountMax> entries_;
    std::size_t octets_ = 0;
    bool has_tried_ = false;
    std::uint32_t tried_at_ = 0;  ///< the look of the last registration
    std::uint32_t wait_ = 1;      ///< looks until the next one may be
};

}  // namespace ulc::verbs
