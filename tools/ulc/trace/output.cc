// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace ulc::tools {
namespace {

/// True if the name is that of a descriptor of this process, which the kernel shows as a link.
bool is_descriptor(std::string_view path) noexcept {
    return path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/") ||
           path == "/dev/stdout" || path == "/dev/stderr";
}

/// Empties a file and takes the rights of others from it. A pipe or a device keeps its rights.
/// Returns the reason why not, or nothing.
std::string make_private(int fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return std::strerror(errno);
    if (!S_ISREG(status.st_mode)) return "";
    if (status.st_uid != geteuid()) return "it is a file of another user";
    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0 || ftruncate(fd, 0) != 0) return std::strerror(errno);
    return "";
}

/// Opens the file to write, empty. Another user may have put a file or a link there before, where
/// all may write. Returns -1: `reason` says why.
int open_private(const std::string& path, std::string* reason) {
    const int follows = is_descriptor(path) ? 0 : O_NOFOLLOW;
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | follows, 0600);
    if (fd < 0) {
        *reason = errno == ELOOP ? "it is a symbolic link" : std::strerror(errno);
        return -1;
    }
    *reason = make_private(fd);
    if (reason->empty()) return fd;
    ::close(fd);
    return -1;
}

}  // namespace

Output::~Output() {
    if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

bool Output::open(const std::string& path, std::string* error) {
    path_ = path == "-" ? "standard output" : path;
    if (path == "-") {
        file_ = stdout;
        return true;
    }
    std::string reason;
    if (const int fd = open_private(path, &reason); fd >= 0) {
        file_ = ::fdopen(fd, "w");
        if (file_ == nullptr) {
            reason = std::strerror(errno);
            ::close(fd);
        }
    }
    if (file_ == nullptr) *error = failure(reason);
    return file_ != nullptr;
}

bool Output::write(const std::string& text, std::string* error) {
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0)
        return true;
    *error = failure(std::strerror(errno));
    return false;
}

std::string Output::failure(const std::string& reason) const {
    return path_ + ": " + reason + "; choose another file with -o";
}

}  // namespace ulc::tools
