// SPDX-License-Identifier: BSD-3-Clause
// A hostile station on a wire of shared memory. It writes any octets to its ring, its head and its
// cursors, between any two steps of the others. Two ways, by the first octet:
//
//   even  rings alone, on heap blocks of exactly their size. Our reader of the hostile ring stays
//         in it. Our writer waits a bounded time for hostile cursors. An honest reader of our ring
//         gets every frame, in order and whole, unless the writer has overrun it.
//   odd   a port on a real file, which the hostile station maps too and writes everywhere. No frame
//         is longer than the port's, and a burst ends.
//
//   then operations until the input ends: one octet says which, its arguments follow
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "shm/broadcast_ring.h"
#include "shm/shm_port.h"

namespace {

using namespace ulc;
using namespace ulc::shm;
using fuzz::Input;
using Got = RingReader::Got;

constexpr std::uint32_t kRing = kRingOctetsMin;
constexpr std::uint32_t kFrameMax = 1518;

/// Reads each octet, so that a sanitizer sees where they lie.
std::uint32_t sum(const std::byte* octets, std::size_t n) {
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < n; ++i)
        total += std::to_integer<std::uint32_t>(octets[i]);
    return total;
}

/// Changes of a ring that no writer of ours makes: its words, and its positions.
void scribble(RingHead& head, std::byte* ring, const Line& cursor, Input& in) {
    const unsigned what = in.octet();
    switch (what % 4) {
        case 0: {  // a length, where the reader looks next or where a record may begin
            const std::uint64_t reader = cursor.value.load(std::memory_order_relaxed);
            const std::uint64_t at = what < 128 ? reader : in.get<std::uint16_t>() * kCacheLine;
            const unsigned kind = in.octet() % 4;
            const std::uint32_t length = kind == 0   ? kSkip
                                         : kind == 1 ? in.get<std::uint32_t>()
                                                     : in.get<std::uint16_t>();
            std::memcpy(ring + at % kRing / kCacheLine * kCacheLine, &length, sizeof length);
            return;
        }
        case 1: {
            const std::uint64_t at = in.get<std::uint16_t>() % (kRing - 8);
            return in.read(ring + at, 8);
        }
        case 2: {
            const std::uint64_t now = head.tail.value.load(std::memory_order_relaxed);
            head.tail.value = what < 128 ? now + in.get<std::uint16_t>() : in.get<std::uint64_t>();
            return;
        }
        default: {
            const std::uint64_t tail = head.tail.value.load(std::memory_order_relaxed);
            head.floor.value =
                what < 128 ? tail - in.get<std::uint16_t>() : in.get<std::uint64_t>();
        }
    }
}

class Rings {
public:
    void step(Input& in) {
        const unsigned op = in.octet();
        switch (op % 8) {
            case 0:
                return scribble(hostile_head_, hostile_.get(), hostile_cursors_[0], in);
            case 1:  // a frame as it should be, by the writer's own idea of the ring
                static_cast<void>(hostile_writer_.put(
                    length_of(in), [](std::byte* to) { std::memset(to, 0x11, 4); }));
                return;
            case 2:
                return read_hostile(in, op / 8 % 4 == 0);
            case 3:
                return put(length_of(in));
            case 4:
                return take_honest();
            case 5: {  // its cursor in our ring
                const std::uint64_t tail = head_.tail.value.load(std::memory_order_relaxed);
                cursors_[1].value =
                    op < 128 ? tail - in.get<std::uint16_t>() : in.get<std::uint64_t>();
                return;
            }
            case 6:
                return writer_.forget(1);
            default:
                reader_ = RingReader(&hostile_head_, hostile_.get(), kRing, &hostile_cursors_[0]);
        }
    }

private:
    static std::uint32_t length_of(Input& in) { return in.get<std::uint16_t>() % 9000; }

    /// Reads as the port does: copies a record, then asks whether the copy is good.
    void read_hostile(Input& in, bool changed_meanwhile) {
        for (unsigned records = 0; reader_.next() == Got::kFrame; ++records) {
            const std::uint32_t length = reader_.length();
            const std::byte* frame = reader_.frame();
            ULC_CHECK(frame >= hostile_.get() && frame + length <= hostile_.get() + kRing);
            sink_ = sink_ + sum(frame, length);
            if (changed_meanwhile) scribble(hostile_head_, hostile_.get(), hostile_cursors_[0], in);
            if (!reader_.done() || in.done()) return;
            ULC_CHECK(records <= kRing / kCacheLine);
        }
    }

    /// Puts the next frame; overruns as many readers as are in its way.
    void put(std::uint32_t length) {
        length = std::max<std::uint32_t>(length, sizeof put_);
        const auto write = [&](std::byte* to) {
            std::memset(to, static_cast<int>(put_ & 0xffU), length);
            std::memcpy(to, &put_, sizeof put_);
        };
        for (std::size_t tries = 0; !writer_.put(length, write); ++tries) {
            ULC_CHECK(tries <= writer_.readers());
            const std::size_t slowest = writer_.slowest();
            ULC_CHECK(slowest < writer_.readers());
            overrun_ = overrun_ || slowest == 0;
            writer_.overrun(slowest);
        }
        ++put_;
    }

    void take_honest() {
        const Got got = honest_.next();
        ULC_CHECK(got != Got::kBroken && (got != Got::kMissed || overrun_));
        if (got == Got::kMissed) taken_ = put_;
        if (got != Got::kFrame) return;
        std::uint32_t number = 0;
        std::memcpy(&number, honest_.frame(), sizeof number);
        const std::uint32_t length = honest_.length();
        const bool whole = sum(honest_.frame() + sizeof number, length - sizeof number) ==
                           (number & 0xffU) * (length - sizeof number);
        if (!honest_.done()) {
            ULC_CHECK(overrun_);
            taken_ = put_;
            return;
        }
        ULC_CHECK(whole && number == taken_);
        ++taken_;
    }

