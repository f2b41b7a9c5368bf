// SPDX-License-Identifier: BSD-3-Clause
#include "client/messages/source_notes.h"

namespace ulc::client {
namespace {

constexpr unsigned kAwaitedMax = 16;

}  // namespace

void SourceNotes::announce_awaited() noexcept {
    if (!membership_.is_formed()) return;
    inbox_.matcher().each_awaited(kAwaitedMax, [this](std::uint16_t source) {
        return source == membership_.rank() || submitter_.submit(abi::SubmitKind::kExpect, source);
    });
}

void SourceNotes::note_intake() noexcept {
    if (page_.note_taken.load(std::memory_order_acquire) != last_note_) return;
    abi::SourceNote note{};
    if (!inbox_.arrivals().shares().next_intake(note.source, note.intake)) return;
    const std::uint32_t last = last_note_ >> 18;
    note.number = last == abi::SourceNote::kNumberMax ? 1 : last + 1;
    last_note_ = note.packed();
    page_.source_note.store(last_note_, std::memory_order_release);
    // If the ring is full, the engine looks at this endpoint because of the records in it.
    static_cast<void>(submitter_.submit(abi::SubmitKind::kExpect, note.source));
}

}  // namespace ulc::client
