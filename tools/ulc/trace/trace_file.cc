// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace ulc::tools {
namespace {

constexpr std::uint32_t kFrameBytesMax = 65536;
constexpr std::uint64_t kRecordsAtOnce = 128;  ///< fewer than half of kTraceMargin
/// Limit of times, so that their sums are times too.
constexpr Nanos kTimeMax = Nanos{1} << 62U;

/// Returns the name without letters that would disturb a terminal or a file format.
template <std::size_t N>
std::string name_of(const char (&bytes)[N]) {
    std::string name(bytes, strnlen(bytes, N));
    std::ranges::replace_if(
        name, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; }, '?');
    return name;
}

}  // namespace

TraceFile::~TraceFile() {
    if (fd_ >= 0) ::close(fd_);
}

bool TraceFile::open(const std::string& path, std::string* error) {
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) {
        *error = path + ": " + std::strerror(errno) +
                 "; name the file of the engine's option --trace, as its user or root";
        return false;
    }
    const std::string not_one = path + " is not a trace of an engine";
    if (!S_ISREG(info.st_mode) || info.st_size < static_cast<off_t>(abi::kTraceHeaderBytes)) {
        *error = not_one + "; name the file of its option --trace";
        return false;
    }
    abi::TraceHeader header{};
    if (!read_at(0, &header, sizeof header)) {
        *error = path + " cannot be read; copy it to a local folder";
        return false;
    }
    if (check(header, static_cast<std::size_t>(info.st_size), error)) return true;
    *error =
        error->empty() ? not_one + "; name the file of its option --trace" : path + " " + *error;
    return false;
}

bool TraceFile::read_at(std::size_t at, void* out, std::size_t bytes) const {
    return ::pread(fd_, out, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

/// Returns the number of records that were ever written; next_ if the file is too short by now.
std::uint64_t TraceFile::produced() const {
    std::uint64_t value = 0;
    return read_at(offsetof(abi::TraceHeader, produced), &value, sizeof value) ? value : next_;
}

/// Copies the header's values and checks them. An empty error: the file is no trace.
bool TraceFile::check(const abi::TraceHeader& header, std::size_t bytes, std::string* error) {
    error->clear();
    if (header.magic != abi::kTraceMagic) return false;
    if (header.version != abi::kTraceVersion) {
        *error = "is of version " + std::to_string(header.version) + ", this ulc reads version " +
                 std::to_string(abi::kTraceVersion) + "; use the ulc of that engine";
        return false;
    }
    records_ = header.records;
    const bool is_size = std::has_single_bit(records_) && records_ >= abi::kTraceRecordsMin &&
                         records_ <= abi::kTraceRecordsMax;
    const std::uint16_t nets = header.nets;
    const std::uint32_t counters = header.counters;
    realtime_ahead_ = header.realtime_ahead;
    nanos_per_tick_ = header.nanos_per_tick;
    const bool is_time =
        nanos_per_tick_ != 0 && realtime_ahead_ < kTimeMax && realtime_ahead_ > -kTimeMax;
    if (!is_size || !is_time || nets > abi::kTraceNets || counters > abi::kTraceCounters ||
        bytes < abi::kTraceHeaderBytes + records_ * abi::kTraceRecordBytes) {
        *error = "is damaged: its head has impossible values; make another trace";
        return false;
    }
    engine_pid_ = header.engine_pid;
    ether_type_ = header.ether_type;
    for (std::uint16_t n = 0; n < nets; ++n)
        nets_.push_back(name_of(header.net_names[n]));
    for (std::uint32_t n = 0; n < counters; ++n)
        counters_.push_back(name_of(header.counter_names[n]));
    return true;
}

bool TraceFile::is_possible(const TimedRecord& record) const {
    if (record.at >= kTimeMax) return false;
    switch (record.kind) {
        case abi::TraceKind::kFrameIn:
        case abi::TraceKind::kFrameOut:
        case abi::TraceKind::kGivenUp:
            return record.source < nets_.size() && record.kept <= abi::kTraceFrameBytes &&
                   record.kept <= record.amount && record.amount <= kFrameBytesMax;
        case abi::TraceKind::kCounter:
            return record.source < counters_.size() && record.kept == 0;
    }
    return false;
}

void TraceFile::read(std::vector<TimedRecord>& out) {
    const std::uint64_t produced = this->produced();
    if (produced < next_) next_ = produced;  // no engine does that
    const std::uint64_t kept = records_ - abi::kTraceMargin;
    if (produced - next_ > kept) {
        skipped_ += produced - next_ - kept;
        next_ = produced - kept;
    }
    std::vector<abi::TraceRecord> copies(kRecordsAtOnce);
    while (next_ != produced) {
        const std::uint64_t at = next_ & (records_ - 1);
        const std::uint64_t count =
            std::min({produced - next_, std::uint64_t{records_} - at, kRecordsAtOnce});
        if (!read_at(abi::kTraceHeaderBytes + at * abi::kTraceRecordBytes, copies.data(),
                     count * abi::kTraceRecordBytes)) {
            bad_ += produced - next_;  // the file was shortened
            next_ = produced;
            return;
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        const std::uint64_t now = this->produced();
        for (std::uint64_t n = 0; n < count; ++n, ++next_) {
            TimedRecord record;
            static_cast<abi::TraceRecord&>(record) = copies[n];
            record.at = abi::trace_time(record.ticks, nanos_per_tick_);
            if (now - next_ > kept) {
                ++skipped_;  // overwritten while it was copied
            } else if (!is_possible(record)) {
                ++bad_;
            } else {
                out.push_back(record);
            }
        }
    }
}

bool TraceFile::is_written() const {
    if (::flock(fd_, LOCK_SH | LOCK_NB) != 0) return true;
    ::flock(fd_, LOCK_UN);
    return false;
}

}  // namespace ulc::tools
