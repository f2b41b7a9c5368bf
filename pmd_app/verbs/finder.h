// SPDX-License-Identifier: BSD-3-Clause
// Opens a shared library at run time and finds its functions by name. Used by library.cc and
// cm_library.cc.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace ulc::verbs {

/// The words of a failure: the use of a library, and its packages.
struct LibraryNeed {
    const char* by;         ///< "verbs devices need"
    const char* packages;   ///< Debian's, for apt-get install
    const char* a_package;  ///< the package that has the functions, with its first version
};

class Finder {
public:
    /// Opens the file, which stays open.
    explicit Finder(const char* file) : file_(file), library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): start-up
        if (library_ == nullptr) problem_ = dlerror();
    }

    template <typename Function>
    void find(Function*& out, const char* name) {
        find_if_there(out, name);
        if (out == nullptr && missing_.empty()) missing_ = name;
    }
    template <typename Function>
    void find_if_there(Function*& out, const char* name) {
        out = library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_, name));
    }

    /// Returns kOk if the library is open and all that find() looked for is in it, else
    /// kUnsupported. why: what to install.
    [[nodiscard]] Err result(const LibraryNeed& need, std::string& why) const {
        if (library_ == nullptr) {
            why = std::string(need.by) + " " + file_ + " (" + problem_ +
                  "); run: sudo apt-get install " + need.packages;
        } else if (!missing_.empty()) {
            why = file_ + " has no " + missing_ + "; install " + need.a_package;
        } else {
            return Err::kOk;
        }
        return Err::kUnsupported;
    }

private:
    std::string file_;
    void* library_;
    std::string problem_;
    std::string missing_;  ///< the first
};

}  // namespace ulc::verbs
