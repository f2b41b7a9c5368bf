// A schedule handed to the engine, as the client sees it (endpoint/offload.h is the other side).
// The engine finds buffers and schedule in the tx arena. Buffers that lie elsewhere are staged
// there, copied in by start() and out by finish().
//
//   start ─▶ [ running ] ──kOffloadDone──▶ status() says how; finish() gives the memory back
//
// What may be handed over: no reductions, and no step touches what a later one receives, so that the engine may put a message there as
// soon as it comes. The engine copies nothing. Copies that come before all messages the caller makes before start(), those that no message
// comes after when it is over; what is between the two is not handed over.
//
// Messages that are with the client already, or on their way to it, stay the client's: the caller leaves their steps out (`own`) or hears
// of their sources afterwards (passed()). What is passed on must be in the arena, so a schedule that passes on is handed over when those
// messages are whole, and refused if there are others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/records.h"
#include "abi/schedule.h"
#include "exec/executor.h"

struct ulc_endpoint;

namespace ulc::client {

/// Where an operation's messages are told from others.
struct OffloadTags {
    std::uint64_t tag = 0;
    std::uint64_t mask = 0;
};

class OffloadRun {
public:
    OffloadRun() = default;
    ~OffloadRun();
    OffloadRun(const OffloadRun&) = delete;
    OffloadRun& operator=(const OffloadRun&) = delete;

    /// What a schedule, which is well formed, means for the engine.
    struct Judgement {
        bool suits = false;      ///< the engine may carry it out
        bool passes_on = false;  ///< and sends what it received
    };
    [[nodiscard]] static Judgement judge(const abi::Schedule& schedule);

    /// Judges the schedule; if it suits, takes its scratch from the arena, for as long as this object lives. False: it is not to be
    /// handed over.
    [[nodiscard]] bool prepare(ulc_endpoint* ep, const abi::Schedule& schedule);
    /// nullptr: it needs none.
    [[nodiscard]] unsigned char* scratch() const noexcept { return scratch_; }
    [[nodiscard]] bool passes_on() const noexcept { return passes_on_; }
    /// Hands over what was prepared, its early copies made. own: by step, not 0 where the caller has the message. False: no room for
    /// it, nothing has happened.
    [[nodiscard]] bool start(std::uint32_t group, const abi::Schedule& schedule,
                             const exec::Setup& setup, OffloadTags tags,
                             std::span<const std::uint8_t> own);
    /// The engine has it.
    [[nodiscard]] bool running() const noexcept { return running_; }
    /// It was never begun: the caller may carry it out itself.
    [[nodiscard]] bool refused() const noexcept { return refused_; }
    [[nodiscard]] int status() const noexcept { return status_; }
    /// status() MISMATCH: of the message that differs.
    [[nodiscard]] std::uint16_t source() const noexcept { return source_; }
    [[nodiscard]] std::uint64_t found_tag() const noexcept { return found_tag_; }
    /// Ranks whose next message of the operation went to the client, each as often as it did so.
    [[nodiscard]] std::span<const std::uint16_t> passed() const noexcept { return passed_; }
    /// Ends it soon. False: no room to say so.
    [[nodiscard]] bool cancel() noexcept;
    /// What steps received to where it belongs, if not there already. Those with own != 0 are left alone.
    void copy_out(const abi::Schedule& schedule, std::span<const std::uint8_t> own) noexcept;

    /// The endpoint's: it was handed over; the answer has come, or never will.
    void on_started(std::uint32_t cookie) noexcept;
    void on_done(const abi::CompletionRecord& record) noexcept;
    void on_ended(int error) noexcept;

private:
    struct Buffer {
        const unsigned char* memory = nullptr;  ///< the caller's
        std::uint32_t octets = 0;
        std::uint32_t offset = 0;  ///< in the tx arena
        unsigned char* staged =
            nullptr;  ///< from the arena; nullptr: the caller's lies there itself
    };
    [[nodiscard]] Buffer& buffer(abi::BufferId id) noexcept {
        return buffers_[static_cast<std::size_t>(id)];
    }
    [[nodiscard]] bool place(Buffer& buffer, const unsigned char* memory, std::uint64_t octets);
    void copy_in(const abi::Schedule& schedule) noexcept;
    [[nodiscard]] bool write_request(const abi::Schedule& schedule, OffloadTags tags,
                                     std::span<const std::uint8_t> own);
    void give_back() noexcept;

    ulc_endpoint* ep_ = nullptr;
    Buffer buffers_[exec::kBuffers];
    unsigned char* output_memory_ = nullptr;
    unsigned char* scratch_ = nullptr;  ///< in the arena
    std::size_t scratch_octets_ = 0;
    unsigned char* request_ = nullptr;  ///< the same
    std::uint32_t request_octets_ = 0;
    std::uint32_t cookie_ = 0;
    int status_ = 0;
    std::uint16_t source_ = 0;
    std::uint64_t found_tag_ = 0;
    std::vector<std::uint16_t> passed_;
    bool passes_on_ = false;
    bool running_ = false;
    bool refused_ = false;
    bool cancelled_ = false;
};

}  // namespace ulc::client
