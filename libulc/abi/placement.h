// SPDX-License-Identifier: BSD-3-Clause
// Places a message that begins to arrive: an engine in the client's own process (Reach::kProcess)
// asks its client, so that frames are copied straight into the buffer of the receive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ulc::abi {

/// One piece of a payload in memory of the client's process. Laid out as ulc_piece.
struct Piece {
    std::byte* base;
    std::size_t length;
};
inline constexpr std::uint32_t kPiecesMax = 8;

/// A payload in memory of the client's process: `count` pieces, or, if count is 0, all of it at
/// `base`.
struct Place {
    std::byte* base = nullptr;
    const Piece* pieces = nullptr;  ///< the client's list, which stays valid as long as the memory
    std::uint32_t count = 0;
    std::uint64_t skip = 0;  ///< bytes of the place before the payload begins

    explicit operator bool() const noexcept { return base != nullptr || count > 0; }
    [[nodiscard]] bool operator==(const Place&) const noexcept = default;
    /// Returns bytes [at, at + length) of the payload in the place; nullptr if they are in more
    /// than one piece.
    [[nodiscard]] std::byte* contiguous(std::uint64_t at, std::uint64_t length) const noexcept {
        at += skip;
        if (count == 0) return base + at;
        for (std::uint32_t n = 0; n < count; ++n) {
            if (at < pieces[n].length)
                return length <= pieces[n].length - at ? pieces[n].base + at : nullptr;
            at -= pieces[n].length;
        }
        return nullptr;
    }
    /// Calls part(memory, bytes) for the parts of [at, at + length), in order. With pieces only.
    template <typename Part>
    void each(std::uint64_t at, std::uint64_t length, Part part) const {
        at += skip;
        for (std::uint32_t n = 0; n < count && length > 0; ++n) {
            if (at >= pieces[n].length) {
                at -= pieces[n].length;
                continue;
            }
            const std::uint64_t bytes = std::min<std::uint64_t>(pieces[n].length - at, length);
            part(pieces[n].base + at, bytes);
            at = 0;
            length -= bytes;
        }
    }
    /// Copies [at, at + length) of the payload to `to`.
    void read(std::uint64_t at, std::byte* to, std::uint64_t length) const {
        each(at, length, [&to](const std::byte* from, std::uint64_t bytes) {
            std::memcpy(to, from, bytes);
            to += bytes;
        });
    }
    /// Copies `length` bytes to [at, at + length) of the place.
    void write(std::uint64_t at, const std::byte* from, std::uint64_t length) const {
        each(at, length, [&from](std::byte* to, std::uint64_t bytes) {
            std::memcpy(to, from, bytes);
            from += bytes;
        });
    }
};

/// Bytes of the shortest message about which the placer is asked. The copies of a shorter one cost
/// less than the question, and than the general rounds that a receive for a longer one needs.
inline constexpr std::uint32_t kPlacedMin = 4096;

/// A message of which nothing was reported to the client yet.
struct Beginning {
    std::uint16_t source;
    std::uint32_t stream;  ///< as CompletionRecord::stream
    std::uint64_t tag;     ///< 0 if it has none
    std::uint64_t length;  ///< bytes, of the whole message
    /// The client may answer only if it has taken this number of completions (free running): before
    /// that, they include a message that must find its receive first.
    std::uint32_t taken_at_least;
};

/// Called by the engine in its round, so in the thread that has the engine. It may be set only
/// while that is the client's thread.
struct Placer {
    void* context = nullptr;
    /// Returns where the message would go. Changes nothing; the engine may write there before
    /// place() returns the same.
    Place (*find)(void* context, const Beginning& message) = nullptr;
    /// Returns memory of `length` bytes, which the engine may write until it completes the message
    /// (kCompletePlaced), reports that its source is gone, or has to forget the place; none: it is
    /// handled as messages of other clients.
    Place (*place)(void* context, const Beginning& message) = nullptr;
};

}  // namespace ulc::abi
