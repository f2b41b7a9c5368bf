// SPDX-License-Identifier: BSD-3-Clause
// The file behind a wire of shared memory: its stations, and its layout. Each station maps all of
// it.
//
//   | Head, padded | station 0: ring head, cursors[64] | station 1 … | ring 0 | ring 1 | …
//
// The first station to come makes the file, the last one leaves it there; the maker of its folder
// removes it. A station is held by a lock on byte 1 + its number, which the kernel releases when
// its process ends. Others ask for that lock before they stop waiting for a reader. Byte 0 is
// locked while a process makes or opens the file. If its maker was killed, the next process makes
// it again. The file must be a regular one of this user that no other user may open.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "shm/broadcast_ring.h"

namespace ulc::shm {

/// The parameters on which all stations of a wire must agree.
struct Shape {
    std::uint32_t stations = 0;
    std::uint32_t ring_octets = 0;
    bool operator==(const Shape&) const = default;
};

class WireFile {
public:
    /// Maps the file at `path`, makes it if it is missing or unfinished, and holds the station.
    /// Errors (`why`: the advice): kInvalid (another shape and in use, not a wire, the station is
    /// held), kPermission, kNoMemory, kTimeout (another process has it locked), kSystem. Waits up
    /// to 10 s.
    static Err open(const std::string& path, const Shape& shape, unsigned station,
                    std::unique_ptr<WireFile>& out, std::string& why);
    ~WireFile();
    WireFile(const WireFile&) = delete;
    WireFile& operator=(const WireFile&) = delete;

    /// Releases the file in a child of fork(). The lock is held as long as any process has the
    /// descriptor or the mapping of the parent.
    void abandon() noexcept;

    [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
    [[nodiscard]] unsigned station() const noexcept { return station_; }
    /// Returns a number that the maker of the file drew, so that addresses differ between wires.
    [[nodiscard]] std::uint64_t nonce() const noexcept;
    [[nodiscard]] RingHead* ring_head(unsigned station) const noexcept;
    [[nodiscard]] std::byte* ring(unsigned station) const noexcept;
    /// Returns the position of `reader` in the ring of `writer`.
    [[nodiscard]] Line* cursor(unsigned reader, unsigned writer) const noexcept;
    /// True if some process holds that station. A system call.
    [[nodiscard]] bool held(unsigned station) const noexcept;

private:
    struct Head;
    struct Station;

    enum class Content : std::uint8_t { kWire, kOtherWire, kUnfinished, kNoWire };

    WireFile() = default;
    [[nodiscard]] Content content(std::uint64_t size) const;
    [[nodiscard]] bool any_station_held() const noexcept;
    Err prepare(const std::string& path, std::string& why);
    Err map(const std::string& path, std::string& why);
    [[nodiscard]] std::uint64_t octets() const noexcept;
    [[nodiscard]] Head& head() const noexcept;
    [[nodiscard]] Station& of(unsigned station) const noexcept;

    Shape shape_;
    unsigned station_ = 0;
    int file_ = -1;
    std::byte* memory_ = nullptr;
};

}  // namespace ulc::shm
