// Where a message goes that begins to arrive: what an engine in the client's own process (Reach::kProcess) asks its client, so
// that frames are copied straight into the buffer of the receive, and into nothing between.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ulc::abi {

/// A message of which the client has heard nothing yet.
struct Beginning {
    std::uint16_t source;
    std::uint32_t stream;  ///< as CompletionRecord::stream
    std::uint64_t tag;     ///< 0 if it has none
    std::uint64_t length;  ///< octets, of the whole message
    /// The client may say only if it has taken so many completions (free running): before that a message is among them that has
    /// to find its receive first.
    std::uint32_t taken_at_least;
};

/// Called by the engine in its round, so in the thread that has the engine: it may be set only while that is the client's.
struct Placer {
    void* context = nullptr;
    /// Where the message would go now. Changes nothing; the engine may write there before place() says the same.
    std::byte* (*find)(void* context, const Beginning& message) = nullptr;
    /// Memory of `length` octets, the engine's to write until it completes the message (kCompletePlaced) or reports its source
    /// gone; nullptr: as messages of other clients.
    std::byte* (*place)(void* context, const Beginning& message) = nullptr;
};

}  // namespace ulc::abi
