// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ulc/programs.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace ulc::tools {
namespace {

bool is_executable(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find(separator, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

}  // namespace

std::string environment_of(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    return value == nullptr ? "" : value;
}

std::string own_folder() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

std::string find_in_path(const std::string& name) {
    if (name.find('/') != std::string::npos) return is_executable(name) ? name : "";
    for (const auto& folder : split(environment_of("PATH"), ':')) {
        std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
        if (is_executable(path)) return path;
    }
    return "";
}

std::string why_no_program(const std::string& name) {
    if (!find_in_path(name).empty()) return "";
    std::error_code ignored;
    if (std::filesystem::is_directory(name, ignored))
        return fmt::format("{} is a folder; name a program", name);
    const bool has_path = name.find('/') != std::string::npos;
    const std::string path = has_path ? name : "./" + name;
    if (is_executable(path))
        return fmt::format("no such program: {}; there is one in this folder, write {}", name,
                           path);
    if (std::filesystem::exists(path, ignored))
        return fmt::format(
            "{} is not executable; run chmod +x {}, or name the program that reads it before it, "
            "as in python3 {}",
            name, path, path);
    return fmt::format("no such program: {}; is it built, and is {} right?", name,
                       has_path ? "the path" : "PATH");
}

std::string find_program(const std::string& name, const std::string& build_folder,
                         const char* variable) {
    const std::string named = environment_of(variable);
    if (!named.empty()) return is_executable(named) ? named : "";
    for (const auto& path : {own_folder() + "/" + name,
                             fmt::format("{}/../{}/{}", own_folder(), build_folder, name)}) {
        if (is_executable(path)) return std::filesystem::weakly_canonical(path).string();
    }
    return find_in_path(name);
}

std::string find_library(const std::string& file, const std::string& build_folder) {
    std::vector<std::string> folders{own_folder() + "/../" + build_folder, own_folder() + "/../lib",
                                     own_folder() + "/../lib/x86_64-linux-gnu"};
    for (const auto& f : split(environment_of("LD_LIBRARY_PATH"), ':'))
        folders.push_back(f);
    for (const char* f : {"/usr/local/lib", "/usr/local/lib/x86_64-linux-gnu", "/usr/lib",
                          "/usr/lib/x86_64-linux-gnu"}) {
        folders.emplace_back(f);
    }
    for (const auto& folder : folders) {
        // A package for users has a library under its soname only.
        for (const char* version : {"", ".0"}) {
            const auto path = fmt::format("{}/{}{}", folder, file, version);
            if (!folder.empty() && ::access(path.c_str(), R_OK) == 0)
                return std::filesystem::weakly_canonical(path).string();
        }
    }
    return "";
}

}  // namespace ulc::tools
