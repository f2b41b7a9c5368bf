// SPDX-License-Identifier: BSD-3-Clause
// A schedule submitted to the engine, as the client sees it (endpoint/offload.h is the other side).
// The engine finds buffers and schedule in the tx arena. Other buffers are staged there: start()
// copies them in and finish() copies them out.
//
//   start ─▶ [ running ] ──kOffloadDone──▶ status() says how; finish() gives the memory back
//
// Conditions for a submission: no reductions, and no step touches memory into which a later one
// receives, so that the engine may put a message there as soon as it comes. The engine copies
// nothing. The caller makes the copies that come before all messages before start(), and those that
// no message follows when it is over; a schedule with copies between the two is not submitted.
//
// Messages that the client already has, or that are on their way to it, stay with the client: the
// caller leaves their steps out (`own`) or learns of their sources afterwards (passed()). Data to
// be sent on must be in the arena, so a schedule that sends data on is submitted when those
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

/// The tags that distinguish an operation's messages from others.
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

    /// The meaning of a well-formed schedule for the engine.
    struct Judgement {
        bool suits = false;      ///< the engine may run it
        bool passes_on = false;  ///< and sends data that it received
    };
    [[nodiscard]] static Judgement judge(const abi::Schedule& schedule);

    /// Judges the schedule; if it suits, takes its scratch memory from the arena, for the life of
    /// this object. Returns false if it must not be submitted.
    [[nodiscard]] bool prepare(ulc_endpoint* ep, const abi::Schedule& schedule);
    /// nullptr: it needs none.
    [[nodiscard]] unsigned char* scratch() const noexcept { return scratch_; }
    [[nodiscard]] bool passes_on() const noexcept { return passes_on_; }
    [[nodiscard]] std::uint32_t cookie() const noexcept { return cookie_; }
    /// Submits the prepared schedule, with its early copies made. `own`: by step, not 0 if the
    /// caller has the message. Returns false if there is no space for it; nothing has happened.
    [[nodiscard]] bool start(std::uint32_t group, const abi::Schedule& schedule,
                             const exec::Setup& setup, OffloadTags tags,
                             std::span<const std::uint8_t> own);
    /// True if the engine has it.
    [[nodiscard]] bool running() const noexcept { return running_; }
    /// True if it was never begun: the caller may run it itself.
    [[nodiscard]] bool refused() const noexcept { return refused_; }
    [[nodiscard]] int status() const noexcept { return status_; }
    /// For status() MISMATCH: source of the message that differs.
    [[nodiscard]] std::uint16_t source() const noexcept { return source_; }
    [[nodiscard]] std::uint64_t found_tag() const noexcept { return found_tag_; }
    /// Returns the ranks whose next message of the operation went to the client, each as often as
    /// that happened.
    [[nodiscard]] std::span<const std::uint16_t> passed() const noexcept { return passed_; }
    /// Ends it soon. Returns false if there is no space for the record.
    [[nodiscard]] bool cancel() noexcept;
    /// Copies the received data of the steps to their destination, if not there already. Steps with
    /// own != 0 are left alone.
    void copy_out(const abi::Schedule& schedule, std::span<const std::uint8_t> own) noexcept;

    /// Called by the endpoint: it was submitted; the answer has come, or never will.
    void on_started(std::uint32_t cookie) noexcept;
    void on_done(const abi::CompletionRecord& record) noexcept;
    void on_ended(int error) noexcept;

private:
    struct Buffer {
        const unsigned char* memory = nullptr;  ///< the caller's
        std::uint32_t octets = 0;
        std::uint32_t offset = 0;  ///< in the tx arena
        unsigned char* staged =
            nullptr;  ///< from the arena; nullptr: the caller's memory is itself in the arena
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
