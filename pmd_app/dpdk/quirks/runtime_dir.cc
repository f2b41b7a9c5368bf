// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/quirks/runtime_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <rte_eal.h>

namespace ulc::dpdk {
namespace {

constexpr const char* kPrefix = "ulc-";
constexpr const char* kVariable = "XDG_RUNTIME_DIR";

pid_t g_owner = 0;  // who made the directory: a forked child must not remove it

void unlink_files(const std::string& path) {
    DIR* dir = opendir(path.c_str());
    if (dir == nullptr) return;
    while (const dirent* entry = readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): own DIR
        if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
}

/// Returns true if no process has this pid, and none holds the directory (a process of another pid
/// namespace would).
bool abandoned(const std::string& path, pid_t pid) {
    if (kill(pid, 0) == 0 || errno != ESRCH) return false;
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return free;
}

void sweep(const std::string& parent) {
    DIR* dir = opendir(parent.c_str());
    if (dir == nullptr) return;
    while (const dirent* entry = readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): own DIR
        const std::string name = entry->d_name;
        if (!name.starts_with(kPrefix)) continue;
        const long pid = std::strtol(name.c_str() + std::string(kPrefix).size(), nullptr, 10);
        std::string path = parent;
        path.append("/").append(name);
        if (pid <= 0 || !abandoned(path, static_cast<pid_t>(pid))) continue;
        unlink_files(path);
        rmdir(path.c_str());
    }
    closedir(dir);
}

}  // namespace

std::string runtime_prefix() { return kPrefix + std::to_string(getpid()); }

RuntimeDirectory::RuntimeDirectory() {
    if (getuid() == 0 || std::getenv(kVariable) != nullptr)
        return;  // NOLINT(concurrency-mt-unsafe): start-up
    const std::string path = "/tmp/ulc-" + std::to_string(getuid());
    struct stat status {};
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return;
    if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != getuid())
        return;
    setenv(kVariable, path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): start-up
    variable_set_ = true;
}

RuntimeDirectory::~RuntimeDirectory() {
    if (variable_set_) unsetenv(kVariable);  // NOLINT(concurrency-mt-unsafe): start-up
    const char* path = rte_eal_get_runtime_dir();
    if (path == nullptr || path[0] == '\0') return;
    unlink_files(path);
    // Held, unlocked only by our end, so that no sweep takes the directory away.
    const int held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (held >= 0) flock(held, LOCK_SH | LOCK_NB);
    const std::string own = path;
    sweep(own.substr(0, own.rfind('/')));
    g_owner = getpid();
    std::atexit(remove_runtime_directory);
}

void remove_runtime_directory() {
    if (g_owner != getpid()) return;
    const char* path = rte_eal_get_runtime_dir();
    unlink_files(path);
    rmdir(path);
    g_owner = 0;
}

}  // namespace ulc::dpdk
