// SPDX-License-Identifier: BSD-3-Clause
#include "main/service/journal.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace ulc::daemon {
namespace {

constexpr std::size_t kTextMax = 16384;  ///< far less than a datagram holds

thread_local std::array<LogFields::Field, LogFields::kMost> t_fields{};

/// Returns the priority of syslog(3).
char priority_of(spdlog::level::level_enum level) noexcept {
    switch (level) {
        case spdlog::level::critical:
            return '2';
        case spdlog::level::err:
            return '3';
        case spdlog::level::warn:
            return '4';
        case spdlog::level::info:
            return '6';
        default:
            return '7';
    }
}

/// Appends a field. A value with a line end has its length in front: 64 bits, little-endian.
void append(std::string& datagram, std::string_view name, std::string_view value) {
    datagram += name;
    if (value.find('\n') == std::string_view::npos) {
        datagram += '=';
    } else {
        datagram += '\n';
        for (unsigned n = 0; n < 8; ++n)
            datagram += static_cast<char>(std::uint64_t{value.size()} >> (8 * n));
    }
    datagram += value;
    datagram += '\n';
}

/// True if JOURNAL_STREAM names the file behind stderr, as "DEVICE:INODE" (systemd.exec(5)).
bool stderr_is_journal() {
    const char* stream = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): start-up
    struct stat status {};
    if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

}  // namespace

LogFields::LogFields(std::initializer_list<Field> fields) noexcept : outer_(t_fields) {
    t_fields = {};
    std::copy_n(fields.begin(), std::min(fields.size(), kMost), t_fields.begin());
}

LogFields::~LogFields() { t_fields = outer_; }

const std::array<LogFields::Field, LogFields::kMost>& LogFields::of_this_thread() noexcept {
    return t_fields;
}

std::shared_ptr<JournalSink> JournalSink::make(const std::string& path, std::string engine) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (!stderr_is_journal() || path.size() >= sizeof address.sun_path) return nullptr;
    std::memcpy(address.sun_path, path.data(), path.size());
    const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made < 0) return nullptr;
    if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        close(made);
        return nullptr;
    }
    return std::shared_ptr<JournalSink>(new JournalSink(made, std::move(engine)));
}

JournalSink::~JournalSink() { close(socket_); }

void JournalSink::sink_it_(const spdlog::details::log_msg& line) {
    const std::string_view text(line.payload.data(), std::min(line.payload.size(), kTextMax));
    const char priority = priority_of(line.level);
    std::string datagram;
    append(datagram, "MESSAGE", text);
    append(datagram, "PRIORITY", {&priority, 1});
    append(datagram, "SYSLOG_IDENTIFIER", "ulc-engine");
    append(datagram, "ULC_SOCKET", engine_);
    for (const LogFields::Field& field : LogFields::of_this_thread()) {
        if (field.name == nullptr) break;
        append(datagram, field.name, std::to_string(field.value));
    }
    const auto sent =
        ::send(socket_, datagram.data(), datagram.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return;
    // The journal takes the priority from the first characters (sd-daemon(3)).
    std::fprintf(stderr, "<%c>%.*s\n", priority, static_cast<int>(text.size()), text.data());
}

}  // namespace ulc::daemon