    std::unique_ptr<std::byte[]> hostile_ = std::make_unique<std::byte[]>(kRing);
    std::unique_ptr<std::byte[]> ring_ = std::make_unique<std::byte[]>(kRing);
    RingHead hostile_head_{};
    RingHead head_{};
    std::array<Line, 2> hostile_cursors_{};                ///< our reader's, and one that stays
    std::array<Line, 2> cursors_{{{kAbsent}, {kAbsent}}};  ///< the honest and the hostile reader's
    RingReader reader_{&hostile_head_, hostile_.get(), kRing, &hostile_cursors_[0]};
    RingWriter hostile_writer_{&hostile_head_, hostile_.get(), kRing,
                               std::array<Line* const, 1>{&hostile_cursors_[0]}};
    RingReader honest_{&head_, ring_.get(), kRing, &cursors_[0]};
    RingWriter writer_{&head_, ring_.get(), kRing,
                       std::array<Line* const, 2>{&cursors_[0], &cursors_[1]}};
    std::uint32_t put_ = 0;
    std::uint32_t taken_ = 0;
    bool overrun_ = false;  ///< the honest reader may have missed frames
    volatile std::uint32_t sink_ = 0;
};

/// A file in memory, or in the folder for temporary files. It is gone with this object.
class File {
public:
    File() {
        const bool in_memory = access("/dev/shm", W_OK) == 0;
        path_ = std::string(in_memory ? "/dev/shm" : "/tmp") + "/ulc-fuzz-wire-XXXXXX";
        const int fd = mkstemp(path_.data());
        ULC_CHECK(fd >= 0);
        close(fd);
    }
    ~File() { unlink(path_.c_str()); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
};

class OnePort {
public:
    OnePort() {
        std::string why;
        const Shape shape{.stations = 2, .ring_octets = kRing};
        ULC_CHECK(ShmPort::open({.device = {file_.path(), 0, shape}, .segments = 64}, port_, why) ==
                  Err::kOk);
        ULC_CHECK(WireFile::open(file_.path(), shape, 1, hostile_, why) == Err::kOk);
        port_->set_patience(0);
        writer_ = RingWriter(hostile_->ring_head(1), hostile_->ring(1), kRing,
                             std::array<Line* const, 1>{hostile_->cursor(0, 1)});
    }

    void step(Input& in) {
        const unsigned op = in.octet();
        switch (op % 6) {
            case 0:  // its own ring, or ours
                return change(op / 8 % 2, in);
            case 1: {
                const auto length = 6U + in.get<std::uint16_t>() % 2000;
                static_cast<void>(writer_.put(length, [&](std::byte* to) {
                    std::memset(to, op < 128 ? 0xff : 0, length);  // to all, or to another node
                }));
                return;
            }
            case 2: {
                std::array<Segment*, 8> frames{};
                const std::uint16_t n = port_->port().rx(port_.get(), frames.data(), 8);
                for (std::uint16_t i = 0; i < n; ++i)
                    look_at(frames[i]);
                return;
            }
            case 3: {
                input_ = &in;
                const Landing landing{this, 64, where};
                if (Segment* frame = port_->port().rx_landing(port_.get(), landing)) look_at(frame);
                return;
            }
            case 4:
                return send(6U + in.get<std::uint16_t>() % 1500);
            default:  // any cursor
                hostile_->cursor(op / 8 % 2, op / 16 % 2)->value = in.get<std::uint64_t>();
        }
    }

private:
    /// Asked in the midst of a copy: the hostile station changes its ring.
    static Landed where(void* context, const std::byte* front, std::uint32_t length) {
        auto& self = *static_cast<OnePort*>(context);
        self.sink_ = self.sink_ + sum(front, 64);
        ULC_CHECK(length > 64 && length <= kFrameMax);
        if (self.input_->octet() % 2 == 0) self.change(1, *self.input_);
        if (length % 2 == 0) return {};
        self.landed_ = std::make_unique<std::byte[]>(length - 64);
        return {self.landed_.get(), length - 64};
    }
    void change(unsigned station, Input& in) {
        scribble(*hostile_->ring_head(station), hostile_->ring(station),
                 *hostile_->cursor(1 - station, station), in);
    }
    void look_at(Segment* frame) {
        ULC_CHECK(frame->length <= kFrameMax && frame->length <= frame->capacity);
        const std::uint32_t elsewhere = frame->tail != nullptr ? frame->tail_octets : 0;
        sink_ = sink_ + sum(frame->frame, frame->length - elsewhere);
        if (elsewhere > 0) sink_ = sink_ + sum(frame->tail, elsewhere);
        port::FramePool::put(frame);
    }
    void send(std::uint32_t octets) {
        const SegmentPool& pool = port_->port().pool;
        Segment* frame = pool.get();
        if (frame == nullptr) return;
        std::memset(frame->frame, 0xff, octets);
        frame->length = octets;
        for (int tries = 0; port_->port().tx(port_.get(), &frame, 1) == 0; ++tries)
            ULC_CHECK(tries < 8);
    }

    File file_;
    std::unique_ptr<WireFile> hostile_;
    std::unique_ptr<ShmPort> port_;
    RingWriter writer_;
    std::unique_ptr<std::byte[]> landed_;
    Input* input_ = nullptr;
    volatile std::uint32_t sink_ = 0;
};

template <typename Machine>
void run(Input& in) {
    Machine machine;
    for (int steps = 0; !in.done() && steps < 500; ++steps)
        machine.step(in);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    if (in.octet() % 2 == 0) {
        run<Rings>(in);
    } else {
        run<OnePort>(in);
    }
    return 0;
}
