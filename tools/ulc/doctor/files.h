// SPDX-License-Identifier: BSD-3-Clause
// Small reads of /sys and /proc for the doctor.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ulc::tools {

/// First line of a file, "" if it cannot be read.
inline std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

inline std::string whole_file(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A number in a file, `otherwise` if there is none.
inline long long number_in(const std::string& path, long long otherwise) {
    std::ifstream file(path);
    long long value = 0;
    return file >> value ? value : otherwise;
}

/// Names in a folder, sorted; none if it cannot be read.
inline std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// Last component of what a symbolic link points to, "" if there is none.
inline std::string link_name(const std::string& path) {
    std::error_code error;
    return std::filesystem::read_symlink(path, error).filename().string();
}

}  // namespace ulc::tools
