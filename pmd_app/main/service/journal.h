// SPDX-License-Identifier: BSD-3-Clause
// Log lines with fields for systemd's journal, by its native protocol
// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL). Used by the daemon where its stderr is the journal.
// A journal that is gone or does not keep up gets lines by stderr, without fields.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>

namespace ulc::daemon {

/// Adds fields to each line that this thread logs while the object lives, in place of those of an
/// object around it. Without a journal they cost nothing and show nothing.
class LogFields {
public:
    struct Field {
        const char* name;  ///< upper case, "ULC_" first
        std::uint64_t value;
    };
    static constexpr std::size_t kMost = 3;

    LogFields(std::initializer_list<Field> fields) noexcept;
    ~LogFields();
    LogFields(const LogFields&) = delete;
    LogFields& operator=(const LogFields&) = delete;

    /// Returns those of this thread; a name of nullptr ends them.
    [[nodiscard]] static const std::array<Field, kMost>& of_this_thread() noexcept;

private:
    std::array<Field, kMost> outer_;
};

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    /// The socket of systemd.
    static constexpr const char* kPath = "/run/systemd/journal/socket";

    /// Returns a sink for the journal at the path, or nullptr if stderr is not the stream that
    /// JOURNAL_STREAM names, or no journal listens. engine: goes into ULC_SOCKET of each line.
    static std::shared_ptr<JournalSink> make(const std::string& path, std::string engine);
    ~JournalSink() override;

protected:
    void sink_it_(const spdlog::details::log_msg& line) override;
    void flush_() override {}

private:
    JournalSink(int socket, std::string engine) noexcept
        : socket_(socket), engine_(std::move(engine)) {}

    int socket_;
    std::string engine_;
};

}  // namespace ulc::daemon
