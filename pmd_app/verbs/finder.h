// SPDX-License-Identifier: BSD-3-Clause
// Finds functions of a shared library by name. Used by library.cc and cm_library.cc.
#pragma once

#include <dlfcn.h>

#include <string>

namespace ulc::verbs {

/// Remembers the first function that is missing.
class Finder {
public:
    explicit Finder(void* library) : library_(library) {}

    template <typename Function>
    void find(Function*& out, const char* name) {
        find_if_there(out, name);
        if (out == nullptr && missing_.empty()) missing_ = name;
    }
    template <typename Function>
    void find_if_there(Function*& out, const char* name) {
        out = reinterpret_cast<Function*>(dlsym(library_, name));
    }
    [[nodiscard]] const std::string& missing() const noexcept { return missing_; }

private:
    void* library_;
    std::string missing_;
};

}  // namespace ulc::verbs
