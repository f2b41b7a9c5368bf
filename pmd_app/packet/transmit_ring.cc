// SPDX-License-Identifier: BSD-3-Clause
#include "packet/transmit_ring.h"

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/check.h"

namespace ulc::packet {
namespace {

/// Offset of a frame in a slot (packet_mmap.rst, "tp_net").
constexpr std::uint32_t kFrameOffset = TPACKET2_HDRLEN - sizeof(sockaddr_ll);
/// Less than an Ethernet header: every kernel refuses it, and logs nothing.
constexpr std::uint32_t kRefusedLength = 1;

std::uint32_t load_status(const tpacket2_hdr& slot) noexcept {
    return __atomic_load_n(&slot.tp_status, __ATOMIC_ACQUIRE);
}

}  // namespace

tpacket2_hdr& TransmitRing::at(std::uint32_t n) const noexcept {
    return *reinterpret_cast<tpacket2_hdr*>(memory_ + std::size_t{n % slots_} * slot_octets_);
}

void TransmitRing::use(std::byte* memory, std::uint32_t slot_octets, std::uint32_t slots,
                       Kernel kernel) {
    ULC_CHECK(slots > 0 && (slots & (slots - 1)) == 0 && head_ == tail_);
    memory_ = memory;
    slot_octets_ = slot_octets;
    slots_ = slots;
    kernel_ = kernel;
}

std::byte* TransmitRing::slot() noexcept {
    if (head_ - tail_ == slots_ && in_use() == slots_) return nullptr;
    return reinterpret_cast<std::byte*>(&at(head_)) + kFrameOffset;
}

void TransmitRing::write(std::uint32_t length) noexcept {
    tpacket2_hdr& slot = at(head_);
    slot.tp_len = length;
    slot.tp_snaplen = length;
    // After the frame; the kernel reads it when it reads the ring.
    __atomic_store_n(&slot.tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
    ++head_;
}

bool TransmitRing::must_push() const noexcept {
    return head_ != tail_ && load_status(at(head_ - 1)) == TP_STATUS_SEND_REQUEST;
}

std::uint32_t TransmitRing::in_use() noexcept {
    while (tail_ != head_ && load_status(at(tail_)) == TP_STATUS_AVAILABLE)
        ++tail_;
    return head_ - tail_;
}

TransmitRing::Answer TransmitRing::ask() noexcept {
    ++counts_.pushes;
    const Answer answer = kernel_.read_ring(kernel_.context);
    refused_ = must_push();
    if (refused_) ++counts_.refusals;
    return answer;
}

void TransmitRing::push() noexcept {
    if (refused_) return;
    (void)ask();
    if (refused_) {
        waits_ = false;  // retry() notes the time
    } else if (blocked_octets_ == UINT32_MAX) [[likely]] {
        kernel_at_ = head_;
    } else {
        pass();
    }
}

/// Notes which frames the kernel has taken since the last call.
void TransmitRing::pass() noexcept {
    while (kernel_at_ != head_) {
        const tpacket2_hdr& slot = at(kernel_at_);
        if (load_status(slot) == TP_STATUS_SEND_REQUEST) return;
        if (slot.tp_len >= blocked_octets_) blocked_octets_ = UINT32_MAX;
        ++kernel_at_;
    }
}

/// Returns whether the frame at the kernel's head is not worth another try.
bool TransmitRing::is_hopeless(Nanos now) const noexcept {
    if (refusals_ == 0) return false;
    if (at(kernel_at_).tp_len >= blocked_octets_) return true;
    return refusals_ >= kRefusalsMin && now - refused_since_ >= kPatience;
}

/// Makes the kernel skip the frame at its head.
void TransmitRing::give_up() noexcept {
    tpacket2_hdr& slot = at(kernel_at_);
    blocked_octets_ = std::min(blocked_octets_, slot.tp_len);
    slot.tp_len = kRefusedLength;
    slot.tp_snaplen = kRefusedLength;
    ++counts_.unsendable;
}

void TransmitRing::retry(Nanos now) noexcept {
    for (std::uint32_t given_up = 0; given_up <= kGiveUpsMost; ++given_up) {
        if (waits_ && now < due_) return;
        const std::uint32_t before = kernel_at_;
        const Answer answer = ask();
        pass();
        if (!refused_) return;
        if (kernel_at_ != before || !waits_) {
            waits_ = true;
            since_ = now;
            refusals_ = 0;
        }
        if (answer != Answer::kRefused) refusals_ = 0;
        if (answer == Answer::kRefused && refusals_++ == 0) refused_since_ = now;
        due_ = now - since_ >= kUnpaced ? now + kPace : now;
        if (!is_hopeless(now)) return;
        give_up();
        waits_ = false;
    }
}

}  // namespace ulc::packet
