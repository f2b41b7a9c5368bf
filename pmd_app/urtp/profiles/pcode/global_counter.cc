// SPDX-License-Identifier: BSD-3-Clause
#include "urtp/profiles/pcode/global_counter.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace ulc::urtp::pcode {

namespace {

/// Counters wrap: a is after b.
bool after(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace

GlobalCounter::GlobalCounter(std::uint32_t members, std::uint32_t own, std::uint32_t range)
    : members_(members),
      own_(own),
      mask_(range - 1),
      seen_(std::make_unique<std::uint64_t[]>(range / 64)),
      mark_(std::make_unique<std::uint32_t[]>(members)),
      absent_(std::make_unique<bool[]>(members)) {
    ULC_CHECK(own < members && range >= 64 && std::has_single_bit(range));
}

std::uint32_t GlobalCounter::on_send() noexcept {
    const std::uint32_t counter = ++current_;
    if (after(current_, top_)) top_ = current_;
    mark_[own_] = counter;
    advance();
    return counter;
}

bool GlobalCounter::on_message(std::uint32_t member, std::uint32_t counter) noexcept {
    if (after(counter, current_)) {
        if (counter - current_ > mask_) return false;
        seen_[(counter & mask_) / 64] |= std::uint64_t{1} << (counter & mask_) % 64;
        if (after(counter, top_)) top_ = counter;
        advance();
    }
    mark(member, counter);
    return true;
}

bool GlobalCounter::on_progress(std::uint32_t member, std::uint32_t counter) noexcept {
    if (after(counter, current_) && counter - current_ > mask_) return false;
    mark(member, counter);
    return true;
}

void GlobalCounter::on_told() noexcept {
    mark_[own_] = current_;
    last_status_ = current_;
}

void GlobalCounter::remove(std::uint32_t member) noexcept {
    absent_[member] = true;
    fresh_ = false;
}

/// Advances over the counters that follow current() without a gap.
void GlobalCounter::advance() noexcept {
    while (seen(current_ + 1)) {
        ++current_;
        seen_[(current_ & mask_) / 64] &= ~(std::uint64_t{1} << (current_ & mask_) % 64);
    }
    if (after(current_, top_)) top_ = current_;
}

void GlobalCounter::mark(std::uint32_t member, std::uint32_t counter) noexcept {
    if (!after(counter, mark_[member])) return;
    if (mark_[member] == least_) fresh_ = false;
    mark_[member] = counter;
}

std::uint32_t GlobalCounter::heard(std::uint32_t member) const noexcept {
    return after(mark_[member], current_) ? current_ : mark_[member];
}

std::uint32_t GlobalCounter::spread() noexcept {
    if (!fresh_) {
        fresh_ = true;
        least_ = current_ + mask_;
        for (std::uint32_t i = 0; i < members_; ++i) {
            if (i != own_ && !absent_[i] && after(least_, mark_[i])) least_ = mark_[i];
        }
    }
    return after(current_, least_) ? current_ - least_ : 0;
}

bool GlobalCounter::gap(std::uint32_t& from, std::uint32_t& to) const noexcept {
    if (top_ == current_) return false;
    from = current_ + 1;
    to = from;
    while (!seen(to))
        ++to;  // top_ is seen: at most `range` steps
    return true;
}

void GlobalCounter::skip_gap() noexcept {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    if (!gap(from, to)) return;
    current_ = to - 1;
    advance();
}

}  // namespace ulc::urtp::pcode
