// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/trace/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ulc::tools {
namespace {

/// Opens the file to write, empty. A pipe or a device keeps its rights. Returns -1 with errno.
int open_private(const char* path) {
    const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return fd;
    struct stat status {};
    const bool taken =
        fstat(fd, &status) == 0 &&
        (!S_ISREG(status.st_mode) || (fchmod(fd, S_IRUSR | S_IWUSR) == 0 && ftruncate(fd, 0) == 0));
    if (taken) return fd;
    const int error = errno;
    ::close(fd);
    errno = error;
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
    } else if (const int fd = open_private(path.c_str()); fd >= 0) {
        file_ = ::fdopen(fd, "w");
        if (file_ == nullptr) ::close(fd);
    }
    if (file_ == nullptr) *error = failure();
    return file_ != nullptr;
}

bool Output::write(const std::string& text, std::string* error) {
    if (std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0)
        return true;
    *error = failure();
    return false;
}

std::string Output::failure() const {
    return path_ + ": " + std::strerror(errno) + "; choose another file with -o";
}

}  // namespace ulc::tools
