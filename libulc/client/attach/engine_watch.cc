// SPDX-License-Identifier: BSD-3-Clause
#include "client/attach/engine_watch.h"

#include <algorithm>

namespace ulc::client {
namespace {

constexpr Nanos kLookApart = kMillisecond;    ///< between checks whether the engine beats
constexpr Nanos kBeatMax = 4 * kMillisecond;  ///< without a beat; then the kernel is asked

}  // namespace

bool EngineWatch::pace() noexcept {
    polls_left_ = kPollsMax;
    if (hooks_.engine_alive == nullptr || hooks_.now == nullptr) return false;
    const Nanos now = hooks_.now(hooks_.context);
    const Nanos apart = std::max<Nanos>(now - looked_at_, 1);
    const Nanos fitting = Nanos{polls_} * kLookApart / apart;
    polls_ =
        static_cast<std::uint32_t>(std::clamp<Nanos>(fitting, 1, std::min(2 * polls_, kPollsMax)));
    polls_left_ = polls_;
    return is_gone(now);
}

bool EngineWatch::is_gone(Nanos now) noexcept {
    looked_at_ = now;
    const std::uint32_t beats = page_.engine_beats.load(std::memory_order_relaxed);
    if (beats != beats_) {
        beats_ = beats;
        beat_seen_at_ = now;
        return false;
    }
    if (now - beat_seen_at_ < kBeatMax) return false;
    beat_seen_at_ = now;
    return is_gone_now();
}

}  // namespace ulc::client
